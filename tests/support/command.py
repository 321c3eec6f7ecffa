"""``wakeful WORDS`` as a process of its own, forked from one that has imported all it needs: the
imports take five times as long as most commands.

tests/test_packaging.py and tests/support/service.py run the installed program.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from app.paths import MIGRATIONS

HOME = MIGRATIONS.parents[2]

_processes = get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "app.alerts.worker",
        "app.commands.cli",
        "app.commands.doctor",
        "app.commands.serve",
        "app.commands.webserver",
        "app.engine.checker",
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


def _be(words: list[str], environ: dict[str, str], folder: str) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(HOME)
    write = os.O_WRONLY | os.O_CREAT
    for number, flags in enumerate((os.O_RDONLY, write, write)):
        os.dup2(os.open(f"{folder}/{number}", flags), number)
    sys.stdin = os.fdopen(0, closefd=False)  # multiprocessing gives its children none
    sys.argv = ["wakeful", *words]
    from app.commands.entry import main

    main()
