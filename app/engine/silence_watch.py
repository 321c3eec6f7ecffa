"""Look every few seconds for monitors that no place checks, and for silent places.

Checkers look. While no checker runs, the alert worker looks: otherwise monitors would keep their
last state after the last checker has ended, and nobody would be notified.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from flask import Flask

from app.db import db, faults, liveness, patience

log = logging.getLogger(__name__)

EVERY_SECONDS = 15.0  # a place is silent after minutes
MAX_PAUSE = timedelta(seconds=60)  # between two looks
LOOK_SECONDS = 60.0  # time limit of a statement


class SilenceWatch:
    """The watch of one process, which began at ``now``. ``alone``: it looks only while no checker
    runs.
    """

    def __init__(self, now: datetime, *, alone: bool = False) -> None:
        self._alone = alone
        self._since = self._notifying_since = self._looked_at = now

    def look(self, now: datetime) -> None:
        # After a pause (the machine slept, the clock was set, the database was unavailable) all
        # places seem silent, so their grace starts again.
        if not timedelta(0) <= now - self._looked_at <= MAX_PAUSE:
            self._since = now
        # Without an alert worker, nobody is notified of a silent place: perhaps a server that was
        # off has just started, and its places are back within seconds.
        if not self._alone and liveness.signs_of(liveness.WORKER, now).silent:
            self._notifying_since = now
        if not self._alone or liveness.signs_of(liveness.CHECKER, now).silent:
            from app.engine import silence  # the worker seldom needs it, and it takes 10 MB

            silence.act_on_silence(now, self._since, max(self._since, self._notifying_since))
        db.session.rollback()
        self._looked_at = now


@contextmanager
def watching_silence(app: Flask) -> Iterator[None]:
    """Look in a thread while no checker runs, until the block ends."""
    stop = threading.Event()
    watch = SilenceWatch(datetime.now(UTC), alone=True)

    def run() -> None:
        while not stop.wait(EVERY_SECONDS):
            try:
                with app.app_context(), patience(LOOK_SECONDS):
                    watch.look(datetime.now(UTC))
            except Exception as fault:
                faults.log_fault(log, "Silent places could not be looked for. Trying again.", fault)

    threading.Thread(target=run, name="silence", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
