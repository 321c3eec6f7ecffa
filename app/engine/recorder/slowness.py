"""Slow monitors: the rules and stored results for ``app/judge/slow``, and the cause of an incident
that opens because its monitor is slow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from app.db import packed, rollups
from app.db.by_place import NewestCheck
from app.db.types import to_ms
from app.engine.recorder.by_place import counted
from app.judge.slow import SlowRules, SlowWindows, Usual, cause_of
from app.judge.verdict import PastResult
from app.records import PHASES, Result, Verdict
from app.stats.series import MINUTE_MS

# A window has at least this many checks of each place, even if the interval of the monitor is
# longer than its minutes.
CHECKS_IN_WINDOW = 3
WEEK = timedelta(days=7)
MAX_UNPACKED = timedelta(milliseconds=packed.SINGLE_MS) / 2


def rules_of(monitor: Any, since: datetime, places: Collection[int]) -> SlowRules | None:
    """The rules of a monitor; None if slowness opens no incident. ``monitor`` is a row, with its
    ``interval`` in seconds. ``since``: earlier results are of another target.
    """
    if not monitor.slow_alert_after or monitor.slow_after is None:
        return None
    return rules_for(monitor, monitor.slow_after, monitor.slow_alert_after, since, places)


def rules_for(
    monitor: Any, limit: int, minutes: int, since: datetime, places: Collection[int]
) -> SlowRules:
    """The rules that a monitor would have with this limit (ms) and this many minutes."""
    every = (monitor.options or {}).get("period") or monitor.interval
    window = max(minutes * MINUTE_MS, CHECKS_IN_WINDOW * every * 1000)
    return SlowRules(limit, window, monitor.location_rule, since, places)


def past_result(result: Result, place: int, covers_s: int) -> PastResult:
    timings = result.timings.by_phase()
    return PastResult(
        to_ms(result.checked_at),
        result.verdict,
        result.maintenance,
        result.response_time,
        tuple(timings.values()),
        covers_s * 1000,
        place,
    )


def windows_of(
    id: int, rules: SlowRules, batch: Iterable[PastResult], until: datetime
) -> SlowWindows:
    """The windows of the results by which a monitor is judged now. ``batch``: results that may not
    be stored yet. ``until``: the latest time of a result that counts.
    """
    new = list(batch)
    newest = max(check.at_ms for check in new)
    start = newest - round(rules.reach.total_seconds() * 1000)
    recent = rules.reach < MAX_UNPACKED
    earlier = rollups.checks([id], start, min(newest, to_ms(until)) + 1, recent=recent)[id]
    windows = SlowWindows(rules)
    for check in sorted({(check.at_ms, check.place): check for check in (*earlier, *new)}.values()):
        windows.add(check)
    return windows


def usual_in_week(starts: Mapping[int, tuple[datetime, datetime]]) -> dict[int, Usual]:
    """The usual times in the week before an incident, by monitor; without monitors that have no
    summed hour. ``starts``: the start of the incident, and since when results are of this target.
    """
    spans = {
        id: (to_ms(max(start - WEEK, since)), to_ms(start)) for id, (start, since) in starts.items()
    }
    return {
        id: Usual(whole, dict(zip(PHASES, phases, strict=True)))
        for id, (whole, *phases) in (rollups.usual_times(spans) if spans else {}).items()
    }


def cause_at(
    checks: Sequence[PastResult],
    limit: int,
    usual: Usual | None,
    places: Sequence[NewestCheck],
    voters: int,
) -> str:
    """The cause of an incident. It names the slow places if others are not slow."""
    cause = cause_of(checks, usual, limit)
    slow = {check.place for check in checks}
    if len(slow) == voters:
        return cause
    names = [place.title for place in places if place.place_id in slow]
    return f"{counted(Verdict.DEGRADED, names, voters)}: {cause}"
