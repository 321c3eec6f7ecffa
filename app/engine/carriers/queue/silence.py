"""Notices that this prober's consumer has fallen silent: batches wait, and none comes.

Celery's consumer can lose Redis for a moment, say that it is connected again, and never take
another task (celery/celery#10302). Its process looks alive, so no service manager restarts it: the
prober has to end by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from redis.exceptions import RedisError

SILENT_SECONDS = 45.0  # longer than Celery takes to connect again, and than a batch is valid
LOOK_SECONDS = 5.0


@dataclass(slots=True)
class Consumer:
    """``waiting``: how many batches are in the queue; it may raise RedisError. ``taken``: how many
    have been taken so far. ``has_room``: whether this process would take one now.
    """

    waiting: Callable[[], int]
    taken: Callable[[], int]
    has_room: Callable[[], bool]
    silent_after: float
    _taken: int = field(init=False, default=-1)
    _since: float | None = field(init=False, default=None)

    def is_silent(self, now: float) -> bool:
        """To be asked every few seconds; ``now`` is monotonic. True when batches were waiting each
        time for ``silent_after`` seconds, and none was taken.
        """
        taken = self.taken()
        if taken != self._taken or not self.has_room() or not self._some_wait():
            self._taken, self._since = taken, None
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= self.silent_after

    def _some_wait(self) -> bool:
        try:
            return self.waiting() > 0
        except RedisError:  # nobody can take anything now; the consumer connects again by itself
            return False
