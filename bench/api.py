"""``make bench-api``: what the API's answers cost with many monitors.

    python -m bench.api                   10,000 monitors with uptime figures and 20,000 incidents
    python -m bench.api --monitors 1000
    python -m bench.api --requests 200    so many of each kind

Each kind of request is sent in process, one after another, on SQLite: the figures are the
application's own time, without network and server.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from sqlalchemy import insert

from app import create_app
from app.config import Settings
from app.db import schema, writing
from app.db.tables import AssignmentRow, IncidentRow, MonitorRow, MonitorStateRow, RollupRow
from app.db.types import to_ms

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
HOURS = 48  # of rollups for each monitor
REQUESTS = {
    "me": "/me",
    "show": "/monitors/{middle}",
    "list 10": "/monitors",
    "list 100": "/monitors?per_page=100",
    "list 100, last page": "/monitors?per_page=100&page={last}",
    "search name": "/monitors?search=monitor+{middle}",
    "search URL, sort URL": "/monitors?search=site{middle}&search_by=url&sort_by=url",
    "sort name": "/monitors?sort_by=name&sort=asc&per_page=100",
    "incidents 100": "/incidents?per_page=100",
    "incidents, search": "/incidents?search=monitor+{middle}",
    "statistics 24h": "/monitors/{middle}/statistics",
    "statistics 365d": "/monitors/{middle}/statistics?range=365d",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.api")
    parser.add_argument("--monitors", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=100)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(
            Settings(
                instance=Path(folder),
                database_url=f"sqlite:///{folder}/wakeful.db",
                secret_key="for this bench only",  # noqa: S106 - it guards a database that is thrown away
                rate_limit=0,
            )
        )
        with app.app_context():
            schema.upgrade()
            fill(options.monitors)
        measure(app, options.monitors, options.requests)
    return 0


def fill(count: int) -> None:
    """Monitors that were checked, with two incidents and two days of rollups each."""
    numbers = range(1, count + 1)
    with writing() as session:
        session.execute(insert(MonitorRow), [_monitor(number) for number in numbers])
        session.execute(insert(MonitorStateRow), [_state(number) for number in numbers])
        assignment = {"location_id": 1, "turn": 0, "slot": NOW, "blind": False}
        session.execute(insert(AssignmentRow), [{"monitor_id": n} | assignment for n in numbers])
        session.execute(insert(IncidentRow), [_incident(n, old) for n in numbers for old in (1, 9)])
    with writing() as session:
        for hour in range(HOURS):
            session.execute(insert(RollupRow), [_rollup(number, hour) for number in numbers])


def measure(app: Flask, count: int, requests: int) -> None:
    client = app.test_client()
    with app.app_context():
        _, secret = app.extensions["wakeful.access"].create_key("bench", "write")
    headers = {"Authorization": f"Bearer {secret}"}
    print(f"{count:,} monitors, {requests} requests of each kind, milliseconds")
    print(f"{'':24}{'median':>8}{'p95':>8}{'most':>8}{'bytes':>10}")
    for name, template in REQUESTS.items():
        path = "/api/v1" + template.format(middle=count // 2, last=count // 100)
        size, times = 0, []
        for _ in range(requests + 3):
            began = time.perf_counter()
            answer = client.get(path, headers=headers)
            times.append((time.perf_counter() - began) * 1000)
            if answer.status_code != 200:
                raise SystemExit(f"{path}: {answer.status_code} {answer.text[:200]}")
            size = len(answer.data)
        times = sorted(times[3:])  # the first ones fill caches
        p95 = times[int(len(times) * 0.95)]
        middle = statistics.median(times)
        print(f"{name:24}{middle:8.1f}{p95:8.1f}{times[-1]:8.1f}{size:10,}")


def _monitor(number: int) -> dict[str, object]:
    name, url = f"Monitor {number}", f"https://site{number}.example/"
    return {
        "name": name,
        "name_folded": name.casefold(),
        "url": url,
        "url_folded": url,
        "interval": 60,
        "alert_condition": "url_unavailable",
        "request_method": "GET",
        "request_headers": [["X-Number", str(number)]],
        "alerts": [["email", f"ops{number}@shop.example"]],
        "cache_buster": 0,
        "timeout": 30,
        "accepted_statuses": "200-399",
        "follow_redirects": True,
        "verify_tls": True,
        "confirmations": 2,
        "tags": "\nprod\n",
        "paused": False,
        "created_at": NOW,
        "updated_at": NOW,
    }


def _state(number: int) -> dict[str, object]:
    return {
        "monitor_id": number,
        "checked_at": NOW,
        "verdict": "up",
        "response_time": 120,
        "failures": 0,
    }


def _incident(number: int, days_ago: int) -> dict[str, object]:
    started = NOW - timedelta(days=days_ago, seconds=number)
    return {
        "monitor_id": number,
        "started_at": started,
        "ended_at": started + timedelta(minutes=5),
        "cause": "The server refused the connection",
        "cause_folded": "the server refused the connection",
        "cause_code": "connection_refused",
        "evidence": {"status_line": "HTTP/1.1 503 Service Unavailable", "body": "x" * 500},
        "by_hand": False,
        "created_at": started,
        "updated_at": started,
    }


def _rollup(number: int, hours_ago: int) -> dict[str, object]:
    return {
        "monitor_id": number,
        "period": 3600,
        "start": to_ms(NOW - timedelta(hours=hours_ago + 1)) // 1000,
        "checks": 60,
        "up_s": 3600,
        "down_s": 0,
        "unknown_s": 0,
        "maintenance_s": 0,
        "response_count": 60,
        "response_sum": 7200,
        "response_max": 300,
        "histogram": None,
        "phases": None,
    }


if __name__ == "__main__":
    raise SystemExit(main())
