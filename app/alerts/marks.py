"""What becomes of a claimed row after an attempt: delivered, failed, or tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.alerts import retries
from app.alerts.channels.answer import Answer, Verdict
from app.alerts.claims import Claim
from app.alerts.outbox import update_deliveries
from app.db import AnySession
from app.db.tables import DeliveryRow
from app.records import Channel, DeliveryStatus, SubscriberEvent
from app.rules.time import iso

MOST_QUESTIONS = 3  # attempts to ask a webhook whether it wants to be subscribed


@dataclass(frozen=True, slots=True)
class Mark:
    """What became of a claim. ``next_at``: when it is tried again; None after the last word."""

    claim: Claim
    attempt: dict[str, Any]
    status: DeliveryStatus
    reason: str | None
    now: datetime
    next_at: datetime | None = None


def mark_for(claim: Claim, answer: Answer, now: datetime, rng: random.Random) -> Mark:
    """The mark that an answer leads to."""
    attempt = {"at": iso(now), "ok": answer.ok, "answer": answer.text}
    if answer.ok:
        return Mark(claim, attempt, DeliveryStatus.DELIVERED, None, now)
    if answer.verdict is Verdict.PERMANENT:
        return Mark(claim, attempt, DeliveryStatus.FAILED, answer.text, now)
    at = retries.next_attempt(claim.began, claim.tries + 1, answer.retry_after, now, rng)
    if _is_question(claim) and claim.tries + 1 >= MOST_QUESTIONS:
        at = None
    if at is None:
        reason = answer.text if _is_question(claim) else retries.given_up(answer.text)
        return Mark(claim, attempt, DeliveryStatus.FAILED, reason, now)
    return Mark(claim, attempt, DeliveryStatus.PENDING, None, now, at)


def _is_question(claim: Claim) -> bool:
    """Whether a webhook is asked to confirm: anybody may have named its URL, and it must not be
    called for a day.
    """
    asks = claim.facts.get("event") == SubscriberEvent.CONFIRM
    return asks and claim.channel == Channel.WEBHOOK


def mark(session: AnySession, done: Mark) -> None:
    """Write an attempt's outcome down, inside a transaction.

    A delivered message is marked even when the lease has passed to somebody else: it did arrive.
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
