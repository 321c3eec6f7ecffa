"""A made-up past of a monitor: results, incidents and rollups, written as the engine would have.

The demonstration and the benchmarks of pages use it. The same seed gives the same past. Needs an
application context; the monitor must exist.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.checks.kinds import Kind, kind_of
from app.db import db, journal, writing
from app.db.statements import pieces
from app.db.tables import IncidentRow, MonitorRow
from app.records import DEFAULT_PLACE_ID, Ending, Result, Timings, Verdict

# Rows in one transaction: few enough that a running checker does not wait for long.
ROWS_AT_ONCE = 5000
FINE = timedelta(hours=26)
GAP = timedelta(hours=20)


@dataclass(frozen=True, slots=True)
class PastOutage:
    """Trouble in the past: how many days ago it began and how many minutes it took."""

    days_ago: float
    minutes: float
    cause_code: str = "http_status:503"
    cause: str = "The server answered 503 Service Unavailable; expected 200-399."
    comment: str | None = None
    acknowledged_by: str | None = None

    def covers(self, moment: datetime, now: datetime) -> bool:
        start = self.start(now)
        return start <= moment < start + timedelta(minutes=self.minutes)

    def start(self, now: datetime) -> datetime:
        return (now - timedelta(days=self.days_ago)).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Past:
    """The past of a monitor: usual response time in ms, how much it varies, and the outages."""

    response_ms: int = 120
    variation: float = 0.25
    outages: Sequence[PastOutage] = ()
    https: bool = True
    ip: str = "127.0.0.1"
    gap_days_ago: float | None = None  # the machine was off for GAP then


def write(
    monitor_id: int, past: Past, interval: int, days: float, now: datetime, seed: int
) -> None:
    """Give the monitor results of the last ``days`` and the incidents of its outages.

    ``interval``: the seconds between results that are older than ``FINE``; newer results are a
    minute apart.
    """
    results = list(_results(monitor_id, past, interval, days, now, random.Random(seed)))  # noqa: S311 (not a secret)
    kind = kind_of(db.session.get_one(MonitorRow, monitor_id).url)
    if kind is not None and "accepted_statuses" not in kind.fields:
        results = [_without_http(result, kind) for result in results]
    journal.assign_numbers(results)
    rows = [journal.row_of(result, DEFAULT_PLACE_ID) for result in results]
    for part in pieces(rows, ROWS_AT_ONCE):
        with writing():
            journal.insert_results(part)
    with writing() as session:
        session.get_one(MonitorRow, monitor_id).created_at = now - timedelta(days=days)
        session.add_all(_incident(monitor_id, outage, now) for outage in past.outages)


def _results(
    monitor_id: int, past: Past, interval: int, days: float, now: datetime, dice: random.Random
) -> Iterator[Result]:
    moment = now - timedelta(days=days)
    while moment < now:
        gap = past.gap_days_ago
        off = gap is not None and timedelta(days=gap) - GAP < now - moment < timedelta(days=gap)
        if not off:
            yield _result(monitor_id, past, moment, now, dice)
        # Recent checks are as frequent as those to come. Checks are a little late, never early.
        step = 60 if now - moment < FINE else interval
        moment += timedelta(seconds=step, milliseconds=dice.randrange(40))


def _result(
    monitor_id: int, past: Past, moment: datetime, now: datetime, dice: random.Random
) -> Result:
    outage = next((candidate for candidate in past.outages if candidate.covers(moment, now)), None)
    if outage:
        status = outage.cause_code.partition(":")[2] if "http_status" in outage.cause_code else ""
        return Result(
            monitor_id=monitor_id,
            checked_at=moment,
            verdict=Verdict.DOWN,
            cause_code=outage.cause_code,
            cause=outage.cause,
            status_code=int(status) if status else None,
            response_time=past.response_ms if status else None,
            ip=past.ip,
        )
    # Slower by day than by night, and sometimes very slow.
    wave = 1 + 0.3 * math.sin((moment.hour + moment.minute / 60 - 8) / 24 * 2 * math.pi)
    slow = 3.0 if dice.random() < 0.004 else 1.0
    whole = max(4, round(past.response_ms * wave * slow * dice.lognormvariate(0, past.variation)))
    tls = whole // 4 if past.https else None
    parts = (whole // 20, whole // 10, tls, whole // 2)
    download = whole - sum(part or 0 for part in parts)
    return Result(
        monitor_id=monitor_id,
        checked_at=moment,
        verdict=Verdict.UP,
        status_code=200,
        response_time=whole,
        timings=Timings(*parts, download),
        ip=past.ip,
        http_version="1.1",
    )


def _without_http(result: Result, kind: Kind) -> Result:
    """The result of a check of ``kind``, which has a single phase and no HTTP status."""
    phase = "connect" if "connect" in kind.phases else "ttfb"
    timings = Timings(**{phase: result.response_time})
    return replace(result, status_code=None, http_version=None, timings=timings)


def _incident(monitor_id: int, outage: PastOutage, now: datetime) -> IncidentRow:
    started = outage.start(now)
    ended = started + timedelta(minutes=outage.minutes)
    acknowledged = started + timedelta(minutes=min(3.0, outage.minutes / 2))
    who = outage.acknowledged_by
    return IncidentRow(
        monitor_id=monitor_id,
        started_at=started,
        ended_at=ended.replace(microsecond=0),
        ending=Ending.RECOVERED,
        acknowledged_at=acknowledged.replace(microsecond=0) if who else None,
        acknowledged_by=who,
        cause=outage.cause,
        cause_folded=outage.cause.casefold(),
        cause_code=outage.cause_code,
        comment=outage.comment,
        by_hand=False,
        created_at=started,
        updated_at=ended,
    )
