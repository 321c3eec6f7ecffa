"""The timeline of an incident: its checks, its deliveries, and the actions of people, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from app.codec.evidence import EVIDENCE_FIELDS
from app.i18n import N_, _, _n
from app.records import Delivery, DeliveryStatus, Ending, Incident, Marker
from app.rules import comments
from app.rules.channel_values import channel_label
from app.web.shown import looks, times
from app.web.views.deliveries import reason_text

# A duration in a cause, which differs between checks that fail in the same way.
_DURATION = re.compile(r"(?<![\d.,])[\d.,]++ m?s\b", re.ASCII)

# The title of a gap because of which an incident ended: the places that saw it fell silent.
NOT_HEARD = N_("No results from where it was seen")

NOBODY_ALERTED = N_("Nobody is alerted")

# The fields of a check that the page shows besides its evidence.
RESULT_FIELDS = "cause", "checked_at", "location", "response_time", "verdict"
SHOWN_FIELDS = (*EVIDENCE_FIELDS, *RESULT_FIELDS)

# The order of steps at the same moment: a cause comes before its effect.
DEPLOYED, CHECK, OPENED, GAP, PERSON, ENDED, NOTIFIED = range(7)


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """One entry. ``tone`` and ``sign``: as in ``looks``. ``text``: a comment of a person."""

    at: datetime
    order: int
    title: str
    sign: str
    tone: str = "paused"
    note: str | None = None
    text: str | None = None
    delivery_id: int | None = None


def steps(
    incident: Incident,
    deliveries: Iterable[Delivery] = (),
    markers: Iterable[Marker] = (),
    *,
    unalerted: bool = False,
) -> list[TimelineStep]:
    """All steps, oldest first. ``unalerted``: the monitor has no alerts."""
    entries = [*_checks(incident), *_gaps(incident), *_remarks(incident), *_people(incident)]
    entries += [
        TimelineStep(marker.time, DEPLOYED, _("Deployed: %(name)s", name=marker.name), "flag")
        for marker in markers
    ]
    entries += [step for delivery in deliveries if (step := _delivery(delivery))]
    if unalerted and not any(step.order == NOTIFIED for step in entries):
        at = incident.created_at or incident.started_at
        note = _("The monitor has no alerts.")
        entries.append(TimelineStep(at, NOTIFIED, _(NOBODY_ALERTED), "degraded", "degraded", note))
    return sorted(entries, key=lambda step: (step.at, step.order))


def failing(evidence: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The evidence of the failing check; another server may send it without nesting."""
    return with_all_fields((evidence or {}).get("failing", evidence))


def last_good(evidence: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return with_all_fields((evidence or {}).get("last_good"))


def with_all_fields(check: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The evidence of one check with all fields of the page; missing ones are None."""
    return {**dict.fromkeys(SHOWN_FIELDS), **check} if check else None


def _checks(incident: Incident) -> Iterator[TimelineStep]:
    """The failing checks; successive ones that failed in the same way are one step."""
    slow = looks.is_degraded(incident)
    if incident.down_since is not None:
        yield TimelineStep(incident.started_at, CHECK, _("Slow"), "degraded", "degraded")
    began = incident.down_since or incident.started_at
    checks = [(began, incident.cause), *_rechecks(incident)]
    number = 0
    for _same, group in groupby(checks, lambda check: _DURATION.sub("", check[1] or "")):
        run = list(group)
        (since, cause), last = run[0], run[-1][0]
        title = _title(incident, number, len(run), (last - since).total_seconds())
        look = looks.look_of_opening(incident)
        yield TimelineStep(since, CHECK, title, look.shape, look.tone, cause)
        number += len(run)
    if incident.created_at is not None and incident.created_at >= incident.started_at:
        title = _(looks.FOUND_LATE) if incident.found_late else _("Incident opened")
        tone = "degraded" if slow or incident.down_since else "down"
        yield TimelineStep(incident.created_at, OPENED, title, "bell", tone)


def _title(incident: Incident, number: int, count: int, seconds: float) -> str:
    """The title of ``count`` checks. ``number``: how many checks were before them."""
    if count > 1:
        return _n(
            "Failed %(num)s time in %(span)s",
            "Failed %(num)s times in %(span)s",
            count,
            span=times.span(max(0, seconds)),
        )
    if number:
        return _("Recheck %(number)s failed too", number=number)
    if looks.is_degraded(incident):
        return _("Slow from here on")
    if (incident.cause_code or "").startswith("heartbeat_"):
        return _("Down from here on")
    return _("Reported manually") if incident.by_hand else _("First failing check")


def _rechecks(incident: Incident) -> Iterator[tuple[datetime, str | None]]:
    rechecks: Sequence[Mapping[str, Any]] = (incident.evidence or {}).get("confirming") or ()
    for check in rechecks:
        at, cause = times.moment(str(check.get("checked_at"))), check.get("cause")
        if at is not None:
            yield at, cause


def _gaps(incident: Incident) -> Iterator[TimelineStep]:
    for since, until in incident.unwatched:
        note = _(
            "From %(start)s to %(end)s. What happened in between is not known.",
            start=times.exact(since),
            end=times.exact(until),
        )
        silent = incident.ending == Ending.SILENCE and until == incident.ended_at
        title = _(NOT_HEARD) if silent else _("No checks ran")
        yield TimelineStep(since, GAP, title, "unknown", "unknown", note)


def _people(incident: Incident) -> Iterator[TimelineStep]:
    if incident.acknowledged_at is not None:
        by = incident.acknowledged_by
        title = _("Acknowledged by %(name)s", name=by) if by else _("Acknowledged")
        yield TimelineStep(incident.acknowledged_at, PERSON, title, "filled-eye", "degraded")
    if incident.ended_at is not None:
        look = looks.look_of_end(incident)
        yield TimelineStep(incident.ended_at, ENDED, _(look.word), look.shape, look.tone)


def _remarks(incident: Incident) -> Iterator[TimelineStep]:
    for remark in comments.remarks(incident.comment):
        # The first comment of an incident that a person reported has no time.
        at = remark.at or incident.created_at or incident.started_at
        title = _("%(who)s wrote", who=remark.who) if remark.who else _("Comment")
        yield TimelineStep(at, PERSON, title, "edit", text=remark.text)


DELIVERY_NOTES: dict[str, str] = {
    DeliveryStatus.PENDING: N_("Not yet delivered to %(target)s"),
    DeliveryStatus.DELIVERED: N_("Delivered to %(target)s"),
    DeliveryStatus.FAILED: N_("Not delivered to %(target)s"),
    DeliveryStatus.HELD: N_("Held back from %(target)s"),
}


def _delivery(delivery: Delivery) -> TimelineStep | None:
    at = delivery.delivered_at or delivery.created_at
    if at is None:
        return None
    event = _(looks.EVENTS.get(delivery.event, delivery.event))  # type: ignore[call-overload]
    look = looks.look_of(looks.DELIVERY, delivery.status)
    if sentence := DELIVERY_NOTES.get(delivery.status):
        note = _(sentence, target=delivery.target)
    else:  # an unknown status of another server
        note = f"{look.word}: {delivery.target}"
    if delivery.contacts:
        contacts = ", ".join(delivery.contacts)
        note = _("%(delivered)s, for %(contacts)s", delivered=note, contacts=contacts)
    if delivery.reason:
        note += f": {reason_text(delivery.reason)}"
    elif delivery.status != DeliveryStatus.DELIVERED and delivery.attempts:
        note += f": {delivery.attempts[-1].get('answer')}"
    return TimelineStep(
        at=at,
        order=NOTIFIED,
        title=f"{channel_label(delivery.channel)}: {event}",
        sign="deliveries" if delivery.status == DeliveryStatus.DELIVERED else look.shape,
        tone="paused" if delivery.status == DeliveryStatus.DELIVERED else look.tone,
        note=note,
        delivery_id=delivery.id,
    )
