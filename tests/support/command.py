"""Processes of their own, forked from one that has imported all they need: the imports take five
times as long as most commands.

wakeful    ``wakeful WORDS``, until it ends
python     ``python -c SCRIPT WORDS``, until it ends
environ_of   the environment of this process, with these settings of Wakeful and no others
Running    ``wakeful WORDS``, with what tests use of subprocess.Popen
start      any function, for as long as the test wants
resting_after  a function, whose process then waits to be killed

Its parent is the server that forks, not the test; Ctrl-C and other signals, exit codes, /proc and
the ends of its children are those of any process. What depends on how a process starts runs really
started ones: the installed program in tests/test_packaging.py and tests/engine/test_serve.py
(``tests.support.service.Installed``), the imports of commands in test_cli.py, test_checker.py and
test_start_of_a_checker.py, a clock that is set before them in ``tests.support.stepped``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.commands.cli import COMMANDS
from app.config import Settings
from app.paths import MIGRATIONS

HOME = MIGRATIONS.parents[2]


def environ_of(installation: Settings | None = None, **settings: str) -> dict[str, str]:
    """The environment of a program: nothing of the tester's own settings leaks into it."""
    if installation is not None:
        settings = {
            "DATABASE_URL": installation.database_url.replace("+psycopg", ""),
            "INSTANCE": str(installation.instance),
            "SECRET_KEY": installation.secret_key,
            "CANARIES": "",
        } | settings
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    return kept | {f"WAKEFUL_{name}": value for name, value in settings.items()}


_processes = get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "alembic.command",
        "alembic.ext",
        "app.api",
        "app.alerts.worker",
        *{f"app.commands.{where.partition('.')[0]}" for where, _help in COMMANDS.values()},
        "app.commands.doctor",
        "app.commands.serve",
        "app.commands.web.webserver",
        "app.engine.agent.agent",
        "app.engine.checker",
        "app.engine.silence_watch",
        "app.hosts",
        "app.pages",
        "app.stores.local.public",
        "app.stores.remote",
        "app.web",
        "mako.template",
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.dialects.sqlite",
        "tests.support.command",
    ]
)


def wakeful(
    words: list[str], environ: Mapping[str, str], input: str = "", seconds: float = 100
) -> subprocess.CompletedProcess[str]:
    """The result of ``wakeful WORDS`` with these variables of the environment and no others."""
    return _ended(be, words, environ, input, seconds)


def python(
    script: str, words: Sequence[str], environ: Mapping[str, str], seconds: float = 100
) -> subprocess.CompletedProcess[str]:
    """What ``python -c SCRIPT WORDS`` does with these variables of the environment and no others,
    where it makes no difference that Wakeful was imported before.
    """
    return _ended(_execute, [script, *words], environ, "", seconds)


def _ended(
    function: Callable[..., Any],
    words: Sequence[str],
    environ: Mapping[str, str],
    input: str,
    seconds: float,
) -> subprocess.CompletedProcess[str]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "0").write_text(input)
        process = _processes.Process(
            target=_in_folder, args=(function, tuple(words), dict(environ), name)
        )
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
        output, complained = ((folder / number).read_text() for number in "12")
        code = process.exitcode
        process.close()
    assert code is not None
    return subprocess.CompletedProcess(words, code, output, complained)


class Running:
    """``wakeful WORDS`` in this environment, as a process of its own. ``stdout`` has all that it
    prints. It is killed when the tests' own process ends.
    """

    def __init__(self, words: list[str], environ: Mapping[str, str]) -> None:
        reader, writer = _processes.Pipe(duplex=False)
        with reader, writer:
            self._process = start(_print_to, writer, words, environ=environ)
            self.stdout = open(os.dup(reader.fileno()), encoding="utf-8")  # noqa: SIM115
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        self._process.join(seconds)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self._process.name, seconds)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


def start(
    function: Callable[..., Any], *arguments: Any, environ: Mapping[str, str] | None = None
) -> BaseProcess:
    """A process that calls the function of a module, in this environment or one of its own. It is
    killed when the tests' own process ends.
    """
    environ = dict(os.environ if environ is None else environ)
    process = _processes.Process(target=_call, args=(environ, function, arguments), daemon=True)
    process.start()
    return process


def resting_after(function: Callable[[], Any]) -> tuple[BaseProcess, Any]:
    """A process that has called the function and goes on until it is killed; what it returned."""
    receiver, sender = _processes.Pipe(duplex=False)
    return start(_rest_after, sender, function), receiver.recv()


def _rest_after(sender: Connection, function: Callable[[], Any]) -> None:
    sender.send(function())
    signal.pause()


def be(*words: str) -> None:
    """``wakeful WORDS``, to be started."""
    sys.argv = ["wakeful", *words]
    from app.commands.entry import run

    run()


def _call(
    environ: Mapping[str, str], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(HOME)
    function(*arguments)


def _print_to(writer: Connection, words: list[str]) -> None:
    for number in (1, 2):
        os.dup2(writer.fileno(), number)
    writer.close()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)  # as with PYTHONUNBUFFERED, which is too late
    be(*words)


def _execute(script: str, *words: str) -> None:
    sys.argv = ["-c", *words]
    exec(compile(script, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102


def _in_folder(
    function: Callable[..., Any], words: tuple[str, ...], environ: dict[str, str], folder: str
) -> None:
    """Call it with the standard streams in the files of this folder that are named after them."""
    write = os.O_WRONLY | os.O_CREAT
    for number, flags in enumerate((os.O_RDONLY, write, write)):
        os.dup2(os.open(f"{folder}/{number}", flags), number)
    sys.stdin = os.fdopen(0, closefd=False)  # multiprocessing gives its children none
    _call(environ, function, words)
