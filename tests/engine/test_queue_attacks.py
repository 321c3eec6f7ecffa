"""What somebody does who reads and writes Redis, and has no BATCH_KEY."""

import base64
import json
import os
import re
import signal
import sys
import time
import zlib
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.codec.sealing import BatchKey
from app.engine.carriers.queue import malformed, messages, sender, trouble
from app.engine.carriers.queue.broker import (
    KEPT_SECONDS,
    TASK,
    about_checks,
    about_outcomes,
    make_celery,
    queue_of,
)
from app.engine.carriers.queue.clocks import MEASURED, Clocks
from app.engine.carriers.queue.messages import MOST_MARKS, NoBatch, batch_in, message_with
from app.engine.carriers.queue.prober import Refused
from app.engine.carriers.queue.replay import REMEMBERED_SECONDS, Once
from app.engine.carriers.queue.sender import QueueCarrier
from app.engine.carriers.queue.trouble import Tally
from app.records import CheckSpec, Verdict
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

QUEUE = queue_of("eu")


@pytest.fixture
def settings(redis_server, tmp_path):
    return queue_settings(redis_server, tmp_path)


@pytest.fixture
def carrier(settings):
    made = QueueCarrier(settings)
    yield made
    made.close(0)


# --- messages to probers


@pytest.fixture
def honest(redis_server, carrier):
    """A message as the sender writes it."""
    carrier.submit(CheckSpec("http://127.0.0.1:9/", 7), lambda _outcome: None)
    sent_batch(redis_server)
    return redis_server.client.rpop(QUEUE)


def text_in(message):
    return json.loads(base64.b64decode(json.loads(message)["body"]))[0][0]


def changed(message, head=None, body=None, **more):
    told = json.loads(message) | more
    told["headers"] |= head or {}
    if body is not None:
        told["body"] = base64.b64encode(body).decode()
    return json.dumps(told).encode()


def test_a_message_of_the_sender_is_taken(honest):
    assert batch_in(honest, datetime.now(UTC)) == text_in(honest)


def test_a_message_with_the_headers_of_another_version_is_taken(honest):
    told = json.loads(honest)
    told["headers"] = {"task": TASK, "of_a_later_version": 1}
    del told["properties"], told["content-type"]
    assert batch_in(json.dumps(told).encode(), datetime.now(UTC)) == text_in(honest)


def test_celery_gets_no_header_and_no_property_of_others(honest):
    """Which would set time limits, keep messages in memory, or call other tasks."""
    hostile = changed(
        honest,
        {"timelimit": ["a", "b"], "eta": "2099-01-01T00:00:00+00:00", "compression": "bzip2"},
        properties={"delivery_tag": None, "priority": {}},
    )
    told = json.loads(message_with(batch_in(hostile, datetime.now(UTC)), QUEUE))
    name = told["headers"]["id"]
    assert told["headers"] == {"lang": "py", "task": TASK, "id": name}
    assert told["properties"] == {
        "body_encoding": "base64",
        "delivery_tag": name,
        "delivery_info": {"exchange": "", "routing_key": QUEUE},
    }
    assert batch_in(json.dumps(told).encode(), datetime.now(UTC)) == text_in(honest)


NO_MESSAGES = [
    b"no JSON", b"\xff\xfe", b"5", b'["a list"]', b"{}", b"[" * 100_000, b"1" * 100_000,
    b'{"__type__": "decimal", "__value__": "x"}', b'{"headers": "task", "body": "e30="}',
]  # fmt: skip
NO_BODIES = [b"5", b"{}", b"[[]]", b"[[5]]", b'[["\\u00e9"]]', b"[" * 100_000, b"\xff"]


@pytest.mark.parametrize("message", NO_MESSAGES)
def test_what_is_no_message_is_dropped(message):
    with pytest.raises(NoBatch, match="it is not a message of a checker"):
        batch_in(message, datetime.now(UTC))


def test_a_message_without_a_batch_is_dropped(honest):
    tasks = ["os.system", "celery.map", None, {}, 5]
    hostile = [changed(honest, body=body) for body in NO_BODIES]
    hostile += [changed(honest, {"task": task}) for task in tasks]
    for message in hostile:
        with pytest.raises(NoBatch, match=r"something else than checks|not a message"):
            batch_in(message, datetime.now(UTC))


def test_a_message_that_nobody_took_in_time_is_dropped(honest):
    with pytest.raises(NoBatch, match=r"it expired \d+ s ago by our clock"):
        batch_in(honest, datetime.now(UTC) + timedelta(seconds=90))


def test_a_message_is_measured_before_it_is_read(honest, monkeypatch):
    many = changed(honest, {"stamps": [0] * MOST_MARKS})
    with pytest.raises(NoBatch, match="not a message of a checker"):
        batch_in(many, datetime.now(UTC))
    monkeypatch.setattr(messages, "LARGEST_MESSAGE", len(honest) - 1)
    with pytest.raises(NoBatch, match=r"it has [\d,]+ bytes"):
        batch_in(honest, datetime.now(UTC))


def test_a_large_batch_is_sent_in_parts(redis_server, settings, carrier, monkeypatch):
    """Otherwise probers would drop it, and its checks would never be made."""
    spec = CheckSpec("http://127.0.0.1:9/", request_body="x" * 30_000)
    one = len(BatchKey(KEY).seal([sender.pack(spec)], ""))
    monkeypatch.setattr(sender, "LARGEST_SEALED", 3 * one)
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
    assert max(sizes) < 3 * one * 2


def sent_tickets(redis_server):
    """Of all batches in the queue, the oldest first."""
    return [
        ticket
        for message in reversed(redis_server.client.lrange(QUEUE, 0, -1))
        for ticket, _spec in BatchKey(KEY).open(
            base64.b64decode(text_in(message)), about_checks("eu")
        )["checks"]
    ]


def bomb(honest):
    """Some 300 KB that are 300 MB when they are decompressed."""
    packer, piece = zlib.compressobj(1), b"A" * 10**6
    parts = [packer.compress(piece) for _number in range(300)]
    body = b"".join([*parts, packer.flush()])
    return changed(honest, {"compression": "application/x-gzip"}, body)


def peak(pid):
    """The most memory that a process has had, in MB."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def test_a_prober_without_a_database_makes_checks_whatever_is_in_its_queue(
    redis_server, settings, carrier, honest
):
    """It ended by a time limit of text, grew by a compressed body, and took nothing after a time
    limit of one number; Redis then gave the same messages to the next prober.
    """
    poison = [
        changed(honest, {"timelimit": ["a", "b"]}),
        changed(honest, {"timelimit": 5}),
        changed(honest, {"timelimit": [0.001, 0.001]}),
        changed(honest, {"eta": "2099-01-01T00:00:00+00:00"}),
        changed(honest, {"task": "os.system"}),
        changed(honest, {"retries": "x", "id": None}),
        changed(honest, properties={"delivery_tag": None}),
        changed(honest, properties={}),
        changed(honest, body=b'"not the three parts of a task"'),
        bomb(honest),
    ]
    done, environ = [], prober_environ(redis_server, settings)
    redis_server.client.rpush(QUEUE, *poison, *NO_MESSAGES, *2_000 * [NO_MESSAGES[0]])
    with closing(Listener(serve)) as site:
        process = command.Running(["prober", "--location", "eu"], environ)
        try:
            for number in range(1, 21):
                carrier.submit(CheckSpec(page(site), number, timeout=5), done.append)
            eventually(lambda: len(done) == 20, "all outcomes")
            assert process.poll() is None
            assert peak(process.pid) < 300
            assert redis_server.client.keys("unacked*") == [], "nothing comes back"
            assert redis_server.client.llen(QUEUE) == 0
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
        with process.stdout as stdout:
            told = stdout.read()
    assert {one.result.verdict for one in done} == {Verdict.UP}
    assert code == 0
    assert not (settings.instance / "none").exists()
    assert "A message in the queue was dropped: it is not a message of a checker." in told
    assert len(told.splitlines()) < 10, told


def test_a_prober_waits_until_the_keys_of_redis_are_of_the_right_type(
    redis_server, settings, carrier, caplog
):
    """It ended, and so did each that was started after it."""
    done, environ, client = [], prober_environ(redis_server, settings), redis_server.client
    wrong = [QUEUE, f"_kombu.binding.{QUEUE}", "unacked", "unacked_index"]
    for key in wrong:
        client.set(key, "x")
    with closing(Listener(serve)) as site:
        process = command.Running(["prober", "--location", "eu"], environ)
        try:
            told = iter(process.stdout.readline, "")
            fault = next(line for line in told if "The broker cannot be used" in line)
            carrier.submit(CheckSpec(page(site), 7, timeout=5), done.append)
            eventually(lambda: "The broker cannot be used" in caplog.text, "the checker's fault")
            until = time.monotonic() + 2 * sender.LOOK_SECONDS
            eventually(lambda: time.monotonic() > until, "turns without anything to send")
            assert "The broker works again." not in caplog.text
            client.delete(*wrong[:2])
            eventually(lambda: done, "the outcome")
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
        with process.stdout as stdout:
            rest = stdout.read()
    assert "(ResponseError: WRONGTYPE" in fault
    assert "WRONGTYPE" in caplog.text
    assert code == 0
    assert "The broker works again." in rest
    assert "Traceback" not in rest


def receive_in_a_child():
    """Ends with the number of messages that this process knows of."""
    if os.fork() == 0:
        malformed._taken((QUEUE.encode(), b"junk"))
        os._exit(0)
    os.wait()
    sys.exit(malformed.received.value)


def test_dropped_messages_count_as_received_in_all_processes_of_a_prober():
    """Otherwise one whose queue has nothing but junk would end, as one whose consumer hangs."""
    process = command.start(receive_in_a_child)
    process.join(60)
    assert process.exitcode == 1


def test_a_batch_that_comes_while_a_prober_stops_returns_to_the_queue(
    redis_server, settings, honest
):
    _queue, taken = malformed._taken((QUEUE.encode(), honest))
    with make_celery(settings.broker_url).connection_for_read() as connection:
        connection.transport_cls = malformed.Transport
        channel = connection.default_channel
        assert isinstance(channel, malformed.Channel)
        channel.connection._deliver(json.loads(taken), QUEUE)  # nobody consumes any more
    [again] = redis_server.client.lrange(QUEUE, 0, -1)
    assert batch_in(again, datetime.now(UTC)) == text_in(honest)


def test_two_probers_run_a_copy_of_a_batch_once(redis_server, settings, carrier):
    with closing(Listener(serve)) as site, desk(settings) as one, desk(settings) as other:
        carrier.submit(CheckSpec(page(site), 7), lambda _outcome: None)
        sealed = next_batch(redis_server)
        one.take(sealed)
        with pytest.raises(Refused, match="made by another prober"):
            other.take(sealed)


def test_without_the_claim_each_prober_runs_a_batch_once_and_one_result_counts(
    redis_server, settings, carrier
):
    """Whoever can write to Redis can delete the claim."""
    done = []
    with (
        closing(Listener(serve)) as site,
        desk(settings, sending=True) as one,
        desk(settings, sending=True) as other,
    ):
        carrier.submit(CheckSpec(page(site), 7), done.append)
        sealed = next_batch(redis_server)
        for made in (one, other):
            made.take(sealed)
            redis_server.client.delete(*redis_server.client.keys("claimed.*"))
        for made in (one, other):
            with pytest.raises(Refused, match="second time"):
                made.take(sealed)
        for made in (one, other):
            eventually(lambda made=made: made.sent, "the outcome")
        eventually(lambda: len(carrier.reports()) == 2, "both are read")
    assert len(done) == 1


# --- messages to checkers


def told_by(carrier, name, *, at=None, outcomes=(), running=()):
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
        about_outcomes("eu", carrier.name),
    )


def bring(redis_server, carrier, *sealed):
    """Hand messages to a checker, and wait until it has read them. Returns its reports."""
    last = f"last of {len(sealed)} at {datetime.now(UTC)}"
    redis_server.client.rpush(carrier.name, *sealed, told_by(carrier, last))
    found = []

    def read():
        found.extend(carrier.reports())
        return any(one.process == last for one in found)

    eventually(read, "all are read")
    return [one for one in found if not one.process.startswith("last of")]


def test_a_copy_of_outcomes_says_nothing_about_their_place(redis_server, carrier, caplog):
    """Sent again every few seconds, it kept a place online that had no probers."""
    sealed = told_by(carrier, "gone")
    bring(redis_server, carrier, sealed)
    heard = carrier._state.probers["gone"].heard
    bring(redis_server, carrier, *50 * [sealed])
    assert carrier._state.probers["gone"].heard == heard
    dropped = [one for one in caplog.messages if "dropped" in one]
    assert dropped == ["A copy of outcomes that were taken before was dropped."], "said once"


@pytest.mark.parametrize("seconds", [-40, 40])
def test_outcomes_that_were_held_back_say_nothing_about_their_place(
    redis_server, carrier, caplog, seconds
):
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    assert bring(redis_server, carrier, told_by(carrier, "gone", at=at)) == []
    assert "the clocks of this machine and of the prober differ" in caplog.text


@pytest.mark.parametrize("seconds", [-25, 25])
def test_outcomes_of_a_prober_whose_clock_differs_count_as_its_batches_do(
    redis_server, carrier, seconds
):
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    told = bring(redis_server, carrier, told_by(carrier, "other clock", at=at))
    assert "other clock" in {one.process for one in told}


def test_outcomes_that_say_no_time_are_dropped(redis_server, carrier, caplog):
    key, about = BatchKey(KEY), about_outcomes("eu", carrier.name)
    told = key.open(told_by(carrier, "odd"), about) | {"now": "yesterday"}
    assert bring(redis_server, carrier, key.seal(told, about)) == []
    assert "do not say when they were sent" in caplog.text


@pytest.mark.parametrize("ahead", [-10, 0, 20])
def test_an_outcome_that_is_held_back_keeps_its_time(redis_server, settings, carrier, ahead):
    """The delay of one message was taken for a difference of clocks."""
    done, key, about = [], BatchKey(KEY), about_outcomes("eu", carrier.name)
    differs, now = timedelta(seconds=ahead), datetime.now(UTC)
    with closing(Listener(serve)) as site, desk(settings) as made:
        carrier.submit(CheckSpec(page(site), 7, timeout=5), done.append)
        made.take(sent_batch(redis_server))
        assert made.came.wait(30)
        told = key.open(made.sent[-1][1], about)
    for check in carrier._state.checks.values():
        check.at = now - timedelta(seconds=30)
    checked_at = now - timedelta(seconds=9)  # and sent at once
    told["now"] = (checked_at + differs).isoformat()
    told["outcomes"][0][1]["result"]["checked_at"] = told["now"]
    at = datetime.now(UTC) + differs
    bring(redis_server, carrier, told_by(carrier, told["prober"], at=at))
    bring(redis_server, carrier, key.seal(told, about))
    assert abs(done[0].result.checked_at - checked_at) < timedelta(seconds=3)


def test_the_clock_of_a_prober_is_measured_by_the_message_that_took_least_time():
    clocks, second = Clocks(), timedelta(seconds=1)
    assert clocks.ahead("one", 4.7 * second) == 4.7 * second
    assert clocks.ahead("one", -20 * second) == 4.7 * second, "it was held back"
    assert clocks.ahead("one", 4.9 * second) == 4.9 * second
    assert clocks.ahead("other", -3 * second) == -3 * second
    for _number in range(MEASURED):  # its clock was set back
        last = clocks.ahead("one", -2 * second)
    assert last == -2 * second


def test_clocks_of_probers_that_are_gone_are_forgotten(monkeypatch):
    monkeypatch.setattr("app.engine.carriers.queue.clocks.MOST_PROBERS", 2)
    clocks, second = Clocks(), timedelta(seconds=1)
    for name in ("gone", "one", "other", "one"):
        clocks.ahead(name, 5 * second)
    assert clocks.ahead("one", second) == 5 * second
    assert clocks.ahead("gone", second) == second


def test_a_message_is_remembered_for_as_long_as_a_copy_would_count():
    once = Once()
    assert once.is_new(b"a", 0)
    assert once.is_new(b"b", 50)
    assert not once.is_new(b"a", REMEMBERED_SECONDS - 1)
    assert once.is_new(b"a", REMEMBERED_SECONDS + 1)
    assert not once.is_new(b"b", REMEMBERED_SECONDS + 2)
    assert REMEMBERED_SECONDS < KEPT_SECONDS, "the claim of a batch outlives it"


def test_what_is_dropped_is_counted_and_told_once_a_minute(monkeypatch, caplog):
    now = 0.0
    monkeypatch.setattr(trouble.time, "monotonic", lambda: now)
    tally = Tally("One: {reason}", "{count} of them. The newest: {reason}")
    for number in range(12_305):
        tally.add(f"{{number}} {number}")
    now = 30.0
    tally.flush()
    assert caplog.messages == ["One: {number} 0"]
    now = 61.0
    tally.flush()
    assert caplog.messages[1:] == ["12,304 of them. The newest: {number} 12304"]
    now = 200.0
    tally.flush()
    assert len(caplog.messages) == 2
