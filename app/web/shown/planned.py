"""Maintenance windows for pages: the occurrence that is on, the next ones, and the windows of a
monitor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import islice

from app.records import MaintenanceWindow, Monitor, PageQuery
from app.rules import recurrence
from app.rules.time import next_change, zone_of
from app.stores import current_store
from app.web.frame import servers
from app.web.frame.store_errors import if_answered
from app.web.shown import times

PAGE, MAX = 100, 500  # windows in the list and the calendar: the newest
PREVIEW = 5
CHANGE_WITHIN = timedelta(days=370)


@dataclass(frozen=True, slots=True)
class Planned:
    """A window with its present or next occurrence. If it is over, ``start`` is None."""

    window: MaintenanceWindow
    is_on: bool
    start: datetime | None = None
    end: datetime | None = None

    @property
    def order(self) -> tuple[bool, bool, float]:
        """A sort key: windows that are on, then coming ones, then those that are over, the latest
        first.
        """
        if self.start is None:
            return True, True, -self.window.start_at.timestamp()
        return False, not self.is_on, self.start.timestamp()


@dataclass(frozen=True, slots=True)
class ShownDate:
    """An occurrence. ``changed``: if it is the first one after a change of the clocks, the moment
    of this change.
    """

    start: datetime
    end: datetime
    changed: datetime | None = None


def next_dates(window: MaintenanceWindow) -> list[ShownDate]:
    """The next occurrences, and the first one after the next change of the clocks in the window's
    zone, or in the reader's zone if the window's has no changes.
    """
    now = times.now()
    spans = recurrence.next_occurrences(window, PREVIEW, now)
    zones: Sequence[tzinfo] = (zone_of(window.zone), times.zone())
    if window.repeat == recurrence.ONCE:
        zones = ()  # a change of the clocks does not matter for a single date
    changes = (next_change(zone, now, CHANGE_WITHIN) for zone in zones)
    changed = next((moment for moment in changes if moment is not None), None)
    if changed is None:
        return [ShownDate(*span) for span in spans]
    first_after = next(
        (span for span in recurrence.next_occurrences(window, 2, changed) if span[0] >= changed),
        None,
    )
    if first_after is not None and first_after not in spans:
        spans.append(first_after)
    return [ShownDate(*span, changed=changed if span == first_after else None) for span in spans]


def newest() -> tuple[list[MaintenanceWindow], bool]:
    """The newest windows, and whether there are more."""
    newest_first = current_store().windows.every(PageQuery(per_page=PAGE), MAX // PAGE + 1)
    windows = list(islice(newest_first, MAX + 1))
    return windows[:MAX], len(windows) > MAX


def planned_of(window: MaintenanceWindow) -> Planned:
    now = times.now()
    spans = recurrence.next_occurrences(window, 1, now)
    if not spans:
        return Planned(window, False)
    return Planned(window, spans[0][0] <= now, *spans[0])


def coming(windows: Iterable[MaintenanceWindow], limit: int) -> list[Planned]:
    """The windows that are on, then those that come next."""
    planned = (planned_of(window) for window in windows)
    return sorted((item for item in planned if item.start), key=lambda item: item.order)[:limit]


def for_monitor(monitor: Monitor, limit: int = 2) -> list[Planned]:
    """The windows that apply to a monitor, also by its tags, and are on or come next."""
    windows = _newest_if_any()
    applying = (
        window for window in windows if recurrence.applies_to(window, monitor.id, monitor.tags)
    )
    return coming(applying, limit)


def soon(limit: int) -> list[Planned]:
    """The windows that are on or come next."""
    return coming(_newest_if_any(), limit)


def _newest_if_any() -> list[MaintenanceWindow]:
    """The newest windows; none if the server does not answer, or has no windows. For pages about
    something else, which must not fail.
    """
    return if_answered(lambda: newest()[0] if servers.is_whole() else [], [])
