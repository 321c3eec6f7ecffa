"""What a prober watches of its own consumer: whether it has fallen silent, and whether any batch
has come at all.

Celery's consumer can lose Redis for a moment, say that it is connected again, and never take
another task (celery/celery#10302). Its process looks alive, so no service manager restarts it: the
prober has to end by itself. And a prober has no database: it cannot know whether there is a place
of its name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from redis.exceptions import RedisError

from app.config import PREFIX

log = logging.getLogger(__name__)

SILENT_SECONDS = 45.0  # longer than Celery takes to connect again, and than a batch is valid
FIRST_SECONDS = 60.0
LOOK_SECONDS = 5.0


@dataclass(slots=True)
class Watch:
    """``waiting``: how many batches are in the queue; it may raise RedisError. ``taken``: how many
    have been taken so far. ``has_room``: whether this process would take one now. ``begun``: the
    start (monotonic).
    """

    location: str
    waiting: Callable[[], int]
    taken: Callable[[], int]
    has_room: Callable[[], bool]
    begun: float
    _taken: int = field(init=False, default=-1)
    _since: float | None = field(init=False, default=None)
    _warned: bool = field(init=False, default=False)

    def is_silent(self, now: float) -> bool:
        """To be asked every few seconds; ``now`` is monotonic. True when batches were waiting each
        time for SILENT_SECONDS, and none was taken.
        """
        try:
            waiting, taken = self.waiting(), self.taken()
        except RedisError:  # nobody can take anything now; the consumer connects again by itself
            self._since = None
            return False
        self._warn_of_none(now)
        if taken != self._taken or not waiting or not self.has_room():
            self._taken, self._since = taken, None
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= SILENT_SECONDS

    def _warn_of_none(self, now: float) -> None:
        """Log once that no batch has come: the name of the place may be misspelt."""
        if self._warned or now - self.begun < FIRST_SECONDS:
            return
        self._warned = True
        if not self.taken():
            log.warning(
                "No batch has come to this prober in its first minute. If monitors are checked "
                "from the place %s and no other prober takes its batches: is the name right, and "
                'does "%sLOCATION=%s wakeful checker --carrier queue" run with the same broker?',
                self.location,
                PREFIX,
                self.location,
            )
