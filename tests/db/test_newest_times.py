"""Times of which the newest is kept, though several processes write them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from app.db import db, journal, liveness, places, writing
from app.db.tables import PlaceRow, SignOfLifeRow
from app.rules.clocks import SKEW
from tests.support.locks import until_somebody_waits

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EARLIER, LATER = NOW - 5 * SECOND, NOW + SKEW + SECOND


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("stored", "written", "kept"),
    [
        (NOW, None, NOW),
        (NOW, EARLIER, NOW),
        (EARLIER, NOW, NOW),
        (None, EARLIER, EARLIER),
        (None, None, None),
    ],
)
def test_an_older_time_or_none_does_not_replace_the_time_of_the_last_check(
    core, stored, written, kept
):
    """A web process that has just started knows of no check, and one of two is behind the other."""
    with core.app_context():
        liveness.write("agent:oslo", NOW, stored, location="oslo")
        places.store_sign("oslo", NOW, process="agent:oslo", version="2", last_check_at=written)
        row = db.session.scalars(select(SignOfLifeRow)).one()
        assert (row.last_check_at, row.version) == (kept, "2")


@pytest.mark.both_databases
def test_an_older_heartbeat_does_not_replace_the_time_of_a_newer_one(core):
    with core.app_context():
        for at in (NOW, EARLIER):
            liveness.write("agent:oslo", at)
        assert liveness.newest() == NOW


@pytest.mark.both_databases
def test_a_heartbeat_replaces_times_from_before_the_clock_was_set_back(core):
    with core.app_context():
        liveness.write("agent:oslo", LATER, LATER)
        liveness.write("agent:oslo", NOW, NOW)
        row = db.session.scalars(select(SignOfLifeRow)).one()
        assert (row.at, row.last_check_at) == (NOW, NOW)


@pytest.mark.both_databases
def test_two_web_processes_write_the_first_heartbeat_of_an_agent_at_once(core):
    def write():
        with core.app_context():
            liveness.write("agent:oslo", NOW, EARLIER)

    with core.app_context(), ThreadPoolExecutor(1) as pool:
        with writing():
            liveness.write("agent:oslo", NOW, NOW)
            other = pool.submit(write)
            if db.engine.dialect.name == "postgresql":  # the other inserts the same row
                until_somebody_waits()
        other.result(60)
        assert db.session.scalars(select(SignOfLifeRow.last_check_at)).all() == [NOW]


@pytest.mark.parametrize(
    ("stored", "kept"), [(NOW, NOW), (None, EARLIER), (EARLIER - SECOND, EARLIER), (LATER, EARLIER)]
)
def test_housekeeping_keeps_the_newest_signs_of_a_place(core, monkeypatch, stored, kept):
    """Two checkers do it, and what the first one has read is older when it writes."""
    with core.app_context():
        id = journal.place_id("oslo")
        places.store_sign("oslo", EARLIER, process="agent:oslo", last_check_at=EARLIER)
        before = places.signs_of(db.session.scalars(select(PlaceRow)).all(), NOW)
        monkeypatch.setattr(places, "signs_of", lambda *_arguments: before)
        with writing() as session:
            row = session.get_one(PlaceRow, id)
            row.seen_at = row.result_at = stored
        places.store_signs(NOW)
        db.session.expire_all()
        row = db.session.get_one(PlaceRow, id)
        assert (row.seen_at, row.result_at) == (kept, kept)
