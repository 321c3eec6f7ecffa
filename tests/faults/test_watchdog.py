"""A process whose loop hangs logs that and ends, so that it is restarted."""

import pytest

from app.commands import watchdog
from tests.support.command import environ_of, python

pytestmark = [pytest.mark.timeout(120)]

# `wakeful checker` and `wakeful worker` run; then one step of the loop never returns.
STUCK = """
import sys, threading
from app.commands import cli, watchdog
from app.alerts.worker import Worker
from app.engine.checker import Checker

watchdog.LIMIT_SECONDS = 2.0
def stand_still(*arguments):
    print("standing still", flush=True)
    threading.Event().wait()
Checker._turn = Worker.take_turn = stand_still
sys.argv = ["wakeful", sys.argv[1]]
cli.main()
"""
TURNING = """
import sys, threading, time
from app.commands import watchdog

watchdog.LIMIT_SECONDS = 1.0
with watchdog.watching("checker") as on_turn:
    for _ in range(int(sys.argv[1])):
        on_turn()
        time.sleep(0.1)
time.sleep(float(sys.argv[2]))
print("still here", flush=True)
"""


def run(settings, script, *words):
    return python(script, words, environ_of(settings), seconds=90)


@pytest.mark.parametrize(
    ("command", "name"),
    [("checker", "checker"), ("worker", "alert worker")],
    ids=["checker", "worker"],
)
def test_a_process_whose_loop_hangs_ends_and_logs_where(core, settings, command, name):
    done = run(settings, STUCK, command)
    assert "standing still" in done.stdout
    assert done.returncode == watchdog.EXIT_CODE
    line = next(line for line in done.stderr.splitlines() if "CRITICAL" in line)
    assert f"The {name} has been stuck for 2 s and ends, to be restarted." in line
    assert "in stand_still" in done.stderr


def test_a_running_loop_is_not_ended(settings):
    done = run(settings, TURNING, "30", "0")
    assert (done.returncode, done.stdout.strip()) == (0, "still here")


def test_a_process_is_not_ended_after_its_loop(settings):
    """A process that runs a command and goes on, as a worker of the tests, ended by it later."""
    done = run(settings, TURNING, "1", "2")
    assert (done.returncode, done.stdout.strip()) == (0, "still here")


def test_the_limit_is_longer_than_the_waits_of_a_turn_together():
    """A database that is away must not look like a loop that hangs."""
    from app.db import connections, postgres

    waits = connections.ANSWER_SECONDS + postgres.CANCEL_SECONDS + postgres.CONNECT_SECONDS
    # A wait that ends with an error ends the turn; two that succeed late may come before it.
    assert 3 * waits < watchdog.LIMIT_SECONDS
