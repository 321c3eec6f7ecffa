"""``wakeful serve``: everything on one machine, as supervised child processes.

The listening socket belongs to the supervisor. So its port is known before a part is started, a
port that is in use is reported at once, and a restarted web server keeps the socket.

While all parts run, the supervisor rests (``resting``): its process runs a smaller program.
"""

from __future__ import annotations

import ctypes
import errno
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn

import click
from sqlalchemy.exc import SQLAlchemyError

from app import create_core
from app.access import Access
from app.commands import resting
from app.commands.resting import STOP_SECONDS, WATCHED
from app.config import SettingError, Settings
from app.db import db, faults, liveness, patience, schema
from app.i18n import N_, _
from app.lasting import Lasting
from app.rules.time import Backoff

log = logging.getLogger(__name__)

FIRST_PAUSE = 1.0  # seconds before a dead child is started again; doubles up to the longest
MAX_PAUSE = 30.0
STEADY_SECONDS = 60.0  # a child that ran for this time starts with the first pause again
# How long a start waits for the address. If a supervisor was killed, its children hold its socket
# until they have noticed that and ended.
WAIT_SECONDS = 10.0
POLL_SECONDS = 0.1
PARENT_POLL_SECONDS = 1.0  # if the kernel cannot report the end of a process
IDLE_SECONDS = 30.0  # the longest wait for a signal, such as that of the end of a child
REST_SECONDS = 10.0  # the time from the start of the last part until the supervisor rests
NOTE_SECONDS = 2.0  # the time limit for storing that a child has ended
WAITING = (
    "Until it works, no checks run, status pages come from their last copies, and all other "
    "requests get 503. Wakeful retries automatically."
)
IN_USE = N_(
    "Wakeful cannot listen on %(bind)s: %(error)s. Is it running already? WAKEFUL_BIND chooses"
    " another address, such as 127.0.0.1:8001."
)
# The arguments with which Python becomes the supervisor again after a rest
AGAIN = ("-P", "-c", "from app.commands.entry import main; main()", "serve", "--again")

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15  # the thread's name, as in ps -o comm and top; 15 bytes at most
_libc = ctypes.CDLL(None, use_errno=True)


Start = Callable[[Sequence[str]], None]  # runs the command that these words name


@dataclass(slots=True)
class Child:
    """A part of the service: its command (``words``), and the process that runs it now. ``closes``:
    file descriptors of the supervisor that the process must close.

    The process is forked from the supervisor: importing everything again would double the time
    until the first check. It ends when the supervisor ends, even if the supervisor is killed.
    """

    name: str
    words: Sequence[str]
    closes: Sequence[int] = ()
    pid: int | None = None
    started: float = 0.0
    pauses: Backoff = field(default_factory=lambda: Backoff(FIRST_PAUSE, MAX_PAUSE))
    due: float = field(default=float("-inf"))  # when it is to be started (monotonic)

    @property
    def needs_database(self) -> bool:
        """Whether the part starts only with a database. The web server starts without one: it has
        copies of the status pages.
        """
        return self.words[0] != "web"


class Supervisor:
    """Starts the children, restarts those that end, and stops all on SIGTERM or SIGINT.

    ``start`` runs a child's command in its forked process.
    """

    def __init__(self, settings: Settings, start: Start) -> None:
        self.settings = settings
        self.start = start
        self.app = create_core(settings)
        self._children: list[Child] = []
        self._base = ""  # the address for people, once it was printed
        self._prepared = False  # whether the database was brought up to date
        self._retry_at = 0.0  # when to prepare the database again, if it failed (monotonic)
        self._pauses = Backoff(FIRST_PAUSE, MAX_PAUSE)  # between these attempts
        self._can_rest = True  # False once becoming the smaller program has failed
        self._log = Lasting(log)

    def run(self, again: str | None = None) -> int:
        """Serve until a signal; returns the exit code. ``again``: the state before a rest or before
        the start of another Python (``_state``). Raises SettingError, and WakefulError for a
        database that this version cannot work with.
        """
        if again is not None:
            _libc.prctl(_PR_SET_NAME, b"wakeful")
            state = json.loads(again)
            with socket.socket(fileno=state["fd"]) as self._listener:
                self._prepared = True
                self._serve(state["fd"], state["children"])
            return 0
        with listen(self.settings.bind, WAIT_SECONDS) as self._listener:
            had_alembic = "alembic" in sys.modules
            self._prepare()
            if not had_alembic and self._prepared and "alembic" in sys.modules:
                # Alembic would stay in the memory of all parts: 16 MB.
                self._turn_into(*AGAIN, self._state([]))
            self._serve(self._listener.fileno())
        return 0

    def _prepare(self) -> None:
        """Bring the database up to date; try again later if its server does not answer."""
        try:
            with self.app.app_context():
                schema.upgrade()
                schema.read_secrets()
                self._greet()
                offer_set_up(self.settings, self._base)
        except SQLAlchemyError as fault:
            if not faults.is_server_away(fault):
                raise
            self._greet()
            # Logged once, because it may be away for hours.
            self._log.error("%s %s", faults.cause_of(fault), WAITING)
            self._retry_at = time.monotonic() + self._pauses.next()
        else:
            self._prepared = True

    def _greet(self) -> None:
        if not self._base:
            self._base = greet(self.settings, self._listener)

    def _serve(self, fd: int, running: Sequence[tuple[int, float, float]] = ()) -> None:
        self._children = [Child("web server", ["web", "--fd", str(fd)])]
        if self.settings.store == "local":
            # The checker first: until it runs, nothing is checked.
            self._children.insert(0, Child("checker", ["checker"], [fd]))
            self._children.append(Child("alert worker", ["worker"], [fd]))
        for child, (pid, started, pause) in zip(self._children, running, strict=False):
            child.pid, child.started, child.pauses.pause = pid, started, pause
        # A blocked signal waits for sigtimedwait: none is lost, and none interrupts a call.
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        try:
            self._watch()
        finally:
            self._stop()
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)

    def _watch(self) -> None:
        while True:
            if not self._prepared and time.monotonic() >= self._retry_at:
                with _interruptible():
                    self._prepare()
            for child in self._children:
                if self._prepared or not child.needs_database:
                    self._supervise(child)
            if self._prepared and time.monotonic() >= self._rest_at:
                self._rest()
            received = signal.sigtimedwait(WATCHED, self._wait())
            if received is not None and received.si_signo != signal.SIGCHLD:
                return

    def _wait(self) -> float:
        now = time.monotonic()
        dues = [child.due - now for child in self._children if child.pid is None]
        waits = [IDLE_SECONDS, self._rest_at - now, *dues]
        return max(0.0, min(waits)) if self._prepared else POLL_SECONDS

    @property
    def _rest_at(self) -> float:
        """When the supervisor rests next (monotonic); infinity if it does not."""
        if not self._can_rest or any(child.pid is None for child in self._children):
            return float("inf")
        return max(child.started for child in self._children) + REST_SECONDS

    def _rest(self) -> None:
        """Become the program that waits for a signal (``resting``)."""
        children = [(child.pid, child.started, child.pauses.pause) for child in self._children]
        pids = ",".join(str(pid) for pid, *_times in children)
        again = [sys.executable, *AGAIN, self._state(children)]
        self._turn_into("-I", "-S", resting.__file__, pids, *again)
        self._can_rest = False

    def _state(self, children: Sequence[tuple[int | None, float, float]]) -> str:
        """The state that ``run`` needs to continue in a new Python."""
        return json.dumps({"fd": self._listener.fileno(), "children": children})

    def _turn_into(self, *arguments: str) -> None:
        """Start Python with ``arguments`` in this process. Returns only if that fails."""
        self._close_connections()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - our own
        except OSError as fault:
            log.warning("The supervisor cannot make itself small: %s", fault)

    def _supervise(self, child: Child) -> None:
        """Note the end of a child, and start it when it is due."""
        now = time.monotonic()
        if child.pid is not None and (ended := os.waitpid(child.pid, os.WNOHANG))[0]:
            code = os.waitstatus_to_exitcode(ended[1])
            if now - child.started >= STEADY_SECONDS:
                child.pauses.reset()
            pause = child.pauses.next()
            log.error("The %s ended (%s). It starts again in %g s.", child.name, code, pause)
            self._note_end(child)
            child.pid, child.due = None, now + pause
        if child.pid is None and now >= child.due:
            self._fork(child)
            child.started = now

    def _fork(self, child: Child) -> None:
        """Start a child. All database connections are closed before: with a connection of SQLite,
        the child would believe that it holds locks that it does not hold; a connection of
        PostgreSQL would have two users.
        """
        self._close_connections()
        parent = os.getpid()
        child.pid = os.fork()
        if child.pid == 0:
            _become(child, self.start, parent)

    def _close_connections(self) -> None:
        """Close all database connections: neither a forked process nor another program may have
        them.
        """
        with self.app.app_context():
            db.session.remove()
            db.engine.dispose()

    def _note_end(self, child: Child) -> None:
        """Store the end of a child, so that /readyz reports it before its last sign is old."""
        if child.words[0] == "web" or child.pid is None:
            return
        name = liveness.process_name(child.words[0], child.pid)
        try:
            # The time limit is short, because the other children are not supervised meanwhile.
            with self.app.app_context(), patience(NOTE_SECONDS):
                liveness.note_end(name, datetime.now(UTC))
        except Exception as fault:
            faults.log_fault(log, f"The end of the {child.name} could not be noted.", fault)

    def _stop(self) -> None:
        running = [child.pid for child in self._children if child.pid is not None]
        if not resting.stop(running):
            log.error(resting.KILLED)


def listen(bind: str, max_wait: float = 0.0) -> socket.socket:
    """A listening socket on ``bind``. If the address is in use, waits up to ``max_wait`` seconds.

    Raises SettingError when the address cannot be used.
    """
    deadline = time.monotonic() + max_wait
    logged = False
    while True:
        try:
            return _listener(bind)
        except OSError as fault:
            remaining = deadline - time.monotonic()
            if fault.errno != errno.EADDRINUSE or remaining <= 0:
                raise SettingError(_(IN_USE, bind=bind, error=fault.strerror)) from None
        if not logged:
            log.warning("%s is in use. Waiting up to %g s for it.", bind, max_wait)
            logged = True
        time.sleep(POLL_SECONDS)


def _listener(bind: str) -> socket.socket:
    host, _colon, port = bind.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, int(port)))
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let a signal end this process inside the block, which may run a migration for long."""

    def end(*_arguments: object) -> NoReturn:
        raise SystemExit(0)

    ending = WATCHED - {signal.SIGCHLD}
    previous = {number: signal.signal(number, end) for number in ending}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        for number, handler in previous.items():
            signal.signal(number, handler)


def greet(settings: Settings, listener: socket.socket) -> str:
    """Print the addresses of the service. Returns the one that people use."""
    base = settings.public_url or _local_url(listener)
    click.echo(_("Wakeful runs at %(address)s (Ctrl-C stops it)", address=base))
    if settings.public_url:
        # The configuration of the proxy needs it. With port 0, it is shown nowhere else.
        click.echo(_("It listens on %(address)s", address=_local_url(listener)))
    return base


def offer_set_up(settings: Settings, base: str) -> None:
    """Print the set-up link of a new installation. Needs an application context."""
    access = Access()
    if access.setup.needed():
        link = f"{base}/setup/{access.setup.token()}"
        click.echo(_("Create the first account here: %(link)s", link=link))


def _local_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _become(child: Child, start: Start, parent: int) -> NoReturn:
    """Run the child in this process until it ends. Never returns to the supervisor's code."""
    code = 1
    try:
        # In another process group, so that Ctrl-C reaches only the supervisor, which stops all.
        os.setpgid(0, 0)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before prctl
            os._exit(1)
        _libc.prctl(_PR_SET_NAME, f"wakeful {child.words[0]}".encode())
        for fd in child.closes:
            os.close(fd)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        end_with(parent)
        start(child.words)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        log.exception("The %s ended.", child.name)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def end_with(parent: int) -> None:
    """Stop this process, a child of ``parent``, when ``parent`` has ended. Kill it if it does not
    stop.

    The kernel also asks it to stop when the supervisor is killed. That does not end a request that
    waits for a minute or a call that never returns, and is lost before there is a handler.
    """

    def watch() -> None:
        _wait_for_end(parent)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_SECONDS)
        log.error("The supervisor has ended, and this part did not stop in time. It is killed.")
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


def _wait_for_end(parent: int) -> None:
    """Return when ``parent``, of which this process is a child, has ended."""
    with suppress(OSError):  # Linux before 5.3, or a sandbox that forbids it
        fd = os.pidfd_open(parent)
        try:
            if os.getppid() == parent:  # otherwise another process may have its number by now
                select.select([fd], [], [])
        finally:
            os.close(fd)
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_SECONDS)
