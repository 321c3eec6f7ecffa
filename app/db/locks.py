"""Locks that belong to no row: on PostgreSQL, advisory locks. SQLite has one lock for everything; a
process that writes one transaction after another pauses, so that others get the lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, scoped_session

RUN_SECONDS = 0.5  # how long a process writes before it may have to pause
# A process pauses if it has held the lock for more than this share of that time.
MAX_HELD = 0.8
PAUSE_SECONDS = 0.12  # longer than the longest wait of SQLite between two retries
# How long a pause waits for the other threads to release the lock. A thread that takes longer waits
# for another process, or writes much at once: then there is no pause.
MAX_WAIT = 1.0


class Lock(IntEnum):
    """The tasks that only one transaction at a time may do, with the numbers of their locks in
    PostgreSQL.
    """

    # 0x77616B65 is used for the lock of migrations/env.py.
    OUTBOX = 0x57414B45  # decide what is sent next
    CHANGES = 0x77616B66  # write the change feed
    POST_TEMPLATES = 0x7074706C  # name a post template
    CONTACTS = 0x636F6E74  # say which monitors use which contacts
    DEPENDENCIES = 0x64657073  # say what monitors are reached through, without a circle


def take_lock(session: Session | scoped_session[Any], lock: Lock) -> None:
    """Wait until no other transaction has this lock, and hold it until this transaction ends."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(int(lock))))


def share_lock(session: Session | scoped_session[Any], lock: Lock) -> None:
    """Take this lock in shared mode until this transaction ends. ``take_lock`` must not follow: two
    transactions that share the lock would wait for each other.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock_shared(int(lock))))


class Pauses:
    """The pauses of one process on SQLite, whose threads share them. ``clock`` is monotonic, in
    seconds.

    A process that waits for SQLite's lock retries after up to 0.1 s. Between two transactions of a
    busy process, as when thousands of monitors fail together, the lock is free for some
    milliseconds. Without pauses, others retry for ten seconds and fail: "The database is busy".

    In a pause, no thread of the process may hold the lock. Therefore the pause begins when the last
    thread has released it, and no thread takes it before the end of the pause.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._condition = threading.Condition()
        self._inside = 0  # threads that hold the database's lock, or wait for it
        self._pausing = False  # a thread pauses, or waits for the others to leave
        self._since = self._ended = float("-inf")
        self._held_seconds = 0.0  # seconds since ``_since``

    @contextmanager
    def around(self, take: Callable[[], object]) -> Iterator[None]:
        """Pause if this process has held the lock for too long, then ``take`` it for the block."""
        self._begin()
        held_since = None
        try:
            take()
            held_since = self._clock()
            yield
        finally:
            self._end(held_since)

    def _begin(self) -> None:
        with self._condition:
            self._condition.wait_for(lambda: not self._pausing)
            now = self._clock()
            was_free = self._inside == 0 and now - self._ended >= PAUSE_SECONDS
            if was_free or now - self._since >= RUN_SECONDS:
                if not was_free and self._held_seconds > MAX_HELD * (now - self._since):
                    self._pause()
                self._since, self._held_seconds = self._clock(), 0.0
            self._inside += 1

    def _pause(self) -> None:
        self._pausing = True
        try:
            if self._condition.wait_for(lambda: self._inside == 0, MAX_WAIT):
                self._sleep(PAUSE_SECONDS)
        finally:
            self._pausing = False
            self._condition.notify_all()

    def _end(self, held_since: float | None) -> None:
        with self._condition:
            self._inside -= 1
            if held_since is not None:
                self._ended = self._clock()
                self._held_seconds += self._ended - held_since
            self._condition.notify_all()
