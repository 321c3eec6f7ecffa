"""Packed hours say what single results say, to every reader, and nothing is lost on the way."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, func, insert, select, update

from app.access.settings import Policies
from app.config import Settings
from app.db import db, journal, packed, rollups, writing
from app.db.journal import COLUMNS
from app.db.tables import (
    CauseCodeRow,
    MonitorStateRow,
    PackedHourRow,
    PlaceRow,
    ResultContextRow,
    ResultRow,
)
from app.db.types import VERDICTS, to_ms
from app.engine import recorder
from app.engine.housekeeping import Housekeeper
from app.records import DELETED_LOCATION, ResultQuery, Verdict
from app.stats.tally import HOUR_MS
from app.stores.local import LocalStore
from app.stores.local.agent_results import OLDEST
from tests.factories import make_incident, make_monitor, now

HOURS = 44  # of results that a monitor has
GONE = 99  # a place that was deleted


# --- The value of an hour


def of_sizes(*bits: int) -> st.SearchStrategy[int]:
    return st.one_of(*(st.integers(-(2**n), 2**n) for n in bits))


def column(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values, and none here and there."""
    return values | st.none()


# Made once: to make a strategy takes longer than to draw from it.
NUMBERS = column(of_sizes(1, 9, 20, 31))
VARYING = st.sets(st.sampled_from(COLUMNS[3:-1]))
CAUSES = st.sampled_from([None, "It is away", "Das Zertifikat ist abgelaufen – seit gestern"])


@st.composite
def hours(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    count = draw(st.integers(1, 10))
    times = draw(st.sets(st.integers(0, HOUR_MS - 1), min_size=count, max_size=count))
    same = {name: draw(NUMBERS) for name in COLUMNS}
    varies = draw(VARYING)
    rows = []
    for at in sorted(times):
        values = [draw(NUMBERS) if name in varies else same[name] for name in COLUMNS[3:-1]]
        rows.append((7, 490_000 * HOUR_MS + at, 1, *values, draw(CAUSES)))
    return rows


@given(hours())
def test_an_hour_is_the_same_after_packing(rows: list[tuple[Any, ...]]) -> None:
    names = [name for name in COLUMNS if name not in ("monitor_id", "location_id")]
    hour = packed.pack(rows)
    columns = packed.unpack(hour, 490_000, names)
    again = [(7, at, 1, *others) for at, *others in zip(*columns, strict=True)]
    assert again == rows
    for name, values in zip(names, columns, strict=True):  # one of them alone is no other
        assert packed.unpack(hour, 490_000, [name]) == [values]


# --- Readers


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> datetime:
    moment = now().replace(minute=25, second=0, microsecond=0)
    monkeypatch.setattr(LocalStore, "now", lambda self: moment)
    return moment


@pytest.fixture
def store(core: Flask, settings: Settings) -> Iterator[LocalStore]:
    with core.app_context():
        yield LocalStore(settings)


def fill(core: Flask, here: datetime, seed: int) -> tuple[int, int]:
    """Two monitors with outages, in places of which one was deleted."""
    dice = random.Random(seed)
    born = here - timedelta(hours=HOURS + 2)
    first, second = (
        make_monitor(core, created_at=born, interval=1200, confirmations=1) for _ in range(2)
    )
    ids = first.id, second.id
    with writing() as session:
        session.execute(
            update(MonitorStateRow).values(judged_since=born, rolled_until=None, checked_at=here)
        )
        session.add_all(
            [
                PlaceRow(id=2, name="oslo", carrier="local", created_at=born),
                *(CauseCodeRow(id=n, code=f"http_status:50{n}") for n in (1, 2)),
                *(
                    ResultContextRow(id=n, digest=f"{n}", data={"ip": f"192.0.2.{n}"})
                    for n in (1, 2)
                ),
            ]
        )
    rows = []
    for id, place in product(ids, (1, 2, GONE)):
        at = to_ms(here) - HOURS * HOUR_MS + dice.randint(0, 60_000)
        bad = 0
        while at < to_ms(here):
            bad = bad - 1 if bad else dice.choice([0] * 30 + [dice.randint(1, 9)])
            verdict = dice.choice([1, 2, 2, 3]) if bad else 0
            spent = [dice.choice([None, dice.randint(0, 300)]) for _ in range(5)]
            rows.append(
                {
                    "monitor_id": id,
                    "at": at,
                    "location_id": place,
                    "verdict": VERDICTS[verdict],
                    "maintenance": dice.random() < 0.05,
                    "covers_s": dice.choice([None, 0, 2520, 2520]),
                    "status_code": 500 + bad if bad else 200,
                    "response_time": dice.choice([None, dice.randint(0, 70_000)]),
                    **dict(zip(("dns", "connect", "tls", "ttfb", "download"), spent, strict=True)),
                    "context_id": dice.choice([None, 1, 2]),
                    "cause_code_id": dice.choice([None, 1, 2]) if bad else None,
                    "cause": f"Cause {bad}" if bad else None,
                }
            )
            at += 1_200_000 + dice.randint(-400, 400)
    with writing() as session:
        session.execute(insert(ResultRow), rows)
    make_incident(
        core,
        first,
        started_at=here - timedelta(hours=40),
        ended_at=here - timedelta(hours=39, minutes=3),
    )
    return ids


def listed(store: LocalStore, query: ResultQuery) -> tuple[list[Any], int]:
    """All pages of a query, of many results each, and how many it says there are."""
    results: list[Any] = []
    while True:
        page = store.results.list(query)
        results += page.items
        if not page.items:
            return results, page.total
        query = replace(query, page=query.page + 1)


def all_read(
    store: LocalStore, ids: Sequence[int], here: datetime, chosen: int = 12
) -> dict[str, Any]:
    """The answers of every reader of results; ``chosen``: how many of the queries of lists."""
    read: dict[str, Any] = {}
    begin = here - timedelta(hours=HOURS)
    spans: list[tuple[datetime | None, datetime | None]] = [
        (None, None),
        (begin + timedelta(hours=7, minutes=13), None),
        (begin + timedelta(hours=9, minutes=2), begin + timedelta(hours=9, minutes=44)),
        (begin + timedelta(hours=9, minutes=2), here - timedelta(hours=25, minutes=59)),
    ]
    for id in ids:
        places = (None, "default", "oslo", DELETED_LOCATION, "nowhere")
        queries = [*product(spans, (None, "up", "down"), (False, True), places)]
        for span, verdict, changes, place in random.Random(id).sample(queries, chosen):
            query = ResultQuery(id, *span, verdict, changes, place, per_page=500)
            results, total = read[repr(query)] = listed(store, query)
            assert len(results) == total
        whole, _total = read[f"{id} all"] = listed(store, ResultQuery(id, per_page=500))
        for page in (1, 2, 9, len(whole) // 7, len(whole) // 7 + 1, 10**30):
            few = store.results.list(ResultQuery(id, per_page=7, page=page)).items
            assert list(few) == whole[(page - 1) * 7 : page * 7]
        for range_ in ("3h", "24h", "7d", "30d", "90d"):
            read[f"{id} {range_}"] = store.results.statistics(id, range_)
        for hours_ in (1, 5, 30):
            to = begin + timedelta(hours=3 + hours_)
            read[f"{id} {hours_}h"] = store.results.statistics_between(
                id, begin + timedelta(hours=3), to
            )
        read[f"{id} places"] = store.results.by_place(id, begin, 2 * HOURS, 1800)
        read[f"{id} uptime"] = store.monitors.get(id).uptime
        for since in (0, to_ms(begin) + 5 * HOUR_MS + 60_000, to_ms(here) - HOUR_MS):
            read[f"{id} first {since}"] = packed.first_at(id, since)
    read["report"] = store.results.report(ids, begin, here, days=True)
    read["checks"] = rollups.checks(ids, to_ms(begin) + 61_000, to_ms(here))
    read["some"] = rollups.checks(ids, to_ms(begin), to_ms(begin) + 4 * HOUR_MS, phases=False)
    read["summed"] = [
        rollups.only_summed(ids[0], to_ms(begin) + hour * HOUR_MS, to_ms(here)) for hour in (0, 4)
    ]
    return read


def singles(before: datetime | None = None) -> int:
    query = select(func.count()).select_from(ResultRow)
    if before is not None:
        query = query.where(ResultRow.at < to_ms(before))
    return db.session.scalar(query) or 0


def in_hours() -> int:
    return db.session.scalar(select(func.sum(PackedHourRow.results))) or 0


@pytest.mark.both_databases
def test_every_reader_says_the_same_of_packed_results(
    core: Flask, store: LocalStore, here: datetime
) -> None:
    ids = fill(core, here, 1)
    count = singles()
    rollups.roll(here)
    before = all_read(store, ids, here)
    assert packed.pack_old(here, 60) == in_hours() > count / 3
    assert singles() == count - in_hours()
    assert not singles(here.replace(minute=0) - timedelta(hours=26 + 1))
    assert packed.pack_old(here, 60) == 0
    assert all_read(store, ids, here) == before
    rollups.reroll(ids[0], here - timedelta(hours=HOURS))
    assert all_read(store, ids, here) == before


@pytest.mark.both_databases
def test_a_result_that_comes_late_is_read_beside_its_hour_and_packed_into_it(
    core: Flask, store: LocalStore, here: datetime
) -> None:
    ids = fill(core, here, 3)
    late = select(*journal.RAW.values()).where(
        ResultRow.at.between(to_ms(here) - 38 * HOUR_MS, to_ms(here) - 30 * HOUR_MS),
        ResultRow.at % 5 == 0,
    )
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in db.session.execute(late).all()]
    rows = [row | {"maintenance": bool(row["maintenance"])} for row in rows]
    rollups.roll(here)
    read = partial(all_read, store, ids[:1], here, chosen=3)
    before = read()
    with writing() as session:
        session.execute(
            delete(ResultRow).where(
                ResultRow.at.in_([row["at"] for row in rows]), ResultRow.at % 5 == 0
            )
        )
    packed.pack_old(here, 60)
    with writing():
        journal.insert_results(rows)
    assert read() == before
    assert packed.pack_old(here, 60) == len(rows)
    assert read() == before
    with writing():
        journal.insert_results(rows)  # brought twice
    packed.pack_old(here, 60)
    assert read() == before


def test_what_an_agent_may_bring_late_comes_before_its_hour_is_packed() -> None:
    assert timedelta(milliseconds=packed.SINGLE_MS) > OLDEST


def test_hours_that_are_not_summed_stay_single(
    core: Flask, store: LocalStore, here: datetime
) -> None:
    fill(core, here, 4)
    assert packed.pack_old(here, 60) == 0
    until = here - timedelta(hours=5)
    with writing() as session:
        session.execute(update(MonitorStateRow).values(rolled_until=until))
    packed.pack_old(here, 60)
    newest = db.session.scalar(select(func.max(PackedHourRow.hour)))
    assert newest == to_ms(until) // HOUR_MS - 26 - 1


@pytest.mark.both_databases
def test_checkers_pack_at_once_while_late_results_come(
    core: Flask, store: LocalStore, here: datetime
) -> None:
    ids = fill(core, here, 5)
    rollups.roll(here)
    count = singles()
    start = threading.Barrier(3)
    faults: list[Exception] = []

    def work(do: Any) -> None:
        with core.app_context():
            start.wait()
            try:
                do()
            except Exception as fault:
                faults.append(fault)

    def bring() -> None:
        for number in range(30):
            with writing() as session:
                packed.lock_states(session, ids)
                at = to_ms(here) - 42 * HOUR_MS + number * 1_001
                row = {"monitor_id": ids[0], "at": at, "location_id": 1, "verdict": Verdict.UP}
                session.execute(insert(ResultRow), [row | {"maintenance": False}])

    pack = partial(packed.pack_old, here, 60)
    threads = [threading.Thread(target=work, args=(do,)) for do in (pack, pack, bring)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    packed.pack_old(here, 60)
    assert in_hours() + singles() == count + 30


# --- What else happens to packed hours


def test_a_damaged_hour_is_named_once_and_stops_nothing(
    core: Flask, store: LocalStore, here: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    ids = fill(core, here, 6)
    rollups.roll(here)
    packed.pack_old(here, 60)
    start = here.replace(minute=0) - timedelta(hours=32)
    hour = (
        PackedHourRow.hour == to_ms(start) // HOUR_MS,
        PackedHourRow.monitor_id == ids[0],
        PackedHourRow.location_id == 1,
    )
    intact, whole = db.session.execute(
        select(PackedHourRow.packed, PackedHourRow.results).where(*hour)
    ).one()
    total = store.results.list(ResultQuery(ids[0])).total
    for value in (b"", intact[: len(intact) // 2], bytes(50), b"text"):
        packed.log.end((ids[0], to_ms(start) // HOUR_MS, 1))
        caplog.clear()
        with writing() as session:
            session.execute(update(PackedHourRow).where(*hour).values(packed=value))
        for _twice in range(2):
            results, _total = listed(store, ResultQuery(ids[0], per_page=500))
            assert len(results) == total - whole
        store.results.statistics_between(ids[0], start, start + timedelta(hours=2))
        assert caplog.text.count("cannot be read") == 1
        assert f"monitor {ids[0]} in the hour from {start}" in caplog.text
    with writing() as session:  # a late result makes the hour readable again
        row = {"monitor_id": ids[0], "at": to_ms(start), "location_id": 1, "verdict": Verdict.UP}
        session.execute(insert(ResultRow), [row | {"maintenance": False}])
    assert packed.pack_old(here, 60) == 1
    assert len(listed(store, ResultQuery(ids[0], per_page=500))[0]) == total - whole + 1


def test_packed_hours_end_with_their_age_and_with_their_monitor(
    core: Flask, store: LocalStore, here: datetime, settings: Settings
) -> None:
    first, second = fill(core, here, 7)
    rollups.roll(here)
    packed.pack_old(here, 60)
    later = here + timedelta(days=settings.retention_days, hours=-36)
    Housekeeper(core, settings, Policies(settings)).delete_old(later)
    oldest = db.session.scalar(select(func.min(PackedHourRow.hour)))
    assert oldest == (to_ms(here) - 36 * HOUR_MS) // HOUR_MS
    with writing() as session:
        recorder.delete_monitor(session, first, later)
    left = select(PackedHourRow.monitor_id).distinct()
    assert db.session.scalars(left).all() == [second]
