"""Which lanes may send next, by what one worker remembers of them.

The memory is lost with the process, and no harm done: a lane that nobody knows counts as working.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.alerts.channels.answer import Answer, Verdict
from app.alerts.restraint import Lane

MAX_LANES = 64  # threads at a time
MAX_SUBSCRIBERS = 16  # threads beside them, for the subscribers of status pages
SLEEP = timedelta(seconds=1)  # a lane that has to wait is looked at again after this


@dataclass
class _Known:
    lane: Lane = field(default_factory=Lane)
    asleep_until: datetime | None = None


class Lanes:
    """``busy`` are the lanes that have a message on its way, ``most`` of them at a time. Half of
    these at most are lanes whose last attempt failed: hanging services leave room.
    """

    def __init__(self, most: int = MAX_LANES) -> None:
        self.most = most
        self.busy: set[str] = set()
        self._known: dict[str, _Known] = {}

    def state(self, name: str) -> Lane:
        return self._of(name).lane

    def _of(self, name: str) -> _Known:
        return self._known.setdefault(name, _Known())

    def sleep(self, name: str, now: datetime, *, waits: bool) -> None:
        """After a turn of the lane: leave it alone for a moment where something ``waits``."""
        self._of(name).asleep_until = now + SLEEP if waits else None

    def asleep(self, now: datetime) -> set[str]:
        """The lanes to leave alone now; forgets those that there is nothing to know of."""
        asleep = set()
        for name, known in list(self._known.items()):
            # Never longer than a moment, also where the clock was set back meanwhile.
            if known.asleep_until is not None and now < known.asleep_until <= now + SLEEP:
                asleep.add(name)
            elif known.lane.last_ok and name not in self.busy:
                del self._known[name]  # memory stays small
        return asleep

    def choose(self, names: Iterable[str], returning: Collection[str]) -> list[str]:
        """As many lanes as there are threads for, those that work before those that fail.
        ``returning`` have their answer, so they are busy no more.
        """
        names = list(names)
        busy = self.busy - set(returning)
        room = self.most - len(busy)
        failing = [name for name in names if not self.state(name).last_ok]
        working = [name for name in names if self.state(name).last_ok]
        failing_room = self.most // 2 - sum(not self.state(name).last_ok for name in busy)
        return [*working, *failing[: max(0, failing_room)]][: max(0, room)]

    def note(self, name: str, answer: Answer, now: datetime) -> None:
        """Remember how the lane's last attempt fared."""
        closed = None
        if answer.retry_after is not None:
            closed = now + timedelta(seconds=answer.retry_after)
        # A refusal for good says nothing about the channel's health, so it closes no lane.
        healthy = answer.verdict is not Verdict.RETRY
        self._known[name] = _Known(Lane(last_ok=healthy, last_at=now, closed_until=closed))
