"""JSON of another server as records. What interface.md does not promise may be missing or odd.

Fields that a record cannot do without raise ``Odd``; all others fall back to their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from app.records import (
    CERTIFICATE,
    DEFAULT_WINDOW_ZONE,
    MAX_ID,
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
    Pair,
    RequestMethod,
    Result,
    Timings,
    Verdict,
)
from app.stats.report import ALL, COUNTS, MEASURES
from app.stats.strip import HOURS, Hour

T = TypeVar("T")
Json = Mapping[str, Any]


class Odd(ValueError):
    """The answer is not what interface.md says. ``str`` names the part, not its content."""


_HOUR_STATES = Hour._fields[:4]  # seconds; beside them an hour has a response time


def monitor(data: Any) -> Monitor:
    data = _object(data, "monitor")
    paused = _flag(data.get("paused", data.get("pause")))
    status = _word(MonitorStatus, data.get("status"))
    if status is None:
        # A bare server does not tell. Anything but "we cannot tell" would be made up.
        status = MonitorStatus.PAUSED if paused else MonitorStatus.UNKNOWN
    uptime = data.get("uptime")
    uptime = uptime if isinstance(uptime, Mapping) else {}
    return Monitor(
        id=_id(data, "id"),
        name=_must(_text(data.get("name")), "name"),
        url=_must(_text(data.get("url")), "url"),
        interval=_must(_whole(data.get("interval")), "interval"),
        alert_condition=_word(AlertCondition, data.get("alert_condition"))
        or AlertCondition.URL_UNAVAILABLE,
        alert_text_lookup=_text(data.get("alert_text_lookup")),
        request_method=_word(RequestMethod, data.get("request_method")) or RequestMethod.GET,
        request_headers=_pairs(data.get("request_headers")),
        request_auth_username=_text(data.get("request_auth_username")),
        cache_buster=int(_flag(data.get("cache_buster")) or False),
        ssl_alert_days=_whole(data.get("ssl_alert_days")),
        domain_alert_days=_whole(data.get("domain_alert_days")),
        maintenance_start_at=_moment(data.get("maintenance_start_at")),
        maintenance_end_at=_moment(data.get("maintenance_end_at")),
        alerts=_pairs(data.get("alerts")),
        request_body=_text(data.get("request_body")),
        slow_after=_whole(data.get("slow_after")),
        tags=_texts(data.get("tags")),
        remind_after=_whole(data.get("remind_after")),
        quiet_start=_text(data.get("quiet_start")),
        quiet_end=_text(data.get("quiet_end")),
        request_auth_password_set=bool(
            _flag(data.get("request_auth_password_set")) or data.get("request_auth_password")
        ),
        status=status,
        status_since=_moment(data.get("status_since")),
        cause_code=_text(data.get("cause_code")),
        cause=_text(data.get("cause")),
        paused=bool(paused) or status is MonitorStatus.PAUSED,
        last_checked_at=_moment(data.get("last_checked_at")),
        next_check_at=_moment(data.get("next_check_at")),
        response_time=_whole(data.get("response_time")),
        hours=_hours(data.get("hours")),
        uptime={name: _number(uptime.get(name)) for name in UPTIME_RANGES},
        ssl_expires_at=_moment(data.get("ssl_expires_at")),
        domain=_text(data.get("domain")),
        domain_expires_at=_moment(data.get("domain_expires_at")),
        open_incident_id=_whole(data.get("open_incident_id")),
        created_at=_moment(data.get("created_at")),
        updated_at=_moment(data.get("updated_at")),
        **_given(
            timeout=_whole(data.get("timeout")),
            accepted_statuses=_text(data.get("accepted_statuses")),
            follow_redirects=_flag(data.get("follow_redirects")),
            verify_tls=_flag(data.get("verify_tls")),
            confirmations=_whole(data.get("confirmations")),
            quiet_zone=_text(data.get("quiet_zone")),
        ),
    )


def incident(data: Any, now: datetime) -> Incident:
    """``now`` is the server's clock, for the length of an open one where it is not told."""
    data = _object(data, "incident")
    started = _must(_moment(data.get("started_at")), "started_at")
    acknowledged, ended = _moment(data.get("acknowledged_at")), _moment(data.get("ended_at"))
    status = _word(IncidentStatus, data.get("status"))
    duration = _whole(data.get("duration"))
    if duration is None:
        duration = max(0, int(((ended or now) - started).total_seconds()))
    evidence = data.get("evidence")
    return Incident(
        id=_id(data, "id"),
        monitor_id=_id(data, "monitor_id"),
        started_at=started,
        acknowledged_at=acknowledged,
        ended_at=ended,
        cause=_text(data.get("cause")),
        comment=_text(data.get("comment")),
        status=status or _status(acknowledged, ended),
        cause_code=_text(data.get("cause_code")),
        evidence=evidence if isinstance(evidence, Mapping) else None,
        duration=duration,
        monitor=_reference(data.get("monitor")),
        created_at=_moment(data.get("created_at")),
        updated_at=_moment(data.get("updated_at")),
        acknowledged_by=_text(data.get("acknowledged_by")),
        by_hand=bool(_flag(data.get("by_hand"))),
        classification=_word(Classification, data.get("classification")),
    )


def result(data: Any) -> Result:
    data = _object(data, "result")
    timings = data.get("timings")
    timings = timings if isinstance(timings, Mapping) else {}
    return Result(
        checked_at=_must(_moment(data.get("checked_at")), "checked_at"),
        verdict=_must(_word(Verdict, data.get("verdict")), "verdict"),
        monitor_id=_whole(data.get("monitor_id")),
        id=_text(data.get("id")),
        cause_code=_text(data.get("cause_code")),
        cause=_text(data.get("cause")),
        status_code=_whole(data.get("status_code")),
        response_time=_whole(data.get("response_time")),
        timings=Timings(
            **{name: _whole(timings.get(name)) for name in Timings.__dataclass_fields__}
        ),
        ip=_text(data.get("ip")),
        http_version=_text(data.get("http_version")),
        redirects=_texts(data.get("redirects")),
        warnings=_texts(data.get("warnings")),
        location=_text(data.get("location")) or "default",
        maintenance=bool(_flag(data.get("maintenance"))),
    )


def delivery(data: Any) -> Delivery:
    data = _object(data, "delivery")
    attempts = data.get("attempts")
    attempts = attempts if isinstance(attempts, list) else []
    return Delivery(
        id=_id(data, "id"),
        event=_must(_text(data.get("event")), "event"),
        monitor_id=_whole(data.get("monitor_id")),
        incident_id=_whole(data.get("incident_id")),
        channel=_must(_text(data.get("channel")), "channel"),
        target=_text(data.get("target")) or "",
        status=_must(_word(DeliveryStatus, data.get("status")), "status"),
        reason=_text(data.get("reason")),
        attempts=tuple(one for one in attempts if isinstance(one, Mapping)),
        created_at=_moment(data.get("created_at")),
        next_attempt_at=_moment(data.get("next_attempt_at")),
        delivered_at=_moment(data.get("delivered_at")),
        covers=_ids(data.get("covers")),
    )


def window(data: Any) -> MaintenanceWindow:
    data = _object(data, "maintenance window")
    return MaintenanceWindow(
        id=_id(data, "id"),
        name=_text(data.get("name")) or "",
        start_at=_must(_moment(data.get("start_at")), "start_at"),
        end_at=_must(_moment(data.get("end_at")), "end_at"),
        monitors=_ids(data.get("monitors")),
        repeat=_text(data.get("repeat")) or "none",
        repeat_until=_moment(data.get("repeat_until")),
        zone=_text(data.get("zone")) or DEFAULT_WINDOW_ZONE,
        created_at=_moment(data.get("created_at")),
        updated_at=_moment(data.get("updated_at")),
    )


def overview(data: Any) -> dict[str, int]:
    """Counters by state; of states that we do not know there is nothing to say."""
    data = _object(data, "overview")
    counts = {status.value: data.get(status.value) for status in MonitorStatus}
    return {
        status: count
        for status, count in counts.items()
        if isinstance(count, int) and not isinstance(count, bool) and count > 0
    }


def certificates(data: Any) -> CertificateChain:
    data = _object(data, "certificates")
    found = data.get("certificates")
    chain = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return CertificateChain(
        _moment(data.get("seen_at")),
        tuple(
            {
                **{name: _text(one.get(name)) for name in CERTIFICATE},
                "names": _texts(one.get("names")),
            }
            for one in chain
        ),
    )


def report(data: Any) -> dict[int, dict[str, Any]]:
    """Figures by monitor id, and of all, as ``app.stats.report`` gives them."""
    data = _object(data, "report")
    if not isinstance(data.get("monitors"), list):
        raise Odd("monitors")
    each = [_object(one, "monitor") for one in data["monitors"]]
    found = {_id(one, "id"): _figures(one) for one in each}
    return {**found, ALL: _figures(_object(data.get("all"), "all"))}


def _figures(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uptime": _number(data.get("uptime")),
        **{name: _must(_whole(data.get(name)), name) for name in COUNTS},
        **{name: _whole(data.get(name)) for name in MEASURES},
    }


def _hours(value: Any) -> tuple[dict[str, Any], ...]:
    """The last hours of a monitor as ``app.stats.strip`` gives them; none, where any is odd."""
    hours = value if isinstance(value, list) else []
    found = tuple(
        {
            "start": _text(hour.get("start")),
            **{state: _whole(hour.get(state)) for state in _HOUR_STATES},
            "response_time": _whole(hour.get("response_time")),
        }
        for hour in hours
        if isinstance(hour, Mapping)
    )
    whole = all(hour[state] is not None for hour in found for state in _HOUR_STATES)
    return found if whole and len(found) == HOURS else ()


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
    told = _whole(meta.get("total")) if isinstance(meta, Mapping) else None
    if told is not None:
        return max(told, 0)
    links = body.get("links") if isinstance(body, Mapping) else None
    if isinstance(links, Mapping) and "next" in links:
        so_far = (number - 1) * per_page + found
        return so_far + 1 if links["next"] else so_far
    return None


def _object(data: Any, name: str) -> Json:
    if not isinstance(data, Mapping):
        raise Odd(name)
    return data


def _must(value: T | None, name: str) -> T:
    if value is None:
        raise Odd(name)
    return value


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _id(data: Json, name: str) -> int:
    id = _must(_whole(data.get(name)), name)
    if not 0 < id <= MAX_ID:
        raise Odd(name)
    return id


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(value) if abs(float(value)) <= MAX_ID else None
    except ValueError:
        return None


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return float(value) if known else None


def _flag(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"1": True, "true": True, "0": False, "false": False}.get(str(value).lower())


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _word(words: type[T], value: Any) -> T | None:
    try:
        return words(value)  # type: ignore[call-arg] # every ``words`` is a StrEnum
    except ValueError:
        return None


def _pairs(value: Any) -> tuple[Pair, ...]:
    if isinstance(value, Mapping):
        value = list(
            value.values()
        )  # an array whose indices are not dense, as some languages write it
    if not isinstance(value, list):
        return ()
    return tuple(
        Pair(key, _text(one.get("value")) or "")
        for one in value
        if isinstance(one, Mapping) and (key := _text(one.get("key")))
    )


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _ids(value: Any) -> tuple[int, ...]:
    found: Sequence[Any] = value if isinstance(value, list) else []
    return tuple(id for one in found if (id := _whole(one)) is not None)


def _reference(value: Any) -> MonitorRef | None:
    if not isinstance(value, Mapping):
        return None
    id, name = _whole(value.get("id")), _text(value.get("name"))
    if id is None or name is None:
        return None
    return MonitorRef(id, name, _text(value.get("url")) or "")


def _status(acknowledged: datetime | None, ended: datetime | None) -> IncidentStatus:
    if ended is not None:
        return IncidentStatus.RESOLVED
    return IncidentStatus.UNRESOLVED if acknowledged is None else IncidentStatus.ACKNOWLEDGED
