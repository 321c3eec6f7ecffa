"""When a message is retried, and when it is given up. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from app.i18n import _
from app.records import NOT_SENT

# Seconds before each retry; the last one repeats. With the jitter, the first retry comes within 5 s
# and the second within 15 s of the first attempt, and no pause exceeds 2 minutes (decisions.md 5).
PAUSES = (3.0, 9.0, 30.0, 60.0, 100.0)
JITTER = 0.2
SHORTEST_ASKED = 1.0  # a service that asks for 0 s must not be retried without any pause
GIVE_UP_AFTER = timedelta(hours=24)


def began(facts: Mapping[str, Any], created_at: datetime) -> datetime:
    """When a message's 24 hours began: when it was written, or last retried by hand."""
    by_hand = facts.get("by_hand")
    return datetime.fromisoformat(by_hand) if by_hand else created_at


def given_up(answer: str | None) -> str:
    """Why a message failed after 24 hours. ``answer``: the last one; None without an attempt."""
    if answer is None:
        return NOT_SENT + _("it could not be sent within 24 hours.")
    return _("Given up after 24 hours. The last answer: %(answer)s", answer=answer)


def pause(attempts: int, asked: float | None, rng: random.Random) -> float:
    """Seconds until the next attempt after ``attempts`` failed ones. ``asked`` is the service's
    Retry-After in seconds, which wins. After as many attempts as there are PAUSES it can only make
    them longer: a service that always asks for one second would get 86,400 attempts.
    """
    base = PAUSES[min(attempts, len(PAUSES)) - 1] * rng.uniform(1 - JITTER, 1 + JITTER)
    if asked is None:
        return base
    return max(asked, SHORTEST_ASKED if attempts <= len(PAUSES) else base)


def next_attempt(
    began: datetime, attempts: int, asked: float | None, now: datetime, rng: random.Random
) -> datetime | None:
    """The time of the next attempt, at the latest 24 hours after ``began``; None after that."""
    end = began + GIVE_UP_AFTER
    if now >= end:
        return None
    return min(now + timedelta(seconds=pause(attempts, asked, rng)), end)
