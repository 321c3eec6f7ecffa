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
    """The answer of a service to one attempt. ``text`` is for the delivery log and has no secrets.

    ``retry_after``: the pause in seconds that the service asked for. ``gone``: the address no
    longer exists, so its subscription ends. ``moved_to``: the new channel value that the service
    named. ``bug``: Wakeful failed, not the service.
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


# Seconds. A service that asks for a longer pause is retried after this time: a single wrong header
# must not use up the 24 hours after which a message is given up.
MAX_PAUSE = 3600.0

# Timeout, too early, too many requests. With any other 4xx the request is wrong, and another
# attempt would send the same.
_RETRIED_4XX = frozenset({408, 425, 429})


def status_meaning(status: int) -> Acceptance:
    """The meaning of an HTTP status for a delivery. A redirect is permanent: ``base.post`` has
    followed those that it may.
    """
    if 200 <= status < 300:
        return Acceptance.DELIVERED
    return Acceptance.RETRY if status >= 500 or status in _RETRIED_4XX else Acceptance.PERMANENT


def retry_after(headers: Mapping[str, str], body: object, now: datetime) -> float | None:
    """The pause that an answer asks for in seconds: ``retry_after`` of a JSON body (Discord,
    Telegram), else the header ``Retry-After`` as seconds or as a date; ``MAX_PAUSE`` at most. None
    if there is neither, or if the date has passed.
    """
    if isinstance(body, dict):
        inner = body.get("parameters")
        for mapping in (body, inner if isinstance(inner, dict) else {}):
            value = mapping.get("retry_after")
            if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
                return float(min(value, MAX_PAUSE))  # a very long number overflows a float
    return pause_of(headers.get("Retry-After"), now, MAX_PAUSE)
