"""Read the facts that are stored in the outbox: names, times and durations as text, and what every
message about an incident has, its links and its data in a webhook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.alerts import words
from app.alerts.messages.message import Message, MessageContext, MessageLink, Tone
from app.i18n import N_, _, _n, listed
from app.records import Ending, IncidentSeverity
from app.rules.who_saw import how_it_ended

Facts = Mapping[str, Any]
ADDRESS = N_("Address")
GAPS_NAMED = 3
UNKNOWN_CAUSE = N_("No cause was given.")


def name_of(facts: Facts) -> str:
    return words.shorten(facts["monitor"]["name"], words.MAX_NAME_SHOWN)


def name_with_others(facts: Facts) -> str:
    """The name, and how many monitors cannot be reached because of it."""
    name, behind = name_of(facts), facts.get("behind")
    if not behind:
        return name
    return _n(
        "%(name)s, and %(num)s monitor behind it",
        "%(name)s, and %(num)s monitors behind it",
        len(behind),
        name=name,
    )


def cause_of(incident: Facts) -> str:
    return words.shorten(incident.get("cause") or _(UNKNOWN_CAUSE), 300)


def written_at(facts: Facts) -> datetime:
    """When the message was written: nobody is notified yet."""
    return datetime.fromisoformat(facts["at"])


def message_of(facts: Facts, tone: Tone, title: str, summary: str, **parts: Any) -> Message:
    """The message of one event, at its moment."""
    parts = {"at": written_at(facts), **parts}
    return Message(event=facts["event"], tone=tone, title=title, summary=summary, **parts)


def address_of(facts: Facts) -> tuple[str, str]:
    return (_(ADDRESS), words.shorten(facts["monitor"]["url"], words.MAX_URL_SHOWN))


def started_at(incident: Facts) -> datetime:
    return datetime.fromisoformat(incident["started_at"])


def is_degraded(incident: Facts) -> bool:
    """Whether it is slow, and not down. Facts of an older version do not say."""
    return incident.get("severity") == IncidentSeverity.DEGRADED


def down_since(incident: Facts) -> datetime:
    """Since when it is down; of a degraded one, since when it is slow."""
    since: str | None = incident.get("down_since")
    return datetime.fromisoformat(since) if since else started_at(incident)


def ended_at(facts: Facts) -> datetime:
    """When the incident ended; for an open one, when the message was written."""
    return datetime.fromisoformat(facts["incident"]["ended_at"] or facts["at"])


def lasted(facts: Facts, until: datetime) -> str:
    """How long it was down, or slow, by ``until``; "at most" if nothing was checked for a part of
    that time.
    """
    length = words.duration((until - down_since(facts["incident"])).total_seconds())
    unwatched = facts["incident"]["unwatched"]
    return _("at most %(span)s", span=length) if unwatched else length


def who_acknowledged(incident: Facts) -> str:
    person: str | None = incident.get("acknowledged_by")
    if not person:
        return _("Somebody is looking at it.")
    return _("Acknowledged by %(name)s", name=words.shorten(person, 100)) + "."


def recovered(facts: Facts) -> bool:
    """Whether good checks ended the incident."""
    return bool(facts["incident"]["ending"] == Ending.RECOVERED)


def silent_places(facts: Facts) -> Sequence[str]:
    """The places whose silence ended the incident."""
    names = (facts.get("extra") or {}).get("silent") or facts["incident"]["seen_by"]
    return [words.shorten(name, words.MAX_NAME_SHOWN) for name in names]


def ending_of(facts: Facts) -> str:
    """How it ended, in a few words, with its cause."""
    how = how_it_ended(
        facts["incident"]["ending"], silent_places(facts), lasted(facts, ended_at(facts))
    )
    return f"{how}. {words.shorten(cause_of(facts['incident']), 120)}"


def sentence_of_gaps(facts: Facts) -> str:
    """A sentence about the times in which nothing was checked, with a leading space; or empty."""
    times = listed(
        _(
            "from %(start)s to %(end)s",
            start=words.clock_time(datetime.fromisoformat(gap["from"])),
            end=words.clock_time(datetime.fromisoformat(gap["to"])),
        )
        for gap in (facts["incident"]["unwatched"] or [])[-GAPS_NAMED:]
    )
    if not times:
        return ""
    is_silence = facts["incident"]["ending"] == Ending.SILENCE
    if is_silence and (names := ", ".join(silent_places(facts))):
        return " " + _("Nothing was heard from %(places)s %(times)s.", places=names, times=times)
    return " " + _("No checks ran %(times)s.", times=times)


def incident_links(facts: Facts, context: MessageContext) -> tuple[MessageLink, ...]:
    """The incident's page and before it, while nobody has acknowledged it, the acknowledge page: it
    is what a phone at night is taken up for.
    """
    incident = facts["incident"]
    page = MessageLink(_("Incident"), context.incident_url(incident["id"]))
    if not _is_unresolved(incident):
        return (page,)
    url = context.acknowledge_url(incident["id"])
    return MessageLink(_("Acknowledge"), url, acts=True), page


def incident_data(facts: Facts, context: MessageContext) -> dict[str, Any]:
    incident = facts["incident"]
    acknowledged = "acknowledged" if incident["acknowledged_at"] else "unresolved"
    link = context.acknowledge_url(incident["id"]) if _is_unresolved(incident) else None
    return {
        **incident,
        "status": "resolved" if incident["ended_at"] else acknowledged,
        "monitor_id": facts["monitor"]["id"],
        "duration": max(0, int((ended_at(facts) - started_at(incident)).total_seconds())),
        "link": context.incident_url(incident["id"]),
        "acknowledge_link": link,
    }


def _is_unresolved(incident: Facts) -> bool:
    return not (incident["ended_at"] or incident["acknowledged_at"])
