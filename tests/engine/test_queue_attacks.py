"""Attacks of somebody who reads and writes Redis, and has no BATCH_KEY. He may stop checks: for
that, the broker is trusted.
"""

import base64
import json
import os
import re
import signal
from contextlib import closing, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest.mock import Mock

import pytest
from cachetools import TTLCache

from app import lasting
from app.codec.sealing import BatchKey
from app.engine.carriers.queue import broker, sender
from app.engine.carriers.queue.sender import QueueCarrier
from app.records import CheckSpec, Verdict
from app.rules.clocks import MEASURED, Offset
from tests.lab.http import serve
from tests.lab.net import Listener
from tests.support import command
from tests.support.queue import (
    KEY,
    desk,
    next_batch,
    page,
    prober_environ,
    queue_settings,
    sent_batch,
)
from tests.support.service import eventually

QUEUE = broker.queue_of("eu")
OTHER_KEY = base64.b64encode(os.urandom(32)).decode()


@pytest.fixture
def settings(redis_server, tmp_path):
    return queue_settings(redis_server, tmp_path)


# --- messages to both

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# The message that is opened; the text of its refusal, or None if it counts.
OPENED = {
    "ours": (KEY, "a", {"at": NOW.isoformat()}, None),
    "of another key": (OTHER_KEY, "a", {"at": NOW.isoformat()}, "not made with our BATCH_KEY"),
    "for another place": (KEY, "b", {"at": NOW.isoformat()}, "or for another place"),
    "undated": (KEY, "a", {"at": "yesterday"}, "do not say when they were sent"),
    "old": (KEY, "a", {"at": (NOW - timedelta(seconds=31)).isoformat()}, "are 31 s old"),
    "of the future": (KEY, "a", {"at": (NOW + timedelta(seconds=31)).isoformat()}, "are -31 s old"),
    "of another clock": (KEY, "a", {"at": (NOW - timedelta(seconds=25)).isoformat()}, None),
}


@pytest.mark.parametrize(("key", "about", "message", "refusal"), OPENED.values(), ids=OPENED)
def test_messages_count_that_are_ours_fresh_and_new(key, about, message, refusal):
    receiver = broker.Receiver(BatchKey(KEY), "a", dated="at", plural="Batches")
    sealed = BatchKey(key).seal(message, about)
    if refusal is None:
        assert receiver.open(sealed, NOW)[0] == message
        refusal = "came a second time"
    with pytest.raises(broker.MessageRefused, match=refusal):
        receiver.open(sealed, NOW)


@pytest.mark.parametrize("sealed", [b"", b"garbage", b"x" * 100])
def test_garbage_is_refused(sealed):
    with pytest.raises(broker.MessageRefused, match="not made with our BATCH_KEY"):
        broker.Receiver(BatchKey(KEY), "a", dated="at", plural="Batches").open(sealed, NOW)


def test_a_message_is_remembered_for_as_long_as_a_copy_would_count(monkeypatch):
    clock, key = Mock(return_value=0.0), BatchKey(KEY)
    monkeypatch.setattr(broker, "TTLCache", partial(TTLCache, timer=clock))
    receiver = broker.Receiver(key, "a", dated="at", plural="Batches")
    a, b = (key.seal({"at": NOW.isoformat()}, "a") for _ in range(2))
    for message, seconds, is_new in (
        (a, 0, True),
        (b, 50, True),
        (a, broker.REMEMBERED_SECONDS - 1, False),
        (a, broker.REMEMBERED_SECONDS + 1, True),
        (b, broker.REMEMBERED_SECONDS + 2, False),
    ):
        clock.return_value = float(seconds)
        with nullcontext() if is_new else pytest.raises(broker.MessageRefused):
            receiver.open(message, NOW)
    assert broker.REMEMBERED_SECONDS < broker.RETENTION_SECONDS, "the claim of a batch outlives it"


def test_what_is_refused_is_logged_once_a_minute(monkeypatch, caplog):
    clock = Mock(return_value=0.0)
    monkeypatch.setattr(lasting, "TTLCache", partial(TTLCache, timer=clock))
    refuser = broker.QueueFaults("taking a batch")
    receiver = broker.Receiver(BatchKey(KEY), "a", dated="at", plural="Batches")

    def refuse(sealed):
        try:
            receiver.open(sealed, NOW)
        except broker.MessageRefused as fault:
            refuser.log_fault(fault)

    undated = BatchKey(KEY).seal({"at": None}, "a")
    for clock.return_value, count in ((0.0, 2), (30.0, 2), (61.0, 4)):
        refuse(b"garbage")
        refuse(undated)
        assert len(caplog.messages) == count
    assert "BATCH_KEY" in caplog.messages[0]


# --- messages to probers


def text_in(message):
    return json.loads(base64.b64decode(json.loads(message)["body"]))[0][0]


def test_a_large_batch_is_sent_in_parts(redis_server, settings, carrier, monkeypatch):
    """Otherwise probers would drop it, and its checks would never be made."""
    spec = CheckSpec("http://127.0.0.1:9/", request_body="x" * 30_000)
    size = len(BatchKey(KEY).seal([sender.pack(spec)], ""))
    monkeypatch.setattr(broker, "MAX_SEALED", 3 * size)
    monkeypatch.setattr(sender, "GATHER_SECONDS", 60)
    monkeypatch.setattr(sender, "ENOUGH", 9)
    made = QueueCarrier(settings)
    try:
        for _number in range(9):
            made.submit(spec, lambda _outcome: None)
        monkeypatch.setattr(sender, "GATHER_SECONDS", 0)
        eventually(lambda: len(sent_tickets(redis_server)) == 9, "all checks")
    finally:
        made.close(0)
    sizes = [len(batch) for batch in redis_server.client.lrange(QUEUE, 0, -1)]
    assert sent_tickets(redis_server) == list(range(1, 10))
    assert max(sizes) < 3 * size * 2


def sent_tickets(redis_server):
    """The tickets of all batches in the queue, the oldest first."""
    return [
        ticket
        for message in reversed(redis_server.client.lrange(QUEUE, 0, -1))
        for ticket, _spec in BatchKey(KEY).open(
            base64.b64decode(text_in(message)), broker.about_checks("eu")
        )["checks"]
    ]


def test_a_prober_without_a_database_makes_no_check_that_is_forged_copied_or_old(
    redis_server, settings, carrier
):
    """Whatever Celery makes of the messages."""
    done, environ = [], prober_environ(redis_server, settings)
    with closing(Listener(serve)) as site, broker.make_celery(settings.broker_url) as celery:
        url = page(site)

        def batch(name, number, *, key=KEY, place="eu", age=0):
            batch = {
                "id": name,
                "to": carrier.name,
                "at": (datetime.now(UTC) - timedelta(seconds=age)).isoformat(),
                "checks": [[number, {"url": url, "monitor_id": number}]],
            }
            return BatchKey(key).seal(batch, broker.about_checks(place))

        bad = [
            b"garbage",
            batch("forged", 91, key=OTHER_KEY),
            batch("moved", 92, place="us"),
            batch("old", 93, age=60),
        ]
        for sealed in bad:
            celery.send_task(broker.TASK, args=[base64.b64encode(sealed).decode()], queue=QUEUE)
        celery.send_task("os.system", args=["true"], queue=QUEUE)
        celery.send_task(broker.TASK, args=[{"no": "batch"}], queue=QUEUE)
        process = command.Running(["prober", "--location", "eu"], environ)
        try:
            for number in range(1, 21):
                carrier.submit(CheckSpec(url, number, timeout=5), done.append)
            honest = sent_messages(redis_server)
            redis_server.client.lpush(QUEUE, *honest)  # each a second time
            eventually(lambda: len(done) == 20, "all outcomes")
            eventually(lambda: redis_server.client.llen(QUEUE) == 0, "the copies are taken")
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
        with process.stdout as stdout:
            printed = stdout.read()
        assert site.connections == 20, printed
    assert {outcome.result.verdict for outcome in done} == {Verdict.UP}
    assert code == 0
    assert not (settings.instance / "none").exists()
    assert "not made with our BATCH_KEY" in printed
    assert re.search(r"Batches are \d+ s old by our clock", printed)


def sent_messages(redis_server):
    """The messages in the queue that the carrier has sent. At least one."""
    return eventually(lambda: redis_server.client.lrange(QUEUE, 0, 0), "a batch")


def test_without_the_claim_each_prober_runs_a_batch_once_and_one_result_counts(
    redis_server, settings, carrier
):
    """Somebody who can write to Redis can delete the claim."""
    done = []
    with (
        closing(Listener(serve)) as site,
        desk(settings, sending=True) as first,
        desk(settings, sending=True) as other,
    ):
        carrier.submit(CheckSpec(page(site), 7), done.append)
        sealed = next_batch(redis_server)
        for made in (first, other):
            made.take(sealed)
            redis_server.client.delete(*redis_server.client.keys("claimed.*"))
        for made in (first, other):
            with pytest.raises(broker.MessageRefused, match="second time"):
                made.take(sealed)
        for made in (first, other):
            eventually(lambda made=made: made.sent, "the outcome")
        eventually(lambda: len(carrier._probers) == 2, "both are read")
    assert len(done) == 1


# --- messages to checkers


def report_of(carrier, name, *, at=None, outcomes=(), running=()):
    """A message as a prober seals it."""
    return BatchKey(KEY).seal(
        {
            "prober": name,
            "version": "1",
            "now": (at or datetime.now(UTC)).isoformat(),
            "network_down": False,
            "running": list(running),
            "outcomes": list(outcomes),
        },
        broker.about_outcomes("eu", carrier.name),
    )


def bring(redis_server, carrier, *sealed):
    """Hand messages to a checker, and wait until it has read them. Returns its reports."""
    last = f"last of {len(sealed)} at {datetime.now(UTC)}"
    redis_server.client.rpush(carrier.name, *sealed, report_of(carrier, last))
    reports = []

    def read():
        reports.extend(carrier.reports())
        return any(report.process == last for report in reports)

    eventually(read, "all are read")
    return [report for report in reports if not report.process.startswith("last of")]


@pytest.mark.parametrize("ahead", [-10, 0, 20])
def test_an_outcome_that_is_held_back_keeps_its_time(redis_server, settings, carrier, ahead):
    """The delay of one message was taken for a difference of clocks."""
    done, key, about = [], BatchKey(KEY), broker.about_outcomes("eu", carrier.name)
    differs, now = timedelta(seconds=ahead), datetime.now(UTC)
    with closing(Listener(serve)) as site, desk(settings) as made:
        carrier.submit(CheckSpec(page(site), 7, timeout=5), done.append)
        made.take(sent_batch(redis_server))
        assert made.came.wait(30)
        report = key.open(made.sent[-1][1], about)
    for check in carrier._checks.values():
        check.submitted_at = now - timedelta(seconds=30)
    checked_at = now - timedelta(seconds=9)  # and sent at once
    report["now"] = (checked_at + differs).isoformat()
    report["outcomes"][0][1]["result"]["checked_at"] = report["now"]
    at = datetime.now(UTC) + differs
    bring(redis_server, carrier, report_of(carrier, report["prober"], at=at))
    bring(redis_server, carrier, key.seal(report, about))
    assert abs(done[0].result.checked_at - checked_at) < timedelta(seconds=3)


def test_the_clock_of_a_prober_is_measured_by_the_message_that_took_least_time():
    offset = Offset()
    assert offset.add(4.7)[0] == 4.7
    assert offset.add(-20)[0] == 4.7, "it was held back"
    assert offset.add(4.9)[0] == 4.9
    for _number in range(MEASURED):  # its clock was set back
        last = offset.add(-2)[0]
    assert last == -2


def test_an_answer_bounds_the_offset_of_a_clock_on_both_sides():
    offset = Offset()
    assert offset.add(1, 5) == (1, 5)
    assert offset.add(3, 9) == (3, 5)
    assert offset.add(-7, 40) == (3, 5), "it took long"
    assert offset.add(60, 61) == (60, 61), "the clock was set: what contradicts it is dropped"
