"""JSON of another server as records. What interface.md does not promise may be missing or odd.

Fields that a record cannot do without raise ``Odd``; all others fall back to their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from app.codec import Odd, reader
from app.codec.values import (
    each,
    flag,
    must,
    object_,
    own_id,
    percent,
    text,
    whole,
    word,
)
from app.records import (
    CertificateChain,
    Delivery,
    Incident,
    IncidentStatus,
    MaintenanceWindow,
    Monitor,
    MonitorStatus,
    Result,
)
from app.rules.recurrence import repeat_fault
from app.stats.report import ALL, COUNTS, MEASURES
from app.stats.strip import HOURS, Hour
from app.stores.remote import seen

T = TypeVar("T")


_HOUR_STATES = Hour._fields[:4]  # seconds; beside them an hour has a response time


def monitor(data: Any) -> Monitor:
    read = _monitor(data)
    paused = flag(data.get("paused", data.get("pause")))
    status = word(MonitorStatus, data.get("status"))
    if status is None:
        # A bare server does not tell. Anything but "we cannot tell" would be made up.
        status = MonitorStatus.PAUSED if paused else MonitorStatus.UNKNOWN
    return replace(
        read,
        status=status,
        paused=bool(paused) or status is MonitorStatus.PAUSED,
        request_auth_password_set=read.request_auth_password_set
        or bool(data.get("request_auth_password")),
    )


def incident(data: Any, now: datetime) -> Incident:
    """``now`` is the server's clock, for the length of an open one where it is not told."""
    read = _incident(data)
    so_far = int(((read.ended_at or now) - read.started_at).total_seconds())
    return replace(
        read,
        status=word(IncidentStatus, data.get("status")) or _status(read),
        duration=max(0, so_far) if read.duration is None else read.duration,
    )


def window(data: Any) -> MaintenanceWindow:
    read = _window(data)
    if read.end_at <= read.start_at:
        raise Odd("end_at")
    if repeat_fault(read.repeat):
        raise Odd("repeat")
    return read


def overview(data: Any) -> dict[str, int]:
    """Counters by state; of states that we do not know there is nothing to say."""
    data = object_(data, "overview")
    counts = {status.value: data.get(status.value) for status in MonitorStatus}
    return {
        status: count
        for status, count in counts.items()
        if isinstance(count, int) and not isinstance(count, bool) and count > 0
    }


def report(data: Any) -> dict[int, dict[str, Any]]:
    """Figures by monitor id, and of all, as ``app.stats.report`` gives them."""
    data = object_(data, "report")
    if not isinstance(data.get("monitors"), list):
        raise Odd("monitors")
    monitors = [object_(one, "monitor") for one in data["monitors"]]
    found = {must(own_id(one.get("id")), "id"): _figures(one) for one in monitors}
    return {**found, ALL: _figures(object_(data.get("all"), "all"))}


def _figures(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uptime": percent(data.get("uptime")),
        **{name: must(whole(data.get(name)), name) for name in COUNTS},
        **{name: whole(data.get(name)) for name in MEASURES},
    }


def _hours(value: Any) -> tuple[dict[str, Any], ...]:
    """The last hours of a monitor as ``app.stats.strip`` gives them; none, where any is odd."""
    found = each(value, _hour)
    complete = all(hour[state] is not None for hour in found for state in _HOUR_STATES)
    return found if complete and len(found) == HOURS else ()


def _hour(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    return {
        "start": text(value.get("start")),
        **{state: whole(value.get(state)) for state in _HOUR_STATES},
        "response_time": whole(value.get("response_time")),
    }


def record(body: Any, read: Callable[[Any], T]) -> T:
    """The record of an answer, in an envelope or without one."""
    return read(body["data"] if isinstance(body, Mapping) and "data" in body else body)


def records(body: Any, read: Callable[[Any], T]) -> list[T]:
    data = body["data"] if isinstance(body, Mapping) and "data" in body else body
    if not isinstance(data, list):
        raise Odd("list")
    return [read(one) for one in data]


def total(body: Any, number: int, per_page: int, found: int) -> int | None:
    """How many there are in all; None when the server does not page at all (no word of it)."""
    meta = body.get("meta") if isinstance(body, Mapping) else None
    told = whole(meta.get("total")) if isinstance(meta, Mapping) else None
    if told is not None:
        return max(told, 0)
    links = body.get("links") if isinstance(body, Mapping) else None
    if isinstance(links, Mapping) and "next" in links:
        so_far = (number - 1) * per_page + found
        return so_far + 1 if links["next"] else so_far
    return None


def _status(incident: Incident) -> IncidentStatus:
    if incident.ended_at is not None:
        return IncidentStatus.RESOLVED
    if incident.acknowledged_at is not None:
        return IncidentStatus.ACKNOWLEDGED
    return IncidentStatus.UNRESOLVED


_monitor = reader(Monitor, "monitor", hours=_hours)
_incident = reader(Incident, "incident", evidence=seen.evidence)
_window = reader(MaintenanceWindow, "maintenance window")
result = reader(Result, "result")
# A newer server may tell of events and channels that are none of ours.
delivery = reader(Delivery, "delivery", event=text, channel=text)
certificates = reader(CertificateChain, "certificates")
