"""The contract of every store for monitors."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from app.errors import Invalid, NotFound
from app.records import IncidentQuery, Monitor, MonitorQuery, MonitorStatus, Pair
from app.stores.base import Store
from tests.stores.contract.making import (
    HUGE,
    add_incident,
    add_monitor,
    moment,
    not_found,
    over_bare,
)


class MonitorsContract:
    @over_bare
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
        assert [monitor.id for monitor in store.monitors.list(MonitorQuery()).items] == [stored.id]

    def test_what_is_reached_through_a_monitor_is_listed_by_name(self, store: Store) -> None:
        router = add_monitor(store, name="Router").id
        for name in ("Web", "Mail"):
            add_monitor(store, name=name, depends_on=(router,))
        children = store.monitors.children(router)
        assert ([child.name for child in children.items], children.total) == (["Mail", "Web"], 2)
        assert [child.name for child in store.monitors.children(router, 1).items] == ["Mail"]
        assert store.monitors.children(children.items[0].id).total == 0

    @over_bare
    def test_many_are_stored_as_one_by_itself(self, store: Store) -> None:
        several = [
            {"name": name, "url": f"https://{name}.example/", "interval": 300, "cache_buster": 1}
            for name in ("shop", "blog")
        ]
        stored = store.monitors.create_many(several)
        assert [monitor.name for monitor in stored if isinstance(monitor, Monitor)] == [
            "shop",
            "blog",
        ]
        assert [store.monitors.get(monitor.id) for monitor in stored] == stored

    @over_bare
    def test_what_was_not_given_has_its_default(self, store: Store) -> None:
        monitor = store.monitors.get(add_monitor(store).id)
        assert monitor.alert_condition == "url_unavailable"
        assert monitor.request_method == "GET"
        assert monitor.cache_buster == 0
        assert monitor.request_headers == monitor.alerts == ()
        for name in ("alert_text_lookup", "ssl_alert_days", "maintenance_start_at"):
            assert getattr(monitor, name) is None, name

    def test_the_true_pause_is_check_every_or_else_the_interval(self, store: Store) -> None:
        monitor = store.monitors.create(
            {"name": "Fast", "url": "https://fast.example/", "interval": 600, "check_every": 20}
        )
        steps: list[tuple[dict[str, Any], tuple[int, int | None, int]]] = [
            ({}, (60, 20, 20)),
            ({"check_every": 120}, (60, 120, 120)),
            ({"check_every": 86_400, "interval": 60}, (3600, 86_400, 86_400)),
            ({"check_every": None}, (3600, None, 3600)),
            ({"check_every": 300}, (300, 300, 300)),
            ({"interval": 900}, (900, None, 900)),
            ({"check_every": 10}, (60, 10, 10)),
            ({"check_every": None, "interval": 180}, (180, None, 180)),
        ]
        for sent, expected in steps:
            shown = store.monitors.update(monitor.id, sent)
            assert (shown.interval, shown.check_every, shown.true_interval) == expected, sent
            assert store.monitors.get(monitor.id) == shown

    @over_bare
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

    @over_bare
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

    @over_bare
    def test_a_monitor_is_paused_and_resumed(self, store: Store) -> None:
        monitor = add_monitor(store)
        assert not monitor.paused
        paused = store.monitors.update(monitor.id, {"pause": True})
        assert (paused.paused, paused.status) == (True, MonitorStatus.PAUSED)
        resumed = store.monitors.update(monitor.id, {"pause": False})
        assert (resumed.paused, resumed.status == MonitorStatus.PAUSED) == (False, False)

    @over_bare
    def test_a_monitor_that_is_not_there_is_not_found(self, store: Store) -> None:
        monitor = add_monitor(store)
        store.monitors.require(monitor.id)
        for id in (monitor.id + 1, HUGE, -HUGE):
            with pytest.raises(NotFound):
                store.monitors.require(id)
        store.monitors.delete(monitor.id)
        with pytest.raises(NotFound):
            store.monitors.require(monitor.id)

    @over_bare
    def test_a_deleted_monitor_is_gone_with_its_incidents(self, store: Store) -> None:
        monitor, other = add_monitor(store), add_monitor(store, name="Other")
        incident, kept = add_incident(store, monitor), add_incident(store, other)
        store.monitors.delete(monitor.id)
        with pytest.raises(NotFound):
            store.monitors.get(monitor.id)
        with pytest.raises(NotFound):
            store.incidents.get(incident.id)
        assert [incident.id for incident in store.incidents.list(IncidentQuery()).items] == [
            kept.id
        ]
        store.monitors.delete(other.id)
        assert add_monitor(store).id > other.id

    @over_bare
    def test_monitors_are_searched_as_substrings_ignoring_case(self, store: Store) -> None:
        names = ["Größe 100%", "under_score", "back\\slash", "GRÖSSE 1000"]
        for number, name in enumerate(names):
            add_monitor(store, name=name, url=f"https://Example.com/{number}")

        def listed(**query: Any) -> set[str]:
            return {monitor.name for monitor in store.monitors.list(MonitorQuery(**query)).items}

        assert listed(search="grÖ") == {"Größe 100%", "GRÖSSE 1000"}
        assert listed(search="%") == {"Größe 100%"}
        assert listed(search="_") == {"under_score"}
        assert listed(search="\\") == {"back\\slash"}
        assert listed(search="EXAMPLE.com/1", search_by="url") == {"under_score"}
        assert listed(search="example") == set()
        assert listed(search_by="url") == set(names)

    @over_bare
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
            return [monitor.id for monitor in store.monitors.list(MonitorQuery(**query)).items]

        assert order() == [d, c, b, a]
        assert order(sort="asc") == [a, b, c, d]
        assert order(sort_by="name", sort="asc") == [b, c, a, d]
        assert order(sort_by="name", sort="desc") == [d, a, c, b]
        assert order(sort_by="url", sort="asc") == [c, b, d, a]

    def test_names_are_listed_in_natural_order(self, store: Store) -> None:
        names = ["Shop 10", "Oslo", "shop 2", "Öl", "Shop 1", "Zoo"]
        ids = {name: add_monitor(store, name=name).id for name in names}
        ordered = ["Öl", "Oslo", "Shop 1", "shop 2", "Shop 10", "Zoo"]

        def order(**query: Any) -> list[str]:
            return [monitor.name for monitor in store.monitors.list(MonitorQuery(**query)).items]

        assert order(sort_by="natural", sort="asc") == ordered
        assert order(sort_by="natural") == ordered[::-1]
        assert order(sort_by="state") == ordered  # all are pending
        assert order(sort_by="name", sort="asc") == [
            "Oslo", "Shop 1", "Shop 10", "shop 2", "Zoo", "Öl",
        ]  # fmt: skip
        assert [ref.name for ref in store.monitors.refs()] == ordered
        assert [ref.name for ref in store.monitors.refs(ids=list(ids.values()))] == ordered
        store.monitors.update(ids["Shop 10"], {"name": "Shop 0"})
        assert order(sort_by="natural", sort="asc")[2] == "Shop 0"

    def test_a_list_has_pages(self, store: Store) -> None:
        ids = [add_monitor(store, name=f"m{number}").id for number in range(12)]
        pages = [store.monitors.list(MonitorQuery(page=page, sort="asc")) for page in (1, 2, 3)]
        listed = [[record.id for record in page.items] for page in pages]
        assert listed == [ids[:10], ids[10:], []]
        assert [(page.total, page.last_number) for page in pages] == [(12, 2)] * 3
        assert len(store.monitors.list(MonitorQuery(per_page=25)).items) == 12
        assert not store.monitors.list(MonitorQuery(page=2**40)).items

    def test_the_password_is_kept_and_never_shown(self, store: Store) -> None:
        login = {"request_auth_username": "ada", "request_auth_password": "hidden one"}
        monitor = add_monitor(store, **login)
        assert monitor.request_auth_password_set
        assert store.monitors.update(monitor.id, {"name": "x"}).request_auth_password_set
        changed = store.monitors.update(monitor.id, {"request_auth_password": None})
        assert not changed.request_auth_password_set

    @over_bare
    def test_the_monitors_of_one_address_are_found_in_any_spelling(self, store: Store) -> None:
        shop = add_monitor(store, url="https://Example.com")
        again = add_monitor(store, name="Again", url="https://example.com:443/")
        add_monitor(store, name="Path", url="https://example.com/shop")
        add_monitor(store, name="Plain", url="http://example.com/")
        for url in ("https://example.com/", "https://EXAMPLE.com:443", "https://example.com#x"):
            assert [monitor.id for monitor in store.monitors.watching(url)] == [
                shop.id,
                again.id,
            ], url
        assert store.monitors.watching("https://example.com/Shop") == []
        assert store.monitors.watching("nothing") == []

    def test_automatic_days_before_a_certificate_expires_come_back(self, store: Store) -> None:
        monitor = add_monitor(store, ssl_alert_days="auto")
        assert store.monitors.get(monitor.id).ssl_alert_days == "auto"
        assert store.monitors.update(monitor.id, {"ssl_alert_days": 7}).ssl_alert_days == 7
        with pytest.raises(Invalid):
            store.monitors.update(monitor.id, {"url": "tcp://127.0.0.1:9"})

    def test_our_own_fields_come_back(self, store: Store) -> None:
        fields = {
            "timeout": 5,
            "accepted_statuses": "200-299,401",
            "follow_redirects": False,
            "verify_tls": False,
            "request_body": "a=1\n\tb",
            "request_method": "POST",
            "slow_after": 250,
            "slow_alert_after": 10,
            "confirmations": 0,
            "tags": ("prod", "api"),
            "notes": "Runbook:\nhttps://wiki.example/shop",
            "remind_after": 30,
            "quiet_start": "22:00",
            "quiet_end": "07:00",
            "quiet_zone": "Europe/Berlin",
        }
        monitor = store.monitors.get(add_monitor(store, **fields).id)
        assert {name: getattr(monitor, name) for name in fields} == fields
        assert store.monitors.notes(monitor.id) == fields["notes"]
        assert [other.notes for other in store.monitors.list(MonitorQuery()).items] == [None]
        with pytest.raises(Invalid) as caught:
            store.monitors.update(monitor.id, {"slow_after": None})
        assert list(caught.value.errors) == ["slow_alert_after"]
        cleared = store.monitors.update(
            monitor.id, {"tags": (), "notes": "", "slow_after": None, "slow_alert_after": None}
        )
        assert (cleared.tags, cleared.notes, cleared.slow_after) == ((), "", None)

    def test_section_3_the_fields_of_another_kind_are_refused(self, store: Store) -> None:
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

    @over_bare
    def test_names_alone_come_by_name_all_or_some_of_them(self, store: Store) -> None:
        shop = add_monitor(store, name="Shop", url="http://one.test/")
        blog = add_monitor(store, name="blog", url="http://two.test/")
        assert [(ref.id, ref.name, ref.url) for ref in store.monitors.refs()] == [
            (blog.id, "blog", "http://two.test/"),
            (shop.id, "Shop", "http://one.test/"),
        ]
        assert [ref.id for ref in store.monitors.refs(limit=1)] == [blog.id]
        assert [ref.id for ref in store.monitors.refs(search="SHO")] == [shop.id]
        assert [ref.name for ref in store.monitors.refs(ids=[shop.id, HUGE])] == ["Shop"]
        assert list(store.monitors.refs(ids=[])) == []

    def test_monitors_are_counted_and_filtered_by_state_and_tag(self, store: Store) -> None:
        assert not any(store.monitors.overview().values())
        first = add_monitor(store, name="One", tags=("shop", "eu"))
        second = add_monitor(store, name="Two", tags=("shop",))
        store.monitors.update(second.id, {"pause": True})
        counted = {status: count for status, count in store.monitors.overview().items() if count}
        assert counted == {MonitorStatus.PENDING: 1, MonitorStatus.PAUSED: 1}

        def listed(**query: Any) -> list[int]:
            return [
                monitor.id
                for monitor in store.monitors.list(MonitorQuery(sort="asc", **query)).items
            ]

        assert listed(state=MonitorStatus.PAUSED) == [second.id]
        assert listed(state=MonitorStatus.DOWN) == []
        assert listed(tag="shop") == [first.id, second.id]
        assert listed(tag="eu", state=MonitorStatus.PENDING) == [first.id]
        assert listed(tag="e") == []

    def test_monitors_are_listed_by_state_and_by_response_time(
        self, store: Store, httpserver: HTTPServer
    ) -> None:
        httpserver.expect_request("/good").respond_with_data("open")
        good, bad = httpserver.url_for("/good"), "http://127.0.0.1:9/"
        up = add_monitor(store, name="b up", url=good, tags=("shop",)).id
        down = [add_monitor(store, name=name, url=bad).id for name in ("z down", "A down")]
        for id in (up, *down):
            store.checks.run(id)
        paused = add_monitor(store, name="a paused").id
        store.monitors.update(paused, {"pause": True})
        new = add_monitor(store, name="a new").id

        def listed(**query: Any) -> list[int]:
            return [monitor.id for monitor in store.monitors.list(MonitorQuery(**query)).items]

        worst_first = [down[1], down[0], new, up, paused]
        assert listed(sort_by="state") == worst_first
        assert listed(sort_by="state", sort="asc") == [paused, up, new, down[1], down[0]]
        assert listed(sort_by="state", tag="shop") == [up]
        assert listed(sort_by="state", state="down") == [down[1], down[0]]
        assert listed(sort_by="state", search="zzz") == []
        assert listed(sort_by="response_time")[0] == up  # those without a time are the last
        assert listed(sort_by="response_time", sort="asc")[0] == up
        assert listed(sort_by="expires_at", sort="asc") == [up, *down, paused, new]

    def test_a_list_by_state_has_pages(self, store: Store) -> None:
        ids = [add_monitor(store, name=f"m{number:02}").id for number in range(12)]
        for id in ids[5:9]:
            store.monitors.update(id, {"pause": True})
        order = [*ids[:5], *ids[9:], *ids[5:9]]  # pending ones, then those that are paused
        pages = [
            store.monitors.list(MonitorQuery(sort_by="state", page=page)) for page in (1, 2, 3)
        ]
        listed = [[record.id for record in page.items] for page in pages]
        assert listed == [order[:10], order[10:], []]
        assert [page.total for page in pages] == [12] * 3

    def test_counters_follow_the_filters(self, store: Store) -> None:
        add_monitor(store, name="Shop", tags=("prod",), url="http://one.test/")
        second = add_monitor(store, name="Blog", tags=("prod", "eu"))
        add_monitor(store, name="Mail", tags=("Prod",))
        store.monitors.update(second.id, {"pause": True})

        def counted(**query: Any) -> dict[str, int]:
            counts = store.monitors.overview(MonitorQuery(**query))
            return {status: count for status, count in counts.items() if count}

        assert counted() == {MonitorStatus.PENDING: 2, MonitorStatus.PAUSED: 1}
        assert counted(tag="prod") == {MonitorStatus.PENDING: 1, MonitorStatus.PAUSED: 1}
        assert counted(tag="prod", state="down") == counted(tag="prod")
        assert counted(search="MAI") == {MonitorStatus.PENDING: 1}
        assert counted(search="one.test", search_by="url") == {MonitorStatus.PENDING: 1}
        assert counted(status_page_id=HUGE) == counted(contact_id=999_999) == {}
        assert counted(location="oslo") == {}
        assert counted(location="default") == counted()

    def test_tags_are_found_by_name(self, store: Store) -> None:
        first = add_monitor(store, tags=("prod", "100%_eu"))
        add_monitor(store, tags=("prod",))
        assert list(store.monitors.tags("prod")) == ["prod"]
        assert list(store.monitors.tags("100%_eu")) == ["100%_eu"]
        assert list(store.monitors.tags("nothing")) == []
        assert list(store.monitors.tags("prod", limit=0)) == []
        assert list(store.monitors.tags("%_E")) == ["100%_eu"]
        assert store.monitors.tag_counts() == {"prod": 2, "100%_eu": 1}
        assert [store.monitors.count([tag]) for tag in ("prod", "nothing")] == [2, 0]
        assert store.monitors.count(["prod", "100%_eu"], [first.id]) == 2

    def test_a_list_brings_the_last_hours_where_they_are_asked_for(
        self, store: Store, httpserver: HTTPServer
    ) -> None:
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
            assert hour["degraded"] == 0

    @over_bare
    @pytest.mark.parametrize("id", [999_999, HUGE])
    def test_an_unknown_monitor_is_not_found(self, store: Store, id: int) -> None:
        not_found(
            lambda: store.monitors.get(id),
            lambda: store.monitors.update(id, {"name": "x"}),
            lambda: store.monitors.delete(id),
        )

    @over_bare
    def test_a_page_without_monitors_has_none(self, store: Store) -> None:
        add_monitor(store)
        for id in (999_999, HUGE):
            assert not store.monitors.list(MonitorQuery(status_page_id=id)).items

    @over_bare
    def test_a_list_of_monitors_without_their_uptime_is_the_same(self, store: Store) -> None:
        for name in ("Alpha", "Beta"):
            add_monitor(store, name=name)
        whole, brief = (store.monitors.list(MonitorQuery(**q)) for q in ({}, {"uptime": ()}))
        assert [replace(record, uptime={}) for record in brief.items] == [
            replace(record, uptime={}) for record in whole.items
        ]
        assert (whole.total, brief.total) == (2, 2)

    def test_a_list_of_states_has_the_states_of_the_whole_records(self, store: Store) -> None:
        add_monitor(store, name="Up")
        store.monitors.update(add_monitor(store, name="Paused").id, {"pause": True})
        now, hour = store.now(), timedelta(hours=1)
        window = {"maintenance_start_at": now - hour, "maintenance_end_at": now + hour}
        add_monitor(store, name="In maintenance", **window)
        fields = ("id", "name", "url", "interval", "status", "cause", "status_since", "uptime")
        states, whole = (
            [[getattr(monitor, field) for field in fields] for monitor in page.items]
            for page in (
                store.monitors.list(
                    MonitorQuery(sort_by="state", uptime=(), status_only=status_only)
                )
                for status_only in (True, False)
            )
        )
        assert states == whole
