"""All requests of one check."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from app.checks.curl.exchange import Exchange
from app.checks.outcome import Failure
from app.checks.running import Resolution
from app.records import Cause, CheckSpec
from app.rules.url import Target


@dataclass(slots=True)
class Hop:
    """One request of a chain, sent or attempted. ``exchange`` is None if nothing was sent."""

    target: Target
    resolution: Resolution = field(default_factory=Resolution)
    exchange: Exchange | None = None


@dataclass(slots=True)
class Trace:
    """The course of a whole check. ``failure`` is set if the check ended without an answer to
    judge: by DNS, the policy, or a redirect. ``withheld``: the first host after a redirect to which
    not everything of the monitor's request was sent, and what was not sent.
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

    def fail(self, cause: Cause, sentence: str) -> None:
        self.failure = Failure(str(cause), sentence)
