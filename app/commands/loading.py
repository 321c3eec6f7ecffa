"""Import the modules of ``wakeful`` faster."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Put the imports of a command into this block: they take up to a second.

    In the block, Ctrl-C ends the process silently, as it ends other programs; Python's own handler
    would print a long traceback. The garbage collection is off, because it takes a tenth of the
    time of imports and finds nothing. Later collections leave the imported objects out.
    """
    previous = signal.getsignal(signal.SIGINT)
    if previous is signal.default_int_handler:  # a shell ignores SIGINT for background jobs
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
