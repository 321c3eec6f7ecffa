"""Import the modules of ``wakeful`` faster."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Within it, modules are imported, which takes up to a second.

    Ctrl-C then ends the process silently, as it ends any other program; Python's own handler would
    print a long traceback. Looking for garbage takes a tenth of the time of imports and finds none,
    now or later, so what was imported is left out of it.
    """
    previous = signal.getsignal(signal.SIGINT)
    if previous is signal.default_int_handler:  # and not ignored, as in a shell's background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()
        signal.signal(signal.SIGINT, previous)
