"""Processes of their own, forked from one that has imported all they need: the imports take five
times as long as most commands.

wakeful    ``wakeful WORDS``, until it ends
start      any function, for as long as the test wants

tests/test_packaging.py and tests/support/service.py run the installed program.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.paths import MIGRATIONS

HOME = MIGRATIONS.parents[2]

_processes = get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "app.alerts.worker",
        "app.api",
        "app.commands.cli",
        "app.commands.doctor",
        "app.commands.serve",
        "app.commands.webserver",
        "app.engine.checker",
        "app.pages",
        "app.stores.local.public",
        "app.stores.remote",
        "app.web",
        "tests.support.command",
    ]
)


def wakeful(
    words: list[str], environ: Mapping[str, str], input: str = "", seconds: float = 100
) -> subprocess.CompletedProcess[str]:
    """What ``wakeful WORDS`` does with these variables of the environment and no others."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "0").write_text(input)
        process = _processes.Process(target=_be, args=(words, dict(environ), name))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
        said, complained = ((folder / number).read_text() for number in "12")
        code = process.exitcode
        process.close()
    assert code is not None
    return subprocess.CompletedProcess(words, code, said, complained)


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


def be(*words: str) -> None:
    """``wakeful WORDS``, to be started."""
    sys.argv = ["wakeful", *words]
    from app.commands.entry import main

    main()


def _call(
    environ: Mapping[str, str], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(HOME)
    function(*arguments)


def _be(words: list[str], environ: dict[str, str], folder: str) -> None:
    write = os.O_WRONLY | os.O_CREAT
    for number, flags in enumerate((os.O_RDONLY, write, write)):
        os.dup2(os.open(f"{folder}/{number}", flags), number)
    sys.stdin = os.fdopen(0, closefd=False)  # multiprocessing gives its children none
    _call(environ, be, tuple(words))
