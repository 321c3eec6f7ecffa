"""Combine the verdicts of several locations into one. Pure.

The newest result of each location counts, unless it is too old. Locations whose verdict is
``unknown`` have no vote. A failure that too few of them see is ``degraded`` once it has lasted
through all confirmations, and nothing before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.db.types import from_ms
from app.records import LocationRule, Verdict
from app.stats.cover import Check


@dataclass(frozen=True, slots=True)
class Vote:
    """The newest result of one location. ``lasting``: it failed in this check and in all of its
    confirmations. ``failures``: failing checks in a row.
    """

    location: int
    at: datetime
    verdict: Verdict
    lasting: bool = False
    failures: int = 0


def heard(
    votes: Iterable[Vote], now: datetime, stale_after: timedelta, *, maintenance: bool
) -> Sequence[Vote]:
    """The votes that count. ``maintenance``: the monitor is in one; what failed there is no vote
    after it.

    ``stale_after``: a location whose newest result is older has no vote, so that one that was
    switched off while it saw a failure does not keep an incident open for ever. The same goes for
    a result as far in the future, from a clock that was ahead.
    """
    return [
        vote
        for vote in votes
        if vote.verdict is not Verdict.UNKNOWN
        and abs(now - vote.at) <= stale_after
        and (maintenance or not failed_in_maintenance(vote))
    ]


def failed_in_maintenance(vote: Vote) -> bool:
    """Whether the newest check of a location failed in maintenance: it is not among its
    ``failures``.
    """
    return vote.verdict is Verdict.DOWN and not vote.failures


def repeated(votes: Iterable[Vote], since: datetime) -> Sequence[Vote]:
    """The votes without failures that were not repeated in a check from ``since`` on; they count as
    good. A location that failed once confirms no failure that another one still sees.
    """
    return [
        vote
        if vote.verdict is not Verdict.DOWN or (vote.at >= since and vote.failures > 1)
        else replace(vote, verdict=Verdict.UP)
        for vote in votes
    ]


def old_failures_alone(votes: Iterable[Vote], since: datetime) -> bool:
    """Whether the votes are ``degraded`` by failures from before ``since`` alone."""
    degrading = [vote for vote in votes if vote.lasting or vote.verdict is Verdict.DEGRADED]
    return all(vote.verdict is Verdict.DOWN and vote.at < since for vote in degrading)


def decide(
    votes: Sequence[Vote], rule: str, awaited: int = 0, *, incident: bool = False
) -> Verdict:
    """The verdict of all locations together, from the votes that count; ``unknown`` of none.

    ``awaited``: how many more locations are about to vote for the first time. They count as voters:
    of a new monitor, the location that is first would otherwise be the majority. Where an
    ``incident`` is open they count as failing: their silence must not end it.
    """
    if not votes:
        return Verdict.UNKNOWN
    down = [vote for vote in votes if vote.verdict is Verdict.DOWN]
    failing = len(down) + (awaited if incident else 0)
    if failing and failing >= _needed(rule, len(votes) + awaited):
        return Verdict.DOWN
    slow = any(vote.verdict is Verdict.DEGRADED for vote in votes)
    return Verdict.DEGRADED if slow or any(vote.lasting for vote in down) else Verdict.UP


def since_each(checks: Iterable[Check], *, maintenance: bool) -> dict[int, datetime]:
    """Since when each location fails, or is good, by these checks of all (in order).
    ``maintenance``: the monitor is in one; what failed there counts for nothing after it.
    """
    found: dict[int, tuple[bool, int]] = {}
    for check in checks:
        fails = check.verdict is Verdict.DOWN
        if check.verdict is Verdict.UNKNOWN or (fails and check.maintenance and not maintenance):
            continue
        if check.place not in found or found[check.place][0] is not fails:
            found[check.place] = fails, check.at
    return {place: from_ms(at) for place, (_fails, at) in found.items()}


def decided_since(
    votes: Sequence[Vote],
    since: Mapping[int, datetime],
    rule: str,
    awaited: int = 0,
    *,
    down: bool,
) -> datetime:
    """Since when the votes are ``down`` together, as they are now, or are it no more. ``since``:
    since when each location fails or is good (``since_each``). An incident is open where they are
    not ``down``, so those that are ``awaited`` count as failing (``decide``).
    """
    voters = len(votes) + awaited
    needed = _needed(rule, voters)
    times = sorted(
        since.get(vote.location, vote.at)
        for vote in votes
        if (vote.verdict is Verdict.DOWN) is down
    )
    # The failing one that made enough of them, or the good one that left too few.
    return times[needed - 1 if down else voters - needed]


def _needed(rule: str, voters: int) -> int:
    needed = {LocationRule.ANY: 1, LocationRule.MAJORITY: voters // 2 + 1, LocationRule.ALL: voters}
    return needed[LocationRule(rule)]
