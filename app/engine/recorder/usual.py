"""What was usual before an incident: response time, phases and addresses of the good checks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median_low
from typing import Any

from sqlalchemy import Row, select

from app.db import AnySession
from app.db.journal import VERDICT_NUMBERS
from app.db.tables import MonitorRow, ResultContextRow, ResultRow
from app.db.types import from_ms, readable, to_ms
from app.records import Verdict
from app.rules.time import iso
from app.stats.tally import PHASES

LOOKED_AT = timedelta(days=1)
MOST_CHECKS = 50
FEWEST_CHECKS = 5  # of fewer, no figure is usual
_GOOD = (VERDICT_NUMBERS[Verdict.UP], VERDICT_NUMBERS[Verdict.DEGRADED])


def usual(
    session: AnySession, monitor_id: int, since: datetime, place: int | None
) -> dict[str, Any] | None:
    """``{"checked_at": of the last good check, "response_time", "timings", "addresses"}`` over the
    newest good checks before ``since``, of one place or (None) of all; None if there was none.

    The figures are medians, so that one slow check does not count, and null if there were few.
    Checks from before the monitor's last change are left out: they may be of another target.
    """
    rows = _good(session, monitor_id, since, place)
    if not rows:
        return None
    enough = rows if len(rows) >= FEWEST_CHECKS else []
    return {
        "checked_at": iso(from_ms(rows[0].at)),
        "response_time": _middle([row.response_time for row in enough]),
        "timings": {name: _middle([getattr(row, name) for row in enough]) for name in PHASES},
        "addresses": sorted({ip for row in rows if (ip := _address(row))}),
    }


def _good(
    session: AnySession, monitor_id: int, since: datetime, place: int | None
) -> Sequence[Row[Any]]:
    """The newest first."""
    changed = select(MonitorRow.updated_at).where(MonitorRow.id == monitor_id)
    first = max(since - LOOKED_AT, session.scalars(changed).one())
    phases = [getattr(ResultRow, name) for name in PHASES]
    return session.execute(
        select(ResultRow.at, ResultRow.response_time, *phases, ResultContextRow.data)
        .outerjoin(ResultContextRow, ResultContextRow.id == ResultRow.context_id)
        .where(
            ResultRow.monitor_id == monitor_id,
            ResultRow.at >= to_ms(first),
            ResultRow.at < to_ms(since),
            ResultRow.verdict.in_(_GOOD),
            ResultRow.maintenance.is_(False),
            *(() if place is None else (ResultRow.location_id == place,)),
        )
        .order_by(ResultRow.at.desc())
        .limit(MOST_CHECKS)
    ).all()


def _middle(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return median_low(known) if known else None


def _address(row: Row[Any]) -> str | None:
    ip = (readable(row.data) or {}).get("ip")
    return ip if isinstance(ip, str) else None
