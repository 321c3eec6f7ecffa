"""Response times by place, for the chart of a monitor."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.db import journal
from app.engine import recorder
from app.stores import current_store
from tests.factories import make_monitor, make_outcome, now

pytestmark = pytest.mark.both_databases


def test_each_place_has_the_average_of_its_good_checks_in_each_bucket(app):
    with app.app_context():
        for name in ("oslo", "sydney"):
            journal.place_id(name)
        id = make_monitor(app, places=[1, 2, 3]).id
        start = now().replace(second=0, microsecond=0) - timedelta(minutes=10)
        for place, minute, verdict, ms in (
            ("oslo", 0, "up", 100),
            ("oslo", 1, "up", 201),
            ("oslo", 2, "down", None),
            ("oslo", 4, "degraded", 500),
            ("sydney", 3, "up", 40),
            ("sydney", 7, "up", 9_000),
        ):
            at = start + timedelta(minutes=minute)
            fields = {} if ms is None else {"response_time": ms}
            outcome = make_outcome(verdict, at, location=place, **fields)
            recorder.record([(id, outcome)], at, location=place)
        averages = current_store().results.by_place(id, start, 3, 120)
    assert averages == {"oslo": [150, None, 500], "sydney": [None, 40, None]}
