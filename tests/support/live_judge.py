"""The recorder's work on each result of a monitor's places, without a database."""

from __future__ import annotations

from bisect import insort
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.judge.replay import Replay, in_order, is_out_of_order, margin
from app.judge.verdict import (
    Effect,
    NewResult,
    Situation,
    State,
    after_gap,
    is_outdated,
    judge_result,
    judge_votes,
)

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
COVERS = timedelta(seconds=150)
MOMENT = timedelta(milliseconds=1)


def at(check):
    return datetime.fromtimestamp(check.at_ms / 1000, UTC)


def check_of(result):
    return NewResult(result.place, at(result), result.verdict, result.maintenance)


class Live:
    """The recorder's work on each result."""

    def __init__(self, rules):
        self.rules, self.situation = rules, Situation()
        self.stored, self.incidents, self.newest, self.ruled = [], [], None, BEGIN

    def record(self, result):
        check = check_of(result)
        before = self.situation
        if self.newest is not None and check.at - self.newest > self.rules.longest_gap:
            before = Situation(after_gap(before.state), before.votes)
        self.newest = max(self.newest or check.at, check.at)
        since = max(self.since, check.at - margin(self.rules, COVERS))
        insort(self.stored, result)
        assert not is_outdated(before, check)
        decision = judge_result(self.rules, before, check)
        if is_out_of_order(before, check, decision):
            decision = in_order(self.rules, COVERS, before, check, decision, self.stored, since)
        started, self.situation = before.state.down_since, decision.situation
        if decision.effect is Effect.END:
            self.incidents.append((started, decision.moment))

    def change(self, **rules):
        """Another rule, from now on."""
        self.rules, self.ruled = replace(self.rules, **rules), self.newest + MOMENT
        before = self.situation.state
        decision = judge_votes(self.rules, self.situation, self.ruled, maintenance=False)
        self.situation = decision.situation
        if decision.effect is Effect.END:
            self.incidents.append((before.down_since, decision.moment))

    @property
    def since(self):
        """What is open since, or when the last incident ended, or the rule was changed."""
        ends = [self.situation.state.down_since] if self.situation.state.down_since else []
        return max([*ends, *(end for _start, end in self.incidents), self.ruled])

    @property
    def is_of_before(self):
        """Whether something that is confirmed now began under another rule."""
        state = self.situation.state
        begun = state.failing_since or state.recovering_since
        return begun is not None and begun < self.ruled

    def replayed(self):
        """The same by all stored results in their order."""
        state = State(down_since=self.situation.state.down_since)
        replay = Replay(self.rules, COVERS, self.since, state)
        replay.judge(self.stored)
        return replay.situation
