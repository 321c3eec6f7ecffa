"""Ask the places of a monitor for a check now. Inside ``writing()``."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from app.db import AnySession, latest
from app.db.statements import updating
from app.db.tables import AssignmentRow, ResultRow
from app.db.types import from_ms, to_ms
from app.engine.recorder.rows import lock
from app.engine.schedule import REQUEST_LASTS
from app.rules.clocks import believable

# Requests within this time, such as a double click, get the same check.
SAME_REQUEST = timedelta(seconds=1)


def ask(
    session: AnySession,
    monitor_id: int,
    places: Collection[int],
    now: datetime,
    patience: timedelta,
) -> dict[int, datetime]:
    """Ask these places for a check. Returns when each was asked: ``now``, or the time of an earlier
    request within ``patience``, which this one joins. Raises NotFound.

    If the clock of a place is ahead, the time is just after its last result: otherwise that result
    would count as the answer, and the place would make no check.
    """
    lock(session, monitor_id)  # the change feed names the monitor, and each place reads its row
    rows = session.execute(
        select(AssignmentRow.location_id, AssignmentRow.asked_at, AssignmentRow.checked_at).where(
            AssignmentRow.monitor_id == monitor_id, AssignmentRow.location_id.in_(places)
        )
    ).all()
    asked = {row.location_id: row.asked_at for row in rows if _is_joined(row, now, patience)}
    if not_asked := set(places) - asked.keys():
        newest = session.scalar(  # if it is not before ``now``
            select(func.max(ResultRow.at)).where(
                ResultRow.monitor_id == monitor_id,
                ResultRow.at.between(to_ms(now), latest.last_moment(now)),
                ResultRow.location_id.in_(not_asked),
            )
        )
        # In whole milliseconds, as it is stored and compared
        asked_at = from_ms(to_ms(now) if newest is None else newest + 1)
        session.execute(
            updating(AssignmentRow)
            .where(AssignmentRow.monitor_id == monitor_id, AssignmentRow.location_id.in_(not_asked))
            .values(asked_at=asked_at)
        )
        asked |= dict.fromkeys(not_asked, asked_at)
    return asked


def _is_joined(row: Any, now: datetime, patience: timedelta) -> bool:
    """Whether the check of the last request to this place answers this request too. If it was not
    made yet, the last request must stay valid for as long as this one waits.
    """
    asked_at: datetime | None = row.asked_at
    if asked_at is None or asked_at > believable(now):
        return False
    if row.checked_at is not None and row.checked_at >= asked_at:
        return abs(now - asked_at) <= SAME_REQUEST
    return now - asked_at <= min(patience, REQUEST_LASTS - patience)
