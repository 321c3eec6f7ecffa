"""Planned maintenance as exact spans of time, because windows begin and end between checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import bindparam, or_, select

from app.db import db
from app.db.tables import MaintenanceWindowMonitorRow, MaintenanceWindowRow, MonitorRow
from app.db.tags import tags_of
from app.db.types import from_ms, to_ms
from app.db.windows import in_own_window, window_of
from app.records import MaintenanceWindow
from app.rules.recurrence import ONCE, for_all, occurrences_between
from app.stats.cover import Span

# Of tables, not of classes, and built once: see ``rows``.
_WINDOW, _MEMBER = MaintenanceWindowRow.__table__.c, MaintenanceWindowMonitorRow.__table__.c
_MONITOR = MonitorRow.__table__.c
_WINDOWS = select(MaintenanceWindowRow.__table__).where(
    _WINDOW.start_at < bindparam("end"),
    or_(_WINDOW.repeat != ONCE, _WINDOW.end_at > bindparam("start")),
)
_MEMBERS = select(_MEMBER.window_id, _MEMBER.monitor_id).where(
    _MEMBER.window_id.in_(bindparam("windows", expanding=True))
)
_TAGS = select(_MONITOR.id, _MONITOR.tags, _MONITOR.updated_at).where(
    _MONITOR.id.in_(bindparam("ids", expanding=True)), _MONITOR.tags != ""
)
_OWN = select(
    _MONITOR.id, _MONITOR.maintenance_start_at, _MONITOR.maintenance_end_at, _MONITOR.updated_at
).where(
    _MONITOR.id.in_(bindparam("ids", expanding=True)),
    in_own_window(bindparam("start"), bindparam("end")),
)


def planned(ids: Sequence[int], start: int, end: int) -> dict[int, list[Span]]:
    """The windows of each monitor that overlap this time (ms), in no order.

    A window counts only from its last change on: maintenance entered afterwards was not planned,
    and what applied before the change is stored with the results (``Check.maintenance``). For a
    monitor that has its tag, it counts from the last change of the monitor on.
    """
    found: dict[int, list[Span]] = {id: [] for id in ids}
    first, last = from_ms(start), from_ms(end)
    rows = db.session.execute(_WINDOWS, {"start": first, "end": last}).all()
    members: dict[int, list[int]] = {}
    if rows:
        pairs = db.session.execute(_MEMBERS, {"windows": [row.id for row in rows]})
        for window_id, monitor_id in pairs:
            members.setdefault(window_id, []).append(monitor_id)
    tagged: Sequence[Any] = ()
    if any(row.tags for row in rows):
        tagged = db.session.execute(_TAGS, {"ids": ids}).all()
    for one in rows:
        window = window_of(one, members.get(one.id, ()))
        known = max(first, one.updated_at)
        spans = [
            (to_ms(max(begin, known)), to_ms(stop))
            for begin, stop in occurrences_between(window, known, last)
        ]
        for id in ids if for_all(window) else window.monitors:
            if id in found:
                found[id] += spans
        for id, since in _tagged(tagged, window):
            found[id] += [(max(begin, since), stop) for begin, stop in spans if stop > since]
    own: Any = db.session.execute(_OWN, {"ids": ids, "start": first, "end": last})
    for id, begin, stop, changed in own:
        if stop > changed:
            found[id].append((to_ms(max(begin, changed)), to_ms(stop)))
    return found


def _tagged(monitors: Sequence[Any], window: MaintenanceWindow) -> Iterator[tuple[int, int]]:
    """The monitors that have a tag of the window, and since when that is known (ms)."""
    for id, tags, changed in monitors:
        if not window.tags or id in window.monitors:
            continue
        if any(tag in window.tags for tag in tags_of(tags)):
            yield id, to_ms(changed)
