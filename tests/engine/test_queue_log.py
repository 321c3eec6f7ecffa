"""What the log of a prober says of its queue: each thing once, in our words."""

from __future__ import annotations

import re
import signal
from contextlib import closing

import pytest
from celery.worker.consumer import consumer
from redis.exceptions import RedisError

from app.engine.carriers.queue import celery_log
from app.engine.carriers.queue.awaited import AFTER_SECONDS, FirstBatch
from app.engine.carriers.queue.trouble import Trouble
from tests.support.command import Running
from tests.support.queue import prober_environ, queue_settings
from tests.support.redis import Redis

AWAY = "The broker cannot be used (ConnectionError). Trying again."
AGAIN = "The broker works again."


def lines_until(running, words, lines):
    for line in running.stdout:
        lines.append(re.sub(r"^\S+ (\w+) [\w.]+: ", r"\1 ", line.rstrip("\n")))
        if words in line:
            return
    raise AssertionError(lines)


def test_the_log_of_a_prober_says_its_place_and_once_that_the_broker_is_away(tmp_path):
    redis, lines = Redis(tmp_path / "redis"), []
    environ = prober_environ(redis, queue_settings(redis, tmp_path))
    running = Running(["prober", "--location", "eu"], environ)
    try:
        with closing(running.stdout):
            lines_until(running, "cannot be used", lines)
            redis.start()
            try:
                lines_until(running, "works again", lines)
                running.send_signal(signal.SIGTERM)
                assert running.wait(60) == 0
                lines += running.stdout
            finally:
                redis.kill()
    finally:
        running.kill()
    assert lines == [
        "INFO Checking for the place eu: batches from the queue checks.eu.",
        f"ERROR {AWAY}",
        f"WARNING {AGAIN}",
    ]


def test_what_celery_logs_at_each_try_to_connect_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(consumer.logger, "filters", [])
    monkeypatch.setattr("celery.apps.worker.safe_say", None)
    trouble, fault = Trouble("taking batches"), ConnectionError("refused.")
    celery_log.say_once(trouble)
    consumer.warn("%s (%r)", consumer.CONNECTION_RETRY, fault)
    for _try in range(3):
        consumer.error(consumer.CONNECTION_ERROR, "redis://:**@127.0.0.1:1/0", fault, "Again")
    trouble.over()
    consumer.error(consumer.CONNECTION_ERROR, "redis://:**@127.0.0.1:1/0", OSError(), "Again")
    consumer.error("Something else: %s", "it passes")
    assert caplog.messages == [
        AWAY,
        AGAIN,
        "The broker cannot be used (OSError). Trying again.",
        "Something else: it passes",
    ]


@pytest.mark.parametrize(
    ("came", "broken", "told"), [(0, 0, 1), (3, 0, 0), (0, 2, 1)], ids=["none", "some", "away"]
)
def test_a_prober_says_once_that_no_batch_has_come(caplog, came, broken, told):
    """While the broker is away, no batch can come: the log says that it is away."""
    faults = [RedisError()] * broken

    def reach():
        if faults:
            raise faults.pop()

    first = FirstBatch("mars", lambda: came, reach, since=100.0)
    first.look(100.0 + AFTER_SECONDS - 1)
    assert caplog.messages == [], "it is too early to tell"
    for later in range(5):
        first.look(100.0 + AFTER_SECONDS + later)
    assert len(caplog.messages) == told
    if told:
        assert "WAKEFUL_LOCATION=mars wakeful checker --carrier queue" in caplog.text
