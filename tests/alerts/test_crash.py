"""A worker that dies at any step loses nothing and repeats at most the message being sent."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import func, select

from app.alerts import claims
from app.alerts.worker import Worker
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
        number = db.session.scalar(
            select(func.count()).where(DeliveryRow.status == DeliveryStatus.PENDING)
        )
        db.session.rollback()
        return number or 0


class Killed(BaseException):
    """The process ends here."""


class Dying(Worker):
    """Gone at this step of its first messages."""

    def __init__(self, box: Outbox, step: str) -> None:
        super().__init__(box.app, box.settings, clock=box.clock)
        self._step = step

    def _send(self, job: Any) -> None:
        if self._step != "claim":
            super()._send(job)

    def _store_outcome(self, sent: Any, now: Any) -> None:
        super()._store_outcome(sent, now)
        raise Killed


@pytest.mark.parametrize(("step", "times"), [("claim", 1), ("send", 2), ("mark", 2)])
def test_messages_of_a_worker_that_died_are_sent_by_the_next_when_its_lease_ends(
    box: Outbox, sink: HttpSink, step: str, times: int
) -> None:
    for number in range(3):
        box.notice(box.monitor(("webhook", f"{sink.url}/{number}")))
    ids = [row.message_id for row in box.rows()]
    dying = Dying(box, step)
    assert dying.take_turn(0) == 3
    if step != "claim":
        sink.wait_for(lambda: len(sink.requests) == 3)
    if step == "mark":
        with pytest.raises(Killed):
            dying.take_turn(60)
    box.settle()
    assert pending(box) == 3, "it may still be sending them"

    box.turn(claims.LEASE.total_seconds() + 1)
    assert pending(box) == 0
    sent = Counter(request.headers["webhook-id"] for request in sink.requests)
    assert sent == dict.fromkeys(ids, times)


@pytest.mark.slow
@pytest.mark.more
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
