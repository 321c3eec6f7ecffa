"""Maintenance windows, and which monitors are in maintenance now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, delete, or_, select, true

from app.access import audit
from app.db import DbSession, db, windows, writing
from app.db.tables import MaintenanceWindowMonitorRow, MaintenanceWindowRow, MonitorRow
from app.db.tags import tagged, tags_text
from app.db.windows import in_own_window, with_monitors
from app.errors import Invalid, no_such
from app.i18n import _
from app.records import MaintenanceWindow, Page, PageQuery
from app.rules import recurrence as calendar
from app.rules import text
from app.stores.base import Fields
from app.stores.local.cancelling import cancel_window, keeping_calendars, pages_of, pages_of_window
from app.stores.local.part import (
    LocalCollection,
    PageStatements,
    fits,
    get_row,
    lock_row,
    page_statements,
)

_MEMBER: Any = MaintenanceWindowMonitorRow.__table__.c
_ORDER = (MaintenanceWindowRow.start_at.desc(), MaintenanceWindowRow.id.desc())


class LocalWindows(LocalCollection[MaintenanceWindow, PageQuery]):
    order = _ORDER

    def list(self, query: PageQuery) -> Page[MaintenanceWindow]:
        ids, total = _statements(query.page, query.per_page).read()
        return Page(self.records(ids) if ids else (), query.page, query.per_page, total)

    def records(self, ids: Sequence[int]) -> Sequence[MaintenanceWindow]:
        return with_monitors(db.session, self.rows(ids))

    def columns(self, session: DbSession, id: int | None, fields: Fields) -> dict[str, Any]:
        """The columns of the window. Its monitors are rows of another table (``finish``)."""
        columns: dict[str, Any] = {} if id else {"repeat": calendar.ONCE}
        columns |= {name: value for name, value in fields.items() if name != "monitors"}
        return columns | ({"tags": tags_text(fields["tags"] or ())} if "tags" in fields else {})

    def finish(self, session: DbSession, row: MaintenanceWindowRow, fields: Fields) -> None:
        if "monitors" in fields:
            _set_members(session, row, fields["monitors"] or ())
        _check(_record(session, row))

    def update(self, id: int, fields: Fields) -> MaintenanceWindow:
        with writing() as session:
            row = lock_row(session, MaintenanceWindowRow, self.resource.singular, id)
            pages = pages_of_window(session, row)
            if "monitors" in fields or "tags" in fields:
                pages |= pages_of(session, _changed(_record(session, row), fields))
            with keeping_calendars(session, pages, self.now()):
                return super().update(id, fields)

    def delete(self, id: int) -> None:
        with writing() as session:
            row = get_row(session, MaintenanceWindowRow, self.resource.singular, id)
            cancel_window(session, row, self.now())
            session.delete(row)


@lru_cache(maxsize=16)  # each page of a monitor asks for the first page
def _statements(page: int, per_page: int) -> PageStatements:
    return page_statements(select(MaintenanceWindowRow.id), _ORDER, page, per_page)


def _changed(window: MaintenanceWindow, fields: Fields) -> MaintenanceWindow:
    """The window with these monitors and tags."""
    members: dict[str, Any] = {
        name: tuple(fields[name] or ()) for name in ("monitors", "tags") if name in fields
    }
    return replace(window, **members)


def active_windows(now: datetime) -> list[MaintenanceWindow]:
    """The windows that are active at ``now``."""
    return [window for window in windows.between(now, now) if calendar.covers(window, now)]


def in_maintenance(now: Any, active: Iterable[MaintenanceWindow]) -> ColumnElement[bool]:
    """SQL condition: a monitor is in maintenance at ``now`` (a time or a parameter), by its own
    window or by one of the ``active`` ones.
    """
    own = in_own_window(now, now)
    active = list(active)
    if any(calendar.is_for_all(window) for window in active):
        return true()
    if not active:
        return own
    tags = {tag for window in active for tag in window.tags}
    ids = [window.id for window in active]
    listed = select(_MEMBER.monitor_id).where(_MEMBER.window_id.in_(ids))
    return or_(own, MonitorRow.__table__.c.id.in_(listed), tagged(tags))


def _record(session: DbSession, row: MaintenanceWindowRow) -> MaintenanceWindow:
    return with_monitors(session, [row])[0]


def _set_members(session: DbSession, row: MaintenanceWindowRow, monitors: Iterable[int]) -> None:
    id, member, monitor_ids = row.id, MaintenanceWindowMonitorRow, list(dict.fromkeys(monitors))
    possible = [monitor for monitor in monitor_ids if fits(monitor)]
    existing = set(session.scalars(select(MonitorRow.id).where(MonitorRow.id.in_(possible))))
    if missing := [monitor for monitor in monitor_ids if monitor not in existing]:
        raise Invalid({"monitors": [no_such("monitor", missing[0])]})
    old = list(_record(session, row).monitors)
    audit.note_change(session, row, {"monitors": (old, sorted(monitor_ids))})
    session.execute(delete(member).where(member.window_id == id))
    session.add_all(member(window_id=id, monitor_id=monitor_id) for monitor_id in monitor_ids)


def _check(window: MaintenanceWindow) -> None:
    """Validate the merged record: two updates that are valid alone may be invalid together."""
    errors = {}
    if window.end_at <= window.start_at:
        errors["end_at"] = [_(text.END_BEFORE_START)]
    if sentence := text.fault_of(lambda: calendar.check_repeat(window.repeat)):
        errors["repeat"] = [sentence]
    if errors:
        raise Invalid(errors)
