"""What the log says when a part of the queue fails, without a flood.

The broker may be away for hours: that is said once. Any other exception is a fault of ours, and its
trace is needed: it is logged once an hour for each place in the code. What others send is counted,
and said at most once a minute.
"""

from __future__ import annotations

import logging
import threading
import time

from redis.exceptions import ResponseError

from app.engine.carriers.queue.broker import BROKER_FAULTS

log = logging.getLogger(__name__)

AGAIN_SECONDS = 3_600.0
TALLY_SECONDS = 60.0
LONGEST_TEXT = 200

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
            log.error("The broker cannot be used (%s). Trying again.", _words(fault))
            log.debug("The fault was:", exc_info=fault)
        self._away = True

    def over(self) -> None:
        """The broker was used."""
        if self._away:
            log.warning("The broker works again.")
        self._away = False


class Tally:
    """Counts what is dropped. ``one`` and ``many`` are what the log says: for the first, and for
    all since then, with ``{count}`` and the newest ``{reason}``.
    """

    def __init__(self, one: str, many: str) -> None:
        self._one, self._many = one, many
        self._lock = threading.Lock()
        self._count, self._reason = 0, ""
        self._told = float("-inf")

    def add(self, reason: str) -> None:
        with self._lock:
            self._count, self._reason = self._count + 1, reason
        self.flush()

    def flush(self) -> None:
        """To be called every few seconds, so that the last ones are told too."""
        now = time.monotonic()
        with self._lock:
            if not self._count or now - self._told < TALLY_SECONDS:
                return
            text = self._one if self._count == 1 else self._many
            told = text.format(count=f"{self._count:,}", reason=self._reason)
            self._count, self._told = 0, now
        log.warning("%s", told)


def _words(fault: Exception) -> str:
    """Its kind; for what Redis itself refuses, such as a key of another type, its words."""
    cause = fault.__cause__ or fault  # kombu hides it
    kind = type(cause).__name__
    return f"{kind}: {str(cause)[:LONGEST_TEXT]}" if isinstance(cause, ResponseError) else kind


def _place(fault: Exception) -> Place:
    """Where the exception was raised."""
    trace, place = fault.__traceback__, ("", 0)
    while trace is not None:
        place = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return place
