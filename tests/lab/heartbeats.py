"""The table of heartbeats: what happens to each, and what a person must read of it (decision 18).
``make bench-truth`` judges it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import NamedTuple

from app.judge.heartbeat import (
    HeartbeatRules,
    HeartbeatState,
    after_absence,
    after_ping,
    after_time,
)
from app.records import ArrivedPing, Cause, PingKind, Verdict

MINUTE = timedelta(minutes=1)
HOURLY = HeartbeatRules(timedelta(hours=1), 5 * MINUTE)
BOUNDED = HeartbeatRules(timedelta(hours=1), 5 * MINUTE, max_run=timedelta(minutes=10))


class Story(NamedTuple):
    """``events`` happen to a heartbeat of BOUNDED; what follows is its state at ``clock``.
    ``expected``: when the next ping is due.
    """

    events: Sequence[str]
    clock: str
    verdict: str | None
    code: str | None
    sentence: str | None
    expected: str | None

    def faults(self) -> Iterator[str]:
        """The differences, in sentences."""
        state = story(BOUNDED, *self.events)
        verdict = state.verdict(at(self.clock))
        code = state.fault and state.fault.code
        if verdict is Verdict.UNKNOWN:
            code = Cause.NOT_LISTENING
        for name, value, wanted in (
            ("verdict", verdict, self.verdict),
            ("cause", code, self.code),
            ("sentence", state.fault and state.fault.sentence, self.sentence),
            ("deadline", state.expected_at, self.expected and at(self.expected)),
        ):
            if value != wanted:
                yield f"the {name} is {value}, not {wanted}"


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-05-01T{clock}").replace(tzinfo=UTC)


def story(rules: HeartbeatRules, *events: str) -> HeartbeatState:
    """The state after events such as ``03:00 success``, ``03:00 fail 3``, ``04:05``, or ``05:00
    back 03:30``: since then no web process had run.
    """
    return reduce(lambda state, event: _after(rules, state, event), events, HeartbeatState())


def _after(rules: HeartbeatRules, state: HeartbeatState, event: str) -> HeartbeatState:
    clock, *words = event.split()
    if not words:
        return after_time(rules, state, at(clock))
    if words[0] == "back":
        return after_absence(rules, state, at(words[1]), at(clock))
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else None
    rid = words[1] if len(words) > 1 and not words[1].isdigit() else None
    return after_ping(rules, state, ArrivedPing(at(clock), PingKind(words[0]), status, rid))[0]


STORIES = [
    Story([], "05:00", None, None, None, None),
    Story(["03:00 log"], "09:00", None, None, None, None),
    Story(["03:00 start"], "09:00", None, None, None, None),
    Story(["03:00 success"], "03:59", "up", None, None, "04:00"),
    Story(["03:00 success", "04:04"], "04:04", "up", None, None, "04:00"),
    Story(["03:00 success", "04:05"], "04:05", "down", "heartbeat_missed",
        "No ping since 03:00; one was due by 04:05.", "04:00"),
    Story(["03:00 success", "04:05", "04:10 log"], "04:10", "down", "heartbeat_missed",
        "No ping since 03:00; one was due by 04:05.", "04:00"),
    Story(["03:00 success", "04:05", "04:10 success"], "04:10", "up", None, None, "05:10"),
    Story(["03:00 fail"], "03:00", "down", "heartbeat_failed", "It reported failure.", "04:00"),
    Story(["03:00 fail 3"], "03:00", "down", "heartbeat_failed",
        "It reported failure: exit status 3.", "04:00"),
    Story(["03:00 fail 3", "05:00"], "05:00", "down", "heartbeat_failed",
        "It reported failure: exit status 3.", "04:00"),
    Story(["03:00 fail 3", "03:10 success"], "03:10", "up", None, None, "04:10"),
    Story(["03:00 start", "03:10"], "03:10", "down", "heartbeat_overran",
        "It started at 03:00 and had not ended after 10 min.", None),
    Story(["03:00 success", "05:00 back 03:30"], "05:34", "unknown", "not_listening", None,
        "05:30"),
    Story(["03:00 success", "05:00 back 03:30", "05:35"], "05:35", "down", "heartbeat_missed",
        "No ping since 03:00; one was due by 05:35.", "05:30"),
    Story(["03:00 success", "05:00 back 03:30", "05:10 success"], "05:10", "up", None, None,
        "06:10"),
]  # fmt: skip
