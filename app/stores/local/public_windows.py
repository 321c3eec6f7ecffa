"""Maintenance that a status page shows: windows of its monitors, and posts with times."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from itertools import islice

from sqlalchemy import or_, select

from app.db import db
from app.db.tables import (
    MaintenanceWindowMonitorRow,
    MaintenanceWindowRow,
    MonitorRow,
    PostMonitorRow,
    PostRow,
)
from app.db.windows import in_own_window, window_of
from app.records import MAINTENANCE_STATES, MaintenanceWindow, PublicWindow
from app.rules.recurrence import ONCE, occurrences_between

OWN_NAME = "Maintenance"  # a monitor's own window has no name
MOST = 100  # occurrences of one window: a cron line may name every minute


def windows_of(
    page_id: int, monitor_ids: Collection[int], start: datetime, end: datetime
) -> list[PublicWindow]:
    """What touches the time from ``start`` to ``end``, by start."""
    found = [
        *_posts(page_id, start, end),
        *_windows(set(monitor_ids), start, end),
        *_own(monitor_ids, start, end),
    ]
    return sorted(found, key=lambda window: (window.start_at, window.uid))


def _posts(page_id: int, start: datetime, end: datetime) -> Iterator[PublicWindow]:
    rows = db.session.scalars(
        select(PostRow).where(
            PostRow.status_page_id == page_id,
            PostRow.state.in_(MAINTENANCE_STATES),
            PostRow.starts_at < end,
            PostRow.ends_at > start,
        )
    ).all()
    members = _pairs(PostMonitorRow.post_id, PostMonitorRow.monitor_id, [row.id for row in rows])
    for row in rows:
        if row.starts_at is not None and row.ends_at is not None:
            yield PublicWindow(
                uid=f"post-{row.id}",
                sequence=_sequence(row.created_at, row.updated_at),
                name=row.title,
                start_at=row.starts_at,
                end_at=row.ends_at,
                components=tuple(members.get(row.id, ())),
                updated_at=row.updated_at,
            )


def _windows(shown: set[int], start: datetime, end: datetime) -> Iterator[PublicWindow]:
    rows = db.session.scalars(
        select(MaintenanceWindowRow).where(
            MaintenanceWindowRow.start_at < end,
            or_(MaintenanceWindowRow.repeat != ONCE, MaintenanceWindowRow.end_at > start),
        )
    ).all()
    members = _pairs(
        MaintenanceWindowMonitorRow.window_id,
        MaintenanceWindowMonitorRow.monitor_id,
        [row.id for row in rows],
    )
    for row in rows:
        window = window_of(row, members.get(row.id, ()))
        if not window.monitors or shown.intersection(window.monitors):
            yield from _occurrences(window, shown, start, end)


def _occurrences(
    window: MaintenanceWindow, shown: set[int], start: datetime, end: datetime
) -> Iterator[PublicWindow]:
    for begin, stop in islice(occurrences_between(window, start, end), MOST):
        yield PublicWindow(
            uid=f"window-{window.id}-{begin:%Y%m%dT%H%M%SZ}",
            sequence=_sequence(window.created_at, window.updated_at),
            name=window.name,
            start_at=begin,
            end_at=stop,
            components=tuple(id for id in window.monitors if id in shown),
            updated_at=window.updated_at,
        )


def _own(monitor_ids: Collection[int], start: datetime, end: datetime) -> Iterator[PublicWindow]:
    rows = db.session.execute(
        select(
            MonitorRow.id,
            MonitorRow.maintenance_start_at,
            MonitorRow.maintenance_end_at,
            MonitorRow.created_at,
            MonitorRow.updated_at,
        ).where(MonitorRow.id.in_(monitor_ids), in_own_window(start, end))
    )
    for id, begin, stop, created, updated in rows:
        if begin is None or stop is None:
            continue
        yield PublicWindow(
            uid=f"monitor-{id}",
            sequence=_sequence(created, updated),
            name=OWN_NAME,
            start_at=begin,
            end_at=stop,
            components=(id,),
            updated_at=updated,
        )


def _sequence(created: datetime | None, updated: datetime | None) -> int:
    """A number that grows with each change (RFC 5545)."""
    return int((updated - created).total_seconds()) if created and updated else 0


def _pairs(key: object, value: object, ids: Iterable[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one, other in db.session.execute(
        select(key, value).where(key.in_(list(ids))).order_by(value)  # type: ignore[attr-defined,call-overload]
    ):
        found.setdefault(one, []).append(other)
    return found
