"""A worker that dies at any step loses nothing and repeats at most the message being sent."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select

from app.db import db
from app.db.tables import DeliveryRow
from app.records import DeliveryStatus
from tests.alerts.conftest import Outbox
from tests.alerts.crash_worker import ended, killed, run_worker
from tests.alerts.sinks import HttpSink

pytestmark = pytest.mark.both_databases

ROWS = 600
LANES = 50
BETWEEN = 150  # messages from one crash to the next: none is on its way in two of them


def pending(box: Outbox) -> int:
    with box.app.app_context():
        found = db.session.scalar(
            select(func.count()).where(DeliveryRow.status == DeliveryStatus.PENDING)
        )
        db.session.rollback()
        return found or 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_killed_at_any_step_loses_no_message_and_repeats_at_most_one(
    box: Outbox, sink: HttpSink
) -> None:
    box.clock.now = datetime.now(UTC)  # the processes' time: a message of a day ago is not sent
    monitors = [box.monitor(("webhook", f"{sink.url}/hook/{n}")) for n in range(LANES)]
    for _ in range(ROWS // LANES):
        for monitor in monitors:
            box.notice(monitor)
    ids = {row.message_id for row in box.rows()}
    assert len(ids) == ROWS

    for step in ("claim", "send", "mark"):
        killed(run_worker(box, step, BETWEEN))
    assert pending(box) > 0  # the crashes came in the middle, not after the end
    worker = run_worker(box, "never", 0)
    deadline = time.monotonic() + 300
    while pending(box) and time.monotonic() < deadline:
        time.sleep(0.2)
    worker.terminate()
    assert ended(worker, 90) == 0

    assert pending(box) == 0
    times = Counter(request.headers["webhook-id"] for request in sink.requests)
    assert set(times) == ids
    assert max(times.values()) <= 2
    assert {row.status for row in box.rows()} == {DeliveryStatus.DELIVERED}
