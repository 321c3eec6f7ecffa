"""The watch over the deadlines of heartbeats, and over the web processes, which take the pings
(decision 18).

Each checker waits for the next stored deadline, and is woken when a ping or a change stores an
earlier one. If several checkers watch, the first one records a missed deadline.

Each web process stores a sign of life every few seconds. Without signs no ping can arrive, so no
deadline passes; the next sign adds the time without signs to all deadlines.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from flask import Flask

from app.db import db, liveness, patience, wakeups
from app.db.faults import log_fault
from app.engine import recorder

log = logging.getLogger(__name__)

MIN_PAUSE_SECONDS = 0.2  # between two looks: many pings come together
STATEMENT_SECONDS = 30.0
SIGN_SECONDS = 5.0


def _now() -> datetime:
    return datetime.now(UTC)


class DeadlineWatch:
    def __init__(self, clock: Callable[[], datetime] = _now) -> None:
        self._clock = clock
        self._web_absent = False
        self._wake = threading.Event()

    def wake(self) -> None:
        """Look now. May be called on any thread."""
        self._wake.set()

    def look(self) -> float:
        """Record deadlines that have passed; returns the seconds until the next look. Needs an
        application context.
        """
        now = self._clock()
        absent = recorder.is_web_absent(db.session, now)
        begins, self._web_absent = absent and not self._web_absent, absent
        due = recorder.next_deadline()
        # Not at each look: a transaction that writes waits for others, and nothing may be due.
        if begins or (due is not None and due <= now):
            recorder.record_deadlines(now, web_absent=absent, all_heartbeats=begins)
            due = recorder.next_deadline()
        db.session.rollback()
        seconds = wakeups.POLL_SECONDS if due is None else (due - self._clock()).total_seconds()
        return min(wakeups.POLL_SECONDS, max(0.0, seconds))

    def run(self, app: Flask, stop: threading.Event) -> None:
        """Watch until ``stop`` is set."""
        with wakeups.listening(app, liveness.DEADLINES, self.wake, MIN_PAUSE_SECONDS):
            while not stop.is_set():
                pause = wakeups.POLL_SECONDS
                try:
                    with app.app_context(), patience(STATEMENT_SECONDS):
                        pause = self.look()
                except Exception as fault:
                    log_fault(log, "Deadlines of heartbeats could not be read. Retrying.", fault)
                self._wake.wait(pause)
                self._wake.clear()
                stop.wait(MIN_PAUSE_SECONDS)


def start_signs_of_web(app: Flask) -> None:
    """Start a thread that stores signs of life, in this process and in each that it forks."""

    def run() -> None:
        while True:
            try:
                with app.app_context(), patience(SIGN_SECONDS):
                    recorder.sign_web(_now())
            except Exception as fault:
                log_fault(log, "This web process could not store that it runs. Retrying.", fault)
            time.sleep(SIGN_SECONDS)

    def start() -> None:
        threading.Thread(target=run, name="sign", daemon=True).start()

    start()
    os.register_at_fork(after_in_child=start)
