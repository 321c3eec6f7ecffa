"""Results and pings of another server, figures over them, the certificates that its checks saw, and
checks on demand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from app.codec import MalformedData, reader
from app.codec.evidence import phases
from app.codec.values import (
    Json,
    must,
    object_,
    percent,
    record_id,
    time_text,
    whole,
    whole_or_zero,
)
from app.errors import NotFound, Unsupported
from app.records import (
    CertificateChain,
    CheckedNow,
    Monitor,
    Outcome,
    Page,
    Ping,
    PingQuery,
    Result,
    ResultQuery,
    SlowAlerts,
)
from app.rules import brackets
from app.stats import report
from app.stats.report import ALL, COUNTS, MEASURES
from app.stats.series import PERCENTILES
from app.stores import base
from app.stores.base import Fields
from app.stores.remote.connection import CHECK_SECONDS
from app.stores.remote.monitors import read as read_monitor
from app.stores.remote.monitors import refuse_hidden_password
from app.stores.remote.part import RemotePart, after_write


class RemoteResults(RemotePart, base.Results):
    in_path = ("monitor_id",)

    def list(self, query: ResultQuery) -> Page[Result]:
        id = query.monitor_id
        return self._page(f"/monitors/{id}/results", query, read, of=("monitor", id))

    def statistics(
        self, monitor_id: int, range_: str, *, response: bool = True
    ) -> Mapping[str, Any]:
        read = partial(read_statistics, range_=range_)
        return self._of_monitor(monitor_id, "statistics", read, [("range", range_)])

    def statistics_between(
        self, monitor_id: int, start: datetime, end: datetime
    ) -> Mapping[str, Any]:
        read = partial(read_statistics, range_=None)
        query = brackets.write({"from": start, "to": end})
        return self._of_monitor(monitor_id, "statistics", read, query)

    def slow_alerts(self, monitor_id: int, limit: int, minutes: int) -> SlowAlerts | None:
        query = brackets.write({"slow_after": limit, "slow_alert_after": minutes})
        try:
            return self._of_monitor(monitor_id, "slow-alerts", _slow_alerts, query)
        except (NotFound, Unsupported):  # an earlier version, which lacks the operation
            return None

    def report(
        self, monitor_ids: Sequence[int], start: datetime, end: datetime, *, days: bool = False
    ) -> Mapping[int, Mapping[str, Any]]:
        if not monitor_ids:  # without ids, the server would return all monitors
            return report.figures(0, 0, {}, {})
        ids = ",".join(map(str, monitor_ids))
        query = {"from": start, "to": end, "monitors": ids} | ({"days": True} if days else {})
        return self._get_content("/report", read_report, brackets.write(query))

    def certificates(self, monitor_id: int) -> CertificateChain:
        return self._of_monitor(monitor_id, "certificates", _certificates)


read = reader(Result, "result")
_slow_alerts = reader(SlowAlerts, "the alerts")
_certificates = reader(CertificateChain, "certificates")


class RemoteHeartbeats(RemotePart, base.Heartbeats):
    in_path = ("monitor_id",)

    def list(self, query: PingQuery) -> Page[Ping]:
        id = query.monitor_id
        return self._page(f"/monitors/{id}/pings", query, _ping, of=("monitor", id))

    def get(self, monitor_id: int, id: int) -> Ping:
        return self._get_content(f"/monitors/{monitor_id}/pings/{id}", _ping, of=("ping", id))

    def new_token(self, monitor_id: int) -> Monitor:
        path = f"/monitors/{monitor_id}/heartbeat-token"
        answer = self._write("POST", path, of=("monitor", monitor_id))
        with after_write():
            return self._content(answer, read_monitor)


_ping = reader(Ping, "ping")
_checked_now = reader(CheckedNow, "the result")


class RemoteChecks(RemotePart, base.Checks):
    def run(self, monitor_id: int) -> CheckedNow:
        path, of = f"/monitors/{monitor_id}/check", ("monitor", monitor_id)
        return self._content(self._write("POST", path, of=of, seconds=CHECK_SECONDS), _checked_now)

    def run_unsaved(self, fields: Fields, *, secrets_from: int | None = None) -> Outcome:
        refuse_hidden_password(self.store.monitors, fields, secrets_from)
        sent_fields = {name: value for name, value in fields.items() if value not in (None, ())}
        answer = self._write("POST", "/checks", sent_fields, seconds=CHECK_SECONDS)
        return Outcome(self._content(answer, read))


# --- Figures: read strictly, so that pages need no checks -----------------------------------------

_STATES = ("up", "down", "unknown", "maintenance")  # seconds
_TIMES = ("avg", *(f"p{percent}" for percent in PERCENTILES), "max")  # ms
_COUNTS = ("downtime", "watched", "unknown", "maintenance", "checks", "incidents")


def read_statistics(data: Any, range_: str | None) -> Mapping[str, Any]:
    """The answer of ``statistics`` as ``app.stats.series`` gives it."""
    data = object_(data, "statistics")
    buckets = data.get("buckets")
    if not isinstance(buckets, list) or not buckets:
        raise MalformedData("buckets")
    return {
        "range": range_,
        "from": time_text(data.get("from")),
        "to": time_text(data.get("to")),
        "uptime": percent(data.get("uptime")),
        **{name: whole_or_zero(data.get(name)) for name in _COUNTS},
        "mttr": whole(data.get("mttr")),
        "response_time": _response_times(data.get("response_time")),
        "bucket_seconds": whole_or_zero(data.get("bucket_seconds")),
        "buckets": [_bucket(object_(bucket, "bucket")) for bucket in buckets],
    }


def _response_times(value: Any) -> dict[str, int | None]:
    """All response times, or None for each: pages show them together."""
    times = value if isinstance(value, Mapping) else {}
    read = {name: whole(times.get(name)) for name in _TIMES}
    return read if None not in read.values() else dict.fromkeys(_TIMES)


def _bucket(data: Json) -> dict[str, Any]:
    return _span(data) | {
        "end": must(time_text(data.get("end")), "end"),
        "checks": whole_or_zero(data.get("checks")),
        **{name: whole(data.get(name)) for name in ("response_time", "p95", "max")},
        "timings": phases(data.get("timings")),
    }


def read_report(data: Any) -> dict[int, dict[str, Any]]:
    """Figures by monitor id, and of all, as ``app.stats.report`` gives them."""
    data = object_(data, "report")
    if not isinstance(data.get("monitors"), list):
        raise MalformedData("monitors")
    monitors = [object_(entry, "monitor") for entry in data["monitors"]]
    by_monitor = {must(record_id(entry.get("id")), "id"): _figures(entry) for entry in monitors}
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
        "start": must(time_text(data.get("start")), "start"),
        "uptime": percent(data.get("uptime")),
        **{name: whole_or_zero(data.get(name)) for name in _STATES},
    }
