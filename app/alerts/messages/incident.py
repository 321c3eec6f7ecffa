"""Messages about one incident: opened, resolved, acknowledged, still open."""

from __future__ import annotations

from collections.abc import Sequence

from app.alerts import words
from app.alerts.messages.context import Context
from app.alerts.messages.facts import (
    Facts,
    address_of,
    cause_of,
    ended_at,
    lasted,
    name_of,
    started_at,
    told_at,
    unwatched,
)
from app.alerts.messages.incident_parts import incident_data, incident_links
from app.alerts.messages.message import Message, Tone
from app.rules.figures import about
from app.rules.what_changed import LAST_GOOD

OTHERS_NAMED = 5
CHANGES_NAMED = 3


def _others(label: str, facts: Facts, context: Context) -> tuple[tuple[str, str], ...]:
    own = facts["monitor"]["id"]
    names = [name for id, name in context.others_down.items() if id != own]
    if not names:
        return ()
    shown = ", ".join(words.shorten(name, 40) for name in names[:OTHERS_NAMED])
    more = len(names) - OTHERS_NAMED
    return ((label, f"{shown} and {more} more" if more > 0 else shown),)


def _changes(facts: Facts) -> tuple[tuple[str, str], ...]:
    """What is different from the last good check, in few words; of another one, how old it is."""
    incident = facts["incident"]
    found, good = incident.get("changes") or [], incident.get("compared_with") or LAST_GOOD
    texts = [words.shorten(change["text"], 120) for change in found[:CHANGES_NAMED]]
    since = "" if good.startswith(LAST_GOOD) else f" (since {good})"
    return (("What changed", "; ".join(texts) + since),) if texts else ()


def _seen_from(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Which places see it, where there are several."""
    seen = facts["incident"].get("seen_from")
    return (("Seen from", words.shorten(str(seen), 200)),) if seen else ()


def _deployed(facts: Facts) -> tuple[tuple[str, str], ...]:
    """What was deployed shortly before, the nearest first."""
    incident = facts["incident"]
    started = started_at(incident)
    texts = [
        f"{words.shorten(one['name'], words.MAX_NAME_SHOWN)},"
        f" {about((started - words.read_moment(one['time'])).total_seconds())} before"
        for one in incident.get("deployed") or []
    ]
    return (("Deployed", "; ".join(texts)),) if texts else ()


def _flapping(facts: Facts) -> int | None:
    """The openings in 10 minutes, if this message reports flapping."""
    times: int | None = (facts.get("extra") or {}).get("flapping")
    return times


def _about_incident(
    facts: Facts,
    context: Context,
    tone: Tone,
    title: str,
    summary: str,
    details: Sequence[tuple[str, str]],
) -> Message:
    return Message(
        event=facts["event"],
        tone=tone,
        title=title,
        summary=summary,
        at=told_at(facts),
        details=tuple(details),
        links=incident_links(facts, context),
        thread=f"incident-{facts['incident']['id']}",
        data={
            "monitor": dict(facts["monitor"]),
            "incident": incident_data(facts, context),
            # Only this one of the extra facts: receivers of webhooks rely on the fields they get.
            **({"flapping": times} if (times := _flapping(facts)) else {}),
        },
    )


def opened(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    details = [
        *_seen_from(facts),
        *_deployed(facts),
        *_changes(facts),
        ("Down since", words.clock_time(started_at(incident))),
        address_of(facts),
        *_others("Also down", facts, context),
    ]
    if times := _flapping(facts):
        note = f"Down {times} times in 10 minutes. The next alert comes when it stays down."
        details.insert(0, ("Flapping", note))
    # ``late``: the first message was given up, because nothing was sent for 24 hours.
    title = "Still down" if (facts.get("extra") or {}).get("late") else "Down"
    summary = f"{cause_of(incident)}{unwatched(incident)}"
    return _about_incident(facts, context, Tone.BAD, f"{title}: {name_of(facts)}", summary, details)


def resolved(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    started, ended = started_at(incident), ended_at(facts)
    details = [
        ("Cause", cause_of(incident)),
        # While nothing was checked, it may have been up.
        (
            "At most" if incident.get("unwatched") else "Down",
            f"{words.clock_time(started)} to {words.clock_time(ended)}",
        ),
        address_of(facts),
        *_others("Still down", facts, context),
    ]
    summary = f"It was down for {lasted(facts, ended)}.{unwatched(incident)}"
    title = f"Up again: {name_of(facts)}"
    return _about_incident(facts, context, Tone.GOOD, title, summary, details)


def reminder(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    so_far = lasted(facts, told_at(facts))
    details = [
        ("Cause", cause_of(incident)),
        *_seen_from(facts),
        *_deployed(facts),
        *_changes(facts),
        ("Down since", words.clock_time(started_at(incident))),
        address_of(facts),
        *_others("Also down", facts, context),
    ]
    summary = f"Down for {so_far}, and nobody has acknowledged it yet.{unwatched(incident)}"
    return _about_incident(
        facts, context, Tone.BAD, f"Still down: {name_of(facts)}", summary, details
    )


def acknowledged(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    by = incident.get("acknowledged_by")
    details = [
        ("Cause", cause_of(incident)),
        ("Down since", words.clock_time(started_at(incident))),
    ]
    summary = f"Acknowledged by {words.shorten(by, 100)}." if by else "Somebody is looking at it."
    return _about_incident(
        facts, context, Tone.PLAIN, f"Acknowledged: {name_of(facts)}", summary, details
    )
