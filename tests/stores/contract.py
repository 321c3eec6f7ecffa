"""What every store promises, whatever is behind it: one suite, run over each of them.

A subclass gives the fixture ``store``. What a store does not offer is skipped by asking it
(``needs``): a bare server has neither our fields nor our rules, and says so.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme
from pytest_httpserver import HTTPServer

from app.errors import Conflict, Invalid, NotFound
from app.records import (
    CertificateChain,
    DeliveryQuery,
    Incident,
    IncidentQuery,
    Monitor,
    MonitorQuery,
    MonitorStatus,
    PageQuery,
    Pair,
    ResultQuery,
)
from app.stats import RANGES
from app.stats.report import ALL
from app.stores.base import Feature, Store

HUGE = 2**70


def needs(store: Store, feature: Feature) -> None:
    if feature not in store.offers:
        pytest.skip(f"this store does not offer {feature.value}")


def needs_wakeful(store: Store) -> None:
    """For rules of decisions.md, which interface.md does not have."""
    needs(store, Feature.EXTRA_FIELDS)


def moment(store: Store, **ago: float) -> datetime:
    """A time before now, in whole seconds as the interface has them."""
    return store.now().replace(microsecond=0) - timedelta(**ago)


def add_monitor(store: Store, **fields: Any) -> Monitor:
    values = {"name": "Shop", "url": "http://127.0.0.1:9/", "interval": 60} | fields
    return store.monitors.create(values)


def add_incident(store: Store, monitor: Monitor, **fields: Any) -> Incident:
    values = {"monitor_id": monitor.id, "started_at": moment(store, hours=2)} | fields
    return store.incidents.create(values)


class StoreContract:
    """Subclass with a fixture ``store`` on an empty store."""

    # monitors

    def test_a_stored_monitor_comes_back_with_every_field(self, store: Store) -> None:
        start = moment(store, days=-1)
        fields = {
            "name": "Ünïcode & <b>",
            "url": "https://example.com/path?q=1#top",
            "interval": 300,
            "alert_condition": "url_text",
            "alert_text_lookup": "Out of stock",
            "request_method": "POST",
            "request_headers": (Pair("X-One", "1"), Pair("X-Two", ""), Pair("X-One", "again")),
            "request_auth_username": "ada",
            "request_auth_password": "secret",
            "cache_buster": 1,
            "ssl_alert_days": 14,
            "domain_alert_days": 0,
            "maintenance_start_at": start,
            "maintenance_end_at": start + timedelta(hours=1),
            "alerts": (Pair("email", "ops@example.com"), Pair("sms", "+441234567890")),
        }
        stored = store.monitors.create(fields)
        shown = store.monitors.get(stored.id)
        assert shown == stored
        for name, value in fields.items():
            if name != "request_auth_password":
                assert getattr(shown, name) == value, name
        assert "secret" not in repr(shown)
        assert [one.id for one in store.monitors.list(MonitorQuery()).items] == [stored.id]

    def test_what_was_not_given_has_its_default(self, store: Store) -> None:
        monitor = store.monitors.get(add_monitor(store).id)
        assert monitor.alert_condition == "url_unavailable"
        assert monitor.request_method == "GET"
        assert monitor.cache_buster == 0
        assert monitor.request_headers == monitor.alerts == ()
        for name in ("alert_text_lookup", "ssl_alert_days", "maintenance_start_at"):
            assert getattr(monitor, name) is None, name

    def test_an_update_writes_only_what_was_sent(self, store: Store) -> None:
        before = add_monitor(
            store,
            request_method="POST",
            ssl_alert_days=7,
            alerts=(Pair("email", "ops@example.com"),),
        )
        changed = store.monitors.update(before.id, {"name": "Renamed"})
        assert changed.name == "Renamed"
        for name in ("url", "interval", "request_method", "ssl_alert_days", "alerts"):
            assert getattr(changed, name) == getattr(before, name), name
        assert store.monitors.get(before.id) == changed

    def test_an_update_replaces_lists_whole_and_clears_with_nothing(self, store: Store) -> None:
        monitor = add_monitor(
            store,
            ssl_alert_days=7,
            alert_text_lookup="x",
            request_headers=(Pair("A", "1"), Pair("B", "2")),
            alerts=(Pair("email", "ops@example.com"),),
        )
        changed = store.monitors.update(
            monitor.id,
            {
                "request_headers": (Pair("C", "3"),),
                "alerts": (),
                "ssl_alert_days": None,
                "alert_text_lookup": None,
            },
        )
        assert changed.request_headers == (Pair("C", "3"),)
        assert changed.alerts == ()
        assert changed.ssl_alert_days is None
        assert changed.alert_text_lookup is None

    def test_a_monitor_is_paused_and_resumed(self, store: Store) -> None:
        monitor = add_monitor(store)
        assert not monitor.paused
        paused = store.monitors.update(monitor.id, {"pause": True})
        assert (paused.paused, paused.status) == (True, MonitorStatus.PAUSED)
        resumed = store.monitors.update(monitor.id, {"pause": False})
        assert (resumed.paused, resumed.status == MonitorStatus.PAUSED) == (False, False)

    def test_a_deleted_monitor_is_gone_with_its_incidents(self, store: Store) -> None:
        monitor, other = add_monitor(store), add_monitor(store, name="Other")
        incident, kept = add_incident(store, monitor), add_incident(store, other)
        store.monitors.delete(monitor.id)
        with pytest.raises(NotFound):
            store.monitors.get(monitor.id)
        with pytest.raises(NotFound):
            store.incidents.get(incident.id)
        assert [one.id for one in store.incidents.list(IncidentQuery()).items] == [kept.id]
        store.monitors.delete(other.id)
        assert add_monitor(store).id > other.id

    @pytest.mark.parametrize("id", [999_999, HUGE])
    def test_an_unknown_id_is_not_found_anywhere(self, store: Store, id: int) -> None:
        attempts: list[Callable[[], object]] = [
            lambda: store.monitors.get(id),
            lambda: store.monitors.update(id, {"name": "x"}),
            lambda: store.monitors.delete(id),
            lambda: store.incidents.get(id),
            lambda: store.incidents.update(id, {"cause": "x"}),
            lambda: store.incidents.delete(id),
        ]
        if Feature.EXTRA_FIELDS in store.offers:
            attempts += [
                lambda: store.checks.run(id),
                lambda: store.results.list(ResultQuery(id)),
                lambda: store.results.statistics(id, "24h"),
                lambda: store.channels.test_all(id),
                lambda: store.deliveries.get(id),
                lambda: store.deliveries.retry(id),
                lambda: store.windows.get(id),
                lambda: store.windows.update(id, {"name": "x"}),
                lambda: store.windows.delete(id),
            ]
        for place, attempt in enumerate(attempts):
            try:
                attempt()
            except NotFound:
                continue
            pytest.fail(f"attempt {place} found something")

    def test_monitors_are_searched_as_substrings_ignoring_case(self, store: Store) -> None:
        names = ["Größe 100%", "under_score", "back\\slash", "GRÖSSE 1000"]
        for number, name in enumerate(names):
            add_monitor(store, name=name, url=f"https://Example.com/{number}")

        def found(**query: Any) -> set[str]:
            return {one.name for one in store.monitors.list(MonitorQuery(**query)).items}

        assert found(search="grÖ") == {"Größe 100%", "GRÖSSE 1000"}
        assert found(search="%") == {"Größe 100%"}
        assert found(search="_") == {"under_score"}
        assert found(search="\\") == {"back\\slash"}
        assert found(search="EXAMPLE.com/1", search_by="url") == {"under_score"}
        assert found(search="example") == set()
        assert found(search_by="url") == set(names)

    def test_monitors_are_ordered_with_ties_the_same_way_round(self, store: Store) -> None:
        ids = [
            add_monitor(store, name=name, url=url).id
            for name, url in [
                ("beta", "http://c/"), ("Alpha", "http://B/"), ("alpha", "http://a/"),
                ("Beta", "http://b/"),
            ]
        ]  # fmt: skip
        a, b, c, d = ids

        def order(**query: Any) -> list[int]:
            return [one.id for one in store.monitors.list(MonitorQuery(**query)).items]

        assert order() == [d, c, b, a]
        assert order(sort="asc") == [a, b, c, d]
        assert order(sort_by="name", sort="asc") == [b, c, a, d]
        assert order(sort_by="name", sort="desc") == [d, a, c, b]
        assert order(sort_by="url", sort="asc") == [c, b, d, a]

    def test_a_list_has_pages(self, store: Store) -> None:
        needs_wakeful(store)
        ids = [add_monitor(store, name=f"m{number}").id for number in range(23)]
        pages = [store.monitors.list(MonitorQuery(page=page, sort="asc")) for page in (1, 2, 3, 4)]
        assert [[one.id for one in page.items] for page in pages] == [
            ids[:10],
            ids[10:20],
            ids[20:],
            [],
        ]
        assert [(page.total, page.last_number) for page in pages] == [(23, 3)] * 4
        assert len(store.monitors.list(MonitorQuery(per_page=25)).items) == 23
        assert not store.monitors.list(MonitorQuery(page=2**40)).items

    def test_a_filter_for_what_is_not_there_finds_nothing(self, store: Store) -> None:
        add_incident(store, add_monitor(store))
        for id in (999_999, HUGE):
            assert not store.monitors.list(MonitorQuery(status_page_id=id)).items
            assert not store.incidents.list(IncidentQuery(monitor_id=id)).items

    def test_the_password_is_kept_and_never_shown(self, store: Store) -> None:
        needs_wakeful(store)
        login = {"request_auth_username": "ada", "request_auth_password": "hidden one"}
        monitor = add_monitor(store, **login)
        assert monitor.request_auth_password_set
        assert store.monitors.update(monitor.id, {"name": "x"}).request_auth_password_set
        changed = store.monitors.update(monitor.id, {"request_auth_password": None})
        assert not changed.request_auth_password_set

    def test_our_own_fields_come_back(self, store: Store) -> None:
        needs_wakeful(store)
        fields = {
            "timeout": 5,
            "accepted_statuses": "200-299,401",
            "follow_redirects": False,
            "verify_tls": False,
            "request_body": "a=1\n\tb",
            "request_method": "POST",
            "slow_after": 250,
            "confirmations": 0,
            "tags": ("prod", "api"),
            "remind_after": 30,
            "quiet_start": "22:00",
            "quiet_end": "07:00",
            "quiet_zone": "Europe/Berlin",
        }
        monitor = store.monitors.get(add_monitor(store, **fields).id)
        assert {name: getattr(monitor, name) for name in fields} == fields
        cleared = store.monitors.update(monitor.id, {"tags": (), "slow_after": None})
        assert (cleared.tags, cleared.slow_after) == ((), None)

    def test_names_alone_come_by_name_all_or_some_of_them(self, store: Store) -> None:
        shop = add_monitor(store, name="Shop", url="http://one.test/")
        blog = add_monitor(store, name="blog", url="http://two.test/")
        assert [(one.id, one.name, one.url) for one in store.monitors.refs()] == [
            (blog.id, "blog", "http://two.test/"),
            (shop.id, "Shop", "http://one.test/"),
        ]
        assert [one.id for one in store.monitors.refs(limit=1)] == [blog.id]
        assert [one.id for one in store.monitors.refs(search="SHO")] == [shop.id]
        assert [one.name for one in store.monitors.refs(ids=[shop.id, HUGE])] == ["Shop"]
        assert list(store.monitors.refs(ids=[])) == []

    def test_monitors_are_counted_and_filtered_by_state_and_tag(self, store: Store) -> None:
        needs(store, Feature.OVERVIEW)
        assert not any(store.monitors.overview().values())
        first = add_monitor(store, name="One", tags=("shop", "eu"))
        second = add_monitor(store, name="Two", tags=("shop",))
        store.monitors.update(second.id, {"pause": True})
        counted = {status: count for status, count in store.monitors.overview().items() if count}
        assert counted == {MonitorStatus.PENDING: 1, MonitorStatus.PAUSED: 1}

        def found(**query: Any) -> list[int]:
            return [one.id for one in store.monitors.list(MonitorQuery(sort="asc", **query)).items]

        assert found(state=MonitorStatus.PAUSED) == [second.id]
        assert found(state=MonitorStatus.DOWN) == []
        assert found(tag="shop") == [first.id, second.id]
        assert found(tag="eu", state=MonitorStatus.PENDING) == [first.id]
        assert found(tag="e") == []

    # incidents

    def test_an_incident_goes_from_open_to_acknowledged_to_resolved(self, store: Store) -> None:
        monitor = add_monitor(store)
        incident = add_incident(store, monitor, cause="It burns", comment="line 1\nline 2")
        shown = store.incidents.get(incident.id)
        assert (shown.cause, shown.comment) == ("It burns", "line 1\nline 2")
        assert (shown.status, shown.started_at) == ("unresolved", incident.started_at)
        assert shown.monitor is not None
        assert (shown.monitor.id, shown.monitor.name) == (monitor.id, monitor.name)
        assert shown.duration is not None
        assert 7190 <= shown.duration <= 7260
        at = incident.started_at + timedelta(hours=1)
        acknowledged = store.incidents.update(incident.id, {"acknowledged_at": at}, by="Ada")
        assert (acknowledged.status, acknowledged.acknowledged_at) == ("acknowledged", at)
        ended = store.incidents.update(incident.id, {"ended_at": at, "comment": "Put out"})
        assert (ended.status, ended.ended_at, ended.duration) == ("resolved", at, 3600)
        assert (ended.comment, ended.cause) == ("Put out", "It burns")
        reopened = store.incidents.update(incident.id, {"ended_at": None, "acknowledged_at": None})
        assert reopened.status == "unresolved"
        store.incidents.delete(incident.id)
        assert not store.incidents.list(IncidentQuery()).items

    def test_incidents_are_filtered_by_status_and_monitor(self, store: Store) -> None:
        first, second = add_monitor(store), add_monitor(store, name="Other")
        at = moment(store, hours=1)
        opened = add_incident(store, first).id
        acknowledged = add_incident(store, second, acknowledged_at=at).id
        resolved = add_incident(store, second, ended_at=at).id
        both = add_incident(store, second, acknowledged_at=at, ended_at=at).id

        def found(**query: Any) -> set[int]:
            return {one.id for one in store.incidents.list(IncidentQuery(**query)).items}

        assert found(status="unresolved") == {opened}
        assert found(status="acknowledged") == {acknowledged}
        assert found(status="resolved") == {resolved, both}
        assert found(monitor_id=first.id) == {opened}
        assert found(monitor_id=second.id, status="resolved") == {resolved, both}
        assert found() == {opened, acknowledged, resolved, both}

    def test_a_brief_list_has_the_same_records_in_the_same_order(self, store: Store) -> None:
        for name in ("Alpha", "Beta"):
            add_incident(store, add_monitor(store, name=name), cause=name)
        monitors, incidents = MonitorQuery(), IncidentQuery(status="unresolved")
        for ask, query, less, lacking in (
            (store.monitors.list, monitors, {"uptime": ()}, {"uptime": {}}),
            # The duration goes on counting.
            (store.incidents.list, incidents, {"brief": True}, {"evidence": None, "duration": 0}),
        ):
            pages = [ask(query), ask(replace(query, **less))]
            whole, brief = ([replace(one, **lacking) for one in page.items] for page in pages)
            assert brief == whole
            assert [page.total for page in pages] == [2, 2]

    def test_incidents_are_searched_by_monitor_cause_or_address(self, store: Store) -> None:
        shop = add_monitor(store, name="Shöp", url="http://one.example/")
        blog = add_monitor(store, name="Blog", url="http://two.example/")
        a = add_incident(store, shop, cause="50% lost").id
        b = add_incident(store, blog, cause="Timeout of shöp").id

        def found(**query: Any) -> set[int]:
            return {one.id for one in store.incidents.list(IncidentQuery(**query)).items}

        assert found(search="SHÖP") == {a}
        assert found(search="TWO.example") == {b}
        assert found(search="two.example", search_by="url") == {b}
        assert found(search="two.example", search_by="monitor") == set()
        assert found(search="shöP", search_by="cause") == {b}
        assert found(search="%", search_by="cause") == {a}
        assert found(search_by="cause") == {a, b}

    def test_open_incidents_come_first_in_the_order_of_ends_and_last_the_other_way(
        self, store: Store
    ) -> None:
        monitor, other = add_monitor(store), add_monitor(store)
        early, late = moment(store, minutes=90), moment(store, minutes=30)
        a = add_incident(store, monitor, ended_at=late, started_at=moment(store, hours=5)).id
        b = add_incident(store, monitor, started_at=moment(store, hours=4)).id
        c = add_incident(store, other, ended_at=early, started_at=moment(store, hours=3)).id
        d = add_incident(store, other, started_at=moment(store, hours=2)).id
        e = add_incident(store, other, ended_at=early, started_at=moment(store, hours=3)).id

        def order(**query: Any) -> list[int]:
            return [one.id for one in store.incidents.list(IncidentQuery(**query)).items]

        assert order() == [d, b, a, e, c]
        assert order(sort="asc") == [c, e, a, b, d]
        assert order(sort_by="started_at") == [d, e, c, b, a]
        assert order(sort_by="started_at", sort="asc") == [a, b, c, e, d]

    def test_a_monitor_has_one_open_incident(self, store: Store) -> None:
        needs_wakeful(store)
        monitor = add_monitor(store)
        ended = add_incident(store, monitor, ended_at=moment(store, hours=1))
        incident = add_incident(store, monitor)
        assert store.monitors.get(monitor.id).open_incident_id == incident.id
        with pytest.raises(Conflict) as stored:
            add_incident(store, monitor)
        with pytest.raises(Conflict) as reopened:
            store.incidents.update(ended.id, {"ended_at": None})
        for caught in (stored, reopened):
            assert caught.value.details == {"open_incident_id": incident.id}
        assert store.incidents.get(ended.id).status == "resolved"
        store.incidents.update(incident.id, {"ended_at": moment(store)})
        assert store.monitors.get(monitor.id).open_incident_id is None
        assert store.incidents.update(ended.id, {"ended_at": None}).status == "unresolved"

    def test_an_incident_of_no_monitor_is_refused(self, store: Store) -> None:
        for id in (999_999, HUGE):
            with pytest.raises(Invalid) as caught:
                store.incidents.create({"monitor_id": id, "started_at": moment(store)})
            assert list(caught.value.errors) == ["monitor_id"]

    # Each case: what is stored, what is then sent, and the field that is at fault. Hours ago.
    @pytest.mark.parametrize(
        ("stored", "sent", "fault"),
        [
            (None, {"started_at": -1}, "started_at"),
            (None, {"started_at": 1, "ended_at": 2}, "ended_at"),
            (None, {"started_at": 1, "acknowledged_at": 2}, "acknowledged_at"),
            (None, {"started_at": 3, "acknowledged_at": 1, "ended_at": 2}, "acknowledged_at"),
            ({"started_at": 3}, {"ended_at": -1}, "ended_at"),
            ({"started_at": 3}, {"ended_at": 4}, "ended_at"),
            ({"started_at": 3}, {"acknowledged_at": 4}, "acknowledged_at"),
            ({"started_at": 3, "ended_at": 2}, {"acknowledged_at": 1}, "acknowledged_at"),
            ({"started_at": 3, "acknowledged_at": 1}, {"ended_at": 2}, "ended_at"),
        ],
    )
    def test_times_that_cannot_be_are_refused_and_change_nothing(
        self,
        store: Store,
        stored: dict[str, float] | None,
        sent: dict[str, float],
        fault: str,
    ) -> None:
        needs_wakeful(store)
        monitor = add_monitor(store)

        def times(hours: dict[str, float]) -> dict[str, datetime]:
            return {name: moment(store, hours=ago) for name, ago in hours.items()}

        if stored is None:
            with pytest.raises(Invalid) as caught:
                store.incidents.create({"monitor_id": monitor.id, **times(sent)})
            assert not store.incidents.list(IncidentQuery()).items
        else:
            incident = store.incidents.create({"monitor_id": monitor.id, **times(stored)})
            with pytest.raises(Invalid) as caught:
                store.incidents.update(incident.id, times(sent))
            shown = store.incidents.get(incident.id)
            assert (shown.acknowledged_at, shown.ended_at) == (
                incident.acknowledged_at,
                incident.ended_at,
            )
        assert list(caught.value.errors) == [fault]

    def test_section_3_the_fields_of_another_kind_are_refused(self, store: Store) -> None:
        needs_wakeful(store)
        mail = add_monitor(store, url="tcp://127.0.0.1:25", alert_condition="url_unavailable")
        assert mail.url == "tcp://127.0.0.1:25"
        with pytest.raises(Invalid) as caught:
            store.monitors.update(mail.id, {"request_method": "POST", "verify_tls": False})
        assert sorted(caught.value.errors) == ["request_method", "verify_tls"]
        assert store.monitors.get(mail.id).verify_tls is True
        shop = add_monitor(store, request_auth_username="ada", request_auth_password="secret")
        with pytest.raises(Invalid) as caught:
            store.monitors.update(shop.id, {"url": "tcp://127.0.0.1:25"})
        assert "request_auth_username" in caught.value.errors
        emptied = {"request_auth_username": None, "request_auth_password": None}
        changed = store.monitors.update(shop.id, {"url": "tcp://127.0.0.1:25"} | emptied)
        assert (changed.url, changed.request_auth_password_set) == ("tcp://127.0.0.1:25", False)

    def test_a_clock_that_is_half_a_minute_ahead_is_forgiven(self, store: Store) -> None:
        needs_wakeful(store)
        ahead = moment(store, seconds=-30)
        incident = add_incident(store, add_monitor(store), started_at=ahead)
        assert incident.started_at == ahead
        assert incident.duration == 0

    def test_pausing_ends_the_open_incident_and_says_so(self, store: Store) -> None:
        needs_wakeful(store)
        monitor = add_monitor(store)
        incident = add_incident(store, monitor, comment="Looking")
        store.monitors.update(monitor.id, {"pause": True})
        shown = store.incidents.get(incident.id)
        assert shown.status == "resolved"
        assert shown.comment == "Looking\nWatching stopped: the monitor was paused."
        assert store.monitors.get(monitor.id).open_incident_id is None
        assert add_incident(store, monitor).status == "unresolved"  # by hand also while paused

    # beyond interface.md

    def test_windows_are_stored_changed_and_deleted(self, store: Store) -> None:
        needs(store, Feature.WINDOWS)
        monitor, other = add_monitor(store), add_monitor(store)
        start = moment(store, hours=1)
        window = store.windows.create(
            {
                "name": "Backups",
                "start_at": start,
                "end_at": start + timedelta(hours=2),
                "monitors": (monitor.id,),
                "repeat": "daily",
            }
        )
        assert store.windows.get(window.id) == window
        assert (window.monitors, window.repeat, window.start_at) == ((monitor.id,), "daily", start)
        assert store.monitors.get(monitor.id).status == MonitorStatus.MAINTENANCE
        assert store.monitors.get(other.id).status == MonitorStatus.PENDING
        changed = store.windows.update(window.id, {"monitors": (other.id,), "repeat": "0 3 * * 1"})
        assert (changed.monitors, changed.name) == ((other.id,), "Backups")
        assert [one.id for one in store.windows.list(PageQuery()).items] == [window.id]
        with pytest.raises(Invalid) as caught:
            store.windows.update(window.id, {"end_at": start - timedelta(hours=1)})
        assert list(caught.value.errors) == ["end_at"]
        store.windows.delete(window.id)
        assert not store.windows.list(PageQuery()).items
        assert store.monitors.get(other.id).status == MonitorStatus.PENDING

    def test_a_test_alert_stands_in_the_delivery_log(self, store: Store) -> None:
        needs(store, Feature.DELIVERIES)
        monitor = add_monitor(
            store, alerts=(Pair("email", "ops@example.com"), Pair("sms", "+441234567890"))
        )
        ids = store.channels.test_all(monitor.id)
        page = store.deliveries.list(DeliveryQuery(monitor_id=monitor.id))
        assert sorted(one.id for one in page.items) == sorted(ids)
        assert {(one.event, one.channel) for one in page.items} == {
            ("test", "email"),
            ("test", "sms"),
        }
        assert "ops@example.com" not in repr(page)
        only = store.deliveries.list(DeliveryQuery(channel="sms", status="pending")).items
        assert [store.deliveries.get(one.id).channel for one in only] == ["sms"]
        assert not store.deliveries.list(DeliveryQuery(incident_id=HUGE)).items
        assert store.deliveries.retry(ids[0]).status == "pending"
        assert store.channels.test_all(add_monitor(store).id) == ()

        mine, nobodys = Pair("sms", "+441234567891"), Pair("slack", "http://127.0.0.1:9/hook")
        ids = store.channels.test((mine, nobodys), monitor_id=monitor.id)
        ids += store.channels.test((nobodys,))
        tried = store.deliveries.answers(ids, 0.1)  # nobody sends here, so nothing is answered
        assert [(one.channel, one.monitor_id, one.status) for one in tried] == [
            ("sms", monitor.id, "pending"),
            ("slack", monitor.id, "pending"),
            ("slack", None, "pending"),
        ]
        with pytest.raises(Invalid) as caught:
            store.channels.test((mine,), monitor_id=monitor.id + 100)
        assert list(caught.value.errors) == ["monitor_id"]

    def test_statistics_and_results_of_a_monitor_that_was_never_checked(self, store: Store) -> None:
        needs(store, Feature.STATISTICS)
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

    def test_a_list_brings_the_last_hours_where_they_are_asked_for(
        self, store: Store, httpserver: HTTPServer
    ) -> None:
        needs(store, Feature.HOURS)
        httpserver.expect_request("/shop").respond_with_data("open")
        monitor = add_monitor(store, url=httpserver.url_for("/shop"))
        result = store.checks.run(monitor.id)
        (plain,), (asked,) = (
            store.monitors.list(query).items for query in (MonitorQuery(), MonitorQuery(hours=True))
        )
        assert list(plain.hours) == []
        assert len(asked.hours) == 24
        assert asked.uptime == plain.uptime
        assert [hour["response_time"] for hour in asked.hours if hour["response_time"] is not None]
        assert max(hour["response_time"] or 0 for hour in asked.hours) == result.response_time
        for hour in asked.hours:
            assert (hour["down"], hour["unknown"], hour["maintenance"]) == (0, 0, 0)

    @pytest.mark.parametrize("trusted", [True, False])
    def test_the_certificates_that_a_target_sent_are_shown(
        self, store: Store, trusted: bool
    ) -> None:
        needs(store, Feature.CERTIFICATES)
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
        needs(store, Feature.CLASSIFY)
        needs(store, Feature.REPORTS)
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

    def test_an_incident_says_who_acknowledged_it(self, store: Store) -> None:
        needs_wakeful(store)
        incident = add_incident(store, add_monitor(store))
        now = store.now().replace(microsecond=0)
        known = store.incidents.update(incident.id, {"acknowledged_at": now}, by="Ada")
        assert known.acknowledged_by in ("Ada", "API key test")
        assert store.incidents.get(incident.id).acknowledged_by == known.acknowledged_by

    def test_a_check_by_hand_is_recorded_and_counts(
        self, store: Store, httpserver: HTTPServer
    ) -> None:
        needs(store, Feature.CHECK)
        httpserver.expect_request("/shop").respond_with_data("open")
        monitor = add_monitor(store, url=httpserver.url_for("/shop"))
        result = store.checks.run(monitor.id)
        assert (result.verdict, result.status_code, result.monitor_id) == ("up", 200, monitor.id)
        page = store.results.list(ResultQuery(monitor.id))
        assert [(one.id, one.verdict) for one in page.items] == [(result.id, "up")]
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

    def test_fields_are_checked_without_being_stored(
        self, store: Store, httpserver: HTTPServer
    ) -> None:
        needs(store, Feature.CHECK)
        httpserver.expect_request("/", headers={"X-Key": "1"}).respond_with_data("x", status=503)
        outcome = store.checks.run_unsaved(
            {"url": httpserver.url_for("/"), "request_headers": (Pair("X-Key", "1"),), "timeout": 5}
        )
        assert (outcome.result.verdict, outcome.result.cause_code) == ("down", "http_status:503")
        assert not store.monitors.list(MonitorQuery()).items

    def test_the_clock_is_in_utc(self, store: Store) -> None:
        store.monitors.list(MonitorQuery())
        assert store.now().tzinfo == UTC
        assert abs(store.now() - datetime.now(UTC)) < timedelta(seconds=30)
