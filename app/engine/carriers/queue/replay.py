"""Whether a message comes for the first time: whoever has Redis can send a copy of it later."""

from __future__ import annotations

from app.engine.carriers.queue.broker import FRESH_SECONDS

# Older ones are refused by their age. Both clocks may differ by FRESH_SECONDS, each way.
REMEMBERED_SECONDS = 3 * FRESH_SECONDS


class Once:
    """What names each message, for as long as a copy would count. Not safe from several threads."""

    def __init__(self) -> None:
        self._seen: dict[bytes, float] = {}  # the oldest first

    def is_new(self, name: bytes, now: float) -> bool:
        """True when it is first asked for this name; ``now`` is monotonic."""
        self._forget(now - REMEMBERED_SECONDS)
        if name in self._seen:
            return False
        self._seen[name] = now
        return True

    def _forget(self, before: float) -> None:
        while self._seen:
            oldest, since = next(iter(self._seen.items()))
            if since >= before:
                return
            del self._seen[oldest]
