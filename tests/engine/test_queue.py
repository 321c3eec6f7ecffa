"""Checks through the queue: a real Redis, and what somebody could do who reads and writes it."""

import base64
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from celery import signals
from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from app.codec.packing import pack
from app.codec.sealing import BatchKey
from app.config import SettingError
from app.engine.carriers.queue import broker, sender
from app.engine.carriers.queue import prober as far
from app.engine.carriers.queue.prober import FIRST_SECONDS, SILENT_SECONDS, Watch
from app.engine.carriers.queue.sender import QueueCarrier
from app.records import Assertion, Cause, CheckSpec, Pair, Verdict
from tests.lab.http import serve
from tests.lab.net import ClosedPort, Listener
from tests.support import command
from tests.support.queue import (
    KEY,
    desk,
    hand_over,
    next_batch,
    page,
    prober_environ,
    queue_settings,
    sent_batch,
    waiting,
)
from tests.support.service import eventually

SECRET = "hunter2-in-the-clear"


@pytest.fixture
def settings(redis_server, tmp_path):
    return queue_settings(redis_server, tmp_path)


def secret_spec(url):
    return CheckSpec(
        url=url,
        monitor_id=7,
        request_headers=(Pair("X-Token", SECRET),),
        auth=("user", SECRET),
        timeout=5,
    )


def test_a_check_goes_to_a_prober_and_its_outcome_comes_back(redis_server, settings, carrier):
    done = []
    with closing(Listener(serve)) as site, desk(settings) as made:
        asserted = (Assertion("status", None, "<", "300"), Assertion("header", "X-No", "exists"))
        carrier.submit(replace(secret_spec(page(site)), assertions=asserted), done.append)
        made.take(sent_batch(redis_server))
        assert made.came.wait(30)
        hand_over(redis_server, made)
        eventually(lambda: done, "the outcome")
    result = done[0].result
    assert (result.monitor_id, result.verdict, result.location) == (7, Verdict.DOWN, "eu")
    assert (result.cause_code, result.cause) == (Cause.ASSERTION_FAILED, "Header X-No is missing")
    assert [(row.found, row.ok) for row in result.assertions] == [("200", True), (None, False)]
    assert [report.checks for report in carrier.reports()] == [1]
    assert carrier.reports() == [], "nothing was heard since"


def test_a_prober_without_checks_is_heard_until_it_ends(settings, carrier, monkeypatch):
    """Nobody could tell it from a dead one while there was nothing to check."""
    monkeypatch.setattr(far, "SIGN_SECONDS", 0.01)
    with desk(settings, sending=True) as made:
        names = {report.process for report in eventually(carrier.reports, "its sign")}
        assert names == {made.name}
        eventually(carrier.reports, "its next sign")
    read = len(made.sent)
    eventually(lambda: len(carrier._receiver._taken) >= read, "all that it sent")
    carrier.reports()
    assert carrier.reports() == [], "it has ended"


def test_signs_go_to_the_checkers_that_listen(redis_server, settings, carrier):
    client, now = redis_server.client, time.time()
    eventually(lambda: broker.listeners(client, "eu"), "the checker")
    client.zadd(broker.listeners_of("eu"), {"outcomes.eu.gone": now - 3600})
    assert broker.listeners(client, "eu") == [carrier.name]


def test_outcomes_are_sent_though_it_cannot_be_read_who_listens(redis_server, settings, carrier):
    done = []
    eventually(lambda: broker.listeners(redis_server.client, "eu"), "the checker")
    redis_server.client.set(broker.listeners_of("eu"), "no sorted set")
    with closing(Listener(serve)) as site, desk(settings, sending=True) as made:
        carrier.submit(CheckSpec(page(site), 7), done.append)
        made.take(sent_batch(redis_server))
        eventually(lambda: done, "the outcome")


def test_an_outcome_that_nobody_waits_for_is_no_result_of_its_place(
    redis_server, settings, carrier
):
    """This is how a batch arrives that was sent again. Otherwise a place that brings nothing else
    seems alive.
    """
    done, about, checks = [], broker.about_outcomes("eu", carrier.name), Counter()

    def heard():
        for report in carrier.reports():
            checks[report.process] += report.checks
        return len(checks) == 2

    with closing(Listener(serve)) as site, desk(settings) as made:
        carrier.submit(secret_spec(page(site)), done.append)
        made.take(sent_batch(redis_server))
        assert made.came.wait(30)
        batch = BatchKey(KEY).open(made.sent[-1][1], about)
        for name in ("one", "other"):
            again = BatchKey(KEY).seal(batch | {"prober": name}, about)
            redis_server.client.rpush(carrier.name, again)
        eventually(heard, "both are read")
    assert len(done) == 1
    assert checks == {"one": 1, "other": 0}


def test_nothing_on_the_broker_can_be_read(redis_server, settings, carrier):
    with closing(Listener(serve)) as site, desk(settings) as made:
        carrier.submit(
            secret_spec(f"http://127.0.0.1:{site.port}/status/200/private-path"),
            lambda _outcome: None,
        )
        sealed = sent_batch(redis_server)
        made.take(sealed)
        assert made.came.wait(30)
        hand_over(redis_server, made)
        everything = redis_server.everything() + sealed
    for text in (SECRET, "private-path", base64.b64encode(SECRET.encode()).decode()[:-4]):
        assert text.encode() not in everything


def test_a_checker_takes_no_result_that_is_forged_copied_or_of_another_monitor(
    redis_server, settings, carrier
):
    first, second = [], []
    push = redis_server.client.rpush
    with closing(Listener(serve)) as site, desk(settings) as made:
        carrier.submit(CheckSpec(page(site), 7, timeout=5), first.append)
        made.take(sent_batch(redis_server))
        eventually(lambda: made.sent, "the outcome")
        sealed = next(sealed_batch for _to, sealed_batch in made.sent)
        about = broker.about_outcomes("eu", carrier.name)
        opened = BatchKey(KEY).open(sealed, about)
        other = BatchKey(base64.b64encode(os.urandom(32)).decode())
        push(carrier.name, b"garbage", other.seal(opened, about))
        push(
            carrier.name,
            BatchKey(KEY).seal(opened, broker.about_outcomes("eu", "outcomes.eu.another")),
        )
        push(carrier.name, sealed)
        eventually(lambda: first, "the outcome")
        # The same outcome again, while another check is under way; and one for the wrong monitor.
        redis_server.client.delete(broker.queue_of("eu"))
        carrier.submit(CheckSpec(page(site), 8, timeout=5), second.append)
        sent_batch(redis_server)
        push(carrier.name, sealed)
        ticket = opened["outcomes"][0][0] + 1
        swapped = opened | {"outcomes": [[ticket, opened["outcomes"][0][1]]]}
        push(carrier.name, BatchKey(KEY).seal(swapped, about))
        eventually(lambda: redis_server.client.llen(carrier.name) == 0, "all are read")
    carrier.close(0)
    assert len(first) == 1
    assert second == []


def test_checks_of_a_lost_batch_are_sent_again(redis_server, settings, monkeypatch, caplog):
    monkeypatch.setattr(sender, "LOST_SECONDS", 0.2)
    monkeypatch.setattr(sender, "LOOK_SECONDS", 0.1)
    made = QueueCarrier(settings)
    try:
        made.submit(CheckSpec("http://127.0.0.1:9/", 7), lambda _outcome: None)
        first = sent_batch(redis_server)
        redis_server.client.flushall()  # as a restart of Redis does, or a prober that is killed
        again = sent_batch(redis_server)
    finally:
        made.close(0)
    about = broker.about_checks("eu")
    batch, other = (BatchKey(KEY).open(sealed, about) for sealed in (first, again))
    assert batch["checks"] == other["checks"]
    assert batch["id"] != other["id"]
    assert caplog.messages[:2] == [
        "1 check was lost on the way, so sent again.",
        "No prober of eu was heard lately. Is one running, with the same WAKEFUL_BATCH_KEY?",
    ]


def test_a_check_that_was_given_up_is_replaced_by_the_next_of_its_monitor(
    redis_server, settings, carrier
):
    given_up, done = [], []
    with closing(Listener(serve)) as site, desk(settings) as made:
        for where in (given_up, done):
            carrier.submit(CheckSpec(page(site), 7, timeout=5), where.append)
        made.take(sent_batch(redis_server))
        made.came.wait(30)
        hand_over(redis_server, made)
        eventually(lambda: done, "the outcome")
    assert given_up == []


def test_a_prober_judges_its_own_network_by_its_own_canaries(redis_server, settings, carrier):
    done = []
    with closing(ClosedPort()) as nowhere, desk(settings, works=lambda: False) as made:
        carrier.submit(CheckSpec(f"http://127.0.0.1:{nowhere.port}/", 7, timeout=5), done.append)
        made.take(sent_batch(redis_server))
        eventually(lambda: (hand_over(redis_server, made), done)[1], "the outcome")
        eventually(lambda: carrier.network.down, "the prober's network is known to be down")
    assert done[0].result.cause_code == Cause.NETWORK_DOWN


@pytest.mark.parametrize("missing", ["broker_url", "batch_key"])
def test_a_missing_setting_is_named(settings, missing):
    with pytest.raises(SettingError, match=missing.upper()):
        QueueCarrier(replace(settings, **{missing: None}))


def hang(**_signal):
    time.sleep(3600)


def be_impatient(*words):
    """``wakeful WORDS`` whose consumer hangs after a batch, and is silent at once."""
    far.SILENT_SECONDS, far.LOOK_SECONDS = 0.5, 0.2
    signals.task_postrun.connect(hang)
    command.be(*words)


def test_a_prober_whose_consumer_falls_silent_ends(redis_server, settings, carrier):
    done = []
    environ = prober_environ(redis_server, settings)
    with closing(Listener(serve)) as site:
        process = command.start(be_impatient, "prober", "--location", "eu", environ=environ)
        try:
            carrier.submit(CheckSpec(page(site), 1, timeout=5), done.append)
            eventually(lambda: done, "an outcome")
            carrier.submit(CheckSpec(page(site), 2, timeout=5), done.append)
            process.join(60)  # it looked alive, and took nothing
            assert process.exitcode == 1
            again = command.start(command.be, "prober", "--location", "eu", environ=environ)
            try:
                eventually(lambda: len(done) == 2, "the outcome by the next prober")
            finally:
                again.terminate()
                again.join(60)
        finally:
            process.kill()
            process.join(60)


def watch_of(waiting, taken, *, room=True):
    """It reads these values one by one."""

    def next_of(values):
        value = values.pop(0) if len(values) > 1 else values[0]
        if isinstance(value, Exception):
            raise value
        return value

    return Watch(
        "mars", lambda: next_of(waiting), lambda: next_of(taken), lambda: room, started_at=0
    )


@pytest.mark.parametrize(
    ("waiting", "taken", "room", "silent"),
    [
        ([1, 1, 1], [4, 4, 4], True, True),
        ([1, 0, 1], [4, 4, 4], True, False),  # another prober has taken it
        ([1, 1, 1], [4, 4, 5], True, False),
        ([1, 1, 1], [4, 4, 4], False, False),  # all hands full
        ([1, RedisError(), 1], [4, 4, 4], True, False),  # nobody can take anything
    ],
)
def test_a_consumer_is_silent_when_batches_wait_and_none_comes(waiting, taken, room, silent):
    watch = watch_of([1, *waiting], [4, *taken], room=room)
    times = (0, 2, 5, 5 + SILENT_SECONDS)
    assert [watch.is_silent(now) for now in times][-1] is silent


@pytest.mark.parametrize(
    ("came", "broken", "lines"), [(0, 0, 1), (3, 0, 0), (0, 2, 1)], ids=["none", "some", "away"]
)
def test_a_prober_says_once_that_no_batch_has_come(caplog, came, broken, lines):
    """While the broker is away, no batch can come: the log says that it is away."""
    watch = watch_of([*[RedisError()] * broken, 0], [came])
    watch.is_silent(FIRST_SECONDS - 1)
    assert caplog.messages == [], "it is too early to tell"
    for later in range(5):
        watch.is_silent(FIRST_SECONDS + later)
    assert len(caplog.messages) == lines
    if lines:
        assert "WAKEFUL_LOCATION=mars wakeful checker --carrier queue" in caplog.text


class Gate:
    """A handler of a target; ``asked``: the paths of its requests. Answers once it is ``open``."""

    def __init__(self):
        self.asked, self.open = [], threading.Event()

    def __call__(self, connection):
        self.asked.append(connection.read_until(b"\r\n\r\n").split()[1].decode())
        self.open.wait(60)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@pytest.fixture
def impatient(monkeypatch):
    """A checker that takes a batch for lost soon, and a prober that says often what it has."""
    monkeypatch.setattr(sender, "LOST_SECONDS", 2.0)
    monkeypatch.setattr(sender, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(sender, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(far, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(far, "SEND_SECONDS", 0.02)


@contextmanager
def full_desk(redis_server, settings, carrier, monkeypatch):
    """A desk whose room is taken by a check that lasts, and the next batch. Yields the desk, that
    batch, the target and the outcomes.
    """
    monkeypatch.setattr(far, "MAX_RUNNING", 0)
    gate, done = Gate(), []
    with closing(Listener(gate)) as site, desk(settings, sending=True) as made:
        for number in (1, 2):
            url = f"http://127.0.0.1:{site.port}/{number}"
            carrier.submit(CheckSpec(url, number, timeout=50), done.append)
            sealed = next_batch(redis_server)
            if number == 1:
                made.take(sealed)
        eventually(lambda: gate.asked == ["/1"], "the check that lasts")
        try:
            yield made, sealed, gate, done
        finally:
            gate.open.set()


def test_a_batch_that_waits_for_room_is_known_to_be_there_and_runs_once(
    redis_server, settings, carrier, monkeypatch
):
    """Otherwise its checks are sent again after 5 s, and run twice."""
    with (
        full_desk(redis_server, settings, carrier, monkeypatch) as (made, sealed, gate, done),
        ThreadPoolExecutor(1) as pool,
    ):
        taken = pool.submit(made.take, sealed)
        batch = BatchKey(KEY).open(sealed, broker.about_checks("eu"))["id"]

        def reported():
            _to, last = made.sent[-1]
            return BatchKey(KEY).open(last, broker.about_outcomes("eu", carrier.name))["running"]

        eventually(lambda: made.sent and batch in reported(), "the checker hears that it is there")
        eventually(lambda: carrier._batches[batch].named_at, "the checker knows it")
        assert not taken.done()
        gate.open.set()
        taken.result(60)
        eventually(lambda: len(done) == 2, "both outcomes")
        assert gate.asked == ["/1", "/2"]


def test_a_batch_without_room_in_time_is_dropped_and_its_checks_are_sent_again(
    redis_server, settings, carrier, impatient, monkeypatch
):
    with full_desk(redis_server, settings, carrier, monkeypatch) as (made, sealed, gate, done):
        with monkeypatch.context() as patch:
            patch.setattr(broker, "FRESH_SECONDS", 1.0)
            with pytest.raises(
                broker.MessageRefused, match="A batch is dropped: there was no room"
            ):
                made.take(sealed)
        again = next_batch(redis_server)
        gate.open.set()
        made.take(again)
        eventually(lambda: len(done) == 2, "both outcomes")
        assert gate.asked == ["/1", "/2"]


def test_a_batch_that_has_arrived_though_sending_failed_is_sent_once(
    redis_server, settings, carrier, impatient, monkeypatch, caplog
):
    """Such as when the answer of Redis is lost."""
    failures, send = [OperationalError("Timeout reading from socket")], carrier._celery.send_task

    def sent(*args, **more):
        send(*args, **more)
        if failures:
            raise failures.pop()

    monkeypatch.setattr(carrier._celery, "send_task", sent)
    carrier.submit(CheckSpec("http://127.0.0.1:9/", 7), lambda _outcome: None)
    eventually(lambda: "The broker works again." in caplog.messages, "the end of the faults")
    until = time.monotonic() + 1.2 * sender.LOST_SECONDS
    eventually(lambda: time.monotonic() > until, "the time of a batch that is lost")
    assert len(waiting(redis_server)) == 1


def test_a_batch_is_run_by_one_prober_or_sent_again(redis_server, settings, carrier, impatient):
    """Redis delivers it twice, or late, if a consumer loses its connection."""
    with closing(Listener(serve)) as site, desk(settings) as first, desk(settings) as other:
        carrier.submit(CheckSpec(page(site), 7), lambda _outcome: None)
        lost = next_batch(redis_server)
        again = next_batch(redis_server)
        with pytest.raises(broker.MessageRefused, match="A batch came too late"):
            first.take(lost)
        first.take(again)
        with pytest.raises(broker.MessageRefused, match="A batch came too late"):
            other.take(again)


def faults(caplog, *, away=False):
    """The faults of ours in the log, each with its trace."""
    start = "A fault of ours while "
    records = [record for record in caplog.records if record.getMessage().startswith(start)]
    assert all(record.exc_info for record in records)
    assert ("The broker cannot be used" in caplog.text) is away
    return [record.getMessage().removeprefix(start) for record in records]


def test_a_broker_that_is_away_is_logged_once_and_no_check_is_lost(
    redis_server, settings, carrier, impatient, caplog
):
    with closing(Listener(serve)) as site:
        redis_server.kill()
        for number in (7, 8):
            carrier.submit(CheckSpec(page(site), number), lambda _outcome: None)
            eventually(lambda: not carrier._pending, "a try to send it")
        redis_server.start()
        eventually(lambda: waiting(redis_server), "the checks")
        eventually(lambda: "The broker works again." in caplog.messages, "the end of the faults")
    away = [
        message for message in caplog.messages if message.startswith("The broker cannot be used (")
    ]
    assert 1 <= len(away) <= 2, "each of the two threads says it once"
    assert faults(caplog, away=True) == []
    assert "No prober of eu was heard" not in caplog.text, "nobody could be heard"


def test_a_fault_of_ours_is_logged_once_with_its_trace_and_sending_goes_on(
    redis_server, settings, carrier, impatient, monkeypatch, caplog
):
    tries, send = [], carrier._celery.send_task

    def fail(*_args, **_more):
        tries.append(1)
        raise ZeroDivisionError("of ours")

    with monkeypatch.context() as patch:
        patch.setattr(carrier._celery, "send_task", fail)
        carrier.submit(CheckSpec("http://127.0.0.1:9/", 7), lambda _outcome: None)
        eventually(lambda: len(tries) == 2, "a second try")
    sent_batch(redis_server)
    assert carrier._celery.send_task == send
    assert faults(caplog) == ["sending batches:"]
    assert "ZeroDivisionError: of ours" in caplog.text


def test_a_check_that_cannot_be_packed_keeps_no_other_from_being_sent(
    redis_server, settings, carrier, caplog
):
    good = CheckSpec("http://127.0.0.1:9/", 8)
    for spec in (replace(good, monitor_id=7, request_headers=object()), good):
        carrier.submit(spec, lambda _outcome: None)
    batch = BatchKey(KEY).open(sent_batch(redis_server), broker.about_checks("eu"))
    assert [packed["monitor_id"] for _ticket, packed in batch["checks"]] == [8]
    assert faults(caplog) == ["sending batches:"]


def test_a_check_that_no_monitor_has_is_not_made_and_keeps_no_other_from_being_made(
    redis_server, settings, carrier, impatient
):
    """Such as one with a line break in a header, which sends requests of other protocols."""
    done, bad = [], (Pair("X", "a\r\nSET smuggled yes"),)
    with closing(Listener(serve)) as site, desk(settings, sending=True) as made:
        carrier.submit(CheckSpec(page(site), 7, request_headers=bad, timeout=5), done.append)
        carrier.submit(CheckSpec(page(site), 8, timeout=5), done.append)
        made.take(next_batch(redis_server))
        eventually(lambda: len(done) == 2, "both")
        assert site.connections == 1
    results = {outcome.result.monitor_id: outcome.result for outcome in done}
    assert results[8].verdict is Verdict.UP
    assert results[7].cause_code == Cause.CHECK_ERROR
    assert "(request_headers)" in results[7].cause


def test_outcomes_that_we_cannot_read_keep_no_others_from_being_taken(
    redis_server, settings, carrier, impatient, caplog
):
    """Such as those of a prober of another version."""
    done, about = [], broker.about_outcomes("eu", carrier.name)
    with closing(Listener(serve)) as site, desk(settings, sending=True) as made:
        carrier.submit(CheckSpec(page(site), 7, timeout=5), done.append)
        made.take(next_batch(redis_server))
        for odd in ({}, {}, ["a list"]):
            redis_server.client.rpush(carrier.name, BatchKey(KEY).seal(odd, about))
        eventually(lambda: done, "the outcome")
    assert faults(caplog) == ["taking outcomes:"] * 2, "two kinds"


def test_an_outcome_that_cannot_be_packed_keeps_no_other_from_being_sent(
    redis_server, settings, carrier, impatient, monkeypatch, caplog
):
    def packed(record):
        if getattr(getattr(record, "result", None), "monitor_id", 0) == 7:
            raise ZeroDivisionError("of ours")
        return pack(record)

    monkeypatch.setattr(far, "pack", packed)
    done = []
    with closing(Listener(serve)) as site, desk(settings, sending=True) as made:
        for number in (7, 8):
            carrier.submit(CheckSpec(page(site), number, timeout=5), done.append)
        made.take(next_batch(redis_server))
        eventually(lambda: not carrier._checks, "both")
    assert [outcome.result.monitor_id for outcome in done] == [8]
    assert faults(caplog) == ["sending outcomes:"]
    assert any(
        message.startswith("An outcome of monitor 7 is wrong") for message in caplog.messages
    )


def test_a_prober_that_cannot_reach_the_broker_keeps_its_outcomes(
    redis_server, settings, carrier, impatient, monkeypatch, caplog
):
    monkeypatch.setattr(far, "SIGN_SECONDS", 3600.0)
    done, away = [], [RedisConnectionError()] * 2
    with closing(Listener(serve)) as site, desk(settings, sending=True) as made:
        reply = made._reply

        def sent(to, sealed):
            if away:
                raise away.pop()
            reply(to, sealed)

        made._reply = sent
        carrier.submit(CheckSpec(page(site), 7, timeout=5), done.append)
        made.take(next_batch(redis_server))
        eventually(lambda: done, "the outcome")
    assert caplog.messages == [
        "The broker cannot be used (ConnectionError). Trying again.", "The broker works again.",
    ]  # fmt: skip
