"""Keep the newest of the times that several processes write, whichever of them is last to write."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, case, literal, or_

from app.rules.clocks import SKEW


def newer(column: Any, at: datetime | None, now: datetime) -> ColumnElement[Any]:
    """What an update sets a column to: ``at``, or the stored time if that is newer or ``at`` is
    None. A stored time from the future is from before the clock was set back, and is replaced.
    """
    written = literal(at, column.type)
    return case(
        (or_(column < written, column.is_(None), column > now + SKEW), written), else_=column
    )
