"""Carriers bring checks to a prober and their outcomes back.

Schedule and recorder are the same for all of them. A carrier may lose a check: the schedule notices
that and repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from app.engine.schedule import Claim
from app.records import CheckSpec, Outcome

Done = Callable[[Outcome], None]
Finished = tuple[Claim, Outcome]  # the claim of a check, and its outcome


class CheckCarrier(Protocol):
    """Makes checks, or brings them to a prober. It is created after a fork, because it may have
    threads.
    """

    def submit(self, spec: CheckSpec, done: Done) -> None:
        """Start a check. ``done`` is called on any thread and must return at once. Raises
        RuntimeError after ``close``.
        """

    def close(self, timeout: float) -> object:
        """Accept no more checks, and wait up to ``timeout`` seconds for running ones. For the
        others, ``done`` is never called.
        """


@dataclass(frozen=True, slots=True)
class ProberReport:
    """The report of a prober on another machine. ``clock_offset``: by how much its clock is ahead
    of this machine's. ``checks``: the outcomes since the last report that this checker waited for.
    """

    process: str
    version: str
    clock_offset: timedelta
    checks: int


class RemoteNetwork:
    """Replaces ``app.engine.network.OwnNetwork`` if probers make the checks: they detect failures
    of their own networks, and the carrier sets ``down`` by their messages.

    ``reports`` returns the reports of the probers since the last call.
    """

    waits = True  # ``down`` may change without another check

    def __init__(self) -> None:
        self.down = False
        self.reports: Callable[[], Sequence[ProberReport]] = lambda: ()

    def sort(self, finished: list[Finished], _now: float) -> list[Finished]:
        return finished

    def collect(self, _now: float) -> list[Finished]:
        return []
