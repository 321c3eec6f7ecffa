"""Ask the places of a monitor for a check now. Inside ``writing()``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, update

from app.db import AnySession
from app.db.clocks import SKEW
from app.db.tables import AssignmentRow
from app.db.types import from_ms, to_ms
from app.engine.recorder.rows import lock

# Who asks again so soon gets the check that was made: a double click is one request.
SAME = timedelta(seconds=1)


def ask(
    session: AnySession,
    monitor_id: int,
    places: Collection[int],
    now: datetime,
    patience: timedelta,
) -> datetime:
    """Ask these places for a check. Returns when that was asked: ``now``, or before, by somebody
    who has asked within ``patience`` and still waits. Raises NotFound.
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
    session.execute(
        update(AssignmentRow)
        .where(*mine)
        .values(asked_at=asked_at)
        .execution_options(synchronize_session=False)
    )
    return asked_at


def _asked_before(rows: Sequence[Any], now: datetime, patience: timedelta) -> datetime | None:
    asked_at: datetime | None = max((row.asked_at for row in rows if row.asked_at), default=None)
    if asked_at is None or asked_at > now + SKEW:
        return None
    answered = any(row.checked_at is not None and row.checked_at >= asked_at for row in rows)
    return asked_at if now - asked_at <= (SAME if answered else patience) else None
