"""Ask the places of a monitor for a check now. Inside ``writing()``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update

from app.db import AnySession, latest
from app.db.tables import AssignmentRow, ResultRow
from app.db.types import from_ms, to_ms
from app.engine.recorder.rows import lock
from app.engine.schedule import ASKED_FOR
from app.rules.clocks import SKEW

# Who asks again so soon gets the check that was made: a double click is one request.
SAME = timedelta(seconds=1)
_NEXT = timedelta(milliseconds=1)  # as exact as times are stored


def ask(
    session: AnySession,
    monitor_id: int,
    places: Collection[int],
    now: datetime,
    patience: timedelta,
) -> datetime:
    """Ask these places for a check. Returns when that was asked: ``now``, or before, by somebody
    who has asked within ``patience`` and still waits. Raises NotFound.

    If the clock of a place is ahead, it is just after the last result there. That result is no
    answer, and the place would take it for one and make no check.
    """
    lock(session, monitor_id)  # the change feed names the monitor, and each place reads its row
    mine = (AssignmentRow.monitor_id == monitor_id, AssignmentRow.location_id.in_(places))
    rows = session.execute(
        select(AssignmentRow.asked_at, AssignmentRow.checked_at).where(*mine)
    ).all()
    before = _asked_before(rows, now, patience)
    if before is not None:
        return before
    asked_at = from_ms(to_ms(now))  # as it is stored, and compared with
    if (newest := _newest_ahead(session, monitor_id, places, now)) is not None:
        asked_at = from_ms(newest) + _NEXT
    session.execute(
        update(AssignmentRow)
        .where(*mine)
        .values(asked_at=asked_at)
        .execution_options(synchronize_session=False)
    )
    return asked_at


def _newest_ahead(
    session: AnySession, monitor_id: int, places: Collection[int], now: datetime
) -> int | None:
    """The time (ms) of the newest result of these places, if it is not before ``now``."""
    return session.scalar(
        select(func.max(ResultRow.at)).where(
            ResultRow.monitor_id == monitor_id,
            ResultRow.at.between(to_ms(now), latest.last_moment(now)),
            ResultRow.location_id.in_(places),
        )
    )


def _asked_before(rows: Sequence[Any], now: datetime, patience: timedelta) -> datetime | None:
    """When the request was made that this one joins. All the places were asked by it, and must
    carry it out for as long as the one who joins it waits.
    """
    asked_at: datetime | None = max((row.asked_at for row in rows if row.asked_at), default=None)
    if asked_at is None or asked_at > now + SKEW:
        return None
    if any(row.asked_at != asked_at for row in rows):
        return None
    answered = all(row.checked_at is not None and row.checked_at >= asked_at for row in rows)
    if answered:
        return asked_at if abs(now - asked_at) <= SAME else None
    return asked_at if now - asked_at <= min(patience, ASKED_FOR - patience) else None
