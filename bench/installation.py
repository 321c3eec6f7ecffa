"""A large installation for benchmarks: many monitors, 90 days of hours and days, a day of results.

It lies in a folder of its own and is made once. Asked for again later, only the time since then is
added, so that the history always ends now. SQL makes the rows: 20 million of them would take
Python an hour. What is made up follows from ids and times, so that it is the same each time.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from sqlalchemy import Connection, func, insert, select, text, update

from app import create_core
from app.access import Access
from app.config import Settings
from app.db import db, schema, writing
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
from app.stats.histogram import bucket

DAYS = 90
HOUR_S, DAY_S = 3600, 86400
INTERVAL = 60
# Every monitor has results of the hours that are not summed yet, and of one more.
RECENT = timedelta(hours=2)
# These have a whole day of results, which the page of a monitor reads: every so many.
DETAILED_EVERY = 1000
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
# What is wrong now, by the last digits of the id; all others are up.
DOWN, DEGRADED, UNKNOWN, PAUSED = 137, 251, 389, 499


def settings(folder: Path) -> Settings:
    return Settings(
        instance=folder,
        database_url=f"sqlite:///{folder / 'wakeful.db'}",
        secret_key=SECRET_KEY,
        rate_limit=600,
    )


def prepare(folder: Path, monitors: int) -> tuple[Flask, str]:
    """The installation, its history up to now, and the text of a new API key."""
    folder.mkdir(parents=True, exist_ok=True)
    app = create_core(settings(folder))
    with app.app_context():
        schema.upgrade()
        access = Access(settings(folder))
        now = datetime.now(UTC)
        if db.session.scalar(select(func.count()).select_from(MonitorRow)) != monitors:
            print(f"Making up {monitors:,} monitors with {DAYS} days of history, once", flush=True)
            began = time.monotonic()
            access.create_person(EMAIL, PASSWORD, Role.ADMIN)
            _monitors(monitors, now)
            _go_on(now - timedelta(days=DAYS), now)
            print(f"  done in {time.monotonic() - began:.0f} s", flush=True)
        else:
            _go_on(None, now)
        _, key = access.create_key("bench", "write")
        db.session.remove()
        db.engine.dispose()
    return app, key


def number_of(monitors: int, last_digits: int) -> int:
    """The id of a monitor whose id ends so, near the middle."""
    return monitors // 2 // 1000 * 1000 + last_digits


def _monitors(count: int, now: datetime) -> None:
    numbers = range(1, count + 1)
    before = now - timedelta(days=DAYS + 1)
    with writing() as session:
        session.execute(insert(MonitorRow), [_monitor(n, before) for n in numbers])
        session.execute(insert(MonitorStateRow), [_state(n, now) for n in numbers])
        session.execute(
            insert(AssignmentRow),
            [{"monitor_id": n, "location_id": 1, "turn": 0, "blind": False} for n in numbers],
        )
        session.execute(insert(IncidentRow), [row for n in numbers for row in _incidents(n, now)])
        session.execute(
            insert(ResultContextRow),
            [{"id": 1, "digest": "bench", "data": {"ip": "192.0.2.1", "http_version": "1.1"}}],
        )
        session.execute(insert(CauseCodeRow), [{"id": 1, "code": "http_status:503"}])


def _verdict(number: int) -> str:
    by_end = {DOWN: "down", DEGRADED: "degraded", UNKNOWN: "unknown"}
    return by_end.get(number % 1000, "up")


def _monitor(number: int, at: datetime) -> dict[str, object]:
    name, url = f"Shop {number} checkout", f"https://shop{number}.example/checkout"
    return {
        "name": name, "name_folded": name.casefold(), "url": url, "url_folded": url,
        "interval": INTERVAL, "alert_condition": "url_unavailable", "request_method": "GET",
        "request_headers": [["X-Shop", str(number)]], "cache_buster": 0, "timeout": 30,
        "alerts": [["email", f"ops{number}@shop.example"]], "accepted_statuses": "200-399",
        "follow_redirects": True, "verify_tls": True, "confirmations": 2,
        "tags": "\nprod\nshop\n", "paused": number % 1000 == PAUSED,
        "created_at": at, "updated_at": at,
    }  # fmt: skip


def _state(number: int, now: datetime) -> dict[str, object]:
    verdict = _verdict(number)
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


def _incidents(number: int, now: datetime) -> list[dict[str, object]]:
    """Two of the past; one more where the monitor is down now."""
    spans = [
        (now - timedelta(days=1 + (number * 37 + old * 41) % 88, seconds=number), 5 + number % 50)
        for old in (0, 1)
    ]
    rows = [_incident(number, start, start + timedelta(minutes=took)) for start, took in spans]
    if _verdict(number) == "down":
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
    connection.execute(text("DELETE FROM results"))
    for every, back in ((1, RECENT), (DETAILED_EVERY, timedelta(hours=26))):
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
                FROM (SELECT id, n, id % 1000 = :down AND n < 40 AS bad
                    FROM monitors CROSS JOIN minutes
                    WHERE id % :every = 0 OR (:every > 1 AND id % 1000 = :down))
                ORDER BY id, n DESC
            """),  # noqa: S608 - our own table's name
            {
                "count": back // timedelta(minutes=1),
                "end": end,
                "cause": CAUSE,
                "down": DOWN,
                "every": every,
            },
        )
