"""Messages about several incidents: of a burst, acknowledged together, or put on hold by quiet
hours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from app.alerts import words
from app.alerts.messages.incident import (
    cause_of,
    down_since,
    ended_at,
    ending_of,
    incident_data,
    incident_links,
    is_degraded,
    length_until,
    name_with_others,
    recovered,
    who_acknowledged,
)
from app.alerts.messages.message import Facts, Item, Message, MessageContext, MessageLink, Tone
from app.alerts.messages.notices import EXPIRIES
from app.i18n import N_, _, _n
from app.records import Event


def burst(facts: Facts, context: MessageContext) -> Message:
    """Many incidents that opened, or ended, within a minute. ``facts["incidents"]``: the facts of
    the first ten.
    """
    good = facts["event"] == Event.INCIDENTS_RESOLVED
    count, members = facts["count"], facts["incidents"]
    slow = facts.get("degraded", 0)
    return _about_all(
        facts,
        context,
        Tone.GOOD if good else Tone.BAD if slow < count else Tone.WARNING,
        _title_of_end(members, count, slow) if good else _title(count - slow, slow),
        _("They changed within a minute, so this is one message for all of them."),
        _outage_of if good else _cause,
    )


def acknowledged(facts: Facts, context: MessageContext) -> Message:
    """Several incidents that one person acknowledged together."""
    count = facts["count"]
    title = _n("%(num)s incident acknowledged", "%(num)s incidents acknowledged", count)
    summary = who_acknowledged(facts["incidents"][0]["incident"])
    return _about_all(facts, context, Tone.PLAIN, title, summary, _cause)


def _about_all(
    facts: Facts,
    context: MessageContext,
    tone: Tone,
    title: str,
    summary: str,
    say: Callable[[Facts], str],
) -> Message:
    """``say``: makes the text after the name of an incident."""
    count, members = facts["count"], facts["incidents"]
    items = [
        Item(f"{name_with_others(member)}: {say(member)}", incident_links(member, context))
        for member in members
    ]
    return Message.of(
        facts,
        tone,
        title,
        summary,
        items=(*items, *_more(count - len(members))),
        links=_links(members, context),
        data={
            "count": count,
            "incidents": _data(members, context),
            "deliveries": list(facts["deliveries"]),
        },
    )


def _title(down: int, slow: int) -> str:
    """``down``, ``slow``: the numbers of monitors that are down and degraded."""
    if not slow:
        return _n("%(num)s monitor is down", "%(num)s monitors are down", down)
    if not down:
        return _n("%(num)s monitor is slow", "%(num)s monitors are slow", slow)
    return _n(
        "%(num)s monitor is down, and %(slow)s slow",
        "%(num)s monitors are down, and %(slow)s slow",
        down,
        slow=slow,
    )


def _title_of_end(members: Sequence[Facts], count: int, slow: int) -> str:
    if not all(recovered(member) for member in members) or 0 < slow < count:
        # the others may still fail
        return _n("%(num)s incident is over", "%(num)s incidents are over", count)
    if slow:
        return _n("%(num)s monitor is fast again", "%(num)s monitors are fast again", count)
    return _n("%(num)s monitor is up again", "%(num)s monitors are up again", count)


def digest(facts: Facts, context: MessageContext) -> Message:
    """The message after quiet hours. ``facts["incidents"]``: the present facts of the first ten
    incidents. ``facts["notices"]``: the facts of the first ten alerts about certificates and
    domains.
    """
    still_open, ended, noticed = facts["open"], facts["resolved"], facts["notice_count"]
    members, notices = facts["incidents"], facts["notices"]
    slow = facts.get("degraded", 0)
    down = still_open - slow
    parts = [_n("%(num)s still down", "%(num)s still down", down)] if down else []
    parts += [_n("%(num)s still slow", "%(num)s still slow", slow)] if slow else []
    parts += [_n("%(num)s incident over", "%(num)s incidents over", ended)] if ended else []
    parts += [_n("%(num)s notice", "%(num)s notices", noticed)] if noticed else []
    is_single = len(members) == 1 == still_open + ended  # the message has the incident's links
    items = [
        Item(
            f"{name_with_others(member)}: {_state_of(member)}",
            () if is_single else incident_links(member, context),
        )
        for member in members
    ]
    # With the present time, because the number of days left has changed while the notices waited.
    expiries = [
        EXPIRIES[notice["event"]]({**notice, "at": facts["at"]}, context) for notice in notices
    ]
    items += [Item(expiry.title, expiry.links) for expiry in expiries]
    since = words.clock_time(datetime.fromisoformat(facts["since"]))
    return Message.of(
        facts,
        Tone.BAD if down else Tone.GOOD if ended and not slow else Tone.WARNING,
        _("Quiet hours are over: %(what)s", what=", ".join(parts) or _("nothing happened")),
        _("Held back since %(time)s.", time=since),
        items=(*items, *_more(still_open + ended + noticed - len(items))),
        links=incident_links(members[0], context) if is_single else _links(members, context),
        data={
            "count": still_open + ended,
            "open": still_open,
            "resolved": ended,
            "incidents": _data(members, context),
            "notices": [{"type": expiry.event, **expiry.data} for expiry in expiries],
            "deliveries": list(facts["deliveries"]),
        },
    )


def _more(count: int) -> tuple[Item, ...]:
    return (Item(_n("and %(num)s more", "and %(num)s more", count)),) if count > 0 else ()


def _links(members: Sequence[Facts], context: MessageContext) -> tuple[MessageLink, ...]:
    """The acknowledge page, while an incident is unresolved, and the page of all incidents."""
    of_members = (link for member in members for link in incident_links(member, context))
    first = next((link for link in of_members if link.acts), None)
    every = MessageLink(_("All incidents"), f"{context.base_url}/incidents")
    return (first, every) if first else (every,)


def _data(members: Sequence[Facts], context: MessageContext) -> list[dict[str, Any]]:
    return [
        {**incident_data(member, context), "monitor": dict(member["monitor"])} for member in members
    ]


def _cause(facts: Facts) -> str:
    return words.shorten(cause_of(facts["incident"]), 120)


def _outage_of(facts: Facts) -> str:
    """How long an incident lasted and why, or how it ended without a recovery."""
    if not recovered(facts):
        return ending_of(facts)
    slow = N_("was slow for %(length)s. %(cause)s")
    sentence = slow if is_degraded(facts["incident"]) else N_("was down for %(length)s. %(cause)s")
    return _(sentence, length=length_until(facts, ended_at(facts)), cause=_cause(facts))


def _state_of(facts: Facts) -> str:
    """Since when an open incident lasts; how long an ended one lasted, or how it ended."""
    incident = facts["incident"]
    start, cause = words.clock_time(down_since(incident)), _cause(facts)
    if incident["ended_at"] and not recovered(facts):
        return ending_of(facts)
    over, acknowledged, unacknowledged = _STATES[is_degraded(incident)]
    if incident["ended_at"]:
        length = length_until(facts, ended_at(facts))
        return _(over, length=length, start=start, cause=cause)
    sentence = acknowledged if incident["acknowledged_at"] else unacknowledged
    return _(sentence, start=start, cause=cause)


# By ``is_degraded``: the sentences for an incident that is over, one that is acknowledged, and one
# that is not.
_STATES = {
    False: (
        N_("was down for %(length)s from %(start)s. %(cause)s"),
        N_("still down since %(start)s, acknowledged. %(cause)s"),
        N_("still down since %(start)s. %(cause)s"),
    ),
    True: (
        N_("was slow for %(length)s from %(start)s. %(cause)s"),
        N_("still slow since %(start)s, acknowledged. %(cause)s"),
        N_("still slow since %(start)s. %(cause)s"),
    ),
}
