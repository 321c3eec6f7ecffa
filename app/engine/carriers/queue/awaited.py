"""Says once that no batch has come for the place of a prober: its name may be misspelt.

A prober has no database, so it cannot know whether there is such a place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from redis.exceptions import RedisError

from app.config import PREFIX

log = logging.getLogger(__name__)

AFTER_SECONDS = 60.0


@dataclass(slots=True)
class FirstBatch:
    """``came``: how many batches came so far. ``reach``: asks the broker anything; it may raise
    RedisError, and the log has said so then. ``since``: the start (monotonic).
    """

    location: str
    came: Callable[[], int]
    reach: Callable[[], object]
    since: float
    _is_over: bool = field(init=False, default=False)

    def look(self, now: float) -> None:
        """To be called every few seconds."""
        if self._is_over or now - self.since < AFTER_SECONDS:
            return
        try:
            self.reach()
        except RedisError:
            return
        self._is_over = True
        if not self.came():
            log.warning(
                "No batch has come to this prober in its first minute. If monitors are checked "
                "from the place %s and no other prober takes its batches: is the name right, and "
                'does "%sLOCATION=%s wakeful checker --carrier queue" run with the same broker?',
                self.location,
                PREFIX,
                self.location,
            )
