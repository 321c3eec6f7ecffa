"""A process that writes one transaction after another lets others write too."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from flask import Flask
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.db import db, writing
from app.db.locks import PAUSE_SECONDS, RUN_SECONDS, Pauses


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def write(pauses: Pauses, clock: Clock, seconds: float, *, waits: float = 0.0) -> None:
    """A transaction that holds the lock for so long, after it ``waits`` for it."""

    def take() -> None:
        clock.now += waits

    with pauses.around(take):
        clock.now += seconds


@pytest.fixture
def pauses(clock: Clock) -> Iterator[Pauses]:
    return Pauses(lambda: clock.now, clock.sleep)


def test_after_half_a_second_of_writing_the_lock_is_left_free_for_a_moment(
    pauses: Pauses, clock: Clock
) -> None:
    for _ in range(5):
        write(pauses, clock, RUN_SECONDS / 5)
    assert clock.slept == []
    write(pauses, clock, 0.01)
    assert clock.slept == [PAUSE_SECONDS]
    write(pauses, clock, 0.01)
    assert clock.slept == [PAUSE_SECONDS], "what was held before the pause is forgotten"


@pytest.mark.parametrize(("free", "pauses_made"), [(0.02, 9), (0.03, 0)])
def test_a_lock_that_is_free_for_a_fifth_of_the_time_needs_no_pause(
    pauses: Pauses, clock: Clock, free: float, pauses_made: int
) -> None:
    for _ in range(50):
        write(pauses, clock, 0.1)
        clock.now += free
    assert len(clock.slept) == pauses_made


def test_waiting_for_the_lock_is_not_holding_it(pauses: Pauses, clock: Clock) -> None:
    for _ in range(5):
        write(pauses, clock, 0.01, waits=RUN_SECONDS)
    assert clock.slept == []


def test_a_lock_that_was_not_got_is_not_held(pauses: Pauses, clock: Clock) -> None:
    def refuse() -> None:
        clock.now += 10
        raise TimeoutError

    for _ in range(3):
        with pytest.raises(TimeoutError), pauses.around(refuse):
            pass
    write(pauses, clock, 0.01)
    assert clock.slept == []


def test_no_thread_of_the_process_holds_the_lock_during_a_pause() -> None:
    database, paused = threading.Lock(), threading.Event()
    on_turn: list[bool] = []

    def sleep(seconds: float) -> None:
        for _ in range(12):
            time.sleep(seconds / 12)
            on_turn.append(database.locked())
        paused.set()

    pauses, give_up = Pauses(sleep=sleep), time.monotonic() + 120

    def write_on() -> None:
        while not paused.is_set() and time.monotonic() < give_up:
            with pauses.around(database.acquire):
                time.sleep(0.02)
                database.release()

    threads = [threading.Thread(target=write_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert on_turn
    assert not any(on_turn)


def test_a_thread_that_stays_inside_does_not_keep_the_others_out(
    pauses: Pauses, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.db.locks.MAX_WAIT", 0.01)
    with pauses.around(lambda: None):
        for _ in range(6):
            write(pauses, clock, RUN_SECONDS / 5)
    assert clock.slept == [], "the lock was not free: a pause would have been for nothing"


def test_a_failed_transaction_frees_the_lock_before_anybody_can_wait_for_a_pause(
    core: Flask,
) -> None:
    free: list[bool] = []

    with (
        core.app_context(),
        closing(sqlite3.connect(db.engine.url.database, timeout=0, isolation_level=None)) as other,
    ):

        def clock() -> float:
            """Is asked when a transaction takes the lock, and when it counts as over."""
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                free.append(False)
            else:
                other.execute("ROLLBACK")
                free.append(True)
            return time.monotonic()

        core.extensions["wakeful.pauses"] = Pauses(clock)
        with pytest.raises(SQLAlchemyError), writing() as session:
            session.execute(text("DELETE FROM nowhere"))
    assert (free[-2], free[-1]) == (False, True)


def test_who_waits_for_sqlite_gets_its_turn_beside_a_busy_writer(core: Flask) -> None:
    """Without pauses, the lock is free for a thousandth of the time: each look finds it taken."""
    got_it = threading.Event()

    def other(path: str) -> None:
        with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            got_it.set()

    with core.app_context():
        thread = threading.Thread(target=other, args=[db.engine.url.database])
        with writing():
            thread.start()
            time.sleep(0.2)  # the other looks only every tenth of a second from now on
        turns = 0
        while not got_it.is_set() and turns < 40:
            with writing() as session:
                session.execute(text("DELETE FROM settings WHERE name = 'none'"))
                time.sleep(0.1)
            turns += 1
    thread.join(10)
    assert turns < 40
