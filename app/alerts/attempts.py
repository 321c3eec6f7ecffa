"""The outcome of an attempt, stored in its row: delivered, failed, or pending for a retry."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.alerts import retries
from app.alerts.channels.answer import Answer, Verdict, is_bug
from app.alerts.claims import Claim
from app.alerts.outbox import update_deliveries
from app.db import AnySession
from app.db.tables import DeliveryRow
from app.records import Channel, DeliveryStatus, Event, SubscriberEvent
from app.rules.time import iso

MOST_QUESTIONS = 3  # attempts to ask a webhook whether it wants to be subscribed


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The outcome of an attempt. ``next_at``: the time of the next one; None if there is none."""

    claim: Claim
    attempt: dict[str, Any]
    status: DeliveryStatus
    reason: str | None
    now: datetime
    next_at: datetime | None = None


def outcome_of(claim: Claim, answer: Answer, now: datetime, rng: random.Random) -> AttemptOutcome:
    """The outcome that follows from a service's answer."""
    attempt = {"at": iso(now), "ok": answer.ok, "answer": answer.text}
    if answer.ok:
        return AttemptOutcome(claim, attempt, DeliveryStatus.DELIVERED, None, now)
    # A person waits for the answer to a test, and looks at it: it is tried once (decisions.md 5).
    ends = answer.verdict is Verdict.PERMANENT or claim.facts.get("event") == Event.TEST
    if ends or _is_bug_again(claim, answer):
        return AttemptOutcome(claim, attempt, DeliveryStatus.FAILED, answer.text, now)
    at = retries.next_attempt(claim.began, claim.tries + 1, answer.retry_after, now, rng)
    if _is_question(claim) and claim.tries + 1 >= MOST_QUESTIONS:
        at = None
    if at is None:
        reason = answer.text if _is_question(claim) else retries.given_up(answer.text)
        return AttemptOutcome(claim, attempt, DeliveryStatus.FAILED, reason, now)
    return AttemptOutcome(claim, attempt, DeliveryStatus.PENDING, None, now, at)


def _is_bug_again(claim: Claim, answer: Answer) -> bool:
    """Whether a bug of ours keeps it from being sent for the second time: it would do so for a
    day, and nobody would see it.
    """
    earlier = claim.attempts[len(claim.attempts) - claim.tries :]
    return is_bug(answer.text) and any(is_bug(attempt.get("answer")) for attempt in earlier)


def _is_question(claim: Claim) -> bool:
    """Whether a webhook is asked to confirm: anybody may have named its URL, and it must not be
    called for a day.
    """
    asks = claim.facts.get("event") == SubscriberEvent.CONFIRM
    return asks and claim.channel == Channel.WEBHOOK


def store(session: AnySession, done: AttemptOutcome) -> None:
    """Store the outcome of an attempt, inside a transaction.

    A message that was delivered is stored as delivered even if another worker has leased it since.
    """
    claimed = done.claim
    where = [DeliveryRow.id == claimed.id, DeliveryRow.status == DeliveryStatus.PENDING]
    if done.status is not DeliveryStatus.DELIVERED:
        where.append(DeliveryRow.lease_token == claimed.token)
    delivered = done.status is DeliveryStatus.DELIVERED
    session.execute(
        update_deliveries()
        .where(*where)
        .values(
            status=done.status,
            reason=done.reason,
            attempts=[*claimed.attempts, done.attempt],
            next_attempt_at=done.next_at,
            delivered_at=done.now if delivered else None,
            lease_until=None,
            lease_token=None,
        )
    )
