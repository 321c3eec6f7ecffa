"""Read a service's answer: delivered, to be retried, or permanently refused (decision 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.i18n import _
from app.rules.time import pause_of


class Acceptance(StrEnum):
    DELIVERED = "delivered"
    RETRY = "retry"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one attempt. ``text`` is for the delivery log and has no secrets.

    ``retry_after`` in seconds, if the service named a pause. ``gone``: the address no longer
    exists, which ends a subscription. ``moved_to``: the new channel value that the service named.
    ``bug``: Wakeful failed, not the service.
    """

    acceptance: Acceptance
    text: str
    retry_after: float | None = None
    gone: bool = False
    moved_to: str | None = field(default=None, repr=False)
    bug: bool = False

    @property
    def ok(self) -> bool:
        return self.acceptance is Acceptance.DELIVERED


def bug(position: str) -> Answer:
    """An answer for a fault in the code at ``position``, which holds no secret."""
    text = _(
        "Sending failed inside Wakeful (%(position)s). The log of the worker says more.",
        position=position,
    )
    return Answer(Acceptance.RETRY, text, bug=True)


def delivered(text: str) -> Answer:
    return Answer(Acceptance.DELIVERED, text)


def retry(text: str, retry_after: float | None = None) -> Answer:
    return Answer(Acceptance.RETRY, text, retry_after)


def permanent(text: str) -> Answer:
    return Answer(Acceptance.PERMANENT, text)


# Seconds. A service that asks for more is retried after this: a single wrong header must not use
# up the 24 hours after which a message is given up.
MAX_PAUSE = 3600.0

# 425 says "too early"; the other 4xx say that the request itself is wrong, and it stays the same.
_RETRIED_4XX = frozenset({408, 425, 429})


def accepts_status(status: int) -> Acceptance:
    """The meaning of an HTTP status for a delivery. A redirect that ``base.post`` has not followed
    is final.
    """
    if 200 <= status < 300:
        return Acceptance.DELIVERED
    return Acceptance.RETRY if status >= 500 or status in _RETRIED_4XX else Acceptance.PERMANENT


def retry_after(headers: Mapping[str, str], body: object, now: datetime) -> float | None:
    """The pause that an answer asks for in seconds: ``retry_after`` of a JSON body (Discord,
    Telegram), else the header as seconds or as a date; ``MAX_PAUSE`` at most. None if it is
    none of these, or a date that has passed.
    """
    if isinstance(body, dict):
        inner = body.get("parameters")
        for mapping in (body, inner if isinstance(inner, dict) else {}):
            value = mapping.get("retry_after")
            if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
                return float(min(value, MAX_PAUSE))  # a very long number overflows a float
    return pause_of(headers.get("Retry-After"), now, MAX_PAUSE)
