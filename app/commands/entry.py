"""Where the installed ``wakeful`` command begins."""

from __future__ import annotations

import gc
import signal


def main() -> None:
    """Import the command, which takes a second or more, and run it.

    Ctrl-C during the imports ends the process silently, as it ends any other program; Python's own
    handler would print a long traceback.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # and not ignored, as in a shell's background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # looking for garbage takes a tenth of the time of the imports, and finds none
    from app.commands import cli

    gc.enable()
    signal.signal(signal.SIGINT, before)
    cli.main()
