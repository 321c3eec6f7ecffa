"""The days of a page are read once and kept: whatever changes the past shows on the next reading.

Each test compares what is kept with what a process reads that has just started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event, insert

from app.config import Settings
from app.db import db, rollups, writing
from app.db.tables import MonitorRow, ResultRow
from app.db.types import to_ms
from app.pages.bars import BarsCache, bars
from app.records import Classification, Component, ComponentState, PublicPage, Verdict
from app.stores.local import LocalStore
from app.stores.local.public import PublicPages
from tests.factories import make_incident, make_monitor
from tests.pages.made import make_page
from tests.support.clock import Clock

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 7, 15, 12, 30, tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON)


@pytest.fixture
def store(app: Flask, settings: Settings, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Any:
    monkeypatch.setattr(LocalStore, "now", lambda self: clock())
    with app.app_context():
        yield LocalStore(settings)


@pytest.fixture
def shop(app: Flask) -> MonitorRow:
    """A monitor that was checked every ten minutes for two days, summed until noon."""
    monitor = make_monitor(
        app,
        name="Shop",
        interval=600,
        created_at=NOON - 9 * DAY,
        updated_at=NOON - 9 * DAY,
        state={"verdict": "up", "checked_at": NOON, "status_since": NOON - DAY},
    )
    with app.app_context():
        add_results(monitor.id, [NOON - 10 * n * MINUTE for n in range(288)])
        rollups.roll(NOON)
    return monitor


@pytest.fixture
def page_id(app: Flask, shop: MonitorRow) -> int:
    return make_page(app, [shop], created_at=NOON - 9 * DAY, updated_at=NOON - 9 * DAY)


def add_results(monitor_id: int, times: Sequence[datetime], verdict: str = Verdict.UP) -> None:
    values = {"monitor_id": monitor_id, "location_id": 1, "maintenance": False}
    values["verdict"] = Verdict(verdict)
    with writing() as session:
        session.execute(insert(ResultRow), [values | {"at": to_ms(at)} for at in times])


class Reader:
    """A process that goes on, beside one that has just started."""

    def __init__(self, settings: Settings, clock: Clock, page_id: int) -> None:
        self._settings, self._clock, self._id = settings, clock, page_id
        self._kept = PublicPages(settings, clock)

    def page(self) -> PublicPage:
        first = self._kept.page(self._id)
        assert first == PublicPages(self._settings, self._clock).page(self._id)
        for year, month in ((2026, 7), (2026, 6)):
            if month == 7 or self._clock.now.day < 9:
                fresh = PublicPages(self._settings, self._clock)
                copy = self._kept.month(self._id, year, month)
                assert copy == fresh.month(self._id, year, month)
        return first

    def down(self) -> int:
        return sum(day.down_s for day in self.page().components[0].days)

    def maintenance(self) -> int:
        return sum(day.maintenance_s for day in self.page().components[0].days)


@pytest.fixture
def reader(store: LocalStore, settings: Settings, clock: Clock, page_id: int) -> Reader:
    return Reader(settings, clock, page_id)


@contextmanager
def statements() -> Iterator[list[str]]:
    statements: list[str] = []

    def look(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        statements.append(statement)

    event.listen(db.engine, "before_cursor_execute", look)
    yield statements
    event.remove(db.engine, "before_cursor_execute", look)


@pytest.mark.both_databases
def test_sums_are_read_once(store: LocalStore, settings: Settings, clock: Clock, page_id: int):
    kept = PublicPages(settings, clock)
    with statements() as first:
        before = kept.page(page_id)
    with statements() as second:
        after = kept.page(page_id)
    assert before == after
    assert any("rollups" in statement for statement in first)
    assert not any("rollups" in statement for statement in second)


def test_an_outage_that_is_entered_classified_and_moved(
    store: LocalStore, shop: MonitorRow, reader: Reader
):
    assert reader.down() == 0
    incident = store.incidents.create(
        {
            "monitor_id": shop.id,
            "cause": "The shop was closed",
            "started_at": NOON - 30 * HOUR,
            "ended_at": NOON - 29 * HOUR,
        }
    )
    assert reader.down() == 3600
    assert sum(day.incidents for day in reader.page().components[0].days) == 1
    store.incidents.update(incident.id, {"classification": Classification.MAINTENANCE})
    assert (reader.down(), reader.maintenance()) == (0, 3600)
    store.incidents.update(incident.id, {"classification": Classification.FALSE_ALARM})
    assert (reader.down(), reader.maintenance()) == (0, 0)
    store.incidents.update(incident.id, {"classification": None})
    assert reader.down() == 3600
    store.incidents.update(incident.id, {"ended_at": NOON - 28 * HOUR})
    assert reader.down() == 7200


def test_a_result_that_comes_late(store: LocalStore, shop: MonitorRow, reader: Reader):
    day = reader.page().components[0].days[-1]
    assert day.unknown_s == 0
    # One result falls into time that is not summed yet, one into an hour that was summed again.
    add_results(shop.id, [NOON - 5 * MINUTE], Verdict.UNKNOWN)
    assert reader.page().components[0].days[-1].unknown_s == 300
    add_results(shop.id, [NOON - 20 * HOUR + 5 * MINUTE], Verdict.UNKNOWN)
    reader.page()
    rollups.reroll(shop.id, NOON - 20 * HOUR, NOON - 19 * HOUR)
    assert sum(day.unknown_s for day in reader.page().components[0].days) == 600


@pytest.mark.both_databases
def test_hours_are_summed_and_midnight_comes(
    store: LocalStore, shop: MonitorRow, reader: Reader, clock: Clock
):
    before = reader.page().components[0].days[-1].day
    for _ in range(3):
        clock.now += 4 * HOUR
        add_results(shop.id, [clock.now - 10 * n * MINUTE for n in range(24)])
        reader.page()
        rollups.roll(clock.now)
        assert reader.page().components[0].uptime == 100
    assert reader.page().components[0].days[-1].day == before + DAY


def test_a_clock_that_was_ahead(store: LocalStore, shop: MonitorRow, reader: Reader, clock: Clock):
    reader.page()
    rollups.roll(clock.now + 5 * HOUR)
    reader.page()
    rollups.roll(clock.now)
    reader.page()


def test_a_window_that_is_planned_moved_and_removed(
    store: LocalStore, shop: MonitorRow, reader: Reader, clock: Clock
):
    window = store.windows.create(
        {
            "name": "Works",
            "monitors": (shop.id,),
            "start_at": NOON + 5 * MINUTE,
            "end_at": NOON + 15 * MINUTE,
        }
    )
    reader.page()
    clock.now += 20 * MINUTE
    add_results(shop.id, [NOON + 10 * MINUTE, NOON + 20 * MINUTE])
    assert reader.maintenance() == 600
    store.windows.update(window.id, {"end_at": NOON + 40 * MINUTE})
    reader.page()
    clock.now += HOUR
    add_results(shop.id, [NOON + n * 10 * MINUTE for n in range(3, 8)])
    reader.page()
    clock.now += HOUR
    rollups.roll(clock.now)
    before = reader.maintenance()
    store.windows.delete(window.id)
    assert reader.maintenance() == before, "what was summed stays"


def test_monitors_are_added_renamed_and_removed(
    app: Flask, store: LocalStore, shop: MonitorRow, reader: Reader, page_id: int
):
    reader.page()
    mail = make_monitor(app, name="Mail", created_at=NOON - DAY)
    make_incident(app, mail, started_at=NOON - 3 * HOUR)
    store.status_pages.update(page_id, {"monitors": [mail.id, shop.id]})
    assert [component.name for component in reader.page().components] == ["Mail", "Shop"]
    store.monitors.update(mail.id, {"name": "Post"})
    assert [component.name for component in reader.page().components] == ["Post", "Shop"]
    store.monitors.delete(shop.id)
    assert [component.name for component in reader.page().components] == ["Post"]


@pytest.mark.parametrize("zones", [("UTC", "Europe/Berlin"), ("Etc/GMT+12", "Etc/GMT-12")])
def test_another_zone(
    store: LocalStore, shop: MonitorRow, reader: Reader, page_id: int, zones: tuple[str, str]
):
    make = {"monitor_id": shop.id, "cause": "Closed", "started_at": NOON - 31 * HOUR}
    store.incidents.create(make | {"ended_at": NOON - 27 * HOUR})
    for zone in (*zones, *zones):
        store.status_pages.update(page_id, {"zone": zone})
        assert reader.down() == 4 * 3600, zone


# --- Bars


def test_bars_that_are_kept_are_those_that_would_be_drawn(reader: Reader, store: LocalStore):
    kept = BarsCache(limit=2)
    component = reader.page().components[0]
    first = kept.of(component)
    assert first == bars(component.days, component.uptime)
    assert kept.of(reader.page().components[0]) is first
    for shown in (Component(7, "New", ComponentState.UNKNOWN), component):
        assert kept.of(shown) == bars(shown.days, shown.uptime)
    store.incidents.create(
        {
            "monitor_id": component.id,
            "cause": "Closed",
            "started_at": NOON - 30 * HOUR,
            "ended_at": NOON - 29 * HOUR,
        }
    )
    changed = reader.page().components[0]
    assert kept.of(changed) == bars(changed.days, changed.uptime) != first
