"""The days of a page are read once and kept: whatever changes the past shows on the next reading.

Each test compares what is kept with what a process reads that has just started.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from operator import add
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event, insert, select, update

from app.config import Settings
from app.db import db, rollups, writing
from app.db.journal import VERDICT_NUMBERS
from app.db.rollups.rows import checks
from app.db.rollups.runs import runs, runs_and_responses
from app.db.tables import MonitorRow, ResultRow
from app.db.types import to_ms
from app.pages.bars import KeptBars, bars
from app.records import Classification, Component, ComponentState, PublicPage, Verdict
from app.stats.cover import cover_limit_ms
from app.stats.tally import HOUR_MS, LONGEST_COVER_MS, Trouble, merged, tally
from app.stores.local import LocalStore
from app.stores.local.public import LocalPublicPages
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
    values["verdict"] = VERDICT_NUMBERS[Verdict(verdict)]
    with writing() as session:
        session.execute(insert(ResultRow), [values | {"at": to_ms(at)} for at in times])


class Reader:
    """A process that goes on, beside one that has just started."""

    def __init__(self, settings: Settings, clock: Clock, page_id: int) -> None:
        self._settings, self._clock, self._id = settings, clock, page_id
        self._kept = LocalPublicPages(settings, clock)

    def page(self) -> PublicPage:
        found = self._kept.page(self._id)
        assert found == LocalPublicPages(self._settings, self._clock).page(self._id)
        for year, month in ((2026, 7), (2026, 6)):
            if month == 7 or self._clock.now.day < 9:
                fresh = LocalPublicPages(self._settings, self._clock)
                known = self._kept.month(self._id, year, month)
                assert known == fresh.month(self._id, year, month)
        return found

    def down(self) -> int:
        return sum(day.down_s for day in self.page().components[0].days)

    def maintenance(self) -> int:
        return sum(day.maintenance_s for day in self.page().components[0].days)


@pytest.fixture
def reader(store: LocalStore, settings: Settings, clock: Clock, page_id: int) -> Reader:
    return Reader(settings, clock, page_id)


@contextmanager
def statements() -> Iterator[list[str]]:
    seen: list[str] = []

    def look(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        seen.append(statement)

    event.listen(db.engine, "before_cursor_execute", look)
    yield seen
    event.remove(db.engine, "before_cursor_execute", look)


def test_sums_are_read_once(store: LocalStore, settings: Settings, clock: Clock, page_id: int):
    kept = LocalPublicPages(settings, clock)
    with statements() as first:
        before = kept.page(page_id)
    with statements() as second:
        after = kept.page(page_id)
    assert before == after
    assert any("rollups" in one for one in first)
    assert not any("rollups" in one for one in second)


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
    # Of the time that is not summed yet, and of an hour that an incident has summed again.
    add_results(shop.id, [NOON - 5 * MINUTE], Verdict.UNKNOWN)
    assert reader.page().components[0].days[-1].unknown_s == 300
    add_results(shop.id, [NOON - 20 * HOUR + 5 * MINUTE], Verdict.UNKNOWN)
    reader.page()
    rollups.reroll(shop.id, NOON - 20 * HOUR, NOON - 19 * HOUR)
    assert sum(one.unknown_s for one in reader.page().components[0].days) == 600


def test_hours_are_summed_and_midnight_comes(
    store: LocalStore, shop: MonitorRow, reader: Reader, clock: Clock
):
    before = reader.page().components[0].days[-1].day
    for _ in range(14):
        clock.now += HOUR
        add_results(shop.id, [clock.now - 10 * n * MINUTE for n in range(6)])
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
    assert [one.name for one in reader.page().components] == ["Mail", "Shop"]
    store.monitors.update(mail.id, {"name": "Post"})
    assert [one.name for one in reader.page().components] == ["Post", "Shop"]
    store.monitors.delete(shop.id)
    assert [one.name for one in reader.page().components] == ["Post"]


@pytest.mark.one_on_postgres
@pytest.mark.parametrize("zones", [("UTC", "Europe/Berlin"), ("Etc/GMT+12", "Etc/GMT-12")])
def test_another_zone(
    store: LocalStore,
    shop: MonitorRow,
    reader: Reader,
    page_id: int,
    zones: tuple[str, str],
):
    make = {"monitor_id": shop.id, "cause": "Closed", "started_at": NOON - 31 * HOUR}
    store.incidents.create(make | {"ended_at": NOON - 27 * HOUR})
    for zone in (*zones, *zones):
        store.status_pages.update(page_id, {"zone": zone})
        assert reader.down() == 4 * 3600, zone


# --- Runs


@pytest.mark.one_on_postgres
@pytest.mark.parametrize("seed", range(3))
def test_runs_cover_the_same_time_as_all_results(app: Flask, seed: int):
    chance = random.Random(seed)
    end = to_ms(NOON)
    start = end - end % HOUR_MS - 2 * HOUR_MS
    kinds = [(even, places) for even in (True, False) for places in ((1,), (1, 2))]
    monitors = [make_monitor(app, interval=60, timeout=10 * len(places)) for _, places in kinds]
    with app.app_context():
        for monitor, (even, places) in zip(monitors, kinds, strict=True):
            _add_any(monitor.id, start, end, chance, even=even, places=places)
        limits = {one.id: cover_limit_ms(one.interval, one.timeout) for one in monitors}
        begin = start - LONGEST_COVER_MS
        every = checks(list(limits), begin, end)
        fewer, responses = runs_and_responses(limits, begin, end)
        answers = defaultdict(lambda: [0, 0])  # two places have answers of their own
        for id, at, *counted in responses:
            answers[id, at] = list(map(add, answers[id, at], counted))
        assert fewer == runs(limits, begin, end)
    for monitor, (even, _places) in zip(monitors, kinds, strict=True):
        alone = tally(every[monitor.id], Trouble(), 1, HOUR_MS, start, end)
        for at, one in alone.items():
            assert answers[monitor.id, at] == [one.response_count, one.response_sum]
        limit = cover_limit_ms(monitor.interval, monitor.timeout)
        confirmations = chance.randrange(4)
        for windows in ((), merged([_span(start, end, chance) for _ in range(3)])):
            trouble = Trouble(merged([_span(start, end, chance)]), (), windows)
            made = [
                {
                    at: (one.up, one.down, one.unknown, one.maintenance, one.degraded)
                    for at, one in tally(
                        list_, trouble, limit, HOUR_MS, start, end, confirmations
                    ).items()
                    if one.covered
                }
                for list_ in (every[monitor.id], fewer[monitor.id])
            ]
            assert made[0] == made[1]
            assert made[0] or even  # even results may all cover nothing


def _span(start: int, end: int, chance: random.Random) -> tuple[int, int]:
    one, other = sorted((chance.randint(start, end), chance.randint(start, end)))
    return one, other


def _add_any(
    id: int, start: int, end: int, chance: random.Random, *, even: bool, places: Sequence[int]
) -> None:
    """``even``: all of a place have one verdict, cover as much, and none was in maintenance."""
    verdicts = {place: chance.choice([0, 1, 2, 3]) if even else 0 for place in (1, 2)}
    cover, maintenance = {place: chance.choice([None, 0, 30, 150]) for place in (1, 2)}, False
    rows, at = [], start - 10 * 60_000
    while at < end:
        if chance.random() < 0.15 and not even:
            verdicts[1], maintenance = chance.choice([0, 0, 1, 2, 3]), chance.random() < 0.3
        rows += [
            {
                "monitor_id": id,
                "at": at,
                "location_id": place,
                "verdict": verdicts[place],
                "maintenance": maintenance,
                "covers_s": cover[place]
                if even
                else chance.choice([None, None, None, 150, 150, 0, 30]),
                "response_time": chance.choice([None, 80, 90, 4000]),
            }
            for place in places
            if place == 1 or chance.random() < 0.5
        ]
        at += chance.choice([60_000, 60_000, 60_000, 60_500, 30_000, 400_000])
    with writing() as session:
        session.execute(insert(ResultRow), rows)


def test_a_damaged_interval_counts_as_the_one_that_is_shown(app: Flask, shop: MonitorRow):
    with app.app_context():
        with writing() as session:
            session.execute(update(MonitorRow).values(interval=-600))
        interval = db.session.scalars(select(MonitorRow.interval)).one()
        limit = cover_limit_ms(interval, shop.timeout)
        (one,) = runs({shop.id: limit}, to_ms(NOON - 5 * MINUTE), to_ms(NOON) + 1)[shop.id]
        assert one.covers == limit
        add_results(shop.id, [NOON + MINUTE], "degraded")
        uneven = runs({shop.id: limit}, to_ms(NOON - 5 * MINUTE), to_ms(NOON + HOUR))[shop.id]
    assert [check.covers for check in uneven] == [limit, limit]


@pytest.mark.one_on_postgres
@pytest.mark.parametrize("gap", [60, 75, 119, 149, 150, 151, 160, 225, 226, 400])
def test_a_gap_is_seen_from_the_moment_that_nothing_covers(app: Flask, gap: int):
    monitor = make_monitor(app, interval=60, timeout=30)
    before = [NOON - HOUR + n * MINUTE for n in range(20)]
    after = [before[-1] + timedelta(seconds=gap) + n * MINUTE for n in range(20)]
    with app.app_context():
        add_results(monitor.id, before + after)
        found = runs({monitor.id: 150_000}, to_ms(NOON - 2 * HOUR), to_ms(NOON))[monitor.id]
    covered = [(one.at, one.at + (one.covers or 0)) for one in found]
    end = to_ms(after[-1]) + 150_000
    if gap <= 150:
        assert covered == [(to_ms(before[0]), end)]
    else:
        assert covered == [
            (to_ms(before[0]), to_ms(before[-1]) + 150_000),
            (to_ms(after[0]), end),
        ]


def test_a_run_without_a_gap_is_one_check(app: Flask, shop: MonitorRow):
    with app.app_context():
        found = runs({shop.id: 690_000}, to_ms(NOON - DAY), to_ms(NOON) + 1)[shop.id]
    assert [(one.at, one.covers) for one in found] == [
        (to_ms(NOON - DAY), to_ms(NOON) - to_ms(NOON - DAY) + 690_000)
    ]


# --- Bars


def test_bars_that_are_kept_are_those_that_would_be_drawn(reader: Reader, store: LocalStore):
    kept = KeptBars(most=2)
    component = reader.page().components[0]
    first = kept.of(component)
    assert first == bars(component.days, component.uptime)
    assert kept.of(reader.page().components[0]) is first
    for one in (Component(7, "New", ComponentState.UNKNOWN), component):
        assert kept.of(one) == bars(one.days, one.uptime)
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
