"""Ends a process whose loop stands still, so that whoever looks after it starts it again.

Every wait that we know of has a limit. This is for those that we do not know: a dead network disk
under SQLite, a library that never returns. Such a process looks alive and does nothing, for good.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable

log = logging.getLogger(__name__)

LIMIT_SECONDS = 120.0
LOOKS = 20  # within the limit
LAST_WORDS_SECONDS = 2.0
EXIT_CODE = 70  # "internal software error" among the exit codes of sysexits.h


def watch(name: str) -> Callable[[], None]:
    """Watch the loop of the calling thread; returns what that loop is to call at each turn.
    ``name`` is the process's, as in "the checker".
    """
    loop, moved = threading.get_ident(), threading.Event()

    def look() -> None:
        # Looks are counted, not seconds: when the whole process was stopped, this thread was too.
        missed, pause = 0, LIMIT_SECONDS / LOOKS
        while missed < LOOKS:
            time.sleep(pause)
            missed = 0 if moved.is_set() else missed + 1
            moved.clear()
        _end(name, loop)

    threading.Thread(target=look, name="watchdog", daemon=True).start()
    return moved.set


def _end(name: str, loop: int) -> None:
    # On a thread of its own: the log may be what everything waits for.
    words = threading.Thread(target=_tell, args=(name, loop), daemon=True)
    words.start()
    words.join(LAST_WORDS_SECONDS)
    # Not sys.exit: the thread that would have to end is the one that stands still.
    os._exit(EXIT_CODE)


def _tell(name: str, loop: int) -> None:
    frame = sys._current_frames().get(loop)
    log.critical(
        "The %s has not moved for %g s. It ends here, to be started again. It stood at:\n%s",
        name,
        LIMIT_SECONDS,
        "".join(traceback.format_stack(frame)) if frame else "",
    )
