"""Rollups give the same figures as the results, whenever they are summed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import delete, insert

from app.config import Settings
from app.db import db, rollups, writing
from app.db.rollups import rows
from app.db.rollups import writing as sums
from app.db.rollups.reading import Figures
from app.db.rollups.rows import MONITORS, columns_of
from app.db.tables import MonitorRow, MonitorStateRow, ResultRow, RollupRow
from app.db.types import to_ms
from app.engine import recorder
from app.records import UPTIME_RANGES, Classification, IncidentQuery, MonitorQuery, Verdict
from app.stats.tally import DAY_MS, HOUR_MS, Sums
from app.stores.local import LocalStore
from tests.factories import make_incident, make_monitor, make_outcome, now
from tests.support.queries import queries

pytestmark = pytest.mark.usefixtures("context")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def context(core: Flask) -> Iterator[None]:
    with core.app_context():
        yield


@pytest.fixture
def store(settings: Settings) -> LocalStore:
    return LocalStore(settings)


def hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def add_results(monitor_id: int, start: datetime, end: datetime, **fields: Any) -> None:
    """A check a minute from ``start`` to ``end``, up unless ``fields`` say otherwise."""
    values = {"verdict": Verdict.UP, "maintenance": False, "response_time": 100}
    rows = []
    at = start
    while at < end:
        rows.append(
            {"monitor_id": monitor_id, "at": to_ms(at), "location_id": 1, **values} | fields
        )
        at += MINUTE
    with writing() as session:
        session.execute(insert(ResultRow), rows)


def rows_of(monitor_id: int, period_ms: int) -> dict[int, RollupRow]:
    rows = db.session.query(RollupRow).filter_by(monitor_id=monitor_id, period=period_ms // 1000)
    return {row.start: row for row in rows}


def figures(store: LocalStore, monitor_id: int) -> list[Any]:
    """All that people are shown of a monitor's past."""
    shown = dict(store.monitors.get(monitor_id).uptime)
    all_figures: list[Any] = [shown]
    for range_ in ("24h", "7d", "30d", "90d"):
        answer = store.results.statistics(monitor_id, range_)
        names = ("uptime", "downtime", "watched", "unknown", "maintenance", "checks")
        all_figures.append({name: answer[name] for name in names})
        assert shown[range_] == answer["uptime"]
        for kind, whole in (("down", "downtime"), ("maintenance", "maintenance")):
            assert abs(sum(bucket[kind] for bucket in answer["buckets"]) - answer[whole]) <= 5
    return all_figures


@pytest.mark.both_databases
def test_figures_are_the_same_before_and_after_summing(
    core: Flask, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = hour(now()) + timedelta(minutes=25)
    monkeypatch.setattr(LocalStore, "now", lambda self: here)
    monitor = make_monitor(core, created_at=here - timedelta(days=3))
    start = here - timedelta(days=2)
    down = Verdict.DOWN
    add_results(monitor.id, start, here - timedelta(hours=30))
    add_results(monitor.id, here - timedelta(hours=30), here - timedelta(hours=29), verdict=down)
    add_results(monitor.id, here - timedelta(hours=29), here - timedelta(hours=9))
    add_results(monitor.id, here - timedelta(hours=7), here - timedelta(hours=6), maintenance=True)
    add_results(monitor.id, here - timedelta(hours=6), here)
    make_incident(
        core, monitor, started_at=here - timedelta(hours=30), ended_at=here - timedelta(hours=29)
    )
    before = figures(store, monitor.id)
    assert before[1]["maintenance"] == 3600
    assert before[2]["downtime"] == 3600
    assert before[1]["uptime"] == 100
    assert before[2]["checks"] == (48 - 2) * 60
    assert rollups.roll(here) == 1
    assert len(rows_of(monitor.id, HOUR_MS)) > 40
    assert figures(store, monitor.id) == before
    assert rollups.roll(here) == 0


def test_windows_count_to_the_second_before_and_after_summing(
    core: Flask, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = hour(now()) + timedelta(minutes=25)
    born = here - timedelta(days=3)
    row, other, own, tagged, later = (
        make_monitor(core, created_at=born, updated_at=born, **fields)
        for fields in (
            {}, {}, {"maintenance_start_at": here - timedelta(minutes=200, seconds=20),
                     "maintenance_end_at": here - timedelta(minutes=190)},
            {"tags": "\nprod\n"}, {},
        )
    )  # fmt: skip
    monkeypatch.setattr(LocalStore, "now", lambda self: born)
    window = {"name": "Works", "monitors": (row.id,), "tags": ("prod",)}
    window |= {"repeat": "daily", "zone": "UTC"}
    begin = here - timedelta(hours=20, seconds=25)  # between two checks, as its end
    store.windows.create(window | {"start_at": begin - timedelta(days=2),
                                  "end_at": begin - timedelta(days=2) + 30 * MINUTE})  # fmt: skip
    monkeypatch.setattr(LocalStore, "now", lambda self: here)
    late = {"name": "Too late", "start_at": here - timedelta(hours=10), "end_at": here + MINUTE}
    store.windows.create(late | {"monitors": (other.id,)})  # planned when it was nearly over
    store.monitors.update(later.id, {"tags": ("prod",)})  # has it from now on
    for monitor in (row, other, own, tagged, later):
        add_results(monitor.id, here - timedelta(hours=23), here)
        make_incident(
            core, monitor, started_at=here - timedelta(hours=21), ended_at=here - timedelta(hours=2)
        )
    for again in range(2):
        one_day, other_day, own_day, tagged_day, later_day = (
            store.results.statistics(monitor.id, "24h")
            for monitor in (row, other, own, tagged, later)
        )
        assert one_day["maintenance"] == 30 * 60, again
        assert one_day["downtime"] == 19 * 3600 - 30 * 60, again
        assert other_day["maintenance"] == 0, again
        assert own_day["maintenance"] == 10 * 60 + 20, again
        assert tagged_day["maintenance"] == 30 * 60, again
        assert later_day["maintenance"] == 0, again
        rollups.roll(here)


def in_order(pieces: dict[int, list[Any]]) -> dict[int, list[Any]]:
    """``rollups.sums_between`` has no order: on PostgreSQL it follows the plan, and so the
    statistics of the table.
    """
    return {id: sorted(own, key=lambda piece: (piece[0], str(piece))) for id, own in pieces.items()}


@pytest.mark.both_databases
def test_a_list_of_monitors_has_the_figures_that_each_has_alone(core: Flask) -> None:
    # Summed at different times, one never, and with gaps that only the longer interval covers. At
    # noon: just after midnight, yesterday may be read by hours in a list and as a day alone.
    here = now().replace(hour=12, minute=25, second=0, microsecond=0)
    ids = []
    for place, interval in enumerate((60, 1800, 86_400, 1800)):
        monitor = make_monitor(core, interval=interval, created_at=here - timedelta(days=3))
        id = monitor.id
        ids.append(id)
        for back in (50, 30, 9, 3, 2):
            start = here - timedelta(hours=back, minutes=3 * place)
            add_results(id, start, start + timedelta(minutes=20))
        if place % 2:
            three_ago = here - timedelta(hours=3)
            make_incident(core, monitor, started_at=three_ago, ended_at=three_ago + MINUTE * place)
        if place:
            rollups.roll(here - timedelta(hours=3 * (3 - place)), limit=1)
    assert {len(rows_of(id, HOUR_MS)) for id in ids[:3]} - {0}
    assert not rows_of(ids[3], HOUR_MS)
    first, last = to_ms(here) - 2 * DAY_MS, to_ms(hour(here))
    for read in (
        lambda ids: listed(ids, here, UPTIME_RANGES, hours=False).uptimes,
        lambda ids: listed(ids, here, ("30d",), hours=True).uptimes,
        lambda ids: listed(ids, here, (), hours=True).hours,
        lambda ids: in_order(rollups.sums_between(ids, first - first % HOUR_MS, last, here)),
    ):
        together = read(ids)
        assert together == {id: read([id])[id] for id in ids}
        assert len({str(value) for value in together.values()}) > 1


@pytest.mark.both_databases
def test_days_in_place_of_their_hours_have_the_same_time(core: Flask) -> None:
    midnight = hour(now()).replace(hour=0) - timedelta(days=1)
    id = make_monitor(core, created_at=midnight - timedelta(days=5)).id
    add_results(id, midnight - timedelta(days=3), midnight + timedelta(hours=12))
    here = midnight + timedelta(hours=12)
    rollups.roll(here)
    first = to_ms(midnight)
    for begin, end in (
        (first - 3 * DAY_MS, to_ms(here)),
        (first - 2 * DAY_MS - 5 * HOUR_MS, first - DAY_MS + 2 * HOUR_MS),
        (first - 2 * DAY_MS, first - DAY_MS),
        (first - DAY_MS - 2 * HOUR_MS, first - DAY_MS + HOUR_MS),
        (first - DAY_MS + 2 * HOUR_MS, first - DAY_MS + 5 * HOUR_MS),
        (first + 2 * HOUR_MS, first + 5 * HOUR_MS),
    ):
        ways = [
            rollups.sums_between([id], begin, end, here, days=days)[id] for days in (False, True)
        ]
        hours, fewer = (sum(sums.up for _start, sums in pieces) for pieces in ways)
        assert hours == fewer == end - begin
        assert all(begin <= start < end for pieces in ways for start, _sums in pieces)
    with queries() as sent:
        rollups.sums_between([id], first - 3 * DAY_MS, to_ms(here), here)
    assert not [statement for statement in sent if "rollups" in statement and " OR " in statement]


@pytest.mark.parametrize("minutes", [-1, 9, 10])
def test_the_last_hour_of_a_day_counts_until_it_is_part_of_the_day(
    core: Flask, store: LocalStore, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    midnight = now().replace(hour=0, minute=0, second=0)
    here = midnight + timedelta(minutes=minutes)
    monkeypatch.setattr(LocalStore, "now", lambda self: here)
    monitor = make_monitor(core, created_at=here - timedelta(days=3))
    add_results(monitor.id, here - timedelta(hours=30), midnight - timedelta(minutes=40))
    add_results(monitor.id, midnight - timedelta(minutes=40), here, verdict=Verdict.DOWN)

    def public_days() -> Any:
        last, days = here.date(), [here.date() - timedelta(days=n) for n in (2, 1, 0)]
        ends = [*days, last + timedelta(days=1)]
        midnights = [to_ms(datetime(day.year, day.month, day.day, tzinfo=UTC)) for day in ends]
        db.session.rollback()
        read = rollups.CachedDays().read([monitor.id], days, midnights, here)[monitor.id]
        since = [read.unsummed.get(index, (0, 0, 0, 0)) for index in range(len(days))]
        return [rollups.add_seconds(*pair) for pair in zip(read.seconds, since, strict=True)]

    before = figures(store, monitor.id), public_days()
    rollups.roll(here)
    assert (figures(store, monitor.id), public_days()) == before


def test_a_chart_that_ends_with_a_full_hour_has_no_part_of_the_next(
    core: Flask, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = hour(now()) + timedelta(minutes=45)
    monkeypatch.setattr(LocalStore, "now", lambda self: here)
    monitor = make_monitor(core, created_at=here - timedelta(days=9))
    add_results(monitor.id, here - timedelta(hours=30), here)
    rollups.roll(here)
    week = store.results.statistics(monitor.id, "7d")
    start = datetime.fromisoformat(week["from"])
    chosen = store.results.statistics_between(monitor.id, start, hour(here))
    assert (week["checks"], chosen["checks"]) == (30 * 60, 30 * 60 - 45)


def listed(ids: Sequence[int], at: datetime, ranges: Sequence[str], *, hours: bool) -> Figures:
    rows = db.session.execute(MONITORS, {"ids": ids}).mappings()
    monitors = [SimpleNamespace(newest_at=None, **row) for row in rows]
    return rollups.ListFigures().read(monitors, at, ranges, hours=hours, change=0)


@pytest.mark.both_databases
def test_figures_that_lists_and_charts_cache_are_those_that_would_be_read(
    core: Flask, store: LocalStore, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = hour(now()) + timedelta(minutes=25)
    monkeypatch.setattr(LocalStore, "now", lambda self: here)
    monitor = make_monitor(core, created_at=here - timedelta(days=3))
    ago = [here - timedelta(hours=hours) for hours in (30, 10, 8, 0)]
    add_results(monitor.id, ago[0], ago[1])
    add_results(monitor.id, ago[2], ago[3])
    rollups.roll(here)
    query = MonitorQuery(hours=True)

    def shown(store: LocalStore) -> Any:
        db.session.rollback()
        (monitor,) = store.monitors.list(query).items
        read = store.results.statistics
        charts = [read(monitor.id, range_) for range_ in ("24h", "7d", "30d", "365d")]
        charts.append(
            store.results.statistics_between(monitor.id, ago[0] - timedelta(days=8), here)
        )
        whole, states = charts[3], read(monitor.id, "365d", response=False)
        for name in ("uptime", "downtime", "checks"):
            assert states[name] == whole[name]
            assert [bucket.get(name) for bucket in states["buckets"]] == [
                bucket.get(name) for bucket in whole["buckets"]
            ]
        return monitor.uptime, monitor.hours, charts

    def late() -> None:
        add_results(monitor.id, ago[1], ago[2])
        rollups.reroll(monitor.id, ago[1], ago[2])

    def outage() -> None:
        start = here - timedelta(hours=5)
        store.incidents.create(
            {"monitor_id": monitor.id, "started_at": start, "ended_at": start + MINUTE * 7}
        )

    def excused() -> None:
        (incident,) = store.incidents.list(IncidentQuery()).items
        store.incidents.update(incident.id, {"classification": Classification.MAINTENANCE})

    def an_hour_later() -> None:
        nonlocal here
        here += timedelta(hours=1)
        rollups.roll(here)

    observed = [shown(store)]
    for change in (outage, excused, late, an_hour_later):
        change()
        observed.append(shown(store))
        assert observed[-1] == shown(LocalStore(settings)), change.__name__
        assert observed[-1] != observed[-2], change.__name__


def test_a_step_of_an_hour_is_summed_once_it_is_over_and_settled(core: Flask) -> None:
    end = hour(now())
    monitor = make_monitor(core)
    add_results(monitor.id, end - timedelta(hours=2), end)
    for minutes, expected in ((-11, 30), (-10, 40), (9, 50), (10, 60), (59, 60)):
        rollups.roll(end + timedelta(minutes=minutes))
        row = rows_of(monitor.id, HOUR_MS)[to_ms(end - timedelta(hours=1)) // 1000]
        assert (row.checks, row.up_s) == (expected, 60 * expected), minutes
        assert (row.response_count, row.response_sum) == (expected, 100 * expected)
        assert sum(row.histogram.values()) == expected


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_those_of_all_results_whenever_an_hour_is_summed(core: Flask, seed: int):
    chance = random.Random(seed)
    midnight = now().replace(hour=0, minute=0, second=0)
    start, end = midnight - timedelta(hours=2), midnight + timedelta(hours=3)
    monitor = make_monitor(core, interval=60, timeout=30, confirmations=chance.randrange(4))
    results = any_results(monitor.id, start, end, chance, places=(1, 2) if seed % 2 else (1,))
    at = free = start
    span = to_ms(start), to_ms(end) + DAY_MS
    while at < end + sums.GRACE:
        at += chance.choice([1, 2, 9, 19, 40, 75]) * MINUTE
        if recent := [row for row in results if row["at"] < to_ms(at)]:
            with writing() as session:
                session.execute(insert(ResultRow), recent)
            results = [row for row in results if row["at"] >= to_ms(at)]
        begun = max(free, at - chance.randrange(90) * MINUTE)
        if chance.random() < 0.3 and begun < at:  # confirmed late, or entered by hand
            free = begun + 9 * MINUTE
            make_incident(core, monitor, started_at=begun, ended_at=free)
            rollups.reroll(monitor.id, begun, free)
        rollups.roll(at)
        pieces: dict[int, Sums] = defaultdict(Sums)
        for begin, piece in rollups.sums_between([monitor.id], *span, at, days=False)[monitor.id]:
            pieces[begin].add(piece)
        for begin, whole in from_results(monitor.id, start, at).items():
            for name in ("up", "down", "unknown", "maintenance", "degraded"):
                assert abs(getattr(pieces[begin], name) - getattr(whole, name)) <= 1000, name
            for name in ("checks", "response_sum", "response_max", "histogram", "phases"):
                assert getattr(pieces[begin], name) == getattr(whole, name), name
    hours = rows_of(monitor.id, HOUR_MS)
    ended = to_ms(hour(rollups.monitor_of(monitor.id).rolled_until)) // 1000
    for begin, whole in from_results(monitor.id, start, at).items():
        if begin < to_ms(end):
            columns = columns_of(monitor.id, HOUR_MS // 1000, begin, whole)
            row = hours[begin // 1000]
            assert {name: getattr(row, name) for name in columns} == columns
    for begin, day in rows_of(monitor.id, DAY_MS).items():
        until = min(ended, begin + DAY_MS // 1000)
        own = [row for moment, row in hours.items() if begin <= moment < until]
        for name in ("checks", "up_s", "down_s", "unknown_s", "maintenance_s", "degraded_s"):
            assert getattr(day, name) == sum(getattr(row, name) for row in own), name
        assert sum(day.histogram.values()) == sum(sum(row.histogram.values()) for row in own)


def from_results(id: int, start: datetime, end: datetime) -> dict[int, Sums]:
    """The sums of each hour, as if nothing had been summed."""
    db.session.rollback()
    incidents = rollups.incidents_between([id], to_ms(start), to_ms(end))[id]
    return rollups.sums_by_period(rollups.monitor_of(id), incidents, to_ms(start), HOUR_MS, end)


def any_results(
    id: int, start: datetime, end: datetime, chance: random.Random, *, places: Sequence[int]
) -> list[dict[str, Any]]:
    """Results that fail, are slow, in maintenance or count for a moment; with gaps."""
    verdict, maintenance, rows, at = Verdict.UP, False, [], to_ms(start)
    elsewhere = [Verdict.UP, Verdict.UP, Verdict.DOWN]
    while at < to_ms(end):
        if chance.random() < 0.15:
            verdict = chance.choice([Verdict.UP, *Verdict])
            maintenance = chance.random() < 0.3
        rows += [
            {
                "monitor_id": id,
                "at": at,
                "location_id": place,
                "verdict": verdict if place == 1 else chance.choice(elsewhere),
                "maintenance": maintenance,
                "covers_s": chance.choice([None, None, None, 150, 150, 0, 30]),
                "response_time": chance.choice([None, 80, 90, 4000]),
            }
            for place in places
            if place == 1 or chance.random() < 0.5
        ]
        at += chance.choice([60_000, 60_000, 60_000, 60_500, 30_000, 400_000])
    return rows


@pytest.mark.both_databases
def test_changing_an_incident_corrects_what_was_summed(core: Flask, store: LocalStore) -> None:
    here = now()
    monitor = make_monitor(core)
    add_results(monitor.id, here - timedelta(days=2), here)
    rollups.roll(here)
    started, ended = here - timedelta(hours=30), here - timedelta(hours=28)

    def downtime() -> tuple[int, int]:
        answer = store.results.statistics(monitor.id, "7d")
        return answer["downtime"], answer["maintenance"]

    assert downtime() == (0, 0)
    incident = store.incidents.create(
        {"monitor_id": monitor.id, "started_at": started, "ended_at": ended}
    )
    assert downtime() == (7200, 0)
    store.incidents.update(incident.id, {"ended_at": ended - timedelta(hours=1)})
    assert downtime() == (3600, 0)
    store.incidents.update(incident.id, {"ended_at": ended})
    assert downtime() == (7200, 0)
    store.incidents.update(incident.id, {"classification": Classification.FALSE_ALARM})
    assert downtime() == (0, 0)
    assert store.incidents.get(incident.id).classification == "false_alarm"
    store.incidents.update(incident.id, {"classification": Classification.MAINTENANCE})
    assert downtime() == (0, 7200)
    store.incidents.update(incident.id, {"classification": None})
    assert downtime() == (7200, 0)
    store.incidents.delete(incident.id)
    assert downtime() == (0, 0)


def test_correcting_an_incident_makes_no_gaps_where_the_monitor_had_another_interval(
    core: Flask, store: LocalStore
) -> None:
    here = hour(now()) + timedelta(minutes=25)
    monitor = make_monitor(core, interval=900)
    start = hour(here - timedelta(days=2))
    with writing() as session:
        times = [to_ms(start) + place * 900_000 for place in range(24 * 4)]
        values = {"location_id": 1, "verdict": Verdict.UP, "maintenance": False, "covers_s": 990}
        rows = [{"monitor_id": monitor.id, "at": at, **values} for at in times]
        session.execute(insert(ResultRow), rows)
    rollups.roll(here)
    store.monitors.update(monitor.id, {"interval": 60})

    def spent() -> tuple[int, int, int]:
        answer = store.results.statistics(monitor.id, "7d")
        return answer["watched"], answer["downtime"], answer["maintenance"]

    whole = spent()[0]
    assert whole >= 23 * 3600
    began = start + timedelta(hours=5, minutes=20)
    incident = store.incidents.create(
        {"monitor_id": monitor.id, "started_at": began, "ended_at": began + timedelta(hours=2)}
    )
    assert spent() == (whole, 7200, 0)
    store.incidents.update(incident.id, {"classification": Classification.MAINTENANCE})
    assert spent() == (whole - 7200, 0, 7200)
    store.incidents.update(incident.id, {"classification": Classification.FALSE_ALARM})
    assert spent() == (whole, 0, 0)


@pytest.mark.both_databases
def test_hours_whose_results_were_deleted_by_age_keep_their_sums(
    core: Flask, store: LocalStore
) -> None:
    here = now()
    monitor = make_monitor(core)
    add_results(monitor.id, here - timedelta(hours=10), here)
    rollups.roll(here)
    before = store.results.statistics(monitor.id, "7d")["checks"]
    horizon = to_ms(here - timedelta(hours=5))
    with writing() as session:
        session.execute(delete(ResultRow).where(ResultRow.at < horizon))
    rollups.reroll(monitor.id, here - timedelta(hours=9))
    assert store.results.statistics(monitor.id, "7d")["checks"] == before
    old = here - timedelta(hours=9), here - timedelta(hours=6)
    statistics = store.results.statistics_between(monitor.id, *old)
    assert statistics["bucket_seconds"] == 3600
    assert statistics["checks"] >= 180
    new = here - timedelta(hours=3), here - timedelta(hours=1)
    assert store.results.statistics_between(monitor.id, *new)["bucket_seconds"] == 60


@pytest.mark.both_databases
def test_many_monitors_are_summed_a_bounded_number_at_a_time(core: Flask) -> None:
    here = now()
    monitors = [make_monitor(core) for _ in range(12)]
    for monitor in monitors:
        add_results(monitor.id, here - timedelta(hours=3), here - timedelta(hours=2))
    assert [rollups.roll(here, limit=8) for _ in range(3)] == [8, 4, 0]
    assert {row.checks for m in monitors for row in rows_of(m.id, DAY_MS).values()} <= set(
        range(1, 61)
    )
    assert all(rows_of(monitor.id, HOUR_MS) for monitor in monitors)


def test_a_monitor_that_was_never_checked_is_not_summed_each_minute(core: Flask) -> None:
    make_monitor(core)
    assert rollups.roll(now()) == 1
    assert rollups.roll(now()) == 0
    assert db.session.query(MonitorStateRow).one().rolled_until is not None


def test_a_pause_ends_what_the_last_check_stands_for_and_checks_while_paused_do_not_count(
    core: Flask, store: LocalStore
) -> None:
    monitor = make_monitor(core, interval=3600)
    began = now() - timedelta(hours=3)

    def check(minutes: int) -> None:
        at = began + timedelta(minutes=minutes)
        recorder.record([(monitor.id, make_outcome("up", at))], at)

    check(0)
    with writing() as session:
        recorder.monitors.pause(session, monitor.id, began + timedelta(minutes=10))
    check(20)
    figures = store.results.statistics(monitor.id, "24h")
    assert (figures["watched"], figures["checks"]) == (600, 1)
    assert figures["uptime"] == 100


def test_a_shorter_interval_makes_no_gaps_of_the_hours_before(
    core: Flask, store: LocalStore
) -> None:
    here = now()
    monitor = make_monitor(core, interval=3600)
    for hours in (5, 4, 3, 2, 1):
        at = here - timedelta(hours=hours)
        recorder.record([(monitor.id, make_outcome("up", at))], at)
    store.monitors.update(monitor.id, {"interval": 60})
    hours = store.results.statistics(monitor.id, "24h")["watched"] / 3600
    assert 5 <= hours < 5.1
    rollups.roll(here)
    # The hour that is not summed yet counts only as far as the present interval covers it.
    assert 4 <= store.results.statistics(monitor.id, "7d")["watched"] / 3600 < 5.1


def test_a_monitor_that_is_checked_each_day_is_watched_all_day(
    core: Flask, store: LocalStore
) -> None:
    here = now()
    monitor = make_monitor(core, interval=86_400, created_at=here - timedelta(days=3))
    for hours in (50, 26, 2):
        at = here - timedelta(hours=hours)
        recorder.record([(monitor.id, make_outcome("up", at))], at)
    for fields in ({}, {"check_every": 10}):
        store.monitors.update(monitor.id, fields)
        figures = store.results.statistics(monitor.id, "24h")
        begin = datetime.fromisoformat(figures["buckets"][0]["start"])
        assert figures["watched"] >= (here - begin).total_seconds() - 1, fields


@pytest.mark.parametrize("changed", [False, True])
def test_a_day_of_results_is_read_only_of_monitors_that_it_may_count_for(
    core: Flask, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    here = now()
    long_ago = here - timedelta(days=3)
    often, daily = (
        make_monitor(core, interval=interval, created_at=long_ago, updated_at=long_ago).id
        for interval in (10, 86_400)
    )
    if changed:
        with writing() as session:
            session.get_one(MonitorRow, often).updated_at = here - timedelta(hours=5)
    first: dict[int, int] = {}

    def checks(ids: Sequence[int], start: int, end: int, **_options: bool) -> dict[int, list[Any]]:
        first.update(dict.fromkeys(ids, start))
        return {id: [] for id in ids}

    monkeypatch.setattr(rows, "checks", checks)
    monitors = db.session.execute(MONITORS, {"ids": [often, daily]}).all()
    rows.checks_and_before(monitors, to_ms(here - timedelta(hours=1)), to_ms(here))
    assert (to_ms(here) - first[often] > DAY_MS) == changed
    assert to_ms(here) - first[daily] > DAY_MS


@pytest.mark.both_databases
def test_an_hour_that_two_checkers_sum_at_once_counts_once(core: Flask, monkeypatch):
    """One computed which hours are complete just before one ended, and waited for the other."""
    id = make_monitor(core).id
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    add_results(id, noon - timedelta(hours=3), noon + timedelta(hours=1))
    late = noon + sums.GRACE
    locked = sums._locked

    def summed_elsewhere(*arguments: Any) -> Any:
        monkeypatch.setattr(sums, "_locked", locked)
        rollups.roll(late)
        return locked(*arguments)

    monkeypatch.setattr(sums, "_locked", summed_elsewhere)
    rollups.roll(late - MINUTE)
    hours = rows_of(id, HOUR_MS)
    assert len(hours) == 3
    assert db.session.get(MonitorStateRow, id).rolled_until == noon, "and no hour is read again"
    day = rows_of(id, DAY_MS)[to_ms(noon - timedelta(hours=12)) // 1000]
    assert day.up_s == sum(hour.up_s for hour in hours.values())
