"""Which lanes may send next, by what this worker knows of their last attempts.

This is kept in memory only. After a restart every lane counts as working, which does no harm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.alerts.channels.answer import Answer, Verdict, is_bug
from app.alerts.lane_rules import Lane

MAX_LANES = 64  # threads at a time
MAX_SUBSCRIBERS = 16  # threads beside them, for mails to the subscribers of status pages
# Threads for their webhooks. Strangers choose these, and many that hang must delay no mail.
MAX_WEBHOOKS = 8
SLEEP = timedelta(seconds=1)  # a lane whose rows have to wait is read again after this


@dataclass
class _Known:
    lane: Lane = field(default_factory=Lane)
    asleep_until: datetime | None = None


class Lanes:
    """``busy``: the lanes of which a message is being sent, ``most`` at a time. At most half of
    them are lanes whose last attempt failed, so that hanging services leave some free.
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
        """After a turn of the lane: skip it for ``SLEEP`` if one of its rows ``waits``."""
        self._of(name).asleep_until = now + SLEEP if waits else None

    def asleep(self, now: datetime) -> set[str]:
        """The lanes to skip now. Forgets the lanes that work and are idle."""
        asleep = set()
        for name, known in list(self._known.items()):
            # The upper bound is for a clock that was set back: no lane sleeps longer.
            if known.asleep_until is not None and now < known.asleep_until <= now + SLEEP:
                asleep.add(name)
            elif known.lane.last_ok and name not in self.busy:
                del self._known[name]  # memory stays small
        return asleep

    def choose(self, names: Iterable[str], returning: Collection[str]) -> list[str]:
        """As many lanes as there are threads for, working lanes before failing ones. Those in
        ``returning`` have their answer, so they are no longer busy.
        """
        names = list(names)
        busy = self.busy - set(returning)
        room = self.most - len(busy)
        failing = [name for name in names if not self.state(name).last_ok]
        working = [name for name in names if self.state(name).last_ok]
        failing_room = self.most // 2 - sum(not self.state(name).last_ok for name in busy)
        return [*working, *failing[: max(0, failing_room)]][: max(0, room)]

    def note(self, name: str, answer: Answer, now: datetime) -> None:
        """Remember the result of the lane's last attempt."""
        closed = None
        if answer.retry_after is not None:
            closed = now + timedelta(seconds=answer.retry_after)
        # A permanent refusal is about one message, so the lane still counts as working. So does a
        # bug of ours: what follows in the lane may be sent.
        healthy = answer.verdict is not Verdict.RETRY or is_bug(answer.text)
        self._known[name] = _Known(Lane(last_ok=healthy, last_at=now, closed_until=closed))
