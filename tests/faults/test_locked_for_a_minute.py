"""Somebody holds the database for a real minute. Checks go on, and nothing is lost or doubled.

A lock of a second hides all of this: leases lapse after 20 s, waits end after 10 or 15 s.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
import sqlalchemy as sa
from flask import Flask

from app.alerts.worker import Worker
from app.config import Settings
from app.db import Base, db, faults
from app.db.tables import DeliveryRow, IncidentRow, ResultRow
from app.db.types import from_ms
from app.engine.checker import Checker
from app.engine.schedule import last_scheduled
from app.stores import health
from tests.factories import make_monitor, make_person
from tests.support.checkers import Site
from tests.support.service import eventually
from tests.web.visitor import Visitor

pytestmark = pytest.mark.both_databases

LOCKED_SECONDS = 60
INTERVAL = 10
LATE = timedelta(seconds=30)


@contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Another process writes and does not end: no table can be written, on PostgreSQL nor read."""
    if settings.database_url.startswith("sqlite"):
        path = settings.database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    engine = sa.create_engine(settings.database_url, poolclass=sa.NullPool)
    with engine.begin() as other:
        names = ", ".join(table.name for table in Base.metadata.sorted_tables)
        other.execute(sa.text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))
        yield


@contextmanager
def running(*parts: Checker | Worker) -> Iterator[None]:
    stop = threading.Event()
    threads = [threading.Thread(target=part.run, args=[stop]) for part in parts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for part in parts:
            (part.checks if isinstance(part, Checker) else part).wake()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()


def rows(app: Flask, statement: sa.Select) -> list:
    with app.app_context():
        rows = db.session.execute(statement).all()
        db.session.remove()
        return rows


def times_of(app: Flask, monitor) -> list[datetime]:
    its = sa.select(ResultRow.at).where(ResultRow.monitor_id == monitor.id).order_by(ResultRow.at)
    return [from_ms(row.at) for row in rows(app, its)]


@pytest.fixture
def shop() -> Iterator[Site]:
    """A second target, which fails."""
    made = Site()
    yield made
    made.close()


@pytest.mark.more
@pytest.mark.timeout(300)
def test_a_lock_of_a_minute_loses_and_doubles_nothing(app, settings, site, shop, sink, monkeypatch):
    monkeypatch.setattr(health, "PROBE_EVERY", 0.0)
    common = {"interval": INTERVAL, "timeout": 5, "confirmations": 1}
    healthy = [make_monitor(app, url=site.url, **common) for _ in range(4)]
    hook = [["webhook", f"{sink.url}/hook"]]
    failing = make_monitor(app, url=shop.url, alerts=hook, **common)
    visitor = Visitor(app).log_in(make_person(app).email)
    with running(Checker(app, settings), Worker(app, settings)):
        eventually(
            lambda: all(len(times_of(app, monitor)) > 1 for monitor in (*healthy, failing)),
            "all run",
        )
        with locked(settings):
            began = datetime.now(UTC)
            until = threading.Event().wait
            until(LOCKED_SECONDS / 3)
            shop.status, asked = 503, site.asked
            until(LOCKED_SECONDS / 3)
            assert site.asked - asked >= len(healthy), "checks go on while it is locked"
            answer = app.test_client().get("/readyz")
            away = faults.BUSY if "sqlite" in settings.database_url else faults.NO_ANSWER
            assert (answer.status_code, answer.json["faults"]) == (503, [away])
            assert away in visitor.open("/").text
            until(LOCKED_SECONDS / 3)
        ended = datetime.now(UTC)
        eventually(lambda: sink.to("/hook"), "the alert", 60)
        ready = app.test_client()
        eventually(lambda: ready.get("/readyz").status_code == 200, "it is ready", 60)
        again = len(times_of(app, healthy[0]))
        eventually(lambda: len(times_of(app, healthy[0])) > again + 1, "it is in step", 60)
    # Every check that a target saw is a result.
    assert sum(len(times_of(app, monitor)) for monitor in healthy) == site.asked
    assert len(times_of(app, failing)) == shop.asked
    for monitor in healthy:
        checked = times_of(app, monitor)
        scheduled = [
            last_scheduled(monitor.id, INTERVAL, at) for at in checked[1:]
        ]  # the first is due at once
        assert len(scheduled) == len(set(scheduled)), "no scheduled check is made twice"
        longest = max(later - before for before, later in pairwise(checked))
        assert longest < timedelta(seconds=INTERVAL) + LATE
    [incident] = rows(app, sa.select(IncidentRow.monitor_id, IncidentRow.started_at))
    assert incident.monitor_id == failing.id
    assert began < incident.started_at < ended, "it began when the target failed"
    assert len(rows(app, sa.select(DeliveryRow.id))) == len(sink.to("/hook")) == 1
