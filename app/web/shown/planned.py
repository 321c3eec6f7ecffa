"""Maintenance windows as pages show them: whether one is on, what comes next, for whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from app.errors import WakefulError
from app.records import MaintenanceWindow, Monitor, PageQuery
from app.rules import recurrence
from app.rules.time import next_change, zone_of
from app.stores import current_store
from app.web.frame import servers
from app.web.shown import times

PAGE, PAGES = 100, 5  # windows in the list and the calendar: the newest
PREVIEW = 5
CHANGE_WITHIN = timedelta(days=370)


@dataclass(frozen=True, slots=True)
class Planned:
    """A window, and the occurrence of it that is on, or the next; without ``start`` it is over."""

    window: MaintenanceWindow
    is_on: bool
    start: datetime | None = None
    end: datetime | None = None

    @property
    def order(self) -> tuple[bool, bool, float]:
        """What is on first, then what comes next, then what is over, the latest first."""
        if self.start is None:
            return True, True, -self.window.start_at.timestamp()
        return False, not self.is_on, self.start.timestamp()


@dataclass(frozen=True, slots=True)
class ShownDate:
    """An occurrence. ``changed``: it is the first after the clocks are changed, at this time."""

    start: datetime
    end: datetime
    changed: datetime | None = None


def next_dates(window: MaintenanceWindow) -> list[ShownDate]:
    """The next occurrences, and the first after the next change of the clocks: of the window's, or
    of the reader's if those of the window are never changed.
    """
    now = times.now()
    spans = recurrence.next_occurrences(window, PREVIEW, now)
    zones: Sequence[tzinfo] = (zone_of(window.zone), times.zone())
    if window.repeat == recurrence.ONCE:
        zones = ()  # its one date says nothing about a change between two
    changes = (next_change(zone, now, CHANGE_WITHIN) for zone in zones)
    changed = next((moment for moment in changes if moment is not None), None)
    if changed is None:
        return [ShownDate(*span) for span in spans]
    after = next(
        (span for span in recurrence.next_occurrences(window, 2, changed) if span[0] >= changed),
        None,
    )
    if after is not None and after not in spans:
        spans.append(after)
    return [ShownDate(*span, changed=changed if span == after else None) for span in spans]


def newest() -> tuple[list[MaintenanceWindow], bool]:
    """The newest windows, and whether there are more."""
    windows: list[MaintenanceWindow] = []
    for number in range(1, PAGES + 1):
        page = current_store().windows.list(PageQuery(page=number, per_page=PAGE))
        windows += page.items
        if number >= page.last_number:
            return windows, False
    return windows, True


def planned_of(window: MaintenanceWindow) -> Planned:
    now = times.now()
    spans = recurrence.next_occurrences(window, 1, now)
    if not spans:
        return Planned(window, False)
    return Planned(window, spans[0][0] <= now, *spans[0])


def coming(windows: Iterable[MaintenanceWindow], limit: int) -> list[Planned]:
    """What is on and what comes next, in this order."""
    planned = (planned_of(window) for window in windows)
    return sorted((item for item in planned if item.start), key=lambda item: item.order)[:limit]


def for_monitor(monitor: Monitor, limit: int = 2) -> list[Planned]:
    """The shared windows of a monitor, by its tags too, that are on or come next."""
    windows = _newest_if_any()
    applying = (
        window for window in windows if recurrence.applies_to(window, monitor.id, monitor.tags)
    )
    return coming(applying, limit)


def soon(limit: int) -> list[Planned]:
    """What is on or comes next, of all windows."""
    return coming(_newest_if_any(), limit)


def _newest_if_any() -> list[MaintenanceWindow]:
    """The windows for a page that is about something else: it does without them if the server
    has none, or does not answer.
    """
    try:
        return newest()[0] if servers.is_whole() else []
    except WakefulError:
        return []
