"""When an outage or a recovery began whose first check comes late.

Places check at their own times, and an agent may bring its check after newer ones of other places
were judged. So the check that tells of a beginning is not always the first that saw it: when it
began follows from the results of all places, as they are stored by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.db import AnySession, rollups
from app.db.types import to_ms
from app.engine.recorder.places import MonitorAssignments
from app.engine.recorder.rows import last_end, stale_after
from app.judge import verdict as judge
from app.judge.verdict import Stands, State, Vote
from app.records import Result, Verdict


def is_earlier(
    assigned: MonitorAssignments, result: Result, vote: Verdict, before: State, at: datetime
) -> bool:
    """Whether the check is from before what is known of the failure, or the recovery, that begins
    with it or is being confirmed. ``vote``: of all places together, and ``at`` its time. ``before``
    it, the monitor was in this state.
    """
    if not assigned.others or not assigned.newest:
        return False
    failing = vote is Verdict.DOWN and result.verdict is Verdict.DOWN and not result.maintenance
    recovering = vote in (Verdict.UP, Verdict.DEGRADED) and result.is_good
    if (failing and before.stands is Stands.CLEAR) or (recovering and before.stands is Stands.OPEN):
        return result.checked_at < at
    known = before.failing_since if failing else before.recovering_since if recovering else None
    return known is not None and result.checked_at < known


def since(
    session: AnySession,
    assigned: MonitorAssignments,
    monitor: Any,
    result: Result,
    votes: Sequence[Vote],
    before: State,
    at: datetime,
    now: datetime,
) -> datetime | None:
    """When the failure, or the recovery, began that this result shows, which ``is_earlier`` and
    stored: not before it, and not in the future. None if nobody saw when.
    """
    if result.is_good and assigned.silent_down(monitor, before.started_at, now):
        return None  # in a place that is silent now, it may have failed for longer
    first, last = result.checked_at - stale_after(monitor), max(at, now)
    checks = rollups.checks([monitor.id], to_ms(first), to_ms(last) + 1)[monitor.id]
    began = judge.decided_since(
        votes,
        judge.since_each(checks, maintenance=result.maintenance),
        monitor.location_rule,
        assigned.awaited(monitor, now, maintenance=result.maintenance),
        down=not result.is_good,
    )
    # A recovery is that of the open incident. A failure is not that of the incident before.
    earliest = before.started_at or last_end(session, monitor.id) or began
    # After the clock was set back, the other times may be in the future.
    present = max(result.checked_at, min(at, now))
    return min(present, max(began, result.checked_at, earliest))
