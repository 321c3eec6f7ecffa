"""What brings a check to a prober and its outcome back.

The schedule hands over what is due and the recorder takes what comes back; neither knows how it
travels. A carrier owes nothing: a check that it loses is missed by the schedule and made again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.records import CheckSpec, Outcome

Done = Callable[[Outcome], None]


class Carrier(Protocol):
    """Made after a fork, because it may have threads."""

    def submit(self, spec: CheckSpec, done: Done) -> None:
        """Have a check made. ``done`` is called on any thread and returns at once. Raises
        RuntimeError once ``close`` has been called.
        """

    def close(self, timeout: float) -> None:
        """Take no more checks, and wait up to ``timeout`` seconds for those on their way. The
        ``done`` of the rest is never called.
        """
