"""A large installation for benchmarks: many monitors, 90 days of hours and days, a day of results.

It lies in a folder of its own and is made once. Asked for again later, only the time since then is
added, so that the history always ends now. SQL makes the rows: 20 million of them would take
Python an hour. What is made up follows from ids and times, so that it is the same each time.

One that was not made to its end, or by other migrations than today's, is made anew: an upgrade
would first copy its file, which takes as long.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, func, insert, select, text, update

from app import create_core
from app.access import Access
from app.config import Settings
from app.db import db, rollups, schema, writing
from app.db.tables import (
    AssignmentRow,
    CauseCodeRow,
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    ResultContextRow,
    ResultRow,
    RollupRow,
)
from app.db.types import to_ms
from app.records import Role
from app.rules.natural import natural_key
from app.stats.tally import bucket

DAYS = 90
HOUR_S, DAY_S = 3600, 86400
INTERVAL = 60
# Every monitor has results of the hours that are not summed yet, and of one more.
RECENT = timedelta(hours=2)
# These have a whole day of results, which the page of a monitor reads: every so many, or the last.
DETAILED_EVERY = 1000
STEP = 100  # monitors: fewer have none of each state
EMAIL, PASSWORD = "bench@wakeful.test", "three calm rivers 1894"
SECRET_KEY = "a key for benchmarks"  # noqa: S105 - the same
CAUSE = "The server answered 503 Service Unavailable."
_CHECK = {
    "checked_at": "2026-11-21T08:00:00Z",
    "verdict": "down",
    "cause": CAUSE,
    "cause_code": "http_status:503",
    "status_line": "HTTP/1.1 503 Service Unavailable",
    "headers": [["Server", "nginx"], ["Content-Type", "text/html"]],
    "body": "<h1>Service Unavailable</h1>" * 100,
}
EVIDENCE = {"failing": _CHECK, "confirming": [_CHECK, _CHECK], "last_good": _CHECK}
# What is wrong now, by the last digits of the id (in small installations modulo their size); all
# others are up.
DOWN, DEGRADED, UNKNOWN, PAUSED = 137, 251, 389, 499


def settings(folder: Path) -> Settings:
    return Settings(
        instance=folder,
        database_url=f"sqlite:///{_file(folder)}",
        secret_key=SECRET_KEY,
        rate_limit=1_000_000,  # counted as ever, but never reached
    )


def environment(folder: Path) -> dict[str, str]:
    """The same settings for a process of its own."""
    found = settings(folder)
    return {
        "WAKEFUL_INSTANCE": str(folder),
        "WAKEFUL_DATABASE_URL": str(found.database_url),
        "WAKEFUL_SECRET_KEY": SECRET_KEY,
        "WAKEFUL_RATE_LIMIT": str(found.rate_limit),
    }


def default_folder(monitors: int, days: int = DAYS) -> Path:
    """Where an installation of that size is kept from one run to the next."""
    return Path(tempfile.gettempdir()) / f"wakeful-bench-{os.getuid()}-{monitors}-{days}"


def prepare(folder: Path, monitors: int, days: int = DAYS) -> None:
    """Make the installation, or bring its history up to now. ``monitors``: a multiple of STEP."""
    if monitors < STEP or monitors % STEP:
        raise SystemExit(f"--monitors: give a multiple of {STEP}, not {monitors}.")
    folder.mkdir(parents=True, exist_ok=True)
    app = create_core(settings(folder))
    made = folder / "made.json"
    with app.app_context():
        wanted = {"monitors": monitors, "days": days, "revision": schema.newest_revision()}
        now = datetime.now(UTC)
        if made.exists() and json.loads(made.read_text()) == wanted:
            _go_on(None, now)
        else:
            made.unlink(missing_ok=True)
            for end in ("", "-wal", "-shm"):
                Path(f"{_file(folder)}{end}").unlink(missing_ok=True)
            _make(folder, monitors, days, now)
            made.write_text(json.dumps(wanted))
        while rollups.roll(now):
            pass
        db.session.remove()
        db.engine.dispose()


def _file(folder: Path) -> Path:
    # Not wakeful.db: this file is deleted, so it must never be that of somebody's own installation.
    return folder / "bench.db"


def _make(folder: Path, monitors: int, days: int, now: datetime) -> None:
    print(f"Making up {monitors:,} monitors with {days} days of history, once", flush=True)
    began = time.monotonic()
    schema.upgrade(new=True)
    person = Access().people.create(EMAIL, PASSWORD, Role.ADMIN)
    # Who has 90 days of history has put the first steps away.
    Access().people.update(person.id, {"first_steps_away": True})
    _monitors(monitors, now)
    _go_on(now - timedelta(days=days), now)
    print(f"  done in {time.monotonic() - began:.0f} s", flush=True)


def number_of(monitors: int, last_digits: int) -> int:
    """The id of a monitor whose id ends so, near the middle."""
    cycle = _cycle(monitors)
    return monitors // 2 // cycle * cycle + last_digits % cycle


def detailed(monitors: int) -> int:
    """The id of a monitor that is up and has a whole day of results, near the middle."""
    return number_of(monitors, 0) or _cycle(monitors)


def _cycle(monitors: int) -> int:
    return min(DETAILED_EVERY, monitors)


def _monitors(count: int, now: datetime) -> None:
    numbers, cycle = range(1, count + 1), _cycle(count)
    before = now - timedelta(days=DAYS + 1)
    with writing() as session:
        session.execute(insert(MonitorRow), [_monitor(n, before, cycle) for n in numbers])
        session.execute(insert(MonitorStateRow), [_state(n, now, cycle) for n in numbers])
        session.execute(
            insert(AssignmentRow),
            [{"monitor_id": n, "location_id": 1, "generation": 0, "blind": False} for n in numbers],
        )
        session.execute(
            insert(IncidentRow), [row for n in numbers for row in _incidents(n, now, cycle)]
        )
        session.execute(
            insert(ResultContextRow),
            [{"id": 1, "digest": "bench", "data": {"ip": "192.0.2.1", "http_version": "1.1"}}],
        )
        session.execute(insert(CauseCodeRow), [{"id": 1, "code": "http_status:503"}])


def _verdict(number: int, cycle: int) -> str:
    by_end = {DOWN: "down", DEGRADED: "degraded", UNKNOWN: "unknown"}
    return {end % cycle: word for end, word in by_end.items()}.get(number % cycle, "up")


def _monitor(number: int, at: datetime, cycle: int) -> dict[str, object]:
    name, url = f"Shop {number} checkout", f"https://shop{number}.example/checkout"
    return {
        "name": name, "name_folded": name.casefold(), "name_natural": natural_key(name), "url": url,
        "url_folded": url,
        "interval": INTERVAL, "alert_condition": "url_unavailable", "request_method": "GET",
        "request_headers": [["X-Shop", str(number)]], "cache_buster": 0, "timeout": 30,
        "alerts": [["email", f"ops{number}@shop.example"]], "accepted_statuses": "200-399",
        "follow_redirects": True, "verify_tls": True, "confirmations": 2,
        "tags": "\nprod\nshop\n", "paused": number % cycle == PAUSED % cycle,
        "created_at": at, "updated_at": at,
    }  # fmt: skip


def _state(number: int, now: datetime, cycle: int) -> dict[str, object]:
    verdict = _verdict(number, cycle)
    return {
        "monitor_id": number,
        "checked_at": now,
        "verdict": verdict,
        "cause": None if verdict == "up" else CAUSE,
        "cause_code": None if verdict == "up" else "http_status:503",
        "status_since": now - timedelta(minutes=40),
        "response_time": 80 + number % 300,
        "failures": 0,
        # Few run out soon, as in life.
        "ssl_expires_at": now + timedelta(days=5 + number % 85),
    }


def _incidents(number: int, now: datetime, cycle: int) -> list[dict[str, object]]:
    """Two of the past; one more where the monitor is down now."""
    spans = [
        (now - timedelta(days=1 + (number * 37 + old * 41) % 88, seconds=number), 5 + number % 50)
        for old in (0, 1)
    ]
    rows = [_incident(number, start, start + timedelta(minutes=took)) for start, took in spans]
    if _verdict(number, cycle) == "down":
        rows.append(_incident(number, now - timedelta(minutes=40), None))
    return rows


def _incident(number: int, started: datetime, ended: datetime | None) -> dict[str, object]:
    started = started.replace(microsecond=0)
    return {
        "monitor_id": number,
        "started_at": started,
        "ended_at": None if ended is None else ended.replace(microsecond=0),
        "cause": CAUSE,
        "cause_folded": CAUSE.casefold(),
        "cause_code": "http_status:503",
        "evidence": EVIDENCE,
        "by_hand": False,
        "created_at": started,
        "updated_at": started,
    }


def _go_on(start: datetime | None, now: datetime) -> None:
    """Rollups from ``start`` (None: from where they end) to the last whole hour, and results."""
    until = to_ms(now) // 1000 // HOUR_S * HOUR_S
    if start is None:
        known = select(func.max(RollupRow.start)).where(
            RollupRow.monitor_id == 1, RollupRow.period == HOUR_S
        )
        begin = (db.session.scalar(known) or 0) + HOUR_S
    else:
        begin = to_ms(start) // 1000 // HOUR_S * HOUR_S
    with writing() as session:
        connection = session.connection()
        if begin < until:
            _hours(connection, begin, until)
            _days(connection, begin // DAY_S * DAY_S, until)
        _results(connection, now)
        session.execute(
            update(MonitorStateRow).values(
                rolled_until=datetime.fromtimestamp(until, UTC), checked_at=now
            )
        )


def _hours(connection: Connection, begin: int, until: int) -> None:
    # One hour in some hundred has a minute of downtime.
    connection.execute(
        text("""
            WITH RECURSIVE hours(start) AS (
                SELECT :begin UNION ALL SELECT start + 3600 FROM hours WHERE start + 3600 < :until
            )
            INSERT OR REPLACE INTO rollups (monitor_id, period, start, checks, up_s, down_s,
                unknown_s, maintenance_s, response_count, response_sum, response_max, histogram,
                phases)
            SELECT id, 3600, start, 60,
                3600 - 60 * ((id * 7 + start / 3600) % 131 = 0),
                60 * ((id * 7 + start / 3600) % 131 = 0), 0, 0,
                60, 60 * (80 + id % 300 + (start / 3600 * 13 + id) % 40), 700,
                :histogram, '[300,600,1500,3000,900]'
            FROM monitors CROSS JOIN hours ORDER BY id, start
        """),
        {"begin": begin, "until": until, "histogram": _histogram(60)},
    )


def _days(connection: Connection, begin: int, until: int) -> None:
    connection.execute(
        text("""
            INSERT OR REPLACE INTO rollups (monitor_id, period, start, checks, up_s, down_s,
                unknown_s, maintenance_s, response_count, response_sum, response_max, histogram,
                phases)
            SELECT monitor_id, 86400, start / 86400 * 86400, sum(checks), sum(up_s), sum(down_s),
                0, 0, sum(response_count), sum(response_sum), max(response_max),
                :histogram, '[7200,14400,36000,72000,21600]'
            FROM rollups WHERE period = 3600 AND start >= :begin AND start < :until
            GROUP BY monitor_id, start / 86400
        """),
        {"begin": begin, "until": until, "histogram": _histogram(1440)},
    )


def _histogram(answers: int) -> str:
    """Answers that take 90 ms and more, most of them little more."""
    places = Counter(str(bucket(90 + round(400 * (n / answers) ** 4))) for n in range(answers))
    return json.dumps(places)


def _results(connection: Connection, now: datetime) -> None:
    """A result a minute, of the last hours; of some monitors of the last day and more."""
    end = to_ms(now)
    count = connection.scalar(select(func.count()).select_from(MonitorRow)) or 0
    cycle = _cycle(count)
    connection.execute(text("DELETE FROM results"))
    for every, back in ((1, RECENT), (cycle, timedelta(hours=26))):
        connection.execute(
            text(f"""
                WITH RECURSIVE minutes(n) AS (
                    SELECT :count UNION ALL SELECT n - 1 FROM minutes WHERE n > 1
                )
                INSERT OR IGNORE INTO {ResultRow.__tablename__} (monitor_id, at, location_id,
                    verdict, maintenance, status_code, response_time, dns, connect, tls, ttfb,
                    download, context_id, cause_code_id, cause)
                SELECT id, :end - n * 60000 + id * 6, 1, 2 * bad, 0, 200 + 303 * bad,
                    80 + id % 300 + n % 40, 5, 10, 25, 50, 10, 1,
                    CASE WHEN bad THEN 1 END, CASE WHEN bad THEN :cause END
                FROM (SELECT id, n, id % :cycle = :down AND n < 40 AS bad
                    FROM monitors CROSS JOIN minutes
                    WHERE id % :every = 0 OR (:every > 1 AND id % :cycle = :down))
                ORDER BY id, n DESC
            """),  # noqa: S608 - our own table's name
            {
                "count": back // timedelta(minutes=1),
                "end": end,
                "cause": CAUSE,
                "down": DOWN % cycle,
                "cycle": cycle,
                "every": every,
            },
        )
