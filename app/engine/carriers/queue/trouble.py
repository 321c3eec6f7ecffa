"""What the log says when a part of the queue fails, without a flood.

The broker may be away for hours: that is logged once. A message that is refused is logged once a
minute for each reason. Any other exception is a fault of ours, and its trace is needed: it is
logged once an hour for each line of the code.
"""

from __future__ import annotations

import logging
import time

from redis.exceptions import ResponseError

from app.engine.carriers.queue.broker import BROKER_FAULTS
from app.engine.carriers.queue.messages import Refused

log = logging.getLogger(__name__)

FAULT_SECONDS = 3_600.0
REFUSED_SECONDS = 60.0
LONGEST_TEXT = 200

Line = tuple[str, int]  # of a file


class Trouble:
    """Of one thread, which goes on. ``doing``: what it does, such as "sending batches"."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._away = False
        self._logged: dict[tuple[type[Exception], Line], float] = {}

    def tell(self, fault: Exception) -> None:
        """Log an exception that ended a turn of the thread."""
        if isinstance(fault, BROKER_FAULTS):
            self._tell_away(fault)
            return
        refused = isinstance(fault, Refused)
        pause = REFUSED_SECONDS if refused else FAULT_SECONDS
        kind, now = (type(fault), _line(fault)), time.monotonic()
        if now - self._logged.get(kind, float("-inf")) < pause:
            return
        self._logged[kind] = now
        if refused:
            log.warning("%s", fault)
        else:
            log.error("A fault of ours while %s:", self._doing, exc_info=fault)

    def _tell_away(self, fault: Exception) -> None:
        if not self._away:
            log.error("The broker cannot be used (%s). Trying again.", _words(fault))
            log.debug("The fault was:", exc_info=fault)
        self._away = True

    def over(self) -> None:
        """The broker was used."""
        if self._away:
            log.warning("The broker works again.")
        self._away = False


def _words(fault: Exception) -> str:
    """Its kind; for what Redis itself refuses, such as a key of another type, its words."""
    cause = fault.__cause__ or fault  # kombu hides it
    kind = type(cause).__name__
    return f"{kind}: {str(cause)[:LONGEST_TEXT]}" if isinstance(cause, ResponseError) else kind


def _line(fault: Exception) -> Line:
    """Where the exception was raised."""
    trace, line = fault.__traceback__, ("", 0)
    while trace is not None:
        line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return line
