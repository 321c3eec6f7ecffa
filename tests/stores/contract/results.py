"""The contract of every store for results and statistics."""

from __future__ import annotations

import ssl
from datetime import timedelta

import pytest
import trustme
from pytest_httpserver import HTTPServer

from app.errors import Invalid, NotFound
from app.records import DELETED_LOCATION, CertificateChain, ResultQuery
from app.rules.time import iso
from app.stats import RANGES
from app.stats.report import ALL
from app.stores.base import Store
from tests.stores.contract.making import add_incident, add_monitor, moment


class ResultsContract:
    def test_statistics_and_results_of_a_monitor_that_was_never_checked(self, store: Store) -> None:
        monitor = add_monitor(store)
        assert not store.results.list(ResultQuery(monitor.id)).items
        for range_ in RANGES:
            figures = store.results.statistics(monitor.id, range_)
            assert figures["range"] == range_
            assert figures["uptime"] is None
            assert (figures["downtime"], figures["incidents"], figures["mttr"]) == (0, 0, None)
            assert figures["response_time"]["p95"] is None
            assert all(bucket["checks"] == 0 for bucket in figures["buckets"])
        with pytest.raises(Invalid):
            store.results.statistics(monitor.id, "2 weeks")

    def test_statistics_between_two_times_have_the_buckets_that_hold_them(
        self, store: Store
    ) -> None:
        monitor = add_monitor(store, url="http://127.0.0.1:9/")
        result = store.checks.run(monitor.id)
        start = result.checked_at - timedelta(minutes=20)
        statistics = store.results.statistics_between(monitor.id, start, start + timedelta(hours=1))
        assert (statistics["range"], statistics["bucket_seconds"], statistics["checks"]) == (
            None,
            60,
            1,
        )
        assert statistics["from"] <= iso(start)
        assert iso(result.checked_at) <= statistics["to"] <= iso(store.now())
        (row,) = [bucket for bucket in statistics["buckets"] if bucket["checks"]]
        assert row["start"] <= iso(result.checked_at) < row["end"]
        assert statistics["buckets"][0]["start"] == statistics["from"]
        year = store.results.statistics_between(
            monitor.id, start - timedelta(days=365), start + timedelta(hours=1)
        )
        assert (year["bucket_seconds"], year["checks"]) == (86400, 1)
        with pytest.raises(Invalid):
            store.results.statistics_between(
                monitor.id, store.now() + timedelta(hours=1), store.now() + timedelta(hours=2)
            )
        with pytest.raises(NotFound):
            store.results.statistics_between(monitor.id + 100, start, store.now())

    def test_the_checks_at_which_something_changed_are_the_first_and_those_that_differ(
        self, store: Store
    ) -> None:
        monitor = add_monitor(store, url="http://127.0.0.1:9/")
        first = store.checks.run(monitor.id)
        store.checks.run(monitor.id)
        with HTTPServer(host="127.0.0.1") as server:
            server.expect_request("/").respond_with_data("open")
            store.monitors.update(monitor.id, {"url": server.url_for("/")})
            good = store.checks.run(monitor.id)
            store.checks.run(monitor.id)
            server.clear()
            failing = store.checks.run(monitor.id)
        page = store.results.list(ResultQuery(monitor.id, changes=True))
        assert [record.id for record in page.items] == [failing.id, good.id, first.id]
        assert page.total == 3
        down = store.results.list(ResultQuery(monitor.id, changes=True, verdict="down"))
        assert [record.id for record in down.items] == [failing.id, first.id]

    def test_the_checks_from_one_place_are_listed(self, store: Store) -> None:
        monitor = add_monitor(store, url="http://127.0.0.1:9/")
        result = store.checks.run(monitor.id)
        row = store.results.list(ResultQuery(monitor.id, location=result.location))
        assert [record.id for record in row.items] == [result.id]
        for other in ("paris", DELETED_LOCATION):
            assert store.results.list(ResultQuery(monitor.id, location=other)).total == 0

    @pytest.mark.parametrize("trusted", [True, False])
    def test_the_certificates_that_a_target_sent_are_shown(
        self, store: Store, trusted: bool
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        with HTTPServer(host="127.0.0.1", ssl_context=context) as server:
            server.expect_request("/").respond_with_data("open")
            # Nobody here vouches for it: asked to verify, the check fails and sees it all the same.
            monitor = add_monitor(store, url=server.url_for("/"), verify_tls=trusted)
            assert store.results.certificates(monitor.id) == CertificateChain()
            result = store.checks.run(monitor.id)
        assert result.verdict == ("down" if trusted else "up")
        chain = store.results.certificates(monitor.id)
        assert chain.seen_at == result.checked_at.replace(microsecond=0)
        (own,) = chain.certificates
        assert list(own["names"]) == ["127.0.0.1"]
        assert own["issuer"]
        assert own["not_before"] < own["not_after"]
        store.monitors.update(monitor.id, {"url": "http://127.0.0.1:9/"})
        assert store.results.certificates(monitor.id) == CertificateChain()
        with pytest.raises(NotFound):
            store.results.certificates(monitor.id + 100)

    def test_an_incident_may_be_classified_and_the_figures_follow(self, store: Store) -> None:
        monitor, other = add_monitor(store), add_monitor(store)
        started = moment(store, hours=30)
        incident = add_incident(
            store, monitor, started_at=started, ended_at=started + timedelta(hours=1)
        )
        assert (incident.classification, incident.by_hand) == (None, True)
        start = started.replace(minute=0, second=0) - timedelta(hours=1)

        def counted() -> tuple[int, int]:
            figures = store.results.report(
                [monitor.id, other.id], start, start + timedelta(hours=40)
            )
            assert figures.keys() == {monitor.id, other.id, ALL}
            assert figures[other.id]["incidents"] == 0
            assert figures[ALL]["incidents"] == figures[monitor.id]["incidents"]
            return figures[monitor.id]["incidents"], figures[monitor.id]["longest"] or 0

        assert counted() == (1, 3600)
        for word in ("false_alarm", "maintenance"):
            changed = store.incidents.update(incident.id, {"classification": word})
            assert changed.classification == word
            assert counted() == (0, 0)
        assert store.incidents.update(incident.id, {"classification": None}).classification is None
        assert counted() == (1, 3600)
        with pytest.raises(Invalid) as caught:
            store.incidents.update(incident.id, {"classification": "a mistake"})
        assert list(caught.value.errors) == ["classification"]
        assert store.results.report([], start, started).keys() == {ALL}

    def test_a_report_may_have_the_days_of_each_monitor(self, store: Store) -> None:
        monitor = add_monitor(store, url="http://127.0.0.1:9/")
        store.checks.run(monitor.id)
        start = store.now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
        figures = store.results.report([monitor.id], start, start + timedelta(days=4), days=True)
        days = figures[monitor.id]["days"]
        assert len(days) in (3, 4)  # a test may begin before midnight and end after it
        assert [day["start"] for day in days] == [
            iso(start + timedelta(days=place)) for place in range(len(days))
        ]
        assert [day["uptime"] for day in days[:2]] == [None, None]
        later = start + timedelta(days=4)
        assert "days" not in store.results.report([monitor.id], start, later)[monitor.id]
