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
    ended_by_silence,
    lasted,
    name_of,
    recovered,
    silent_places,
    started_at,
    told_at,
    unwatched,
    what_ended,
)
from app.alerts.messages.incident_parts import incident_data, incident_links
from app.alerts.messages.message import Message, Tone
from app.i18n import N_, _, _n
from app.records import Ending
from app.rules.figures import about
from app.rules.what_changed import LAST_GOOD
from app.rules.who_saw import CHANGED, fell_silent

OTHERS_NAMED = 5
CHANGES_NAMED = 3
STILL_DOWN = N_("Still down: %(name)s")


def _others(label: str, facts: Facts, context: Context) -> tuple[tuple[str, str], ...]:
    own = facts["monitor"]["id"]
    names = [name for id, name in context.others_down.items() if id != own]
    if not names:
        return ()
    shown = ", ".join(words.shorten(name, 40) for name in names[:OTHERS_NAMED])
    more = len(names) - OTHERS_NAMED
    if more > 0:
        shown = _n("%(shown)s and %(num)s more", "%(shown)s and %(num)s more", more, shown=shown)
    return ((label, shown),)


def _changes(facts: Facts) -> tuple[tuple[str, str], ...]:
    """What is different from the last good check, in few words; of another one, how old it is."""
    incident = facts["incident"]
    found, good = incident.get("changes") or [], incident.get("compared_with") or LAST_GOOD
    texts = [words.shorten(change["text"], 120) for change in found[:CHANGES_NAMED]]
    told = "; ".join(texts)
    if not good.startswith(LAST_GOOD):
        told = _("%(changes)s (since %(check)s)", changes=told, check=good)
    return ((_("What changed"), told),) if texts else ()


def _seen_from(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Which places see it, where there are several."""
    seen = facts["incident"].get("seen_from")
    return ((_("Seen from"), words.shorten(str(seen), 200)),) if seen else ()


def _deployed(facts: Facts) -> tuple[tuple[str, str], ...]:
    """What was deployed shortly before, the nearest first."""
    incident = facts["incident"]
    started = started_at(incident)
    texts = [
        _(
            "%(name)s, %(length)s before",
            name=words.shorten(one["name"], words.MAX_NAME_SHOWN),
            length=about((started - words.read_moment(one["time"])).total_seconds()),
        )
        for one in incident.get("deployed") or []
    ]
    return ((_("Deployed"), "; ".join(texts)),) if texts else ()


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
        (_("Down since"), words.clock_time(started_at(incident))),
        address_of(facts),
        *_others(_("Also down"), facts, context),
    ]
    if times := _flapping(facts):
        note = _n(
            "Down %(num)s time in 10 minutes. The next alert comes when it stays down.",
            "Down %(num)s times in 10 minutes. The next alert comes when it stays down.",
            times,
        )
        details.insert(0, (_("Flapping"), note))
    # ``late``: the first message was given up, because nothing was sent for 24 hours.
    late = (facts.get("extra") or {}).get("late")
    title = _(STILL_DOWN if late else N_("Down: %(name)s"), name=name_of(facts))
    summary = f"{cause_of(incident)}{unwatched(facts)}"
    return _about_incident(facts, context, Tone.BAD, title, summary, details)


def resolved(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    started, ended = started_at(incident), ended_at(facts)
    details = [
        (_("Cause"), cause_of(incident)),
        # While nothing was checked, it may have been up.
        (
            _("At most") if incident.get("unwatched") else _("Down"),
            _(
                "%(begin)s to %(end)s",
                begin=words.clock_time(started),
                end=words.clock_time(ended),
            ),
        ),
        address_of(facts),
        *_others(_("Still down"), facts, context),
    ]
    title, summary = _ending(facts, lasted(facts, ended))
    summary += unwatched(facts)
    return _about_incident(facts, context, Tone.GOOD, title, summary, details)


def _ending(facts: Facts, length: str) -> tuple[str, str]:
    """Title and summary. Whoever resolves an incident does not bring the monitor up, nor does a
    place that falls silent: it may still fail, so the message must not say that it is up.
    """
    if recovered(facts):
        title = _("Up again: %(name)s", name=name_of(facts))
        return title, _("It was down for %(length)s.", length=length)
    title = _("Resolved: %(name)s", name=name_of(facts))
    if what_ended(facts) != Ending.PERSON:
        lasted_for = _("The incident lasted %(length)s.", length=length)
        return title, f"{_why_it_ended(facts)}{lasted_for}"
    if name := (facts.get("extra") or {}).get("resolved_by"):
        name = words.shorten(name, words.MAX_NAME_SHOWN)
        return title, _("Resolved by %(name)s after %(length)s.", name=name, length=length)
    return title, _("Resolved manually after %(length)s.", length=length)


def _why_it_ended(facts: Facts) -> str:
    """A sentence with a space after it; empty if it is not known."""
    if ended_by_silence(facts):
        return f"{fell_silent(silent_places(facts))} "
    return f"{_(CHANGED)} " if what_ended(facts) == Ending.CHANGED else ""


def reminder(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    so_far = lasted(facts, told_at(facts))
    details = [
        (_("Cause"), cause_of(incident)),
        *_seen_from(facts),
        *_deployed(facts),
        *_changes(facts),
        (_("Down since"), words.clock_time(started_at(incident))),
        address_of(facts),
        *_others(_("Also down"), facts, context),
    ]
    summary = _("Down for %(length)s, and nobody has acknowledged it yet.", length=so_far)
    title = _(STILL_DOWN, name=name_of(facts))
    return _about_incident(facts, context, Tone.BAD, title, summary + unwatched(facts), details)


def acknowledged(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    by = incident.get("acknowledged_by")
    details = [
        (_("Cause"), cause_of(incident)),
        (_("Down since"), words.clock_time(started_at(incident))),
    ]
    summary = (
        _("Acknowledged by %(person)s.", person=words.shorten(by, 100))
        if by
        else _("Somebody is looking at it.")
    )
    return _about_incident(
        facts,
        context,
        Tone.PLAIN,
        _("Acknowledged: %(name)s", name=name_of(facts)),
        summary,
        details,
    )
