"""Combine the verdicts of several locations into one. Pure.

The newest result of each location counts, unless it is too old. Locations whose verdict is
``unknown`` have no vote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from app.records import Verdict


class Rule(StrEnum):
    """How many locations must see a failure for the monitor to be down."""

    ANY = "any"
    MAJORITY = "majority"  # more than half
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Vote:
    """The newest result of one location."""

    location: str
    at: datetime
    verdict: Verdict


def decide(votes: Iterable[Vote], rule: Rule, now: datetime, stale_after: timedelta) -> Verdict:
    """The verdict of all locations together; ``unknown`` if none of them has a vote.

    ``stale_after``: a location whose newest result is older has no vote, so that one that was
    switched off while it saw a failure does not keep an incident open for ever. The same goes for
    a result as far in the future, from a clock that was ahead.
    """
    heard = [
        vote.verdict
        for vote in votes
        if vote.verdict is not Verdict.UNKNOWN and abs(now - vote.at) <= stale_after
    ]
    if not heard:
        return Verdict.UNKNOWN
    down = heard.count(Verdict.DOWN)
    if down and down >= _needed(rule, len(heard)):
        return Verdict.DOWN
    return Verdict.DEGRADED if Verdict.DEGRADED in heard else Verdict.UP


def _needed(rule: Rule, voters: int) -> int:
    return {Rule.ANY: 1, Rule.MAJORITY: voters // 2 + 1, Rule.ALL: voters}[rule]
