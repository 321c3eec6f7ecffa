"""The maintenance that status pages show: windows of their monitors, monitors' own windows, posts
with times, and cancelled entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import InstrumentedAttribute

from app.db import AnySession, db
from app.db.statements import grouped
from app.db.tables import (
    CancelledEventRow,
    MaintenanceWindowRow,
    MonitorRow,
    PostMonitorRow,
    PostRow,
    PostUpdateRow,
    StatusPageMonitorRow,
    StatusPageRow,
)
from app.db.tags import tagged
from app.db.types import EARLIEST, LATEST
from app.db.windows import in_own_window, with_monitors
from app.i18n import N_, _
from app.records import PAGE_DAYS, MaintenanceWindow, PostState, PublicWindow
from app.rules.calendar_entries import sequence, uid
from app.rules.recurrence import (
    ONCE,
    WORDS,
    is_for_all,
    next_occurrences,
    occurrences_between,
    repeated,
)
from app.rules.time import zone_of

OWN_NAME = N_("Maintenance")  # of a monitor's own window, and of one without a public name
CANCELLED_NAME = N_("Cancelled maintenance")
MAX_OCCURRENCES = 100  # of one window: a cron line may name every minute
AHEAD = timedelta(days=PAGE_DAYS)
PLANNED = (PostState.SCHEDULED, PostState.IN_PROGRESS)


def windows_of(
    page_id: int, monitor_ids: Collection[int], start: datetime, end: datetime
) -> list[PublicWindow]:
    """The maintenance of a page between ``start`` and ``end``, in the order of the starts.
    ``monitor_ids``: the monitors that the page shows.
    """
    page = db.session.get(StatusPageRow, page_id)
    if page is None:
        return []
    windows = planned(db.session, page, monitor_ids, start, end)
    uids = {window.uid for window in windows}
    cancelled = (window for window in _cancelled(page_id, start, end) if window.uid not in uids)
    return sorted((*windows, *cancelled), key=lambda window: (window.start_at, window.uid))


def upcoming(session: AnySession, page: StatusPageRow, now: datetime) -> list[PublicWindow]:
    """The entries of a page's calendars that have not ended, without cancelled ones."""
    monitor_ids = select(StatusPageMonitorRow.monitor_id).where(
        StatusPageMonitorRow.status_page_id == page.id
    )
    return planned(session, page, session.scalars(monitor_ids).all(), now, now + AHEAD)


def planned(
    session: AnySession,
    page: StatusPageRow,
    monitor_ids: Collection[int],
    start: datetime,
    end: datetime,
) -> list[PublicWindow]:
    return [
        *_posts(session, page, start, end),
        *_windows(session, page, set(monitor_ids), start, end),
        *_own(session, page, monitor_ids, start, end),
    ]


def _posts(
    session: AnySession, page: StatusPageRow, start: datetime, end: datetime
) -> Iterator[PublicWindow]:
    rows = session.scalars(
        select(PostRow).where(
            PostRow.status_page_id == page.id,
            PostRow.state.in_(PLANNED),
            PostRow.starts_at >= EARLIEST,
            PostRow.starts_at < end,
            PostRow.ends_at > start,
            PostRow.ends_at <= LATEST,
        )
    ).all()
    ids = [row.id for row in rows]
    members = _pairs(session, PostMonitorRow.post_id, PostMonitorRow.monitor_id, ids)
    texts = _pairs(session, PostUpdateRow.post_id, PostUpdateRow.body, ids, PostUpdateRow.id)
    for row in rows:
        if row.starts_at is not None and row.ends_at is not None:
            yield PublicWindow(
                uid=uid("post", row.id, row.created_at, page.id),
                sequence=sequence(max(row.updated_at, page.updated_at), page.sequence_ahead),
                name=row.title,
                start_at=row.starts_at,
                end_at=row.ends_at,
                components=tuple(members.get(row.id, ())),
                description=next(iter(texts.get(row.id, ())), ""),
                updated_at=max(row.updated_at, page.updated_at),
            )


def _windows(
    session: AnySession, page: StatusPageRow, monitor_ids: set[int], start: datetime, end: datetime
) -> Iterator[PublicWindow]:
    rows = session.scalars(
        select(MaintenanceWindowRow).where(
            MaintenanceWindowRow.public,
            MaintenanceWindowRow.start_at < end,
            or_(MaintenanceWindowRow.repeat != ONCE, MaintenanceWindowRow.end_at > start),
        )
    ).all()
    for row, window in zip(rows, with_monitors(session, rows), strict=True):
        concerned = monitor_ids.intersection(window.monitors)
        # A change of the page may add monitors of the window, or remove them.
        changed = max(row.updated_at, page.updated_at)
        if window.tags:
            statement = select(MonitorRow.id, MonitorRow.updated_at)
            statement = statement.where(MonitorRow.id.in_(monitor_ids), tagged(window.tags))
            for id, at in session.execute(statement):
                concerned.add(id)
                changed = max(changed, at)  # this change may have added the tag
        if concerned or (monitor_ids and is_for_all(window)):
            members = sorted(concerned)
            yield from _occurrences(page, row, window, members, changed, start, end)


def _occurrences(
    page: StatusPageRow,
    row: MaintenanceWindowRow,
    window: MaintenanceWindow,
    components: Sequence[int],
    changed: datetime,
    start: datetime,
    end: datetime,
) -> Iterator[PublicWindow]:
    spans = occurrences_between(window, start, end, MAX_OCCURRENCES)
    # A page lists the first two occurrences, and says how the window repeats if there are more.
    has_more = bool(spans) and len(next_occurrences(window, 3, spans[0][0])) == 3
    repeats = repeated(window, spans[0][0]) if has_more else ""
    for begin, stop in spans:
        yield PublicWindow(
            uid=uid("window", row.id, row.created_at, page.id, _occurrence(window, begin)),
            sequence=sequence(changed, page.sequence_ahead),
            name=window.public_name or _(OWN_NAME),
            start_at=begin,
            end_at=stop,
            components=tuple(components),
            description=window.public_text or "",
            updated_at=changed,
            repeats=repeats,
        )


def _occurrence(window: MaintenanceWindow, begin: datetime) -> str:
    """The part of a calendar entry's id that identifies an occurrence of its window. A window that
    repeats by a word has at most one occurrence in a day. Its id has only the date, so the entry
    moves if the time of day changes. A cron line may have many occurrences in a day.
    """
    if window.repeat == ONCE:
        return ""
    if window.repeat in WORDS:
        return f"{begin.astimezone(zone_of(window.zone)):%Y%m%d}"
    return f"{begin.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _own(
    session: AnySession,
    page: StatusPageRow,
    monitor_ids: Collection[int],
    start: datetime,
    end: datetime,
) -> Iterator[PublicWindow]:
    columns = (
        MonitorRow.id,
        MonitorRow.maintenance_start_at,
        MonitorRow.maintenance_end_at,
        MonitorRow.created_at,
        MonitorRow.updated_at,
    )
    overlapping = in_own_window(start, end)
    for id, begin, stop, created_at, updated_at in session.execute(
        select(*columns).where(MonitorRow.id.in_(monitor_ids), overlapping)
    ):
        changed = max(updated_at, page.updated_at)
        if begin is not None and stop is not None and begin < end:
            yield PublicWindow(
                uid=uid("monitor", id, created_at, page.id, f"{begin:%Y%m%dT%H%M%SZ}"),
                sequence=sequence(changed, page.sequence_ahead),
                name=_(OWN_NAME),
                start_at=begin,
                end_at=stop,
                components=(id,),
                updated_at=changed,
            )


def _cancelled(page_id: int, start: datetime, end: datetime) -> Iterator[PublicWindow]:
    rows = db.session.scalars(
        select(CancelledEventRow).where(
            CancelledEventRow.status_page_id == page_id,
            CancelledEventRow.start_at >= EARLIEST,
            CancelledEventRow.start_at < end,
            CancelledEventRow.end_at > start,
            CancelledEventRow.end_at <= LATEST,
        )
    )
    for row in rows:
        yield PublicWindow(
            uid=row.uid,
            sequence=row.sequence,
            name=row.name,
            start_at=row.start_at,
            end_at=row.end_at,
            updated_at=row.cancelled_at,
            cancelled=True,
        )


def _pairs(
    session: AnySession,
    key: InstrumentedAttribute[int],
    value: InstrumentedAttribute[Any],
    ids: Iterable[int],
    order: InstrumentedAttribute[Any] | None = None,
) -> dict[int, list[Any]]:
    query = select(key, value).where(key.in_(list(ids)))
    return grouped(session.execute(query.order_by(value if order is None else order)))
