"""The newest check of each place of a monitor. Needs an application context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import BigInteger, BindParameter, and_, bindparam, func, literal_column, select

from app.db import AnySession, packed
from app.db.tables import AssignmentRow, CauseCodeRow, PlaceRow, ResultRow
from app.db.types import VERDICT_NUMBERS, from_ms, to_ms
from app.records import GOOD_VERDICTS, Verdict

# Built once, because an outage of thousands of monitors runs it for each of them.
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_LAST = (
    select(ResultRow.monitor_id, ResultRow.location_id, func.max(ResultRow.at).label("at"))
    .where(ResultRow.monitor_id.in_(_IDS), ResultRow.at >= bindparam("since", type_=BigInteger))
    .group_by(ResultRow.monitor_id, ResultRow.location_id)
    .subquery()
)
_NEWEST = (
    select(
        AssignmentRow.monitor_id, PlaceRow.id, PlaceRow.name, PlaceRow.label, ResultRow.at,
        ResultRow.verdict, ResultRow.status_code, ResultRow.response_time, CauseCodeRow.code,
        ResultRow.cause, ResultRow.maintenance, AssignmentRow.checked_at,
    )
    .select_from(AssignmentRow)
    .join(PlaceRow, PlaceRow.id == AssignmentRow.location_id)
    .outerjoin(
        _LAST,
        and_(
            _LAST.c.monitor_id == AssignmentRow.monitor_id,
            _LAST.c.location_id == PlaceRow.id,
            # Only if the place has checked the monitor since it was resumed or changed
            AssignmentRow.checked_at.is_not(None),
        ),
    )
    .outerjoin(
        ResultRow,
        and_(
            ResultRow.monitor_id == _LAST.c.monitor_id,
            ResultRow.at == _LAST.c.at,
            ResultRow.location_id == _LAST.c.location_id,
        ),
    )
    .outerjoin(CauseCodeRow, CauseCodeRow.id == ResultRow.cause_code_id)
    .where(AssignmentRow.monitor_id.in_(_IDS))
    .order_by(AssignmentRow.monitor_id, PlaceRow.id)
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewestCheck:
    """A place of a monitor, and fields of its newest result, which are None without one.
    ``last_at``: the time of the last check, however long ago.
    """

    place_id: int
    name: str
    label: str | None = None
    at: datetime | None = None
    verdict: Verdict | None = None
    status_code: int | None = None
    response_time: int | None = None
    cause_code: str | None = None
    cause: str | None = None
    maintenance: bool = False
    last_at: datetime | None = None

    @property
    def title(self) -> str:
        """The label of the place, or its name."""
        return self.label or self.name


def newest_checks(session: AnySession, monitor_id: int, since: datetime) -> list[NewestCheck]:
    """The places of a monitor, in the order of their creation, each with its newest result since
    ``since``. A place whose vote was reset after the result has none.
    """
    return newest_checks_of(session, [monitor_id], since)[monitor_id]


def newest_checks_of(
    session: AnySession, monitor_ids: Sequence[int], since: datetime
) -> dict[int, list[NewestCheck]]:
    """``newest_checks`` of several monitors, by their ids."""
    by_monitor: dict[int, list[NewestCheck]] = {id: [] for id in monitor_ids}
    rows = session.execute(_NEWEST, {"ids": list(monitor_ids), "since": to_ms(since)})
    for monitor_id, *columns in rows:
        by_monitor[monitor_id].append(_newest_check(columns))
    return by_monitor


def _newest_check(row: Any) -> NewestCheck:
    place, name, label, at, *others, maintenance, last_at = row
    checked_at = None if at is None else from_ms(at)
    check: Any = (checked_at, *others, bool(maintenance), checked_at or last_at)
    return NewestCheck(place, name, label, *check)


@dataclass(frozen=True, slots=True)
class PlaceTimes:
    """Good checks of a place, and their response times in ms."""

    checks: int = 0
    average: int | None = None
    slowest: int | None = None


def averages(
    session: AnySession, monitor_id: int, start_ms: int, count: int, width_ms: int
) -> list[tuple[str, int, int]]:
    """The average response times of good checks: (name of the place, number of the bucket, ms). The
    buckets begin at ``start_ms``.
    """
    end_ms = start_ms + count * width_ms
    bucket = ((ResultRow.at - start_ms) // width_ms).label("bucket")
    summed = session.execute(
        select(ResultRow.location_id, bucket, func.sum(ResultRow.response_time), func.count())
        .where(
            ResultRow.monitor_id == monitor_id,
            ResultRow.at >= start_ms,
            ResultRow.at < end_ms,
            ResultRow.verdict.in_(GOOD_VERDICTS),
            ResultRow.response_time.is_not(None),
        )
        # Grouped by the column's name: to PostgreSQL, the expression with other parameters differs.
        .group_by(ResultRow.location_id, literal_column("bucket"))
    ).all()
    sums: defaultdict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    good = {VERDICT_NUMBERS[verdict] for verdict in GOOD_VERDICTS}
    packed_rows = packed.rows([monitor_id], start_ms, end_ms, ("verdict", "response_time"))
    each = (
        (place, (at - start_ms) // width_ms, response_time, 1)
        for _id, at, place, verdict, response_time in packed_rows
        if verdict in good and response_time is not None
    )
    for place, number, total, checks in chain(summed, each):
        earlier = sums[place, number]
        sums[place, number] = earlier[0] + int(total or 0), earlier[1] + checks
    # A separate query, because with a join SQLite sums once for each place.
    rows = session.execute(select(PlaceRow.id, PlaceRow.name))
    names = {row.id: row.name for row in rows}
    return [
        (names[place], number, round(total / checks))
        for (place, number), (total, checks) in sorted(sums.items())
        if place in names
    ]


def response_times(session: AnySession, monitor_id: int, since: datetime) -> dict[int, PlaceTimes]:
    """The response times of a monitor since ``since``, by place."""
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
            ResultRow.verdict.in_(GOOD_VERDICTS),
        )
        .group_by(ResultRow.location_id)
    )
    return {
        place: PlaceTimes(checks, None if average is None else round(average), slowest)
        for place, checks, average, slowest in rows
    }
