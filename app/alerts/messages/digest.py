"""The message about everything that quiet hours held back."""

from __future__ import annotations

from app.alerts import words
from app.alerts.messages.context import Context
from app.alerts.messages.expiry import NOTICES
from app.alerts.messages.facts import (
    Facts,
    cause_of,
    ended_at,
    ending_of,
    lasted,
    name_of,
    recovered,
    started_at,
    told_at,
)
from app.alerts.messages.incident_parts import incident_data, incident_links
from app.alerts.messages.message import Item, Link, Message, Tone
from app.i18n import N_, _, _n


def digest(facts: Facts, context: Context) -> Message:
    """Quiet hours summary. ``facts["incidents"]`` are the first ten, as they are now;
    ``facts["notices"]`` the own facts of the first ten certificate and domain alerts.
    """
    open_, over, noticed = facts["open"], facts["resolved"], facts["notice_count"]
    members, notices = facts["incidents"], facts["notices"]
    parts = [_n("%(num)s still down", "%(num)s still down", open_)] if open_ else []
    parts += [_n("%(num)s outage over", "%(num)s outages over", over)] if over else []
    parts += [_n("%(num)s notice", "%(num)s notices", noticed)] if noticed else []
    alone = len(members) == 1 == open_ + over  # then its links are the message's
    items = [
        Item(
            f"{name_of(member)}: {_digest_item(member)}",
            () if alone else incident_links(member, context),
        )
        for member in members
    ]
    # With the present time: the number of days left has changed while the notices waited.
    told = [NOTICES[notice["event"]]({**notice, "at": facts["at"]}, context) for notice in notices]
    items += [Item(notice.title, notice.links) for notice in told]
    more = open_ + over + noticed - len(items)
    if more > 0:
        items.append(Item(_n("and %(num)s more", "and %(num)s more", more)))
    all_links = (Link(_("All incidents"), f"{context.base_url}/incidents"),)
    return Message(
        event=facts["event"],
        tone=Tone.BAD if open_ else Tone.GOOD if over else Tone.WARNING,
        title=_("Quiet hours are over: %(what)s", what=", ".join(parts) or _("nothing happened")),
        summary=_(
            "Held back since %(time)s.",
            time=words.clock_time(words.read_moment(facts["since"])),
        ),
        at=told_at(facts),
        items=tuple(items),
        links=incident_links(members[0], context) if alone else all_links,
        data={
            "count": open_ + over,
            "open": open_,
            "resolved": over,
            "incidents": [
                {**incident_data(member, context), "monitor": dict(member["monitor"])}
                for member in members
            ],
            "notices": [{"type": notice.event, **notice.data} for notice in told],
            "deliveries": list(facts["deliveries"]),
        },
    )


def _digest_item(facts: Facts) -> str:
    incident = facts["incident"]
    started = started_at(incident)
    cause = words.shorten(cause_of(incident), 120)
    if incident["ended_at"] and not recovered(facts):
        return ending_of(facts)
    if incident["ended_at"]:
        length = lasted(facts, ended_at(facts))
        sentence = N_("was down for %(length)s from %(start)s. %(cause)s")
        return _(sentence, length=length, start=words.clock_time(started), cause=cause)
    sentence = (
        N_("still down since %(start)s, acknowledged. %(cause)s")
        if incident["acknowledged_at"]
        else N_("still down since %(start)s. %(cause)s")
    )
    return _(sentence, start=words.clock_time(started), cause=cause)
