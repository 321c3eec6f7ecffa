"""Messages about one incident: opened, resolved, acknowledged, still open. ``grouped`` also uses
the functions for facts, links and data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from app.alerts import words
from app.alerts.messages.message import Facts, Message, MessageContext, MessageLink, Tone, time_of
from app.i18n import N_, _, _n, join_words
from app.records import Ending, IncidentSeverity
from app.rules.figures import about
from app.rules.linked import parts
from app.rules.who_saw import CHANGED, NOT_SLOW_NOW, fell_silent, how_it_ended

ADDRESS = N_("Address")
GAPS_NAMED = 3
UNKNOWN_CAUSE = N_("No cause was given.")
OTHERS_NAMED = 5
MAX_BEHIND = 50  # named when the outage is over; channels with little room cut the message
CHANGES_NAMED = 3
NOTES_SHOWN = 300  # characters of the first lines

Detail = tuple[str, str]


def name_of(facts: Facts) -> str:
    return words.shorten(facts["monitor"]["name"], words.MAX_NAME_SHOWN)


def name_with_others(facts: Facts) -> str:
    """The name of the monitor, with the number of monitors behind it."""
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


def address_of(facts: Facts) -> tuple[str, str]:
    return (_(ADDRESS), words.shorten(facts["monitor"]["url"], words.MAX_URL_SHOWN))


def started_at(incident: Facts) -> datetime:
    return datetime.fromisoformat(incident["started_at"])


def is_degraded(incident: Facts) -> bool:
    """Whether the monitor is slow, not down. Facts that an older version wrote do not say it."""
    return incident.get("severity") == IncidentSeverity.DEGRADED


def down_since(incident: Facts) -> datetime:
    """Since when the monitor is down; if the incident is degraded, since when it is slow."""
    since: str | None = incident.get("down_since")
    return datetime.fromisoformat(since) if since else started_at(incident)


def ended_at(facts: Facts) -> datetime:
    """When the incident ended; if it is open, when the message was written."""
    return datetime.fromisoformat(facts["incident"]["ended_at"] or facts["at"])


def length_until(facts: Facts, until: datetime) -> str:
    """How long the monitor was down or slow, by ``until``; "at most" if no checks ran for a part of
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
    """How the incident ended, in a few words, with its cause."""
    how = how_it_ended(
        facts["incident"]["ending"], silent_places(facts), length_until(facts, ended_at(facts))
    )
    return f"{how}. {words.shorten(cause_of(facts['incident']), 120)}"


def sentence_of_gaps(facts: Facts) -> str:
    """A sentence about the times without checks, after a space; empty if there are none."""
    times = join_words(
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
    """The incident's page. While nobody has acknowledged the incident, the acknowledge page comes
    first: at night, people need that link.
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


# --- The messages ---------------------------------------------------------------------------------


def opened(facts: Facts, context: MessageContext) -> Message:
    incident, details = facts["incident"], list(_while_open(facts, context))
    if times := _flapping(facts):
        note = _n(
            "Down %(num)s time in 10 minutes. The next alert comes when it stays down.",
            "Down %(num)s times in 10 minutes. The next alert comes when it stays down.",
            times,
        )
        if is_degraded(incident):
            note = _n(
                "Slow %(num)s time in 10 minutes. The next alert comes when it stays slow.",
                "Slow %(num)s times in 10 minutes. The next alert comes when it stays slow.",
                times,
            )
        details.insert(0, (_("Flapping"), note))
    # ``late``: the first message was given up, because nothing was sent for 24 hours.
    late = (facts.get("extra") or {}).get("late")
    opening = N_("Degraded: %(name)s") if is_degraded(incident) else N_("Down: %(name)s")
    title = _(_still(incident) if late else opening, name=name_with_others(facts))
    summary = f"{cause_of(incident)}{sentence_of_gaps(facts)}"
    return _about_incident(facts, context, _tone(incident), title, summary, details)


def _still(incident: Facts) -> str:
    return N_("Still degraded: %(name)s") if is_degraded(incident) else N_("Still down: %(name)s")


def _tone(incident: Facts) -> Tone:
    return Tone.WARNING if is_degraded(incident) else Tone.BAD


def reminder(facts: Facts, context: MessageContext) -> Message:
    incident = facts["incident"]
    details = [(_("Cause"), cause_of(incident)), *_while_open(facts, context)]
    sentence = (
        N_("Slow for %(length)s, and nobody has acknowledged it yet.")
        if is_degraded(incident)
        else N_("Down for %(length)s, and nobody has acknowledged it yet.")
    )
    title = _(_still(incident), name=name_with_others(facts))
    summary = _(sentence, length=length_until(facts, time_of(facts)))
    return _about_incident(
        facts, context, _tone(incident), title, summary + sentence_of_gaps(facts), details
    )


def acknowledged(facts: Facts, context: MessageContext) -> Message:
    incident = facts["incident"]
    details = [(_("Cause"), cause_of(incident)), *_since(incident)]
    title = _("Acknowledged: %(name)s", name=name_of(facts))
    return _about_incident(facts, context, Tone.PLAIN, title, who_acknowledged(incident), details)


def resolved(facts: Facts, context: MessageContext) -> Message:
    incident = facts["incident"]
    begin, end = (words.clock_time(at) for at in (down_since(incident), ended_at(facts)))
    state = _("Slow") if is_degraded(incident) else _("Down")
    details = [
        (_("Cause"), cause_of(incident)),
        # The monitor may have been up while no checks ran.
        (
            _("At most") if incident.get("unwatched") else state,
            _("%(start)s to %(end)s", start=begin, end=end),
        ),
        address_of(facts),
        *_named(_("Were unreachable"), facts.get("behind") or (), MAX_BEHIND),
        *_others_down(_("Still down"), facts, context),
    ]
    title, summary = _ending(facts, length_until(facts, ended_at(facts)))
    return _about_incident(
        facts, context, Tone.GOOD, title, summary + sentence_of_gaps(facts), details
    )


def _ending(facts: Facts, length: str) -> tuple[str, str]:
    """Title and summary. If a person resolves an incident, or a place falls silent, the monitor may
    still fail, so the message must not say that it is up.
    """
    slow = is_degraded(facts["incident"])
    if recovered(facts) and slow:
        title = _("Fast again: %(name)s", name=name_of(facts))
        return title, _("It was slow for %(length)s.", length=length)
    if recovered(facts):
        title = _("Up again: %(name)s", name=name_of(facts))
        still_slow = (facts.get("extra") or {}).get("slow")
        note = " " + _("It is up, but slow.") if still_slow else ""
        return title, _("It was down for %(length)s.", length=length) + note
    title = _("Resolved: %(name)s", name=name_of(facts))
    ending = facts["incident"]["ending"]
    if ending != Ending.PERSON:
        why = ""
        if ending == Ending.SILENCE:
            why = f"{fell_silent(silent_places(facts))} "
        elif ending == Ending.CHANGED:
            why = f"{_(NOT_SLOW_NOW if slow else CHANGED)} "
        return title, why + _("The incident lasted %(length)s.", length=length)
    if name := (facts.get("extra") or {}).get("resolved_by"):
        name = words.shorten(name, words.MAX_NAME_SHOWN)
        return title, _("Resolved by %(name)s after %(length)s.", name=name, length=length)
    return title, _("Resolved manually after %(length)s", length=length) + "."


def _about_incident(
    facts: Facts,
    context: MessageContext,
    tone: Tone,
    title: str,
    summary: str,
    details: Sequence[Detail],
) -> Message:
    notes = _notes(facts, context)
    return Message.of(
        facts,
        tone,
        title,
        summary,
        details=tuple(details),
        links=incident_links(facts, context),
        thread=f"incident-{facts['incident']['id']}",
        data={
            "monitor": {**facts["monitor"], **({"notes": notes} if notes else {})},
            "incident": incident_data(facts, context),
            # No other extra fact: receivers of webhooks rely on the fields that they get.
            **({"flapping": times} if (times := _flapping(facts)) else {}),
        },
    )


def _flapping(facts: Facts) -> int | None:
    """The openings in 10 minutes, if this message reports flapping."""
    times: int | None = (facts.get("extra") or {}).get("flapping")
    return times


def _while_open(facts: Facts, context: MessageContext) -> Iterator[Detail]:
    """The details of an open incident: the places that see it, what may be the reason, since when
    it lasts, and the other monitors that are down.
    """
    incident = facts["incident"]
    if places := incident.get("seen_from"):
        yield _("Seen from"), words.shorten(str(places), 200)
    if deployed := incident.get("deployed"):
        yield _("Deployed"), "; ".join(_deployed(entry, incident) for entry in deployed)
    yield from _changes(incident)
    yield from _since(incident)
    yield address_of(facts)
    if notes := _notes(facts, context):
        yield _("Notes"), notes
    yield from _named(_("Behind it"), facts.get("behind") or (), OTHERS_NAMED)
    yield from _others_down(_("Also down"), facts, context)


def _notes(facts: Facts, context: MessageContext) -> str:
    return _first_lines(context.notes.get(facts["monitor"]["id"], ""))


def _first_lines(notes: str) -> str:
    """The beginning of a monitor's notes on one line, cut after a whole word, and the first link of
    the notes if the cut removes it.
    """
    line = words.shorten(" · ".join(filter(str.strip, notes.splitlines())), NOTES_SHOWN)
    if not line.endswith("…"):
        return line
    line = f"{line.rpartition(' ')[0]} …"
    link = next((piece for piece, is_link in parts(notes) if is_link), "")
    is_apart = link and len(link) <= words.MAX_URL_SHOWN and link not in line
    return f"{line} {link}" if is_apart else line


def _since(incident: Facts) -> Iterator[Detail]:
    if is_degraded(incident) or incident.get("down_since"):
        yield _("Slow since"), words.clock_time(started_at(incident))
    if not is_degraded(incident):
        yield _("Down since"), words.clock_time(down_since(incident))


def _deployed(entry: Facts, incident: Facts) -> str:
    lead = started_at(incident) - datetime.fromisoformat(entry["time"])
    name = words.shorten(entry["name"], words.MAX_NAME_SHOWN)
    time = words.clock_time(datetime.fromisoformat(entry["time"]))
    length = about(lead.total_seconds())
    return _("%(name)s at %(time)s, %(length)s earlier", name=name, time=time, length=length)


def _changes(incident: Facts) -> Iterator[Detail]:
    """The differences from the last good check, in few words. If they are from an earlier good
    check, also its time.
    """
    changes, good = incident.get("changes"), incident.get("compared_with")
    if not changes:
        return
    text = "; ".join(words.shorten(change["text"], 120) for change in changes[:CHANGES_NAMED])
    if good and not incident.get("compared_with_last"):
        text = _("%(changes)s (since the %(check)s)", changes=text, check=good)
    yield _("What changed"), text


def _others_down(label: str, facts: Facts, context: MessageContext) -> Iterator[Detail]:
    own_id = facts["monitor"]["id"]
    names = [name for id, name in context.others_down.items() if id != own_id]
    yield from _named(label, names, OTHERS_NAMED)


def _named(label: str, names: Sequence[str], limit: int) -> Iterator[Detail]:
    if not names:
        return
    text = ", ".join(words.shorten(name, 40) for name in names[:limit])
    more = len(names) - limit
    if more > 0:
        text = _n("%(names)s and %(num)s more", "%(names)s and %(num)s more", more, names=text)
    yield label, text
