"""Follow the change feed: which monitors must be reloaded. Needs an application context."""

from __future__ import annotations

from app.db import changes

LOOK_SECONDS = 0.5
AT_ONCE = 5000


class Feed:
    """Call ``start`` before anything is read, so that no later change is missed."""

    def __init__(self) -> None:
        self._number: int | None = None

    def start(self) -> None:
        if self._number is None:
            self._number = changes.newest()

    def news(self) -> set[int]:
        """The monitors that have changed since the last call."""
        self.start()
        found = changes.since(self._number or 0, AT_ONCE)
        if found:
            self._number = found[-1][0]
        return {monitor_id for _number, monitor_id in found}
