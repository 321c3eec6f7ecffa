"""End a process with its parent: a part of ``wakeful serve`` must not outlive its supervisor.

The kernel asks it to stop when the supervisor is killed. This is for what a stop does not reach: a
request that waits for a minute, a call that never returns, a signal that came before its handler.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

log = logging.getLogger(__name__)

STOP_SECONDS = 15.0  # a process that has not ended by then is killed
LOOK_SECONDS = 1.0


def end_with(parent: int) -> None:
    """Stop this process, a child of ``parent``, when that has ended. Kill it if it does not."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_SECONDS)
        log.error("The supervisor has ended, and this part did not stop in time. It is killed.")
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()
