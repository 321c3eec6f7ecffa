"""No child process inherits a database connection: with one of SQLite it would believe that it
holds locks, with one of PostgreSQL it would read answers to another process.
"""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from app.db import writing
from tests.support.command import environ_of, python

pytestmark = pytest.mark.both_databases

# Starts a part, whose end cannot be noted, and starts it again. Each start prints its open files.
SUPERVISE = """
import json, os
from contextlib import suppress
from app.commands import serve
from app.config import read

def part(words):
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    print(json.dumps(sorted(one for one in found if not one.startswith("/proc/"))), flush=True)

supervisor = serve.Supervisor(read(), part)
child = serve.Child("checker", ["checker"])
supervisor._supervise(child)
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
supervisor._supervise(child)
child.due = float("-inf")
supervisor._supervise(child)
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
"""


def supervise(settings):
    done = python(SUPERVISE, [], environ_of(settings))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_restarted_child_inherits_no_connection_even_if_storing_the_end_failed(core, settings):
    with core.app_context(), writing() as session:
        session.execute(sa.text("DROP TABLE heartbeats"))  # a fault that leaves connections alone
    (first, second), code = supervise(settings)
    assert "could not be noted" in code
    assert second == first
