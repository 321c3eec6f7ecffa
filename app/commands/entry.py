"""The entry point of the installed ``wakeful`` command."""

from __future__ import annotations

import os
import sys
from importlib.util import cache_from_source

from app.commands.loading import loading

LONG_RUNNING = "serve", "web", "checker", "prober", "worker", "agent"


def main() -> None:
    """The installed command."""
    if sys.argv[1:2] and sys.argv[1] in LONG_RUNNING:
        _leave_out_docstrings()
    run()


def run() -> None:
    """Import the command and run it."""
    with loading():
        from app.commands import cli
    cli.main()


def _leave_out_docstrings() -> None:
    """Start Python again without docstrings, which take a tenth of the memory of a process.

    This happens only if the installation has modules that were compiled so. Otherwise, if Python
    cannot write beside the modules, each start would compile all of them, for seconds.
    """
    compiled = cache_from_source(__file__, optimization=2)
    if sys.flags.optimize < 2 and os.path.exists(compiled):
        os.execv(sys.executable, [sys.executable, "-OO", *sys.orig_argv[1:]])  # noqa: S606 - our own
