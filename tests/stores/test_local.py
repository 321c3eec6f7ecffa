"""Only of the local store: states, tags, status pages, clones, and its number of queries."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import collate, literal, select, text

from app.config import Settings
from app.db import db, writing
from app.db.tables import (
    AssignmentRow,
    MonitorRow,
    MonitorStateRow,
    ResultRow,
    StatusPageMonitorRow,
    StatusPageRow,
)
from app.db.types import to_ms
from app.errors import Conflict, Invalid, NotFound
from app.records import (
    IncidentQuery,
    MonitorQuery,
    MonitorStatus,
    PageQuery,
    Pair,
    ResultQuery,
    Verdict,
)
from app.stores.local import LocalStore, states
from app.stores.local.part import in_tags
from tests.factories import make_incident, make_monitor, now, window
from tests.stores.contract.making import add_incident, add_monitor, moment
from tests.support.queries import queries

# Fields of the monitor, the last verdict, and what it shows.
STATES = [
    ({}, None, "pending"),
    ({}, "up", "up"),
    ({}, "degraded", "degraded"),
    ({}, "down", "failing"),
    ({}, "unknown", "unknown"),
    ({"paused": True}, "down", "paused"),
    ({"paused": True} | window(1, 2), "up", "paused"),
    (window(1, 2), None, "maintenance"),
    (window(1, 2), "down", "maintenance"),
    (window(2, 1), "down", "failing"),
    (window(-1, 2), "up", "up"),
]


@pytest.mark.both_databases
def test_a_monitor_shows_the_first_state_that_fits(core: Flask, store: LocalStore) -> None:
    expected = {}
    for fields, verdict, shown in STATES:
        monitor = make_monitor(core, state={"verdict": verdict}, **fields)
        expected[monitor.id] = shown
    for severity, shown in (("down", "down"), ("degraded", "failing")):
        monitor = make_monitor(core, state={"verdict": "down"})
        make_incident(core, monitor, severity=severity)
        expected[monitor.id] = shown
    assert {id: store.monitors.get(id).status for id in expected} == expected
    listed = store.monitors.list(MonitorQuery(per_page=100)).items
    assert {record.id: record.status for record in listed} == expected
    counted = {name: list(expected.values()).count(name) for name in MonitorStatus}
    assert store.monitors.overview() == counted
    for state in MonitorStatus:
        page = store.monitors.list(MonitorQuery(state=state, exact=True, per_page=100))
        assert page.total == counted[state]
        assert {record.status for record in page.items} <= {state}


@pytest.mark.parametrize(
    ("repeat", "days_ago", "shown"),
    [("none", 0, "maintenance"), ("none", 1, "up"), ("daily", 3, "maintenance"),
     ("weekly", 14, "maintenance"), ("weekly", 13, "up")],
)  # fmt: skip
def test_a_repeated_window_puts_its_monitors_into_maintenance(
    core: Flask, store: LocalStore, repeat: str, days_ago: int, shown: str
) -> None:
    inside = make_monitor(core, state={"verdict": Verdict.UP}).id
    outside = make_monitor(core, state={"verdict": Verdict.UP}).id
    start = now() - timedelta(days=days_ago, minutes=30)
    fields = {"name": "w", "start_at": start, "end_at": start + timedelta(hours=1)}
    window = store.windows.create(fields | {"repeat": repeat, "monitors": (inside,)})
    assert (store.monitors.get(inside).status, store.monitors.get(outside).status) == (shown, "up")
    store.windows.update(window.id, {"monitors": ()})  # for all
    assert store.monitors.get(outside).status == shown


def test_a_window_for_one_monitor_ends_with_it_and_silences_nobody_else(store: LocalStore) -> None:
    row, other = add_monitor(store), add_monitor(store)
    start = moment(store, minutes=5)
    fields = {"name": "w", "start_at": start, "end_at": start + timedelta(hours=1)}
    alone = store.windows.create(fields | {"monitors": (row.id,)})
    shared = store.windows.create(fields | {"monitors": (row.id, other.id)})
    store.monitors.delete(row.id)
    assert [each.id for each in store.windows.list(PageQuery()).items] == [shared.id]
    assert store.windows.get(shared.id).monitors == (other.id,)
    with pytest.raises(NotFound):
        store.windows.get(alone.id)


def test_a_window_of_a_monitor_that_is_not_there_is_refused_whole(store: LocalStore) -> None:
    start = moment(store)
    fields = {"name": "w", "start_at": start, "end_at": start + timedelta(hours=1)}
    for id in (4711, 2**70):
        with pytest.raises(Invalid) as caught:
            store.windows.create(fields | {"monitors": (id,)})
        assert list(caught.value.errors) == ["monitors"]
    assert not store.windows.list(PageQuery()).items


@pytest.mark.both_databases
def test_monitors_are_found_by_tag_and_status_page(core: Flask, store: LocalStore) -> None:
    a = add_monitor(store, tags=("prod", "api")).id
    b = add_monitor(store, tags=("production",)).id
    c = add_monitor(store, tags=("100%",)).id

    def listed(**query: Any) -> set[int]:
        return {monitor.id for monitor in store.monitors.list(MonitorQuery(**query)).items}

    assert listed(tag="prod") == {a}
    assert listed(tag="production") == {b}
    assert listed(tag="100%") == {c}
    assert listed(tag="1__%") == set()
    with writing() as session:
        page = StatusPageRow(name="p", slug="p", created_at=now(), updated_at=now())
        session.add(page)
        session.flush()
        session.add(StatusPageMonitorRow(status_page_id=page.id, monitor_id=b, position=0))
        id = page.id
    assert listed(status_page_id=id) == {b}
    assert listed(status_page_id=id, tag="prod") == set()
    assert listed(status_page_id=id + 1) == set()


@pytest.mark.both_databases
def test_a_word_finds_a_tag_whatever_letters_the_locale_folds(core: Flask) -> None:
    searches = {"Ärzte": "ärZTE Ärz ÄRZTE", "ärzte": "ÄRZ", "Straße": "Straße straß", "EU": "eu Eu"}
    with core.app_context():
        locale = "C" if db.engine.dialect.name == "postgresql" else "BINARY"
        for tag, words in searches.items():
            for tags in (literal(tag), collate(literal(tag), locale)):
                for word in words.split():
                    assert db.session.scalar(select(in_tags(word, tags))), (word, tag)
                assert not db.session.scalar(select(in_tags("%ü", tags)))


def test_a_clone_takes_the_password_over(store: LocalStore) -> None:
    login = {"request_auth_username": "ada", "request_auth_password": "hidden one"}
    source = add_monitor(store, **login)
    fields = {"name": "Clone", "url": source.url, "interval": 60}
    for extra, expected in (
        ({"request_auth_username": "ada"}, "hidden one"),
        ({"request_auth_username": "ada", "request_auth_password": "new"}, "new"),
        ({}, None),
    ):
        clone = store.monitors.create(fields | extra, secrets_from=source.id)
        row = db.session.get_one(MonitorRow, clone.id)
        assert row.request_auth_password == expected


def test_no_table_has_a_secret_in_plain_text(core: Flask, store: LocalStore) -> None:
    add_monitor(
        store,
        request_auth_username="ada",
        request_auth_password="s3cret-password",
        request_headers=(Pair("X-Key", "s3cret-header"),),
        alerts=(Pair("webhook", "https://example.com/s3cret-alert"),),
        request_body="s3cret-body",
    )
    names = [column.name for column in MonitorRow.__table__.columns]
    raw = db.session.connection().exec_driver_sql(f"SELECT {', '.join(names)} FROM monitors").one()
    assert "s3cret" not in repr(raw)
    assert "s3cret-header" in repr(store.monitors.list(MonitorQuery()).items[0])


@pytest.mark.both_databases
def test_a_list_makes_the_same_few_queries_at_any_length(core: Flask, store: LocalStore) -> None:
    """A question for each row would be felt. The list has results, figures and hours of all rows,
    as the dashboard asks for them.
    """

    for _ in range(31):
        monitor = make_monitor(core, alerts=[["email", "a@example.com"]])
        make_incident(core, monitor)
        with writing() as session:
            result = {"at": to_ms(now()), "location_id": 1, "verdict": Verdict.UP}
            result |= {"maintenance": False, "response_time": 90}
            session.add(ResultRow(monitor_id=monitor.id, **result))

    def asked(count: int) -> tuple[int, int]:
        db.session.rollback()
        with queries() as for_monitors:
            monitors = store.monitors.list(MonitorQuery(per_page=count, hours=True)).items
        with queries() as for_incidents:
            assert len(store.incidents.list(IncidentQuery(per_page=count)).items) == count
        assert len(monitors) == count
        assert all(monitor.last_checked_at for monitor in monitors)
        return len(for_monitors), len(for_incidents)

    few = asked(5)
    assert asked(30) == few
    assert few[0] <= 12


def test_maintenance_that_another_process_enters_holds_from_the_next_request_on(
    core: Flask, settings: Settings, store: LocalStore
) -> None:
    """A request reads the windows once. A write of its own ends what it has read, too."""
    id = add_monitor(store).id
    store.monitors.update(id, {"tags": ("shop",)})
    with writing() as session:  # as an hour after its first check
        session.get_one(MonitorStateRow, id).rolled_until = now()
    spans = {"start_at": now() - timedelta(hours=1), "end_at": now() + timedelta(hours=1)}

    def elsewhere(fields: dict[str, Any]) -> int:
        def create() -> int:
            with core.app_context():
                return LocalStore(settings).windows.create({"name": "Move", **spans, **fields}).id

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(create).result()

    for fields in ({}, {"monitors": (id,)}, {"tags": ("shop",)}):
        db.session.rollback()  # as a request ends
        with queries() as sent:
            assert store.monitors.get(id).status == "pending"
            store.results.statistics(id, "24h")
            store.results.statistics(id, "365d")
        assert len([message for message in sent if "FROM maintenance_windows" in message]) == 1
        window = elsewhere(fields)
        db.session.rollback()
        assert store.monitors.get(id).status == "maintenance"
        store.windows.delete(window)
        assert store.monitors.get(id).status == "pending"


def test_what_was_read_of_a_monitor_is_shown_only_while_it_is_stored(
    store: LocalStore, settings: Settings
) -> None:
    id = add_monitor(store, name="Shop", request_headers=(Pair("X-Key", "one"),)).id
    other = add_monitor(store, name="Till").id

    def stored(columns: str) -> None:
        """Another process does this, or a person who puts a backup in place."""
        with writing() as session:
            session.execute(text(f"UPDATE monitors SET {columns} WHERE id = {id}"))

    changes: list[Callable[[], object]] = [
        lambda: store.monitors.update(id, {"name": "Shop 2", "tags": ("prod",)}),
        lambda: store.monitors.update(id, {"request_headers": (Pair("X-Key", "two"),)}),
        lambda: store.monitors.update(id, {"alerts": (Pair("email", "ops@shop.example"),)}),
        lambda: store.monitors.update(id, {"pause": True}),
        lambda: stored("name = 'Restored', timeout = 7"),
        lambda: stored("interval = -5, request_headers = 'damaged'"),
        lambda: store.monitors.update(id, {"request_body": "long " * 1000}),
        lambda: store.monitors.update(id, {"request_body": "longer " * 1000}),
        lambda: stored("request_body = NULL"),
        lambda: store.monitors.delete(other),
    ]
    shown = store.monitors.list(MonitorQuery()).items
    for number, change in enumerate(changes):
        change()
        before, shown = shown, store.monitors.list(MonitorQuery()).items
        assert shown != before, number
        assert shown == LocalStore(settings).monitors.list(MonitorQuery()).items, number
        assert shown[-1] == replace(store.monitors.get(id), notes=None), number


@pytest.mark.both_databases
def test_updates_of_different_fields_at_once_both_hold(
    core: Flask, settings: Settings, store: LocalStore
) -> None:
    id = add_monitor(store).id
    changes: list[dict[str, Any]] = [
        {"name": "New name"}, {"interval": 300}, {"tags": ("a",)}, {"ssl_alert_days": 7},
        {"alerts": (Pair("email", "a@example.com"),)}, {"pause": True},
    ]  # fmt: skip

    def change(fields: dict[str, Any]) -> None:
        with core.app_context():
            LocalStore(settings).monitors.update(id, fields)

    with ThreadPoolExecutor(len(changes)) as pool:
        list(pool.map(change, changes))
    db.session.rollback()  # what was read before the threads wrote is another moment's truth
    monitor = store.monitors.get(id)
    assert (monitor.name, monitor.interval, monitor.tags) == ("New name", 300, ("a",))
    assert (monitor.ssl_alert_days, monitor.paused, len(monitor.alerts)) == (7, True, 1)


@pytest.mark.both_databases
def test_the_later_of_two_contradicting_updates_is_refused(
    core: Flask, settings: Settings, store: LocalStore
) -> None:
    """Each was judged over the same stored monitor, before either was kept."""
    id = add_monitor(store, alert_text_lookup="sold out", alert_condition="url_unavailable").id

    def change(fields: dict[str, Any]) -> list[str]:
        with core.app_context():
            try:
                LocalStore(settings).monitors.update(id, fields)
            except Invalid as fault:
                return list(fault.errors)
            return []

    together = [{"alert_condition": "url_text"}, {"alert_text_lookup": None}]
    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(change, together))
    assert answers == [[], ["alert_text_lookup"]]
    db.session.rollback()
    monitor = store.monitors.get(id)
    assert (monitor.alert_condition == "url_text") == (monitor.alert_text_lookup == "sold out")


@pytest.mark.both_databases
def test_of_many_incidents_reported_at_once_one_is_stored(
    core: Flask, settings: Settings, store: LocalStore
) -> None:
    monitor = add_monitor(store)

    def report(_: int) -> tuple[str, int | str]:
        with core.app_context():
            try:
                return "stored", add_incident(LocalStore(settings), monitor).id
            except Conflict as conflict:
                return "refused", conflict.details["open_incident_id"]

    with ThreadPoolExecutor(6) as pool:
        answers = sorted(pool.map(report, range(6)))
    db.session.rollback()
    (only,) = store.incidents.list(IncidentQuery()).items
    assert answers == [("refused", only.id)] * 5 + [("stored", only.id)]


def test_an_acknowledgement_stores_who_and_when(store: LocalStore) -> None:
    incident = add_incident(store, add_monitor(store))
    assert incident.by_hand
    at = moment(store)
    for moment_, by, expected in ((at, "Ada", "Ada"), (None, "Bob", None)):
        incident = store.incidents.update(incident.id, {"acknowledged_at": moment_}, by=by)
        assert incident.acknowledged_by == expected


@pytest.mark.both_databases
def test_an_update_is_whole_or_not_at_all(store: LocalStore) -> None:
    incident = add_incident(store, add_monitor(store), cause="before")
    with pytest.raises(Invalid):
        store.incidents.update(incident.id, {"cause": "after", "classification": "nonsense"})
    with pytest.raises(Invalid):
        store.incidents.update(incident.id, {"cause": "after", "ended_at": moment(store, days=9)})
    assert store.incidents.get(incident.id).cause == "before"


def test_changing_checked_fields_makes_the_monitor_due_at_once(store: LocalStore) -> None:
    monitor = add_monitor(store, interval=3600)

    def due_after(fields: dict[str, Any]) -> bool:
        with writing() as session:
            session.execute(db.update(AssignmentRow).values(scheduled_at=moment(store)))
        before = store.monitors.get(monitor.id).next_check_at
        due = store.monitors.update(monitor.id, fields).next_check_at
        return due is not None and before is not None and due < before

    assert due_after({"url": "http://127.0.0.1:10/"})
    assert due_after({"request_headers": (Pair("A", "1"),)})
    assert not due_after({"name": "Other", "alerts": ()})
    assert not due_after({"url": "http://127.0.0.1:10/"})  # as it was


def test_a_page_past_the_end_is_empty(store: LocalStore) -> None:
    monitor = add_monitor(store)
    far = 2**62
    assert not store.results.list(ResultQuery(monitor.id, page=far, per_page=100)).items
    assert store.monitors.list(MonitorQuery(page=far, per_page=100)).total == 1


@pytest.mark.both_databases
def test_a_list_by_state_is_the_same_with_few_and_with_many_in_a_state(
    core: Flask, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = ["up", "down", "up", "degraded", "down", "up", "nonsense", "up", "unknown", "down"]
    for number, verdict in enumerate(verdicts):
        make_monitor(core, name=str(number), state={"verdict": verdict})
    orders = {"desc": [1, 4, 9, 3, 6, 8, 0, 2, 5, 7], "asc": [0, 2, 5, 7, 6, 8, 3, 1, 4, 9]}
    for few, (sort, order) in product((0, 2, 1000), orders.items()):
        monkeypatch.setattr("app.stores.local.states.FEW_IN_STATE", few)
        pages = [
            store.monitors.list(MonitorQuery(sort_by="state", sort=sort, per_page=4, page=page))
            for page in (1, 2, 3)
        ]
        names = [int(record.name) for page in pages for record in page.items]
        assert names == order, (few, sort)
        assert [page.total for page in pages] == [10, 10, 10]


def test_a_list_of_one_state_is_not_counted_again(core: Flask, store: LocalStore) -> None:
    for number in range(11):
        make_monitor(core, name=f"m{number:02}", state={"verdict": "degraded"})
    counts = store.monitors.overview()
    with queries() as sent:
        page = store.monitors.list(MonitorQuery(state="degraded", per_page=10, counts=counts))
    assert (len(page.items), page.total) == (10, 11)
    assert not [statement for statement in sent if statement.startswith("SELECT count(")]


def test_what_is_not_up_is_found_without_reading_the_state_of_each_monitor(core: Flask) -> None:
    with core.app_context():
        asked = states.not_up(()).params(now=now())
        asked = asked.compile(db.engine, compile_kwargs={"literal_binds": True})
        plan = db.session.execute(text(f"EXPLAIN QUERY PLAN {asked}")).all()
    read = [step.detail for step in plan if "monitor" in step.detail]
    assert len(read) == 3
    assert all(" INDEX ix_" in step for step in read), read
