"""``wakeful serve``: everything on one machine, as child processes that are looked after.

The listening socket belongs to the supervisor, so its port is known before anything is started, a
port that is taken is told at once, and a web process that is started again keeps it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click
from flask import Flask
from sqlalchemy import update

from app import create_core
from app.config import SettingError, Settings
from app.db import db, patience, schema, writing
from app.db.tables import HeartbeatRow
from app.stores.access import Access

log = logging.getLogger(__name__)

FIRST_PAUSE = 1.0  # seconds before a dead child is started again; doubles up to the longest
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 60.0  # a child that lived for so long starts with the first pause again
STOP_SECONDS = 15.0  # a child that has not ended by then is killed
MOURN_SECONDS = 2.0
WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class Child:
    """A part of the service: its command, and the process that runs it now."""

    name: str
    words: Sequence[str]
    fds: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    due: float = field(default=float("-inf"))  # when it is to be started (monotonic)


class Supervisor:
    """Starts the parts, starts again what dies, and stops all of it on SIGTERM or SIGINT."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.app = create_core(settings)
        self._children: list[Child] = []

    def run(self) -> int:
        """Serve until a signal says stop; the exit code. Raises SettingError."""
        with listen(self.settings.bind) as listener:
            with self.app.app_context():
                schema.upgrade()
                schema.read_secrets()
                greet(self.app, self.settings, listener)
                db.engine.dispose()
            self._serve(listener.fileno())
        return 0

    def _serve(self, fd: int) -> None:
        self._children = [Child("web server", ["web", "--fd", str(fd)], [fd])]
        if self.settings.store == "local":
            self._children += [Child("checker", ["checker"]), Child("alert worker", ["worker"])]
        # Blocked, signals wait for sigtimedwait: none is lost and none interrupts anything.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        try:
            self._watch()
        finally:
            self._stop()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _watch(self) -> None:
        while True:
            for child in self._children:
                self._look_after(child)
            got = signal.sigtimedwait(WATCHED, self._wait())
            if got is not None and got.si_signo != signal.SIGCHLD:
                return

    def _wait(self) -> float:
        now = time.monotonic()
        dues = [child.due - now for child in self._children if child.process is None]
        return max(0.0, min([1.0, *dues]))

    def _look_after(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is not None and (code := child.process.poll()) is not None:
            if now - child.started >= STEADY_SECONDS:
                child.pause = FIRST_PAUSE
            log.error("The %s ended (%s). It starts again in %g s.", child.name, code, child.pause)
            self._mourn(child)
            child.process, child.due = None, now + child.pause
            child.pause = min(LONGEST_PAUSE, child.pause * 2)
        if child.process is None and now >= child.due:
            child.process, child.started = spawn(child), now

    def _mourn(self, child: Child) -> None:
        """Let /readyz tell that no checker runs, though its last sign of life is young."""
        if child.name != "checker" or child.process is None:
            return
        name = f"checker:{socket.gethostname()}:{child.process.pid}"
        try:
            # In little time: meanwhile nothing else is looked after.
            with self.app.app_context(), patience(MOURN_SECONDS), writing() as session:
                its = update(HeartbeatRow).where(HeartbeatRow.name == name)
                session.execute(its.values(ended_at=datetime.now(UTC)))
        except Exception:
            log.exception("The end of the checker could not be noted.")

    def _stop(self) -> None:
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.error("A part of the service did not stop in time and was killed.")
                process.kill()
                process.wait()


def listen(bind: str) -> socket.socket:
    """A listening socket on ``bind``. Raises SettingError when the address cannot be used."""
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, int(port)))
        listener.listen(2048)
    except OSError as fault:
        listener.close()
        raise SettingError(
            f"Wakeful cannot listen on {bind}: {fault.strerror}. Is it running already? "
            "WAKEFUL_BIND chooses another address, such as 127.0.0.1:8001."
        ) from None
    listener.set_inheritable(True)
    return listener


def greet(app: Flask, settings: Settings, listener: socket.socket) -> None:
    """Print where to go, and who may make the first account. Needs an application context."""
    base = settings.public_url or _local_url(listener)
    click.echo(f"Wakeful runs at {base} (Ctrl-C stops it)")
    if settings.public_url:
        # Whoever sets up the proxy needs it, and with port 0 nothing else tells it.
        click.echo(f"It listens on {_local_url(listener)}")
    access = Access(settings)
    if access.setup_needed():
        click.echo(f"Make the first account here: {base}/setup/{access.setup_token()}")


def _local_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def spawn(child: Child) -> subprocess.Popen[bytes]:
    """Start a part as a process that ends when the supervisor does, however that ends."""
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before we asked to be told
            os._exit(1)

    return subprocess.Popen(
        # -P: the current directory may hold another package named app.
        [sys.executable, "-P", "-m", "app.cli", *child.words],
        env={**os.environ, "PYTHONPATH": _python_path()},
        pass_fds=child.fds,
        preexec_fn=prepare,
        # A group of its own: Ctrl-C reaches the supervisor alone, which then stops all in order.
        process_group=0,
    )


def _python_path() -> str:
    """Where this very package is, so that children run the same code however it was found."""
    home = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH")
    return f"{home}{os.pathsep}{before}" if before else home
