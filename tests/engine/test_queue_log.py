"""What the log of a prober says of its queue, beside what Celery says."""

from __future__ import annotations

import re
import signal
from contextlib import closing

from tests.support.command import Running
from tests.support.queue import prober_environ, queue_settings
from tests.support.redis import Redis

AWAY = "The broker cannot be used (ConnectionError). Trying again."
AGAIN = "The broker works again."
LEVELS = ("INFO ", "WARNING ", "ERROR ")


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
    own = [line for line in lines if line.startswith(LEVELS) and "consumer:" not in line]
    assert own == [
        "INFO Checking for the place eu: batches from the queue checks.eu.",
        f"ERROR {AWAY}",
        f"WARNING {AGAIN}",
    ]
