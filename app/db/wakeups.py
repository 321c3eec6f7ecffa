"""Wake the processes that wait for a change of the database: checkers for a monitor that has
changed, alert workers for a message to send. Without wake-ups they would have to poll several times
a second.

Code that writes such a change calls ``note`` in the same transaction. When it commits, each process
of the role is woken: on SQLite by a datagram to its socket in a folder beside the database; on
PostgreSQL, whose processes may be on several machines, by NOTIFY. A lost wake-up costs only a
delay, because processes also poll every ``POLL_SECONDS``. A process polls more often while it
cannot be woken: its connection is lost, or a pooler delivers no notifications.
"""

from __future__ import annotations

import logging
import os
import secrets
import select as waiting
import socket
import threading
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from flask import Flask
from sqlalchemy import event, func, select
from sqlalchemy.orm import Session, scoped_session

from app.db import db, patience, writing
from app.db.connections import file_of
from app.rules.time import Backoff

log = logging.getLogger(__name__)

POLL_SECONDS = 10.0  # between two polls of a process that can be woken
CONNECT_SECONDS = 1.0
PROBE_SECONDS = 5.0  # how long the first notification may take
# The pause before a lost connection is opened again. It doubles after each failure.
FIRST_PAUSE, MAX_PAUSE = 1.0, 600.0

_NOTED = "wakeful.wakeups"
_FOLDER = "{path}-wakeups"
_CHANNEL = "wakeful_{role}"
_WAKE = ""  # the text of a notification; any other text is the probe of a process


def note(session: Session | scoped_session[Any], role: str) -> None:
    """Wake the processes of a role (of ``liveness``) if this transaction commits."""
    session.info.setdefault(_NOTED, set()).add(role)


@event.listens_for(db.session, "before_commit")
def _notify(session: Session) -> None:
    if session.in_nested_transaction() or session.get_bind().dialect.name != "postgresql":
        return
    if roles := session.info.pop(_NOTED, None):
        channels = (_CHANNEL.format(role=role) for role in sorted(roles))
        session.execute(select(*(func.pg_notify(channel, _WAKE) for channel in channels)))


@event.listens_for(db.session, "after_commit")
def _wake(session: Session) -> None:
    if session.in_nested_transaction():
        return  # the end of a savepoint, which no other process can read yet
    roles = session.info.pop(_NOTED, None)
    if roles and (folder := _folder()) is not None:
        # The change is committed, so a failed wake-up must not raise: processes find it by a poll.
        with suppress(OSError):
            _send(folder, roles)


@event.listens_for(db.session, "after_rollback")
def _forget(session: Session) -> None:
    session.info.pop(_NOTED, None)


@contextmanager
def listening(
    app: Flask, role: str, wake: Callable[[], object], pause: float
) -> Iterator[Callable[[], bool]]:
    """Run a thread that calls ``wake`` when the processes of the role are woken, at most once in
    ``pause`` seconds. Yields a function that returns whether this process can be woken now; if not,
    it must poll. ``wake`` is also called when that changes.
    """
    source: _Datagrams | _Notifications | None = None
    with app.app_context(), suppress(OSError):
        if db.engine.dialect.name == "postgresql":
            source = _Notifications(app, role)
        elif (folder := _folder()) is not None:
            source = _Datagrams(folder, role)
    if source is None:
        yield lambda: False
        return
    ended = threading.Event()

    def listen() -> None:
        with closing(source.events()) as events:
            for _event in events:
                wake()
                # Events during the pause count as one: in a mass outage there are thousands.
                if ended.wait(pause):
                    return

    thread = threading.Thread(target=listen, name=f"wake {role}", daemon=True)
    thread.start()
    try:
        yield lambda: source.works
    finally:
        ended.set()
        source.end()
        thread.join()
        source.close()


# --- SQLite: datagrams


class _Datagrams:
    works = True

    def __init__(self, folder: str, role: str) -> None:
        """Open a socket for this process, which has this role."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        name = f"{role}.{os.getpid()}.{secrets.token_hex(4)}"
        self._path = os.path.join(folder, name)
        self._receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            with _opened(folder) as (_fd, address):
                self._receiver.bind(address(name))
        except OSError:
            self._receiver.close()
            raise

    def events(self) -> Generator[None, None, None]:
        while self._receiver.recv(1):
            yield

    def end(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)
        self._receiver.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._receiver.close()


def _folder() -> str | None:
    if db.engine.dialect.name != "sqlite":
        return None
    path = file_of(db.engine)
    return None if path is None else _FOLDER.format(path=path)


@contextmanager
def _opened(folder: str) -> Iterator[tuple[int, Callable[[str], str]]]:
    """Open the folder. Yields its descriptor, and a function that returns the address of a socket
    in it: the address has the descriptor in place of the path, which may be too long.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd, lambda name: f"/proc/self/fd/{fd}/{name}"
    finally:
        os.close(fd)


def _send(folder: str, roles: Collection[str]) -> None:
    with (
        _opened(folder) as (fd, address),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        for name in os.listdir(fd):
            if name.partition(".")[0] not in roles:
                continue
            try:
                sender.sendto(b".", socket.MSG_DONTWAIT, address(name))
            except ConnectionRefusedError:  # its process was killed
                with suppress(OSError):
                    os.unlink(name, dir_fd=fd)
            except OSError:
                pass  # its queue is full, so other datagrams wake it


# --- PostgreSQL: notifications


class _Notifications:
    """Notifications of PostgreSQL. ``works``: whether a probe from another connection has arrived.
    Behind a pooler that gives each transaction another connection, LISTEN succeeds, but no
    notification arrives.
    """

    def __init__(self, app: Flask, role: str) -> None:
        self.works = False
        self._app = app
        self._channel = _CHANNEL.format(role=role)
        self._probe = secrets.token_hex(8)
        self._ended = os.eventfd(0, os.EFD_CLOEXEC)
        self._pauses = Backoff(FIRST_PAUSE, MAX_PAUSE)

    def events(self) -> Generator[None, None, None]:
        while True:
            try:
                with self._connected() as driver:
                    while (texts := self._received(driver)) is not None:
                        if self._probe in texts and not self.works:
                            self.works = True
                            self._pauses.reset()
                            yield  # changes before this moment were not announced
                        if _WAKE in texts:
                            yield
                    return
            except Exception as fault:
                log.info("Changes are not announced, so this process polls: %s", fault)
            if self.works:
                self.works = False
                yield  # changes may have been announced since the connection was lost
            if self._wait(self._pauses.next()):
                return

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection that listens, outside of the pool."""
        with self._app.app_context():
            # The time is short: while the server is away, only one thread at a time may try it.
            with patience(CONNECT_SECONDS):
                connection = db.engine.raw_connection()
            driver: Any = connection.driver_connection
            connection.detach()
            with closing(driver):
                driver.autocommit = True
                driver.execute(f"LISTEN {self._channel}")
                with writing() as session:
                    session.execute(select(func.pg_notify(self._channel, self._probe)))
                yield driver

    def _received(self, driver: Any) -> Collection[str] | None:
        """Wait for notifications, and return their texts; None after ``end``."""
        if self._wait(None if self.works else PROBE_SECONDS, driver.fileno()):
            return None
        driver.pgconn.consume_input()  # raises if the connection is lost
        texts = set()
        while (notification := driver.pgconn.notifies()) is not None:
            texts.add(notification.extra.decode())
        if not self.works and not texts:
            raise TimeoutError("no notification comes over this connection")
        return texts

    def _wait(self, seconds: float | None, fd: int | None = None) -> bool:
        """Wait until ``fd`` can be read; returns whether ``end`` was called."""
        poll = waiting.poll()
        for each in (self._ended, *([] if fd is None else [fd])):
            poll.register(each, waiting.POLLIN)
        ready = poll.poll(None if seconds is None else seconds * 1000)
        return any(each == self._ended for each, _events in ready)

    def end(self) -> None:
        os.eventfd_write(self._ended, 1)

    def close(self) -> None:
        os.close(self._ended)
