"""Where the installed ``wakeful`` command begins."""

from __future__ import annotations

import signal


def main() -> None:
    """Import the command, which takes a second or more, and run it.

    Ctrl-C before the command can answer to it ends the process without a word, as it ends any other
    program; Python's own answer would be a page of where the imports were.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # and not ignored, as in a shell's background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from app.commands import cli

    signal.signal(signal.SIGINT, before)
    cli.main()
