"""Rows of status pages for tests, as the dashboard would have written them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from flask import Flask

from app.access import passwords
from app.db import writing
from app.db.tables import (
    MaintenanceWindowMonitorRow,
    MaintenanceWindowRow,
    MonitorRow,
    PostMonitorRow,
    PostRow,
    PostUpdateRow,
    RollupRow,
    StatusPageGroupRow,
    StatusPageMonitorRow,
    StatusPageRow,
)
from tests.factories import make_monitor, now

UP = {"verdict": "up", "checked_at": None, "status_since": None, "response_time": 42}


def make_shown(app: Flask, name: str = "Shop", verdict: str = "up", **fields: Any) -> MonitorRow:
    """A monitor that has had this verdict for an hour."""
    state = {
        "verdict": verdict,
        "checked_at": now(),
        "status_since": now() - timedelta(hours=1),
        "response_time": 42,
    } | fields.pop("state", {})
    created = {"created_at": now() - timedelta(hours=2)}
    return make_monitor(app, name=name, state=state, **created | fields)


def make_page(
    app: Flask,
    monitors: Sequence[MonitorRow] = (),
    *,
    names: Mapping[int, str] | None = None,
    groups: Mapping[str, Sequence[MonitorRow]] | None = None,
    password: str | None = None,
    **fields: Any,
) -> int:
    """The id of a page that shows these monitors in this order."""
    values: dict[str, Any] = {
        "name": "Example status",
        "slug": "example",
        "visibility": "password" if password else "public",
        "created_at": now() - timedelta(days=200),
        "updated_at": now(),
    } | fields
    if password:
        with app.app_context():
            values["password_hash"] = passwords.hashed(password)
    with app.app_context(), writing() as session:
        page = StatusPageRow(**values)
        session.add(page)
        session.flush()
        grouped: dict[int, tuple[int, int]] = {}
        for position, (name, members) in enumerate((groups or {}).items()):
            group = StatusPageGroupRow(status_page_id=page.id, position=position, name=name)
            session.add(group)
            session.flush()
            grouped |= {member.id: (group.id, place) for place, member in enumerate(members)}
        for position, monitor in enumerate(monitors):
            group_id, place = grouped.get(monitor.id, (None, None))
            where = {"position": position, "group_id": group_id, "group_position": place}
            name = (names or {}).get(monitor.id)
            ids = {"status_page_id": page.id, "monitor_id": monitor.id}
            session.add(StatusPageMonitorRow(**ids, **where, name=name))
        return page.id


def change_page(app: Flask, id: int, **fields: Any) -> None:
    with app.app_context(), writing() as session:
        page = session.get(StatusPageRow, id)
        for name, value in {"updated_at": now(), **fields}.items():
            setattr(page, name, value)


def make_post(
    app: Flask,
    page_id: int,
    title: str = "The shop is slow",
    *updates: tuple[str, str],
    monitors: Sequence[MonitorRow] = (),
    at: datetime | None = None,
    corrected_at: datetime | None = None,
    impact: str | None = None,
    **fields: Any,
) -> int:
    """``updates``: state and text of each, the first one first."""
    updates = updates or (("investigating", "We are looking into it."),)
    at = at or now()
    values = {"title": title, "state": updates[-1][0], "created_at": at, "updated_at": at} | fields
    times = {"created_at": at, "corrected_at": corrected_at}
    with app.app_context(), writing() as session:
        post = PostRow(status_page_id=page_id, **values)
        session.add(post)
        session.flush()
        for state, body in updates:
            session.add(PostUpdateRow(post_id=post.id, state=state, body=body, **times))
        for monitor in monitors:
            session.add(PostMonitorRow(post_id=post.id, monitor_id=monitor.id, impact=impact))
        return post.id


def make_window(
    app: Flask,
    name: str,
    start: datetime,
    end: datetime,
    monitors: Sequence[MonitorRow] = (),
    *,
    public: bool = True,
    **fields: Any,
) -> int:
    with app.app_context(), writing() as session:
        window = MaintenanceWindowRow(
            name=f"internal: {name}",
            public=public,
            public_name=name,
            start_at=start,
            end_at=end,
            created_at=now(),
            updated_at=now(),
            **fields,
        )
        session.add(window)
        session.flush()
        for monitor in monitors:
            session.add(MaintenanceWindowMonitorRow(window_id=window.id, monitor_id=monitor.id))
        return window.id


def make_day(app: Flask, monitor: MonitorRow, day: datetime, **seconds: int) -> None:
    """The sums of a UTC day, with those of its hours: ``up_s``, ``down_s`` and so on; what is not
    said counts as up.
    """
    begin = int(day.timestamp()) // 86400 * 86400
    given = sum(seconds.values())
    whole = {"up_s": 86400 - given, "down_s": 0, "unknown_s": 0, "maintenance_s": 0} | seconds
    rows = [(86400, begin, whole)]
    for hour in range(24):
        part = {
            name: total // 24 + (1 if hour < total % 24 else 0) for name, total in whole.items()
        }
        rows.append((3600, begin + hour * 3600, part))
    with app.app_context(), writing() as session:
        for period, start, sums in rows:
            counts = {"checks": 60, "response_count": 0, "response_sum": 0}
            when = {"period": period, "start": start}
            session.add(RollupRow(monitor_id=monitor.id, **when, **counts, **sums))
