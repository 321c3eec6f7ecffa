"""Planned maintenance as exact spans of time, because windows begin and end between checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, or_, select

from app.db import db
from app.db.tables import MaintenanceWindowMonitorRow, MaintenanceWindowRow, MonitorRow
from app.db.types import from_ms, to_ms
from app.db.windows import in_own_window, window_of
from app.rules.recurrence import ONCE, occurrences_between
from app.stats.tally import Span

_WINDOWS = select(MaintenanceWindowRow).where(
    MaintenanceWindowRow.start_at < bindparam("end"),
    or_(MaintenanceWindowRow.repeat != ONCE, MaintenanceWindowRow.end_at > bindparam("start")),
)
_MEMBERS = select(
    MaintenanceWindowMonitorRow.window_id, MaintenanceWindowMonitorRow.monitor_id
).where(MaintenanceWindowMonitorRow.window_id.in_(bindparam("windows", expanding=True)))
_OWN = select(
    MonitorRow.id,
    MonitorRow.maintenance_start_at,
    MonitorRow.maintenance_end_at,
    MonitorRow.updated_at,
).where(
    MonitorRow.id.in_(bindparam("ids", expanding=True)),
    in_own_window(bindparam("start"), bindparam("end")),
)


def planned(ids: Sequence[int], start: int, end: int) -> dict[int, list[Span]]:
    """The windows of each monitor that overlap this time (ms), in no order.

    A window counts only from its last change on: maintenance entered afterwards was not planned,
    and what applied before the change is stored with the results (``Check.maintenance``).
    """
    found: dict[int, list[Span]] = {id: [] for id in ids}
    first, last = from_ms(start), from_ms(end)
    rows = db.session.scalars(_WINDOWS, {"start": first, "end": last}).all()
    members: dict[int, list[int]] = {}
    if rows:
        pairs = db.session.execute(_MEMBERS, {"windows": [row.id for row in rows]})
        for window_id, monitor_id in pairs:
            members.setdefault(window_id, []).append(monitor_id)
    for one in rows:
        window = window_of(one, ())
        known = max(first, one.updated_at)
        spans = [
            (to_ms(max(begin, known)), to_ms(stop))
            for begin, stop in occurrences_between(window, known, last)
        ]
        for id in members.get(one.id, ids):  # a window without members is for all monitors
            if id in found:
                found[id] += spans
    own: Any = db.session.execute(_OWN, {"ids": ids, "start": first, "end": last})
    for id, begin, stop, changed in own:
        if stop > changed:
            found[id].append((to_ms(max(begin, changed)), to_ms(stop)))
    return found
