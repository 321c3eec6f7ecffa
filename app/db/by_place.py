"""What each place of a monitor saw last. Needs an application context."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select

from app.db import AnySession
from app.db.journal import VERDICT_NUMBERS, VERDICTS
from app.db.tables import AssignmentRow, CauseCodeRow, LocationRow, ResultRow
from app.db.types import from_ms, to_ms
from app.records import Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """A place of a monitor and its newest result; all of that is None without one.
    ``last_at``: when it was checked last, however long ago that was.
    """

    place: int
    name: str
    label: str | None = None
    at: datetime | None = None
    verdict: Verdict | None = None
    status_code: int | None = None
    response_time: int | None = None
    cause_code: str | None = None
    cause: str | None = None
    last_at: datetime | None = None

    @property
    def title(self) -> str:
        """What people call the place."""
        return self.label or self.name


def newest(session: AnySession, monitor_id: int, since: datetime) -> list[Seen]:
    """The places of a monitor, in the order of their creation, each with its newest result from
    ``since`` on.
    """
    last = (
        select(ResultRow.location_id, func.max(ResultRow.at).label("at"))
        .where(ResultRow.monitor_id == monitor_id, ResultRow.at >= to_ms(since))
        .group_by(ResultRow.location_id)
        .subquery()
    )
    rows = session.execute(
        select(
            LocationRow.id,
            LocationRow.name,
            LocationRow.label,
            ResultRow.at,
            ResultRow.verdict,
            ResultRow.status_code,
            ResultRow.response_time,
            CauseCodeRow.code,
            ResultRow.cause,
            AssignmentRow.checked_at,
        )
        .select_from(AssignmentRow)
        .join(LocationRow, LocationRow.id == AssignmentRow.location_id)
        .outerjoin(last, last.c.location_id == LocationRow.id)
        .outerjoin(
            ResultRow,
            (ResultRow.monitor_id == monitor_id)
            & (ResultRow.at == last.c.at)
            & (ResultRow.location_id == last.c.location_id),
        )
        .outerjoin(CauseCodeRow, CauseCodeRow.id == ResultRow.cause_code_id)
        .where(AssignmentRow.monitor_id == monitor_id)
        .order_by(LocationRow.id)
    )
    return [_seen(row) for row in rows]


def _seen(row: Any) -> Seen:
    place, name, label, at, verdict, status_code, response_time, code, cause, last_at = row
    if at is None:
        return Seen(place, name, label, last_at=last_at)
    seen_at = from_ms(at)
    return Seen(
        place,
        name,
        label,
        seen_at,
        VERDICTS[verdict],
        status_code,
        response_time,
        code,
        cause,
        seen_at,
    )


@dataclass(frozen=True, slots=True)
class Times:
    """Good checks of a place, and their response times in ms."""

    checks: int = 0
    average: int | None = None
    slowest: int | None = None


def times(session: AnySession, monitor_id: int, since: datetime) -> dict[int, Times]:
    """The response times of a monitor from ``since`` on, by place."""
    good = [VERDICT_NUMBERS[verdict] for verdict in (Verdict.UP, Verdict.DEGRADED)]
    rows = session.execute(
        select(
            ResultRow.location_id,
            func.count(),
            func.avg(ResultRow.response_time),
            func.max(ResultRow.response_time),
        )
        .where(
            ResultRow.monitor_id == monitor_id,
            ResultRow.at >= to_ms(since),
            ResultRow.verdict.in_(good),
        )
        .group_by(ResultRow.location_id)
    )
    return {
        place: Times(checks, None if average is None else round(average), slowest)
        for place, checks, average, slowest in rows
    }
