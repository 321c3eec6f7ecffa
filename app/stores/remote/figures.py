"""Read another server's statistics and reports in the form that pages show.

Read strictly here, so that no page needs guards of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.codec import MalformedData
from app.codec.evidence import phases
from app.codec.values import Json, length, must, object_, own_id, percent, time, whole
from app.stats.report import ALL, COUNTS, MEASURES
from app.stats.series import PERCENTILES

_STATES = ("up", "down", "unknown", "maintenance")  # seconds
_TIMES = ("avg", *(f"p{percent}" for percent in PERCENTILES), "max")  # ms
_COUNTS = ("downtime", "watched", "unknown", "maintenance", "checks", "incidents")


def statistics(data: Any, range_: str | None) -> Mapping[str, Any]:
    """The answer of ``statistics`` as ``app.stats.series`` gives it."""
    data = object_(data, "statistics")
    buckets = data.get("buckets")
    if not isinstance(buckets, list) or not buckets:
        raise MalformedData("buckets")
    return {
        "range": range_,
        "from": time(data.get("from")),
        "to": time(data.get("to")),
        "uptime": percent(data.get("uptime")),
        **{name: length(data.get(name)) for name in _COUNTS},
        "mttr": whole(data.get("mttr")),
        "response_time": _response_times(data.get("response_time")),
        "bucket_seconds": length(data.get("bucket_seconds")),
        "buckets": [_bucket(object_(bucket, "bucket")) for bucket in buckets],
    }


def _response_times(value: Any) -> dict[str, int | None]:
    """All response times or none: pages show them together."""
    times = value if isinstance(value, Mapping) else {}
    read = {name: whole(times.get(name)) for name in _TIMES}
    return read if None not in read.values() else dict.fromkeys(_TIMES)


def _bucket(data: Json) -> dict[str, Any]:
    return _span(data) | {
        "end": must(time(data.get("end")), "end"),
        "checks": length(data.get("checks")),
        **{name: whole(data.get(name)) for name in ("response_time", "p95", "max")},
        "timings": phases(data.get("timings")),
    }


def report(data: Any) -> dict[int, dict[str, Any]]:
    """Figures by monitor id, and of all, as ``app.stats.report`` gives them."""
    data = object_(data, "report")
    if not isinstance(data.get("monitors"), list):
        raise MalformedData("monitors")
    monitors = [object_(entry, "monitor") for entry in data["monitors"]]
    by_monitor = {must(own_id(entry.get("id")), "id"): _figures(entry) for entry in monitors}
    return {**by_monitor, ALL: _figures(object_(data.get("all"), "all"))}


def _figures(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uptime": percent(data.get("uptime")),
        **{name: must(whole(data.get(name)), name) for name in COUNTS},
        **{name: whole(data.get(name)) for name in MEASURES},
        **({"days": _days(data["days"])} if data.get("days") is not None else {}),
    }


def _days(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise MalformedData("days")
    return [_span(object_(day, "day")) for day in value]


def _span(data: Json) -> dict[str, Any]:
    """The fields that a day and a bucket of a chart share."""
    return {
        "start": must(time(data.get("start")), "start"),
        "uptime": percent(data.get("uptime")),
        **{name: length(data.get(name)) for name in _STATES},
    }
