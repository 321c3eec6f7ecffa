"""Planned maintenance as exact spans of time, because windows begin and end between checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.db import windows
from app.db.tags import tags_of
from app.db.types import from_ms, to_ms
from app.db.windows import own_window
from app.records import MaintenanceWindow
from app.rules.recurrence import for_all, occurrences_between
from app.stats.cover import Span


def planned(monitors: Sequence[Any], start: int, end: int) -> dict[int, list[Span]]:
    """The windows of each monitor that overlap this time (ms), in no order. ``monitors`` have the
    columns of ``rows.MONITORS``.

    A window counts only from its last change on: maintenance entered afterwards was not planned,
    and what applied before the change is stored with the results (``Check.maintenance``). For a
    monitor that has its tag, it counts from the last change of the monitor on.
    """
    by_monitor: dict[int, list[Span]] = {monitor.monitor_id: [] for monitor in monitors}
    first, last = from_ms(start), from_ms(end)
    for window in windows.between(first, last):
        counts_from = max(first, window.updated_at or first)
        spans = [
            (to_ms(max(begin, counts_from)), to_ms(stop))
            for begin, stop in occurrences_between(window, counts_from, last)
        ]
        for id in by_monitor if for_all(window) else window.monitors:
            if id in by_monitor:
                by_monitor[id] += spans
        for id, since in _tagged(monitors, window):
            by_monitor[id] += [(max(begin, since), stop) for begin, stop in spans if stop > since]
    for monitor in monitors:
        begin, stop = own_window(monitor)
        if begin and stop and begin <= last and stop > max(first, monitor.updated_at):
            by_monitor[monitor.monitor_id].append(
                (to_ms(max(begin, monitor.updated_at)), to_ms(stop))
            )
    return by_monitor


def _tagged(monitors: Sequence[Any], window: MaintenanceWindow) -> Iterator[tuple[int, int]]:
    """The monitors that have a tag of the window, and when they were changed (ms)."""
    for monitor in monitors if window.tags else ():
        has_tag = any(tag in window.tags for tag in tags_of(monitor.tags))
        if has_tag and monitor.monitor_id not in window.monitors:
            yield monitor.monitor_id, to_ms(monitor.updated_at)
