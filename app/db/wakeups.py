"""Wake the processes of this machine that wait for a change of the database: checkers for a monitor
that has changed, alert workers for a message to send. They would have to poll several times a
second otherwise.

Whoever writes what a role waits for calls ``note`` in the same transaction. Once it commits, each
process of the role gets a datagram, on a socket in a folder beside the SQLite database. Nothing but
time depends on it: processes poll too, seldom, so a datagram that is lost delays what it was about.
Those of PostgreSQL may be on several machines, and poll as often as before.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from flask import Flask
from sqlalchemy import event
from sqlalchemy.orm import Session, scoped_session

from app.db import db
from app.db.connections import file_of

# Between two polls of a process that is woken. The slow ones find what no datagram announced.
POLL_SECONDS = 5.0

_NOTED = "wakeful.wakeups"
_FOLDER = "{path}-wakeups"


def note(session: Session | scoped_session[Any], role: str) -> None:
    """Wake the processes of a role (of ``heartbeats``) if this transaction commits."""
    session.info.setdefault(_NOTED, set()).add(role)


@event.listens_for(db.session, "after_commit")
def _wake(session: Session) -> None:
    if session.in_nested_transaction():
        return  # a savepoint: nobody else can read it yet
    roles = session.info.pop(_NOTED, None)
    if roles and (folder := _folder()) is not None:
        # Waking is not what the transaction was about: it never fails for that.
        with suppress(OSError):
            _send(folder, roles)


@event.listens_for(db.session, "after_rollback")
def _forget(session: Session) -> None:
    session.info.pop(_NOTED, None)


def _folder() -> str | None:
    if db.engine.dialect.name != "sqlite":
        return None
    path = file_of(db.engine)
    return None if path is None else _FOLDER.format(path=path)


@contextmanager
def _opened(folder: str) -> Iterator[tuple[int, Callable[[str], str]]]:
    """The folder, and the addresses of sockets in it: a long path would not fit into one."""
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
                pass  # so many datagrams wait for it that it wakes without this one


@contextmanager
def listening(app: Flask, role: str, wake: Callable[[], object], pause: float) -> Iterator[bool]:
    """Within it, a thread calls ``wake`` when the processes of the role are woken, at most once in
    ``pause`` seconds. Gives whether they can be; a process that cannot must poll.
    """
    bound = None
    with app.app_context(), suppress(OSError):
        if (folder := _folder()) is not None:
            bound = _bound(folder, role)
    if bound is None:
        yield False
        return
    receiver, remove = bound
    ended = threading.Event()

    def listen() -> None:
        while receiver.recv(1) and not ended.is_set():
            wake()
            # Meanwhile others come together: of thousands of failures not each wakes this process.
            if ended.wait(pause):
                return

    thread = threading.Thread(target=listen, name=f"wake {role}", daemon=True)
    thread.start()
    try:
        yield True
    finally:
        ended.set()
        remove()
        receiver.shutdown(socket.SHUT_RDWR)
        thread.join()
        receiver.close()


def _bound(folder: str, role: str) -> tuple[socket.socket, Callable[[], None]]:
    """A socket of its own for a process of this role, and what removes it from the folder."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = f"{role}.{os.getpid()}.{secrets.token_hex(4)}"
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        with _opened(folder) as (_fd, address):
            receiver.bind(address(name))
    except OSError:
        receiver.close()
        raise

    def remove() -> None:
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))

    return receiver, remove
