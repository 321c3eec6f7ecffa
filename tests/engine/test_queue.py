"""Checks through the queue: a real Redis, and what somebody could do who reads and writes it."""

import base64
import json
import os
import signal
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from redis.exceptions import RedisError

from app.codec.packing import pack, was_made
from app.codec.sealing import BatchKey
from app.config import SettingError, Settings
from app.engine.carriers.queue import prober as far
from app.engine.carriers.queue import sender
from app.engine.carriers.queue.broker import (
    TASK,
    about_checks,
    about_outcomes,
    make_redis,
    queue_of,
)
from app.engine.carriers.queue.prober import Desk, Refused
from app.engine.carriers.queue.sender import QueueCarrier
from app.engine.carriers.queue.silence import Consumer
from app.engine.probing import make_prober
from app.net.policy import Policy
from app.records import Cause, CheckSpec, Pair, Verdict
from tests.factories import make_outcome
from tests.lab.http import serve
from tests.lab.net import ClosedPort, Listener
from tests.support import command
from tests.support.service import eventually

KEY = base64.b64encode(os.urandom(32)).decode()
SECRET = "hunter2-in-the-clear"


@pytest.fixture
def settings(redis_server, tmp_path):
    return Settings(
        instance=tmp_path,
        database_url="sqlite://",
        secret_key="not used here",
        location="eu",
        broker_url=redis_server.url,
        batch_key=KEY,
        allow_networks="loopback",
        canaries="",
    )


@pytest.fixture
def carrier(settings):
    made = QueueCarrier(settings)
    yield made
    made.close(0)


@contextmanager
def desk(settings, works=None):
    """The far end in this process. Yields it and the messages that it sends, by list."""
    sent, came = [], threading.Event()

    def reply(to, sealed):
        sent.append((to, sealed))
        came.set()

    policy = Policy.parse("loopback")
    made = Desk(settings, make_prober(settings, lambda: policy), reply, works)
    made.sent, made.came = sent, came
    try:
        yield made
    finally:
        made.close(5)


def waiting(redis_server, location="eu"):
    """The sealed batches that wait for a prober."""
    bodies = [
        json.loads(base64.b64decode(json.loads(message)["body"]))
        for message in redis_server.client.lrange(queue_of(location), 0, -1)
    ]
    return [base64.b64decode(arguments[0]) for arguments, _named, _more in bodies]


def sent_batch(redis_server):
    return eventually(lambda: waiting(redis_server), "a batch")[0]


def hand_over(redis_server, made):
    """Put what a desk has sent on the broker."""
    for to, sealed in made.sent:
        redis_server.client.rpush(to, sealed)


def page(site):
    return f"http://127.0.0.1:{site.port}/status/200"


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
        carrier.submit(secret_spec(page(site)), done.append)
        made.take(sent_batch(redis_server))
        assert made.came.wait(30)
        hand_over(redis_server, made)
        eventually(lambda: done, "the outcome")
    result = done[0].result
    assert (result.monitor_id, result.verdict, result.location) == (7, Verdict.UP, "eu")
    assert [(one.checks, one.made) for one in carrier.reports()] == [(1, 1)]
    assert [(one.checks, one.made) for one in carrier.reports()] == [(0, 0)], "since the last"
    blocked = pack(make_outcome("unknown", cause_code="blocked_by_policy"))
    assert not was_made(blocked), "policy kept it from its target"


def test_an_outcome_that_nobody_waits_for_is_no_result_of_its_place(
    redis_server, settings, carrier
):
    """As of a batch that was sent again. Otherwise a place that brings nothing else seems alive."""
    done, checks, made_at_all = [], [], []

    def heard():
        for one in carrier.reports():
            checks.append(one.checks)
            made_at_all.append(one.made)
        return sum(made_at_all) == 2

    with closing(Listener(serve)) as site, desk(settings) as made:
        carrier.submit(secret_spec(page(site)), done.append)
        made.take(sent_batch(redis_server))
        assert made.came.wait(30)
        hand_over(redis_server, made)
        hand_over(redis_server, made)
        eventually(heard, "both are read")
    assert (len(done), sum(checks)) == (1, 1)


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
        seen = redis_server.everything() + sealed
    for text in (SECRET, "private-path", base64.b64encode(SECRET.encode()).decode()[:-4]):
        assert text.encode() not in seen


def test_a_prober_refuses_batches_that_are_forged_copied_moved_or_old(
    redis_server, settings, carrier, monkeypatch
):
    done = []
    with closing(ClosedPort()) as nowhere, desk(settings) as made:
        carrier.submit(CheckSpec(f"http://127.0.0.1:{nowhere.port}/", 7), done.append)
        sealed = sent_batch(redis_server)
        forged = BatchKey(base64.b64encode(os.urandom(32)).decode()).seal(
            BatchKey(KEY).open(sealed, about_checks("eu")), about_checks("eu")
        )
        with pytest.raises(Refused, match="BATCH_KEY"):
            made.take(forged)
        made.location = "us"
        with pytest.raises(Refused, match="another place"):
            made.take(sealed)
        made.location = "eu"
        with monkeypatch.context() as patch:
            patch.setattr(far, "FRESH_SECONDS", 0.0)
            with pytest.raises(Refused, match="Compare the clocks"):
                made.take(sealed)
        made.take(sealed)
        with pytest.raises(Refused, match="second time"):
            made.take(sealed)


def test_a_checker_takes_no_result_that_is_forged_copied_or_of_another_monitor(
    redis_server, settings, carrier
):
    first, second = [], []
    push = redis_server.client.rpush
    with closing(Listener(serve)) as site, desk(settings) as made:
        carrier.submit(CheckSpec(page(site), 7, timeout=5), first.append)
        made.take(sent_batch(redis_server))
        eventually(lambda: made.sent, "the outcome")
        sealed = next(one for _to, one in made.sent)
        about = about_outcomes("eu", carrier.name)
        told = BatchKey(KEY).open(sealed, about)
        other = BatchKey(base64.b64encode(os.urandom(32)).decode())
        push(carrier.name, b"garbage", other.seal(told, about))
        push(carrier.name, BatchKey(KEY).seal(told, about_outcomes("eu", "outcomes.eu.another")))
        push(carrier.name, sealed)
        eventually(lambda: first, "the outcome")
        # The same outcome again, while another check is under way; and one for the wrong monitor.
        redis_server.client.delete(queue_of("eu"))
        carrier.submit(CheckSpec(page(site), 8, timeout=5), second.append)
        sent_batch(redis_server)
        push(carrier.name, sealed)
        ticket = told["outcomes"][0][0] + 1
        swapped = told | {"outcomes": [[ticket, told["outcomes"][0][1]]]}
        push(carrier.name, BatchKey(KEY).seal(swapped, about))
        eventually(lambda: redis_server.client.llen(carrier.name) == 0, "all are read")
    carrier.close(0)
    assert len(first) == 1
    assert second == []


def test_a_result_is_timed_by_the_clock_of_the_checker(redis_server, settings, carrier):
    done = []
    before = datetime.now(UTC)
    with closing(Listener(serve)) as site, desk(settings) as made:
        carrier.submit(CheckSpec(page(site), 7, timeout=5), done.append)
        made.take(sent_batch(redis_server))
        eventually(lambda: made.sent, "the outcome")
        about = about_outcomes("eu", carrier.name)
        told = BatchKey(KEY).open(next(one for _to, one in made.sent), about)
    late = timedelta(hours=3)
    told["now"] = (datetime.fromisoformat(told["now"]) + late).isoformat()
    result = told["outcomes"][0][1]["result"]
    result["checked_at"] = (datetime.fromisoformat(result["checked_at"]) + late).isoformat()
    redis_server.client.rpush(carrier.name, BatchKey(KEY).seal(told, about))
    eventually(lambda: done, "the outcome")
    assert before <= done[0].result.checked_at <= datetime.now(UTC)
    assert abs(carrier.reports()[0].clock_offset - late) < timedelta(seconds=30)


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
    about = about_checks("eu")
    one, other = (BatchKey(KEY).open(sealed, about) for sealed in (first, again))
    assert one["checks"] == other["checks"]
    assert one["id"] != other["id"]
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
    from dataclasses import replace

    with pytest.raises(SettingError, match=missing.upper()):
        QueueCarrier(replace(settings, **{missing: None}))


def prober_environ(redis_server, settings):
    return {
        "WAKEFUL_BROKER_URL": redis_server.url,
        "WAKEFUL_BATCH_KEY": KEY,
        "WAKEFUL_ALLOW_NETWORKS": "loopback",
        "WAKEFUL_CANARIES": "",
        "WAKEFUL_INSTANCE": str(settings.instance / "none"),
        "PATH": os.environ["PATH"],
    }


def no_batch(body):
    """A message of Celery's with another body than Celery's."""
    headers = {"task": TASK, "id": "1", "lang": "py", "argsrepr": "", "kwargsrepr": ""}
    route = {"exchange": "", "routing_key": "checks.eu"}
    about = {"delivery_tag": "1", "delivery_info": route, "body_encoding": "base64"}
    told = {
        "body": base64.b64encode(body).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": headers,
        "properties": about,
    }
    return json.dumps(told)


NO_MESSAGES = [
    b"no JSON", b"\xff\xfe", b"5", b'["a list"]', b"{}", b"[" * 100_000,
    b'{"__type__": "decimal", "__value__": "x"}',
]  # fmt: skip


def test_the_prober_command_takes_batches_without_a_database(redis_server, settings, carrier):
    done = []
    environ = prober_environ(redis_server, settings)
    with closing(Listener(serve)) as site:
        process = command.start(command.be, "prober", "--location", "eu", environ=environ)
        # Taken first, they must end neither this worker nor, delivered again, the next one.
        client = make_redis(redis_server.url)
        client.rpush("checks.eu", no_batch(b'"not the three parts of a task"'), *NO_MESSAGES)
        client.close()
        try:
            for number in range(1, 21):
                carrier.submit(CheckSpec(page(site), number, timeout=5), done.append)
            eventually(lambda: len(done) == 20, "all outcomes")
            assert process.is_alive()
        finally:
            process.terminate()
            process.join(60)
    assert {one.result.verdict for one in done} == {Verdict.UP}
    assert process.exitcode == 0
    assert not (settings.instance / "none").exists()


def be_impatient(*words):
    """``wakeful WORDS``, where a consumer that takes nothing is silent at once."""
    far.SILENT_SECONDS, far.LOOK_SECONDS = 0.5, 0.2
    command.be(*words)


def test_a_prober_whose_consumer_falls_silent_ends(redis_server, settings, carrier):
    done = []
    environ = prober_environ(redis_server, settings)
    with closing(Listener(serve)) as site:
        process = command.start(be_impatient, "prober", "--location", "eu", environ=environ)
        try:
            carrier.submit(CheckSpec(page(site), 1, timeout=5), done.append)
            eventually(lambda: done, "an outcome")
            os.kill(process.pid, signal.SIGSTOP)  # it looks alive, and takes nothing
            carrier.submit(CheckSpec(page(site), 2, timeout=5), done.append)
            process.join(60)
            assert process.exitcode == -signal.SIGKILL
            again = command.start(command.be, "prober", "--location", "eu", environ=environ)
            try:
                eventually(lambda: len(done) == 2, "the outcome by the next prober")
            finally:
                again.terminate()
                again.join(60)
        finally:
            process.kill()
            process.join(60)


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
    def next_of(values):
        value = values.pop(0)
        if isinstance(value, Exception):
            raise value
        return value

    waiting, taken = [1, *waiting], [4, *taken]
    consumer = Consumer(lambda: next_of(waiting), lambda: next_of(taken), lambda: room, 45)
    assert [consumer.is_silent(now) for now in (0, 10, 30, 55)][-1] is silent
