"""JSON of another server as records. What interface.md does not promise may be missing or odd.

Fields that a record cannot do without raise ``Odd``; all others fall back to their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from app.records import (
    DEFAULT_WINDOW_ZONE,
    UPTIME_RANGES,
    AlertCondition,
    CertificateChain,
    Classification,
    Delivery,
    DeliveryStatus,
    Incident,
    IncidentStatus,
    MaintenanceWindow,
    Monitor,
    MonitorRef,
    MonitorStatus,
    RequestMethod,
    Result,
    Timings,
    Verdict,
)
from app.rules.recurrence import ONCE, repeat_fault
from app.stats.report import ALL, COUNTS, MEASURES
from app.stats.strip import HOURS, Hour
from app.stores.remote import seen
from app.stores.remote.values import (
    Json,
    Odd,
    flag,
    given,
    id_,
    ids,
    moment,
    must,
    object_,
    pairs,
    percent,
    text,
    texts,
    time,
    whole,
    word,
)

T = TypeVar("T")


_HOUR_STATES = Hour._fields[:4]  # seconds; beside them an hour has a response time


def monitor(data: Any) -> Monitor:
    data = object_(data, "monitor")
    paused = flag(data.get("paused", data.get("pause")))
    status = word(MonitorStatus, data.get("status"))
    if status is None:
        # A bare server does not tell. Anything but "we cannot tell" would be made up.
        status = MonitorStatus.PAUSED if paused else MonitorStatus.UNKNOWN
    uptime = data.get("uptime")
    uptime = uptime if isinstance(uptime, Mapping) else {}
    return Monitor(
        id=id_(data, "id"),
        name=must(text(data.get("name")), "name"),
        url=must(text(data.get("url")), "url"),
        interval=must(whole(data.get("interval")), "interval"),
        alert_condition=word(AlertCondition, data.get("alert_condition"))
        or AlertCondition.URL_UNAVAILABLE,
        alert_text_lookup=text(data.get("alert_text_lookup")),
        request_method=word(RequestMethod, data.get("request_method")) or RequestMethod.GET,
        request_headers=pairs(data.get("request_headers")),
        request_auth_username=text(data.get("request_auth_username")),
        cache_buster=int(flag(data.get("cache_buster")) or False),
        ssl_alert_days=whole(data.get("ssl_alert_days")),
        domain_alert_days=whole(data.get("domain_alert_days")),
        maintenance_start_at=moment(data.get("maintenance_start_at")),
        maintenance_end_at=moment(data.get("maintenance_end_at")),
        alerts=pairs(data.get("alerts")),
        request_body=text(data.get("request_body")),
        slow_after=whole(data.get("slow_after")),
        tags=texts(data.get("tags")),
        remind_after=whole(data.get("remind_after")),
        quiet_start=text(data.get("quiet_start")),
        quiet_end=text(data.get("quiet_end")),
        unreadable=texts(data.get("unreadable")),
        request_auth_password_set=bool(
            flag(data.get("request_auth_password_set")) or data.get("request_auth_password")
        ),
        status=status,
        status_since=moment(data.get("status_since")),
        cause_code=text(data.get("cause_code")),
        cause=text(data.get("cause")),
        paused=bool(paused) or status is MonitorStatus.PAUSED,
        last_checked_at=moment(data.get("last_checked_at")),
        next_check_at=moment(data.get("next_check_at")),
        response_time=whole(data.get("response_time")),
        hours=_hours(data.get("hours")),
        uptime={name: percent(uptime.get(name)) for name in UPTIME_RANGES},
        ssl_expires_at=moment(data.get("ssl_expires_at")),
        domain=text(data.get("domain")),
        domain_expires_at=moment(data.get("domain_expires_at")),
        open_incident_id=whole(data.get("open_incident_id")),
        created_at=moment(data.get("created_at")),
        updated_at=moment(data.get("updated_at")),
        **given(
            timeout=whole(data.get("timeout")),
            accepted_statuses=text(data.get("accepted_statuses")),
            follow_redirects=flag(data.get("follow_redirects")),
            verify_tls=flag(data.get("verify_tls")),
            confirmations=whole(data.get("confirmations")),
            quiet_zone=text(data.get("quiet_zone")),
        ),
    )


def incident(data: Any, now: datetime) -> Incident:
    """``now`` is the server's clock, for the length of an open one where it is not told."""
    data = object_(data, "incident")
    started = must(moment(data.get("started_at")), "started_at")
    acknowledged, ended = moment(data.get("acknowledged_at")), moment(data.get("ended_at"))
    status = word(IncidentStatus, data.get("status"))
    duration = whole(data.get("duration"))
    if duration is None:
        duration = max(0, int(((ended or now) - started).total_seconds()))
    return Incident(
        id=id_(data, "id"),
        monitor_id=id_(data, "monitor_id"),
        started_at=started,
        acknowledged_at=acknowledged,
        ended_at=ended,
        cause=text(data.get("cause")),
        comment=text(data.get("comment")),
        status=status or _status(acknowledged, ended),
        cause_code=text(data.get("cause_code")),
        evidence=seen.evidence(data.get("evidence")),
        duration=duration,
        monitor=_reference(data.get("monitor")),
        created_at=moment(data.get("created_at")),
        updated_at=moment(data.get("updated_at")),
        acknowledged_by=text(data.get("acknowledged_by")),
        by_hand=bool(flag(data.get("by_hand"))),
        classification=word(Classification, data.get("classification")),
        unreadable=texts(data.get("unreadable")),
        unwatched=_gaps(data.get("unwatched")),
    )


def _gaps(value: Any) -> tuple[tuple[datetime, datetime], ...]:
    found = [gap for gap in value if isinstance(gap, Mapping)] if isinstance(value, list) else []
    ends = [(moment(gap.get("from")), moment(gap.get("to"))) for gap in found]
    return tuple((since, to) for since, to in ends if since is not None and to is not None)


def result(data: Any) -> Result:
    data = object_(data, "result")
    timings = data.get("timings")
    timings = timings if isinstance(timings, Mapping) else {}
    return Result(
        checked_at=must(moment(data.get("checked_at")), "checked_at"),
        verdict=must(word(Verdict, data.get("verdict")), "verdict"),
        monitor_id=whole(data.get("monitor_id")),
        id=text(data.get("id")),
        cause_code=text(data.get("cause_code")),
        cause=text(data.get("cause")),
        status_code=whole(data.get("status_code")),
        response_time=whole(data.get("response_time")),
        timings=Timings(
            **{name: whole(timings.get(name)) for name in Timings.__dataclass_fields__}
        ),
        ip=text(data.get("ip")),
        http_version=text(data.get("http_version")),
        redirects=texts(data.get("redirects")),
        warnings=texts(data.get("warnings")),
        location=text(data.get("location")) or "default",
        maintenance=bool(flag(data.get("maintenance"))),
    )


def delivery(data: Any) -> Delivery:
    data = object_(data, "delivery")
    attempts = data.get("attempts")
    attempts = attempts if isinstance(attempts, list) else []
    return Delivery(
        id=id_(data, "id"),
        event=must(text(data.get("event")), "event"),
        monitor_id=whole(data.get("monitor_id")),
        incident_id=whole(data.get("incident_id")),
        channel=must(text(data.get("channel")), "channel"),
        target=text(data.get("target")) or "",
        status=must(word(DeliveryStatus, data.get("status")), "status"),
        reason=text(data.get("reason")),
        attempts=tuple(_attempt(one) for one in attempts if isinstance(one, Mapping)),
        created_at=moment(data.get("created_at")),
        next_attempt_at=moment(data.get("next_attempt_at")),
        delivered_at=moment(data.get("delivered_at")),
        covers=ids(data.get("covers")),
        unreadable=texts(data.get("unreadable")),
    )


def _attempt(data: Json) -> Json:
    return {
        "at": time(data.get("at")),
        "ok": flag(data.get("ok")) or False,
        "answer": text(data.get("answer")),
    }


def window(data: Any) -> MaintenanceWindow:
    data = object_(data, "maintenance window")
    start = must(moment(data.get("start_at")), "start_at")
    end = must(moment(data.get("end_at")), "end_at")
    repeat = text(data.get("repeat")) or ONCE
    if end <= start:
        raise Odd("end_at")
    if repeat_fault(repeat):
        raise Odd("repeat")
    return MaintenanceWindow(
        id=id_(data, "id"),
        name=text(data.get("name")) or "",
        start_at=start,
        end_at=end,
        monitors=ids(data.get("monitors")),
        repeat=repeat,
        repeat_until=moment(data.get("repeat_until")),
        zone=text(data.get("zone")) or DEFAULT_WINDOW_ZONE,
        created_at=moment(data.get("created_at")),
        updated_at=moment(data.get("updated_at")),
    )


def overview(data: Any) -> dict[str, int]:
    """Counters by state; of states that we do not know there is nothing to say."""
    data = object_(data, "overview")
    counts = {status.value: data.get(status.value) for status in MonitorStatus}
    return {
        status: count
        for status, count in counts.items()
        if isinstance(count, int) and not isinstance(count, bool) and count > 0
    }


def certificates(data: Any) -> CertificateChain:
    data = object_(data, "certificates")
    found = data.get("certificates")
    chain = found if isinstance(found, list) else []
    return CertificateChain(
        moment(data.get("seen_at")),
        tuple(seen.certificate(one) for one in chain if isinstance(one, Mapping)),
    )


def report(data: Any) -> dict[int, dict[str, Any]]:
    """Figures by monitor id, and of all, as ``app.stats.report`` gives them."""
    data = object_(data, "report")
    if not isinstance(data.get("monitors"), list):
        raise Odd("monitors")
    each = [object_(one, "monitor") for one in data["monitors"]]
    found = {id_(one, "id"): _figures(one) for one in each}
    return {**found, ALL: _figures(object_(data.get("all"), "all"))}


def _figures(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uptime": percent(data.get("uptime")),
        **{name: must(whole(data.get(name)), name) for name in COUNTS},
        **{name: whole(data.get(name)) for name in MEASURES},
    }


def _hours(value: Any) -> tuple[dict[str, Any], ...]:
    """The last hours of a monitor as ``app.stats.strip`` gives them; none, where any is odd."""
    hours = value if isinstance(value, list) else []
    found = tuple(
        {
            "start": text(hour.get("start")),
            **{state: whole(hour.get(state)) for state in _HOUR_STATES},
            "response_time": whole(hour.get("response_time")),
        }
        for hour in hours
        if isinstance(hour, Mapping)
    )
    complete = all(hour[state] is not None for hour in found for state in _HOUR_STATES)
    return found if complete and len(found) == HOURS else ()


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


def _reference(value: Any) -> MonitorRef | None:
    if not isinstance(value, Mapping):
        return None
    id, name = whole(value.get("id")), text(value.get("name"))
    if id is None or name is None:
        return None
    return MonitorRef(id, name, text(value.get("url")) or "")


def _status(acknowledged: datetime | None, ended: datetime | None) -> IncidentStatus:
    if ended is not None:
        return IncidentStatus.RESOLVED
    return IncidentStatus.UNRESOLVED if acknowledged is None else IncidentStatus.ACKNOWLEDGED
