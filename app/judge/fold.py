"""Judge stored results again, in the order of their checks. Pure.

Live, a result is judged when it is recorded. Here all places' results of some time are known, as if
none had been late, and the same rules say when the monitor was down (``judge``). What differs:

- An incident is what it is. While one was open, results open nothing; after it, the state is clear.
- Time that no result covers ends an outage, and a failure that is being confirmed: nothing is known
  about it.
- When a result was recorded is not known, so a check repeats another if it began later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from app.judge.verdict import (
    MOMENT_S,
    Check,
    Observation,
    Stands,
    State,
    Step,
    Vote,
    advance,
    cleared,
    counts,
    decide,
    failed_in_maintenance,
    failures_after,
    heard,
    repeats,
)

Span = tuple[datetime, datetime]
MOMENT = timedelta(seconds=MOMENT_S)
MILLISECOND = timedelta(milliseconds=1)  # results have their times in these
EVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rules:
    """How a monitor is judged. ``covers``: how long a result counts that does not say so itself.
    ``places`` vote, since ``begun``.
    """

    location_rule: str
    confirmations: int
    stale_after: timedelta
    covers: timedelta
    places: Collection[int]
    begun: datetime


@dataclass(frozen=True, slots=True)
class Incident:
    """``ended_at`` is None while it is open. ``pause``: it is a pause of the monitor, and what its
    places saw before has no vote after it.
    """

    started_at: datetime
    ended_at: datetime | None
    by_hand: bool
    pause: bool = False


class Replay:
    """``outages`` are those that have ended, without the time of ``incidents`` (in order).

    ``since``: results before it only vote. ``before``: the outage in which the monitor was then, as
    far as it is known.
    """

    def __init__(
        self,
        rules: Rules,
        incidents: Sequence[Incident],
        since: datetime,
        before: Span | None = None,
    ) -> None:
        self._rules = rules
        self._incidents = list(incidents)
        self._since = since
        self._state = State(started_at=before[0] if before else None)
        self._incident_until = since  # the end of the last incident that was met
        # Until when the results cover.
        self._reach: datetime | None = before[1] if before else None
        self._votes: dict[int, Vote] = {}
        self._begun = rules.begun  # since when its places vote
        self.outages: list[Span] = []

    def see(self, checks: Iterable[Check]) -> None:
        """Judge these results, which are in order and later than those before."""
        for check in checks:
            covers = self._rules.covers
            if check.covers is not None:
                covers = timedelta(milliseconds=check.covers)
            if covers > MOMENT:  # not while paused, nor on request in a place that does not watch
                self._one(check, datetime.fromtimestamp(check.at / 1000, UTC), covers)

    @property
    def is_clear(self) -> bool:
        return self._state.stands is Stands.CLEAR

    @property
    def down_since(self) -> datetime | None:
        """Since when an outage lasts that shows no sign of a recovery yet."""
        return self._state.started_at if self._state.stands is Stands.OPEN else None

    def ended(self) -> Sequence[Span]:
        """All outages; one that has not ended lasts until the last result stops counting."""
        if self._reach is not None:
            self._meet_incidents(self._reach)
            self._end(self._reach)
        return self.outages

    def _one(self, check: Check, at: datetime, covers: timedelta) -> None:
        self._meet_incidents(at)
        if self._reach is not None and self._reach < at:
            self._end(self._reach)
        self._reach = max(self._reach or at, at + covers)
        before = self._votes.get(check.place)
        failures = failures_after(
            before.failures if before else 0, check.verdict, maintenance=check.maintenance
        )
        self._votes[check.place] = Vote(check.place, at, check.verdict, failures=failures)
        if at < self._since or at < self._incident_until:
            return
        votes = heard(
            self._votes.values(), at, self._rules.stale_after, maintenance=check.maintenance
        )
        state, awaited = self._state, self._awaited(check, at)
        is_down = state.stands in (Stands.OPEN, Stands.RECOVERING)
        rule = self._rules.location_rule
        verdict = decide(votes, rule, awaited, incident=is_down)
        previous = before.at if before else None
        if counts(
            state,
            check.verdict,
            votes,
            verdict,
            rule,
            awaited,
            repeats=repeats(state, previous, state.checked_at, failures),
            since=state.checked_at and state.checked_at + MILLISECOND,
            maintenance=check.maintenance,
        ):
            self._judge(Observation(at, verdict, check.maintenance))

    def _awaited(self, check: Check, at: datetime) -> int:
        """How many places are about to vote for the first time, or for the first time after a
        maintenance in which they saw it fail.
        """
        since, found = at - self._rules.stale_after, 0
        if self._begun >= since:
            found = sum(place not in self._votes for place in self._rules.places)
        if check.maintenance:
            return found
        known = self._votes.values()
        return found + sum(failed_in_maintenance(one) and one.at >= since for one in known)

    def _judge(self, seen: Observation) -> None:
        before = self._state
        after = advance(before, seen, self._rules.confirmations)
        self._state = after.state
        if after.step is Step.END and before.started_at and after.moment:
            self._add(before.started_at, after.moment)

    def _meet_incidents(self, until: datetime) -> None:
        """End what an incident takes over that began before ``until``."""
        while self._incidents and self._incidents[0].started_at <= until:
            incident = self._incidents.pop(0)
            if self._reach is not None and self._reach < incident.started_at:
                self._end(self._reach)
            if self._state.failing_since and not incident.by_hand:
                # The checks that opened the incident confirm the failures before it.
                self._state = replace(self._state, started_at=self._state.failing_since)
            self._end(incident.started_at, recovered=False)
            self._incident_until = max(self._incident_until, incident.ended_at or EVER)
            if incident.pause:
                self._votes.clear()
                self._begun = incident.ended_at or EVER

    def _end(self, at: datetime, *, recovered: bool = True) -> None:
        """``recovered``: a recovery that has begun counts without being confirmed."""
        state = self._state
        if state.started_at:
            since = state.recovering_since if recovered else None
            self._add(state.started_at, since or at)
        self._state = cleared(state)

    def _add(self, start: datetime, end: datetime) -> None:
        if start < end:
            self.outages.append((start, end))
