"""Checkers in processes of their own, on PostgreSQL: one is killed, one joins, nothing is lost."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from app import create_core
from app.config import Settings
from app.db import db
from app.db.tables import ResultRow, ShardRow
from app.db.types import from_ms, to_ms
from app.engine.schedule import last_slot
from tests.conftest import SECRET_KEY
from tests.factories import make_monitor
from tests.support import command
from tests.support.service import eventually

MONITORS, INTERVAL = 30, 4


@pytest.fixture
def settings(postgres_url, tmp_path):
    return Settings(instance=tmp_path, database_url=postgres_url, secret_key=SECRET_KEY)


@pytest.fixture
def core(settings):
    core = create_core(settings)
    yield core
    with core.app_context():
        db.engine.dispose()


@pytest.fixture
def start(settings):
    """Starts a checker; all of them end with the test."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    environ |= {
        "WAKEFUL_DATABASE_URL": settings.database_url,
        "WAKEFUL_INSTANCE": str(settings.instance),
        "WAKEFUL_SECRET_KEY": SECRET_KEY,
        "WAKEFUL_ALLOW_NETWORKS": "loopback",
        "WAKEFUL_CANARIES": "",
    }
    with ExitStack() as ends:

        def start():
            process = command.start(command.be, "checker", environ=environ)
            ends.callback(process.join)
            ends.callback(process.kill)
            return process

        yield start


def owned(core):
    """How many shards each checker owns."""
    with core.app_context():
        names = db.session.scalars(sa.select(ShardRow.owner).where(ShardRow.owner.is_not(None)))
        return sorted(Counter(names).values())


@pytest.mark.slow
@pytest.mark.postgres
def test_a_killed_checker_is_replaced_and_one_that_joins_takes_its_part(core, start):
    ids = [
        make_monitor(core, url="http://127.0.0.1:9/", interval=INTERVAL, confirmations=10).id
        for _ in range(MONITORS)
    ]

    def checked_since(moment):
        with core.app_context():
            newer = sa.select(ResultRow.monitor_id).where(ResultRow.at > to_ms(moment))
            return set(db.session.scalars(newer.distinct())) == set(ids)

    first = start()
    eventually(lambda: owned(core) == [64], "the first one owns all", 60)
    second = start()
    eventually(lambda: owned(core) == [32, 32], "the second one takes its part", 60)
    began = datetime.now(UTC)
    eventually(lambda: checked_since(began), "together they check all", 60)
    first.kill()
    first.join()
    killed = datetime.now(UTC)
    eventually(lambda: owned(core) == [64], "the other one takes over", 60)
    eventually(lambda: checked_since(killed), "and checks all", 60)
    third = start()
    eventually(lambda: owned(core) == [32, 32], "and shares again", 60)
    third.terminate()
    third.join()
    eventually(lambda: owned(core) == [64], "what a stopped one leaves is taken", 60)
    second.terminate()
    second.join()
    assert owned(core) == []
    with core.app_context():
        rows = db.session.execute(sa.select(ResultRow.monitor_id, ResultRow.at)).all()
    slots = Counter((id, last_slot(id, INTERVAL, from_ms(at))) for id, at in rows)
    # A failing check is repeated within its slot; every other slot is done once.
    assert all(count <= 2 for count in slots.values())
