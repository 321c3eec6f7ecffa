"""The timeline of an incident: its checks, its deliveries, and what people did, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.records import Channel, Delivery, DeliveryStatus, Incident
from app.rules.channel_values import CHANNELS
from app.web.shown import comments, looks, times
from app.web.views.deliveries import reason_text

# The kinds of steps, in their order at the same moment: a cause comes before its effect.
CHECK, OPENED, GAP, PERSON, ENDED, TOLD = range(6)


@dataclass(frozen=True, slots=True)
class Step:
    """One entry. ``tone`` and ``sign`` are as in ``looks``; ``text`` is what a person wrote."""

    at: datetime
    kind: int
    title: str
    sign: str
    tone: str = "paused"
    note: str | None = None
    text: str | None = None
    delivery_id: int | None = None


def steps(incident: Incident, deliveries: Iterable[Delivery] = ()) -> list[Step]:
    """All steps, oldest first."""
    found = [*_checks(incident), *_gaps(incident), *_remarks(incident), *_people(incident)]
    found += [step for delivery in deliveries if (step := _delivery(delivery))]
    return sorted(found, key=lambda step: (step.at, step.kind))


def failing(evidence: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What the failing check saw; another server may send it without nesting."""
    return (evidence or {}).get("failing", evidence) or None


def last_good(evidence: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return (evidence or {}).get("last_good") or None


def _checks(incident: Incident) -> Iterator[Step]:
    title = "Reported by hand" if incident.by_hand else "First failing check"
    yield Step(incident.started_at, CHECK, title, "down", "down", incident.cause)
    again: Sequence[Mapping[str, Any]] = (incident.evidence or {}).get("confirming") or ()
    for number, check in enumerate(again, 1):
        at, cause = times.moment(str(check.get("checked_at"))), check.get("cause")
        if at is not None:
            yield Step(at, CHECK, f"Recheck {number} failed too", "down", "down", cause)
    if incident.created_at is not None and incident.created_at >= incident.started_at:
        yield Step(incident.created_at, OPENED, "Incident opened", "bell", "down")


def _gaps(incident: Incident) -> Iterator[Step]:
    for since, to in incident.unwatched:
        span = f"From {times.exact(since)} to {times.exact(to)}."
        note = f"{span} What happened in between is not known."
        yield Step(since, GAP, "Nothing was watched", "unknown", "unknown", note)


def _people(incident: Incident) -> Iterator[Step]:
    if incident.acknowledged_at is not None:
        by = f" by {incident.acknowledged_by}" if incident.acknowledged_by else ""
        yield Step(incident.acknowledged_at, PERSON, f"Acknowledged{by}", "seen", "degraded")
    if incident.ended_at is not None:
        yield Step(incident.ended_at, ENDED, "Resolved", "up", "up")


def _remarks(incident: Incident) -> Iterator[Step]:
    for remark in comments.remarks(incident.comment):
        # A comment sent with the report has no time of its own, and must not move with each change.
        at = remark.at or incident.created_at or incident.started_at
        title = f"{remark.who} wrote" if remark.who else "Comment"
        yield Step(at, PERSON, title, "edit", text=remark.text)


def _delivery(delivery: Delivery) -> Step | None:
    at = delivery.delivered_at or delivery.created_at
    if at is None:
        return None
    name = CHANNELS[Channel(delivery.channel)].label if delivery.channel in CHANNELS else None
    event = looks.EVENTS.get(delivery.event, delivery.event)  # type: ignore[call-overload]
    look = looks.look_of(looks.DELIVERY, delivery.status)
    note = f"{look.word} to {delivery.target}"
    if delivery.contacts:
        note += f", for {', '.join(delivery.contacts)}"
    if delivery.reason:
        note += f": {reason_text(delivery.reason)}"
    elif delivery.status != DeliveryStatus.DELIVERED and delivery.attempts:
        note += f": {delivery.attempts[-1].get('answer')}"
    return Step(
        at=at,
        kind=TOLD,
        title=f"{name or delivery.channel}: {event}",
        sign="deliveries" if delivery.status == DeliveryStatus.DELIVERED else look.shape,
        tone="paused" if delivery.status == DeliveryStatus.DELIVERED else look.tone,
        note=note,
        delivery_id=delivery.id,
    )
