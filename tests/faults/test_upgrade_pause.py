"""An upgrade stops the checks for less than 30 s (decision 16)."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from app import create_core
from app.config import Settings
from app.db import db, schema
from tests.support.older import OLDEST, make_oldest
from tests.support.service import Service, eventually

MONITORS, PAST = 100, 3000  # PAST: old results of each monitor
INTERVAL = 10
PAUSE = 30

OLD_RESULTS = """
    INSERT INTO results (monitor_id, at, location_id, verdict, maintenance, covers_s)
    WITH RECURSIVE past(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM past WHERE n < :past)
    SELECT id, :until - 60000 * n, 1, 0, 0, 60 FROM monitors, past
"""


@pytest.mark.more
@pytest.mark.timeout(300)
def test_an_upgrade_keeps_a_copy_and_no_check_is_late_by_30_seconds(tmp_path, site):
    service = Service(tmp_path / "instance", CANARIES="")
    lines = tmp_path / "monitors.txt"
    lines.write_text("".join(f"{site.url}{number}\n" for number in range(MONITORS)))
    service.command("import", str(lines))
    file = service.instance / "wakeful.db"
    ask(file, f"UPDATE monitors SET interval = {INTERVAL}")

    before, stopped = run(service, file, since=0.0)
    make_older(service)
    ask(file, OLD_RESULTS, past=PAST, until=(stopped - 86_400) * 1000)
    started = time.time()
    after, _ended = run(service, file, since=started, first=True)

    late = [
        (stopped - before[id]) + (after[id] - started) - INTERVAL for id in range(1, MONITORS + 1)
    ]
    assert max(late) < PAUSE
    copy = file.with_name(f"wakeful.db.{OLDEST}.bak")
    assert ask(copy, "SELECT version_num FROM alembic_version") == [(OLDEST,)]
    assert ask(copy, "SELECT count(*) FROM results")[0][0] >= MONITORS * PAST
    assert ask(file, "SELECT version_num FROM alembic_version") == [(schema.newest_revision(),)]
    assert ask(file, "SELECT count(*) FROM incidents") == [(0,)]


def run(service, file, since, first=False):
    """Serve until each monitor was checked; the time of its last (or first) check since then, and
    when the service had stopped: seconds.
    """
    at = "min" if first else "max"
    wanted = f"SELECT monitor_id, {at}(at) / 1000.0 FROM results WHERE at > :since GROUP BY 1"
    service.start()
    try:
        service.await_line("Wakeful runs at")
        eventually(
            lambda: len(ask(file, wanted, since=since * 1000)) == MONITORS, "each is checked"
        )
    finally:
        assert service.stop() == 0
    stopped = time.time()
    return dict(ask(file, wanted, since=since * 1000)), stopped


def make_older(service):
    """Bring the database back to the older version, as if that had run."""
    app = create_core(
        Settings(service.instance, f"sqlite:///{service.instance / 'wakeful.db'}", "x" * 16)
    )
    with app.app_context():
        make_oldest()
        db.session.remove()
        db.engine.dispose()


def ask(file, statement, **values):
    with closing(sqlite3.connect(file, timeout=30)) as connection:
        rows = connection.execute(statement, values).fetchall()
        connection.commit()
    return rows
