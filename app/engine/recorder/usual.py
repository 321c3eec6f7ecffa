"""What was usual before an incident: response time, phases and addresses of the good checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_low
from typing import Any

from sqlalchemy import bindparam, or_, select

from app.db import AnySession, journal
from app.db.journal import VERDICT_NUMBERS
from app.db.tables import ResultRow
from app.db.types import from_ms, to_ms
from app.records import PHASES, Verdict
from app.rules.time import iso

LOOKED_AT = timedelta(days=1)
MOST_CHECKS = 50
FEWEST_CHECKS = 5  # of fewer, no figure is usual
_GOOD = (VERDICT_NUMBERS[Verdict.UP], VERDICT_NUMBERS[Verdict.DEGRADED])
_RESULTS: Any = ResultRow.__table__
# Built once, of columns of the table: asked for each incident that opens.
_OF_ALL = (
    select(
        _RESULTS.c.at,
        _RESULTS.c.response_time,
        *(_RESULTS.c[name] for name in PHASES),
        _RESULTS.c.context_id,
    )
    .where(
        _RESULTS.c.monitor_id == bindparam("id"),
        _RESULTS.c.at >= bindparam("first"),
        _RESULTS.c.at < bindparam("since"),
        or_(*(_RESULTS.c.verdict == number for number in _GOOD)),
        _RESULTS.c.maintenance.is_(False),
    )
    .order_by(_RESULTS.c.at.desc())
    .limit(MOST_CHECKS)
)
_OF_PLACE = _OF_ALL.where(_RESULTS.c.location_id == bindparam("place"))


@dataclass(frozen=True, slots=True)
class Failure:
    """What began at ``since``. ``place``: where it was seen first; None if that is not known.
    ``changed``: when the monitor was changed last.
    """

    monitor_id: int
    since: datetime
    place: int | None
    changed: datetime


def usual_before(
    session: AnySession, failures: Sequence[Failure]
) -> dict[int, dict[str, Any] | None]:
    """By monitor, ``{"checked_at": of the last good check, "response_time", "timings",
    "addresses"}`` over the newest good checks before its failure, of its place or (None) of all;
    None if there was none.

    The figures are medians, so that one slow check does not count, and null if there were few.
    Checks from before the monitor's last change are left out: they may be of another target.
    """
    good = {one.monitor_id: _good(session, one) for one in failures}
    contexts = {row.context_id for rows in good.values() for row in rows}
    addresses = {id: one.get("ip") for id, one in journal.contexts(contexts).items()}
    return {id: _usual(rows, addresses) for id, rows in good.items()}


def _good(session: AnySession, failure: Failure) -> Sequence[Any]:
    """Rows of ``_OF_ALL``, the newest first."""
    asked = {
        "id": failure.monitor_id,
        "first": to_ms(max(failure.since - LOOKED_AT, failure.changed)),
        "since": to_ms(failure.since),
    }
    if failure.place is None:
        return session.execute(_OF_ALL, asked).all()
    return session.execute(_OF_PLACE, asked | {"place": failure.place}).all()


def _usual(rows: Sequence[Any], addresses: Mapping[int, Any]) -> dict[str, Any] | None:
    if not rows:
        return None
    enough = rows if len(rows) >= FEWEST_CHECKS else []
    found = {addresses.get(id) for id in {row.context_id for row in rows}}
    return {
        "checked_at": iso(from_ms(rows[0].at)),
        "response_time": _middle([row.response_time for row in enough]),
        "timings": {name: _middle([getattr(row, name) for row in enough]) for name in PHASES},
        "addresses": sorted(ip for ip in found if ip and isinstance(ip, str)),
    }


def _middle(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return median_low(known) if known else None
