"""End a process whose loop hangs, so that its supervisor restarts it.

Every known wait has a time limit. This is for unknown ones: a network disk under SQLite that does
not answer, a library call that never returns. Such a process looks alive but does nothing.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

LIMIT_SECONDS = 120.0
CHECKS = 20  # checks within the limit
LAST_WORDS_SECONDS = 2.0
EXIT_CODE = 70  # "internal software error" among the exit codes of sysexits.h


@contextmanager
def watching(name: str) -> Iterator[Callable[[], None]]:
    """Watch the loop that the calling thread runs in this block. Yields a function that the loop
    must call at each turn. ``name``: the process in the log, such as "checker".

    The watch ends with the block, so a process that goes on after the block is not ended.
    """
    loop, turned, closed = threading.get_ident(), threading.Event(), threading.Event()

    def watch() -> None:
        # Checks are counted, not seconds: while the whole process is stopped, so is this thread.
        missed, pause = 0, LIMIT_SECONDS / CHECKS
        while missed < CHECKS:
            if closed.wait(pause):
                return
            missed = 0 if turned.is_set() else missed + 1
            turned.clear()
        _end(name, loop)

    threading.Thread(target=watch, name="watchdog", daemon=True).start()
    try:
        yield turned.set
    finally:
        closed.set()


def _end(name: str, loop: int) -> None:
    # In another thread, because logging may be the call that hangs.
    words = threading.Thread(target=_log_stall, args=(name, loop), daemon=True)
    words.start()
    words.join(LAST_WORDS_SECONDS)
    # Not sys.exit: that would wait for the thread that hangs.
    os._exit(EXIT_CODE)


def _log_stall(name: str, loop: int) -> None:
    frame = sys._current_frames().get(loop)
    log.critical(
        "The %s has been stuck for %g s and ends, to be restarted. It was at:\n%s",
        name,
        LIMIT_SECONDS,
        "".join(traceback.format_stack(frame)) if frame else "",
    )
