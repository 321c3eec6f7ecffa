"""Cancel the entries of calendars: a calendar removes an entry only if the feed says that it is
cancelled.

Each function joins the caller's transaction. A cancelled entry has only its times, because the page
must no longer show its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select

from app.db import AnySession
from app.db.tables import (
    CancelledEventRow,
    MaintenanceWindowRow,
    MonitorRow,
    PostRow,
    StatusPageMonitorRow,
    StatusPageRow,
)
from app.db.tags import tagged
from app.db.windows import with_monitors
from app.i18n import _
from app.records import MaintenanceWindow, PublicWindow
from app.rules.calendar_entries import sequence, series, uid
from app.rules.recurrence import is_for_all
from app.stores.local.part import fits
from app.stores.local.public_windows import CANCELLED_NAME, upcoming


def cancel_post(session: AnySession, row: PostRow, now: datetime) -> None:
    """Cancel the entry of a post, before the post is deleted."""
    page = session.get(StatusPageRow, row.status_page_id)
    if page is not None:
        _cancel_series(session, page, uid("post", row.id, row.created_at, page.id), now)


def cancel_window(session: AnySession, row: MaintenanceWindowRow, now: datetime) -> None:
    """Cancel the entries of a maintenance window, before it is deleted."""
    for page in _pages(session, pages_of_window(session, row)):
        _cancel_series(session, page, uid("window", row.id, row.created_at, page.id), now)


@contextmanager
def keeping_calendars(
    session: AnySession, page_ids: Collection[int], now: datetime
) -> Iterator[None]:
    """``renumbering`` that also cancels the entries that the changes inside remove from the
    calendars of these pages.
    """
    with renumbering(session, page_ids, now) as old:
        yield
        session.flush()
        for page in _pages(session, old):
            remaining = {window.uid for window in upcoming(session, page, now)}
            removed = (window for window in old[page.id] if window.uid not in remaining)
            _cancel(session, page, removed, now)


@contextmanager
def renumbering(
    session: AnySession, page_ids: Collection[int], now: datetime
) -> Iterator[dict[int, list[PublicWindow]]]:
    """Give a higher SEQUENCE to the entries of these pages' calendars that the statements inside
    change. A cancelled entry that is stored again is no longer cancelled.
    """
    old = {page.id: upcoming(session, page, now) for page in _pages(session, page_ids)}
    yield old
    session.flush()
    for page in _pages(session, old):
        new = {window.uid: window for window in upcoming(session, page, now)}
        _renumber(session, page, old[page.id], new)


def pages_of_window(session: AnySession, row: MaintenanceWindowRow) -> set[int]:
    """The pages that show a monitor of the window; all pages if it is for all monitors."""
    return pages_of(session, with_monitors(session, [row])[0])


def pages_of(session: AnySession, window: MaintenanceWindow) -> set[int]:
    if is_for_all(window):
        return set(session.scalars(select(StatusPageMonitorRow.status_page_id).distinct()))
    page_ids = pages_showing(session, window.monitors)
    if window.tags:
        monitor_ids = select(MonitorRow.id).where(tagged(window.tags))
        is_shown = StatusPageMonitorRow.monitor_id.in_(monitor_ids)
        statement = select(StatusPageMonitorRow.status_page_id).where(is_shown)
        page_ids |= set(session.scalars(statement))
    return page_ids


def pages_showing(session: AnySession, monitor_ids: Collection[int]) -> set[int]:
    """The pages that show one of these monitors."""
    ids = [id for id in monitor_ids if fits(id)]
    is_shown = StatusPageMonitorRow.monitor_id.in_(ids)
    return set(session.scalars(select(StatusPageMonitorRow.status_page_id).where(is_shown)))


def _pages(session: AnySession, ids: Iterable[int]) -> list[StatusPageRow]:
    return list(session.scalars(select(StatusPageRow).where(StatusPageRow.id.in_(list(ids)))))


def _cancel_series(session: AnySession, page: StatusPageRow, uid: str, now: datetime) -> None:
    windows = (
        window for window in upcoming(session, page, now) if series(window.uid) == series(uid)
    )
    _cancel(session, page, windows, now)


def _renumber(
    session: AnySession,
    page: StatusPageRow,
    old: Iterable[PublicWindow],
    new: Mapping[str, PublicWindow],
) -> None:
    used = [
        (window.uid, window.sequence) for window in old if _differs(window, new.get(window.uid))
    ]
    cancelled = select(CancelledEventRow).where(CancelledEventRow.status_page_id == page.id)
    for row in session.scalars(cancelled).all():
        if row.uid in new:
            used.append((row.uid, row.sequence))
            session.delete(row)
    ahead = max((number + 1 - new[uid].sequence for uid, number in used), default=0)
    if ahead > 0:
        page.sequence_ahead += ahead


def _differs(old: PublicWindow, new: PublicWindow | None) -> bool:
    """Whether an entry that was not removed has changed."""
    if new is None:
        return False
    return replace(new, sequence=old.sequence, updated_at=old.updated_at) != old


def _cancel(
    session: AnySession, page: StatusPageRow, windows: Iterable[PublicWindow], now: datetime
) -> None:
    for window in windows:
        session.merge(
            CancelledEventRow(
                status_page_id=page.id,
                uid=window.uid,
                sequence=max(window.sequence + 1, sequence(now)),
                name=_(CANCELLED_NAME),
                start_at=window.start_at,
                end_at=window.end_at,
                cancelled_at=now,
            )
        )
