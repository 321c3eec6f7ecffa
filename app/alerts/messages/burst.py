"""The message for many incidents that changed within a minute."""

from __future__ import annotations

from collections.abc import Sequence

from app.alerts import words
from app.alerts.messages.context import Context
from app.alerts.messages.facts import (
    Facts,
    cause_of,
    ended_at,
    ending_of,
    lasted,
    name_of,
    recovered,
    told_at,
)
from app.alerts.messages.incident_parts import incident_data, incident_links
from app.alerts.messages.message import Item, Link, Message, Tone
from app.i18n import _, _n
from app.records import Event


def burst(facts: Facts, context: Context) -> Message:
    """A grouped message: ``facts["incidents"]`` are the first ten members' own facts."""
    good = facts["event"] == Event.INCIDENTS_RESOLVED
    count, members = facts["count"], facts["incidents"]
    items = [
        Item(f"{name_of(member)}: {_item(member, good)}", incident_links(member, context))
        for member in members
    ]
    more = count - len(members)
    if more > 0:
        items.append(Item(_n("and %(num)s more", "and %(num)s more", more)))
    if good:
        title = _over(members, count)
    else:
        title = _n("%(num)s monitor is down", "%(num)s monitors are down", count)
    return Message(
        event=facts["event"],
        tone=Tone.GOOD if good else Tone.BAD,
        title=title,
        summary=_("They changed within a minute, so this is one message for all of them."),
        at=told_at(facts),
        items=tuple(items),
        links=(Link(_("All incidents"), f"{context.base_url}/incidents"),),
        data={
            "count": count,
            "incidents": [
                {**incident_data(member, context), "monitor": dict(member["monitor"])}
                for member in members
            ],
            "deliveries": list(facts["deliveries"]),
        },
    )


def _over(members: Sequence[Facts], count: int) -> str:
    """An end that was no recovery must not be told as one: the monitor may still fail."""
    if all(recovered(member) for member in members):
        return _n("%(num)s monitor is up again", "%(num)s monitors are up again", count)
    return _n("%(num)s incident is over", "%(num)s incidents are over", count)


def _item(facts: Facts, good: bool) -> str:
    incident = facts["incident"]
    if good and not recovered(facts):
        return ending_of(facts)
    cause = words.shorten(cause_of(incident), 120)
    if not good:
        return cause
    length = lasted(facts, ended_at(facts))
    return _("was down for %(length)s. %(cause)s", length=length, cause=cause)
