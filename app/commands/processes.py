"""The commands that run until they are stopped: serve, web, checker, prober, worker, agent.

Each function imports what its command needs, so that no process loads the modules of another.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from app.commands import watchdog
from app.commands.loading import loading
from app.config import PREFIX, SettingError, Settings, read
from app.i18n import N_, _

if TYPE_CHECKING:  # a prober has no database
    from app.access.settings import Policies
    from app.engine.carriers import CheckCarrier, RemoteNetwork

WITHOUT_DATABASE = (
    "Until it works, status pages come from their last copies, and all other requests get 503."
)
NO_CELERY = N_(
    "Checks through a queue need Celery. Install it beside Wakeful, from a checkout of its"
    " repository: pip install --requirement requirements/distributed.txt"
)
_M_ARENA_MAX = -8  # from malloc.h

log = logging.getLogger(__name__)


def until_stopped(run: Callable[[threading.Event], None], wake: Callable[[], object]) -> None:
    """Call ``run`` with an event that SIGTERM and SIGINT set; ``run`` returns when it has stopped.
    ``wake`` ends a wait of ``run``, so that it sees the event.

    A signal handler may interrupt itself (systemd sends two signals), or a wait for the event. If
    it set the event, it could deadlock on a lock that this thread holds. So it writes to a pipe.
    """
    stop = threading.Event()
    reader, writer = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_arguments: os.write(writer, b"."))

    def wait() -> None:
        os.read(reader, 1)
        stop.set()
        wake()

    threading.Thread(target=wait, name="stop", daemon=True).start()
    run(stop)


def use_one_heap() -> None:
    """Let all threads allocate from one heap. Call it before threads start.

    glibc gives each thread a heap, and other threads cannot use the memory that one has freed: a
    checker with 10,000 monitors took 10 MB more. Other C libraries have no such setting.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


@click.command()
@click.option("--again", hidden=True)
def serve(again: str | None) -> None:
    settings = read()
    with loading():
        from app.commands import cli
        from app.commands.serve import Supervisor

        # Imported before the fork, so that the parts share the memory. The modules of the web
        # server alone are not among them: they would delay the first check.
        if settings.store == "local":
            import app.alerts.worker
            import app.commands.heartbeat
            import app.commands.opened
            import app.engine.checker
            import app.engine.silence_watch  # noqa: F401

    def part(words: Sequence[str]) -> None:
        """Run the command that these words name, in this process."""
        sys.argv = [sys.argv[0], *words]
        cli.main()

    sys.exit(Supervisor(settings, part).run(again))


@click.command()
@click.option("--fd", type=int, hidden=True)
def web(fd: int | None) -> None:
    with loading():
        from sqlalchemy.exc import SQLAlchemyError

        from app.commands.opened import ready
        from app.commands.web.webserver import WebServer
        from app.db import faults
    settings = read()
    database_is_away = False
    try:
        ready(settings)
    except SQLAlchemyError as fault:
        if not faults.is_server_away(fault):
            raise
        database_is_away = True
        if fd is None:  # otherwise "wakeful serve" has logged it
            log.error("%s %s", faults.cause_of(fault), WITHOUT_DATABASE)
    WebServer(settings, fd, database_is_away=database_is_away).run()


@click.command()
@click.option(
    "--carrier",
    type=click.Choice(["local", "queue"]),
    default="local",
    help=N_("Who makes the checks: this process, or the probers behind WAKEFUL_BROKER_URL."),
)
def checker(carrier: str) -> None:
    with loading():
        from app.commands import heartbeat
        from app.commands.opened import ready
        from app.engine.checker import Checker
    use_one_heap()
    settings = read()
    if carrier == "queue":
        make, network = _queue_carrier(settings)
        part = Checker(ready(settings), settings, carrier=make, remote=network)
    else:
        part = Checker(ready(settings), settings)
    with heartbeat.sending(part.app, settings), watchdog.watching("checker") as part.checks.on_turn:
        until_stopped(part.run, part.checks.wake)


@contextmanager
def _extra() -> Iterator[None]:
    """Import the libraries of the extra ``distributed`` in this block. Raises SettingError if they
    are missing.
    """
    try:
        yield
    except ModuleNotFoundError as fault:
        if fault.name not in ("celery", "kombu", "redis"):
            raise
        raise SettingError(_(NO_CELERY)) from None


def _queue_carrier(
    settings: Settings,
) -> tuple[Callable[[Settings, Policies], CheckCarrier], RemoteNetwork]:
    """The function that makes the carrier of a checker, and the network of the probers
    behind it.
    """
    with _extra():
        from app.engine.carriers import RemoteNetwork
        from app.engine.carriers.queue.broker import broker_and_key
        from app.engine.carriers.queue.sender import QueueCarrier
    broker_and_key(settings)  # raises if one of them is missing
    network = RemoteNetwork()
    return lambda settings, _policies: QueueCarrier(settings, network), network


@click.command()
@click.option("--location", metavar="NAME", help=N_("The place; default: WAKEFUL_LOCATION."))
def prober(location: str | None) -> None:
    option = {} if location is None else {f"{PREFIX}LOCATION": location}
    settings = read({**os.environ, **option}, make=False)
    with _extra():
        from app.engine.carriers.queue.prober import run
    sys.exit(run(settings))


@click.command()
def worker() -> None:
    with loading():
        from app.alerts.worker import Worker
        from app.commands.opened import ready
        from app.engine.silence_watch import watching_silence
    settings = read()
    part = Worker(ready(settings), settings)
    with watchdog.watching("alert worker") as part.on_turn, watching_silence(part.app):
        until_stopped(part.run, part.wake)


@click.command()
def agent() -> None:
    with loading():
        from app.engine.agent.agent import Agent
    use_one_heap()
    part = Agent(read(make=False))
    with watchdog.watching("agent") as part.checks.on_turn:
        until_stopped(part.run, part.checks.wake)
