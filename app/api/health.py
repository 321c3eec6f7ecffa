"""/healthz, /readyz and /metrics, which monitor this installation without a key (decision 11)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from flask import Flask, Response, current_app, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.api.envelope import answer, problem
from app.codec import plain
from app.errors import WakefulError
from app.i18n import _
from app.records import (
    OPEN_STATUSES,
    PAGE_SIZES,
    DeliveryQuery,
    DeliveryStatus,
    IncidentQuery,
    MonitorStatus,
    PageQuery,
    PlaceState,
    counts_for_api,
)
from app.stores import current_store
from app.stores.health import health, late_checks, oldest_alert_age

PLACE_PAGES = 100


def init_app(app: Flask) -> None:
    app.add_url_rule("/healthz", "healthz", lambda: answer({"status": "ok"}))
    app.add_url_rule("/readyz", "readyz", _readyz)
    app.add_url_rule("/metrics", "metrics", _metrics)


def _readyz() -> Response:
    """Answer 200 if checks run and the database answers, otherwise 503 with the reasons.
    ``warnings``: faults that do not stop the service.
    """
    report = health(datetime.now(UTC), checks=_checks_here())
    return answer(
        {
            "status": "not ready" if report.faults else "ready",
            "faults": report.faults,
            "warnings": report.warnings,
            "unreadable": report.unreadable,
            "last_check_at": plain(report.last_check_at),
            "last_check_age": report.last_check_age,
            "heartbeat_age": report.heartbeat_age,
        },
        503 if report.faults else 200,
    )


def _checks_here() -> bool:
    """Whether this installation makes checks; a dashboard of remote servers makes none."""
    return bool(current_app.extensions["wakeful.settings"].store == "local")


def _metrics() -> Response:
    token = current_app.extensions["wakeful.settings"].metrics_token
    if token is not None and not _is_bearer(token):
        return problem(401, _("A token is needed here."), WWW_Authenticate="Bearer")
    registry = CollectorRegistry()
    registry.register(_Metrics())
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _is_bearer(token: str) -> bool:
    scheme, _space, sent_token = request.headers.get("Authorization", "").partition(" ")
    matches = hmac.compare_digest(sent_token.strip().encode("utf-8", "replace"), token.encode())
    return scheme.lower() == "bearer" and matches


class _Metrics(Collector):
    """The metrics. They are read from the database at each scrape, so that every web process
    returns the same figures.
    """

    def collect(self) -> Iterator[Metric]:
        report = health(datetime.now(UTC), checks=_checks_here())
        ready = 0 if report.faults else 1
        for name, text, value in (
            ("wakeful_ready", "1 when the service is ready.", ready),
            ("wakeful_unreadable_values",
             "Stored values of monitors and settings that cannot be read.", report.unreadable),
            ("wakeful_monitors_without_checker",
             "Watched monitors that no checker of their place has.", report.left_alone),
            ("wakeful_last_check_age_seconds", "Since the last finished check.",
             report.last_check_age),
            ("wakeful_heartbeat_age_seconds", "Since a checker's last sign.",
             report.heartbeat_age),
        ):  # fmt: skip
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)
        if not report.readable:
            return
        if _checks_here():
            yield from _backlog(datetime.now(UTC))
            yield from _places()
        store = current_store()
        try:
            monitors = counts_for_api(store.monitors.overview())
            del monitors[MonitorStatus.FAILING]  # it would be counted twice in a sum
            yield _gauge("status", "wakeful_monitors", "Monitors by status.", monitors)
            counts = _counts(store.incidents, IncidentQuery, OPEN_STATUSES)
            yield _gauge("status", "wakeful_open_incidents", "Open incidents by status.", counts)
            counts = _counts(store.deliveries, DeliveryQuery, DeliveryStatus)
            yield _gauge("status", "wakeful_deliveries", "Alert deliveries by status.", counts)
        except WakefulError:
            return  # a remote server lacks these figures, or does not answer


def _backlog(now: datetime) -> Iterator[Metric]:
    yield _gauge(
        "place",
        "wakeful_check_lag_seconds",
        "Since the most overdue check of a place was due. Up to 60 mean nothing.",
        late_checks(now),
    )
    yield GaugeMetricFamily(
        "wakeful_oldest_alert_seconds",
        "Since the oldest alert that waits for its delivery was written; 0 if none waits.",
        value=oldest_alert_age(now),
    )


def _places() -> Iterator[Metric]:
    places = list(current_store().locations.every(PageQuery(PAGE_SIZES[-1]), PLACE_PAGES))
    silent = {
        place.name: float(place.monitors > 0 and place.state == PlaceState.SILENT)
        for place in places
    }
    per_minute = {place.name: place.checks_per_minute for place in places}
    checks = {name: count for name, count in per_minute.items() if count is not None}
    text = "1 for a place with monitors from which no results come."
    yield _gauge("place", "wakeful_place_silent", text, silent)
    text = "Checks that a place per_minute lately."
    yield _gauge("place", "wakeful_place_checks_per_minute", text, checks)


def _counts(records: Any, query: type, statuses: Iterable[str]) -> dict[str, int]:
    return {status: records.list(query(status=status, per_page=10)).total for status in statuses}


def _gauge(label: str, name: str, text: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for word, value in values.items():
        family.add_metric([str(word)], value)
    return family
