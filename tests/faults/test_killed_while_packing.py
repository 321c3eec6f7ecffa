"""kill -9 at each statement of packing loses no result and makes none twice."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event, func, select

from app import create_core
from app.config import Settings
from app.db import db, packed, rollups
from app.db.tables import PackedHourRow, ResultRow
from app.records import Result, Verdict
from tests.factories import keep_results, make_monitor
from tests.support.command import start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.both_databases]

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
HOURS = 40


def pack(settings: Settings, asked: Connection) -> None:
    """For each number until None: pack in a process of its own, which dies before the statement of
    this number, or the commit that takes its place. Answers its exit code.
    """
    app = create_core(settings)
    with app.app_context():
        for statement in iter(asked.recv, None):
            process = os.fork()
            if not process:
                pack_until(statement)
                os._exit(0)
            asked.send(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


def pack_until(statement: int) -> None:
    left = statement

    def count(*_arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(db.engine, "before_cursor_execute", count)
    event.listen(db.engine, "commit", count)
    packed.pack_old(NOW, 600)


def test_packing_that_is_killed_at_any_step_loses_no_result(core: Flask, settings: Settings):
    ids = [make_monitor(core, interval=1800, created_at=NOW).id for _ in range(2)]
    checks = [
        Result(NOW - timedelta(hours=hours, minutes=minutes), Verdict.UP, monitor_id=id)
        for id in ids
        for hours in range(HOURS)
        for minutes in (10, 40)
    ]
    keep_results(core, checks)
    with core.app_context():
        rollups.roll(NOW)
        stored = rollups.checks(ids, 0, 2**62)
    asking, asked = Pipe()
    start(pack, settings, asked)
    for statement in range(100):
        asking.send(statement)
        code = asking.recv()
        with core.app_context():
            assert rollups.checks(ids, 0, 2**62) == stored, f"killed at statement {statement}"
            singles = db.session.scalar(select(func.count()).select_from(ResultRow))
            in_hours = db.session.scalar(select(func.sum(PackedHourRow.results))) or 0
            assert singles + in_hours == len(checks)
            db.session.remove()
        if code == 0:
            break
        assert code == -9
    asking.send(None)
    assert statement > 8
    assert in_hours == len(ids) * 2 * (HOURS - 27)  # the last 26, and the one that runs
