"""Many maintenance windows by tag at once. SQLite refuses an expression of a thousand conditions:
with windows of so many tags, every page with monitors ended with a fault.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.records import MonitorQuery, MonitorStatus
from app.stores import current_store
from tests.factories import make_monitor, now

pytestmark = pytest.mark.both_databases

WINDOWS, TAGS = 11, 100


def test_monitors_are_found_by_any_of_a_thousand_tags(app):
    first = make_monitor(app, tags="\nt0-0\n")
    last = make_monitor(app, tags=f"\nother\nt{WINDOWS - 1}-{TAGS - 1}\n")
    make_monitor(app, tags="\nT0-0\n")
    with app.app_context():
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
