"""All requests of one check."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from app.checks.curl.exchange import Exchange
from app.checks.outcome import Failure
from app.net.policy import Refusal
from app.records import Cause, CheckSpec
from app.rules.url import Target


@dataclass(slots=True)
class Hop:
    """One request of a chain, sent or attempted. ``dns`` is in seconds; ``exchange`` is None if
    nothing was sent.
    """

    target: Target
    resolved: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()  # those that policy leaves open
    refusals: tuple[Refusal, ...] = ()
    dns: float | None = None
    exchange: Exchange | None = None


@dataclass(slots=True)
class Trace:
    """The course of a whole check. ``failure`` is set if the check ended before a verdict: DNS,
    policy, a redirect, a fault of our own. ``withheld``: the first host after a redirect that did
    not get all that the monitor sends, and what it did not get.
    """

    spec: CheckSpec
    checked_at: datetime
    location: str
    hops: list[Hop] = field(default_factory=list)
    failure: Failure | None = None
    warnings: list[str] = field(default_factory=list)
    withheld: tuple[str, str] | None = None

    @property
    def last(self) -> Hop | None:
        return self.hops[-1] if self.hops else None

    @property
    def redirects(self) -> tuple[str, ...]:
        """The URLs that were followed, in order."""
        return tuple(hop.target.url for hop in self.hops[1:])

    def fail(self, cause: Cause, sentence: str) -> None:
        self.failure = Failure(str(cause), sentence)
