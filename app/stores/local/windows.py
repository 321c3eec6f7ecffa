"""Maintenance windows, and which monitors are in maintenance now."""

from __future__ import annotations

from collections.abc import Iterable
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
from app.stores.base import Collection, Fields
from app.stores.local.cancelling import cancel_window, keeping_calendars, pages_of, pages_of_window
from app.stores.local.part import LocalPart, get_row, lock_row
from app.stores.local.search import PageStatements, fits, page_statements

_MEMBER: Any = MaintenanceWindowMonitorRow.__table__.c
_ORDER = (MaintenanceWindowRow.start_at.desc(), MaintenanceWindowRow.id.desc())


class LocalWindows(LocalPart, Collection[MaintenanceWindow, PageQuery]):
    def list(self, query: PageQuery) -> Page[MaintenanceWindow]:
        """The newest start first."""
        ids, total = _statements(query.page, query.per_page).read()
        statement = select(MaintenanceWindowRow).where(MaintenanceWindowRow.id.in_(ids))
        rows = db.session.scalars(statement.order_by(*_ORDER)).all() if ids else ()
        return Page(with_monitors(db.session, rows), query.page, query.per_page, total)

    def get(self, id: int) -> MaintenanceWindow:
        return _record(db.session, id)

    def create(self, fields: Fields) -> MaintenanceWindow:
        now = self.now()
        with writing() as session:
            row = MaintenanceWindowRow(
                **{"repeat": calendar.ONCE} | _columns(fields), created_at=now, updated_at=now
            )
            session.add(row)
            session.flush()
            _set_members(session, row, fields.get("monitors") or ())
            id = _checked(_record(session, row.id)).id
        return self.get(id)

    def update(self, id: int, fields: Fields) -> MaintenanceWindow:
        now = self.now()
        with writing() as session:
            row = lock_row(session, MaintenanceWindowRow, "maintenance window", id)
            pages = pages_of_window(session, row)
            if "monitors" in fields or "tags" in fields:
                pages |= pages_of(session, _changed(_record(session, id), fields))
            with keeping_calendars(session, pages, now):
                for name, value in _columns(fields).items():
                    setattr(row, name, value)
                row.updated_at = now
                if "monitors" in fields:
                    _set_members(session, row, fields["monitors"] or ())
                session.flush()
                _checked(_record(session, id))
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            row = _row(session, id)
            cancel_window(session, row, self.now())
            session.delete(row)


@lru_cache(maxsize=16)  # each page of a monitor asks for the first page
def _statements(page: int, per_page: int) -> PageStatements:
    return page_statements(select(MaintenanceWindowRow.id), _ORDER, page, per_page)


def _columns(fields: Fields) -> dict[str, Any]:
    """A form's fields as columns; the monitors are rows of another table."""
    columns = {name: value for name, value in fields.items() if name != "monitors"}
    return columns | ({"tags": tags_text(fields["tags"] or ())} if "tags" in fields else {})


def _changed(window: MaintenanceWindow, fields: Fields) -> MaintenanceWindow:
    """The window with these monitors and tags."""
    sent: dict[str, Any] = {
        name: tuple(fields[name] or ()) for name in ("monitors", "tags") if name in fields
    }
    return replace(window, **sent)


def active_windows(now: datetime) -> list[MaintenanceWindow]:
    """The windows that are on at ``now``."""
    return [window for window in windows.between(now, now) if calendar.covers(window, now)]


def in_maintenance(now: Any, active: Iterable[MaintenanceWindow]) -> ColumnElement[bool]:
    """SQL condition: a monitor is in maintenance at ``now`` (a time, or a parameter), by its own
    window or one of these.
    """
    own = in_own_window(now, now)
    active = list(active)
    if any(calendar.for_all(window) for window in active):
        return true()
    if not active:
        return own
    tags = {tag for window in active for tag in window.tags}
    listed = select(_MEMBER.monitor_id).where(
        _MEMBER.window_id.in_([window.id for window in active])
    )
    return or_(own, MonitorRow.__table__.c.id.in_(listed), tagged(tags))


def _row(session: DbSession, id: int) -> MaintenanceWindowRow:
    return get_row(session, MaintenanceWindowRow, "maintenance window", id, reload=False)


def _record(session: DbSession, id: int) -> MaintenanceWindow:
    return with_monitors(session, [_row(session, id)])[0]


def _set_members(session: DbSession, row: MaintenanceWindowRow, monitors: Iterable[int]) -> None:
    id = row.id
    wanted = list(dict.fromkeys(monitors))
    possible = [monitor for monitor in wanted if fits(monitor)]
    existing = set(session.scalars(select(MonitorRow.id).where(MonitorRow.id.in_(possible))))
    missing = [monitor for monitor in wanted if monitor not in existing]
    if missing:
        raise Invalid({"monitors": [no_such("monitor", missing[0])]})
    before = list(_record(session, id).monitors)
    audit.changed(session, audit.thing(row), {"monitors": (before, sorted(wanted))})
    session.execute(
        delete(MaintenanceWindowMonitorRow).where(MaintenanceWindowMonitorRow.window_id == id)
    )
    session.add_all(MaintenanceWindowMonitorRow(window_id=id, monitor_id=m) for m in wanted)


def _checked(window: MaintenanceWindow) -> MaintenanceWindow:
    """Validate the merged record: two updates that are valid alone may be invalid together."""
    errors = {}
    if window.end_at <= window.start_at:
        errors["end_at"] = [_(text.END_BEFORE_START)]
    sentence = calendar.repeat_fault(window.repeat)
    if sentence:
        errors["repeat"] = [sentence]
    if errors:
        raise Invalid(errors)
    return window
