"""What the log says when a part of the queue fails, without a flood.

The broker may be away for hours: that is said once. Any other exception is a fault of ours, and its
trace is needed: it is logged once an hour for each place in the code.
"""

from __future__ import annotations

import logging
import time

from app.engine.carriers.queue.broker import BROKER_FAULTS

log = logging.getLogger(__name__)

AGAIN_SECONDS = 3_600.0

Place = tuple[str, int]  # a file, and a line of it


class Trouble:
    """Of one thread, which goes on. ``doing``: what it does, such as "sending batches"."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._away = False
        self._told: dict[tuple[type[Exception], Place], float] = {}

    def tell(self, fault: Exception) -> None:
        """Log an exception that ended a turn of the thread."""
        if isinstance(fault, BROKER_FAULTS):
            self._tell_away(fault)
            return
        kind, now = (type(fault), _place(fault)), time.monotonic()
        if now - self._told.get(kind, float("-inf")) >= AGAIN_SECONDS:
            self._told[kind] = now
            log.error("A fault of ours while %s:", self._doing, exc_info=fault)

    def _tell_away(self, fault: Exception) -> None:
        if not self._away:
            log.error("The broker cannot be used (%s). Trying again.", type(fault).__name__)
            log.debug("The fault was:", exc_info=fault)
        self._away = True

    def over(self) -> None:
        """The broker was used."""
        if self._away:
            log.warning("The broker works again.")
        self._away = False


def _place(fault: Exception) -> Place:
    """Where the exception was raised."""
    trace, place = fault.__traceback__, ("", 0)
    while trace is not None:
        place = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return place
