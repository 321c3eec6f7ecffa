"""The contract of every store for checks on request."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_httpserver import HTTPServer

from app.errors import Conflict
from app.records import MonitorQuery, MonitorStatus, Pair, ResultQuery
from app.stores.base import Store
from tests.stores.contract.locations import add_place
from tests.stores.contract.making import add_monitor


class ChecksContract:
    def test_a_check_by_hand_is_recorded_and_counts(
        self, store: Store, httpserver: HTTPServer
    ) -> None:
        httpserver.expect_request("/shop").respond_with_data("open")
        monitor = add_monitor(store, url=httpserver.url_for("/shop"))
        result = store.checks.run(monitor.id)
        assert (result.verdict, result.status_code, result.monitor_id) == ("up", 200, monitor.id)
        (place,) = result.places
        assert (place.name, place.message) == ("default", None)
        assert place.result is not None
        assert (place.result.id, place.result.verdict) == (result.id, "up")
        page = store.results.list(ResultQuery(monitor.id))
        assert [(record.id, record.verdict) for record in page.items] == [(result.id, "up")]
        shown = store.monitors.get(monitor.id)
        assert shown.status == MonitorStatus.UP
        assert shown.last_checked_at is not None
        assert shown.response_time == result.response_time
        assert shown.uptime["24h"] == 100
        assert store.results.statistics(monitor.id, "24h")["checks"] == 1
        assert not store.results.list(ResultQuery(monitor.id, verdict="down")).items
        later = result.checked_at + timedelta(seconds=1)
        assert not store.results.list(ResultQuery(monitor.id, from_=later)).items
        assert store.results.list(ResultQuery(monitor.id, to=later)).total == 1

    def test_a_place_that_cannot_make_the_check_is_named_and_nothing_is_checked(
        self, store: Store
    ) -> None:
        place = add_place(store, label="Oslo office", carrier="agent")
        monitor = add_monitor(store, locations=(place.name,))
        with pytest.raises(Conflict, match="no check has come from its place Oslo office yet"):
            store.checks.run(monitor.id)
        assert not store.results.list(ResultQuery(monitor.id)).items

    def test_fields_are_checked_without_being_stored(
        self, store: Store, httpserver: HTTPServer
    ) -> None:
        httpserver.expect_request("/", headers={"X-Key": "1"}).respond_with_data("x", status=503)
        outcome = store.checks.run_unsaved(
            {"url": httpserver.url_for("/"), "request_headers": (Pair("X-Key", "1"),), "timeout": 5}
        )
        assert (outcome.result.verdict, outcome.result.cause_code) == ("down", "http_status:503")
        assert not store.monitors.list(MonitorQuery()).items
