"""Stop a process in order when it gets a signal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


def until_stopped(run: Callable[[threading.Event], None]) -> None:
    """Call ``run`` with an event that SIGTERM and SIGINT set; it returns when it has stopped.

    A signal handler may interrupt itself, or a wait for the event. Setting the event in it could
    deadlock on a lock that this thread holds. systemd sends two signals to each process.
    """
    stop = threading.Event()
    asked, ask = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_arguments: os.write(ask, b"."))

    def wait() -> None:
        os.read(asked, 1)
        stop.set()

    threading.Thread(target=wait, name="stop", daemon=True).start()
    run(stop)
