"""Many maintenance windows by tag at once. SQLite refuses an expression of a thousand conditions:
with windows of so many tags, every page with monitors ended with a fault. In this test it refuses
less, so that fewer tags show the same.
"""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest
from sqlalchemy import event

from app.db import db
from app.records import MonitorQuery, MonitorStatus
from app.stores import current_store
from tests.factories import make_monitor, now

pytestmark = pytest.mark.both_databases

WINDOWS, TAGS = 3, 100
MAX_DEPTH = 250


def test_monitors_are_found_by_any_of_more_tags_than_an_expression_may_have(app):
    first = make_monitor(app, tags="\nt0-0\n")
    last = make_monitor(app, tags=f"\nother\nt{WINDOWS - 1}-{TAGS - 1}\n")
    make_monitor(app, tags="\nT0-0\n")
    with app.app_context():
        if db.engine.dialect.name == "sqlite":
            db.session.remove()
            db.engine.dispose()
            event.listen(db.engine, "connect", refuse_more_conditions)
        store = current_store()
        for window in range(WINDOWS):
            store.windows.create(
                {
                    "name": "Move",
                    "start_at": now() - timedelta(hours=1),
                    "end_at": now() + timedelta(hours=1),
                    "monitors": (),
                    "tags": tuple(f"t{window}-{tag}" for tag in range(TAGS)),
                }
            )
        query = MonitorQuery(state=MonitorStatus.MAINTENANCE, sort="asc")
        assert [monitor.id for monitor in store.monitors.list(query).items] == [first.id, last.id]


def refuse_more_conditions(connection, _record):
    connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, MAX_DEPTH)
