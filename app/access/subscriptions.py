"""Tokens that prove that somebody may confirm or end a subscription. Nothing stores them.

A token names its purpose, the subscriber and the target, so it fits one subscription and one use.
It also names the status page, which is shown even if the subscription has ended already.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from app.access.tokens import keyed_hash
from app.secret_keys import keys_of

CONFIRM_WITHIN = timedelta(hours=48)
_MARK = 16  # of the digest: identifies a target
_MAC = 40  # 160 bits


class Purpose(StrEnum):
    CONFIRM = "confirm"
    UNSUBSCRIBE = "unsubscribe"


@dataclass(frozen=True, slots=True)
class Subscription:
    """The content of a token. ``mark`` is the beginning of the digest."""

    page_id: int
    subscriber_id: int
    mark: str


def digest(channel: str, target: str) -> str:
    """A keyed hash of a target, so that a guessed address cannot be recognised in the database.
    Two spellings of an email address that differ in case are one.
    """
    folded = target.casefold() if channel == "email" else target
    return keyed_hash("subscriber", channel, folded)


def make_token(
    purpose: Purpose, page_id: int, subscriber_id: int, digest: str, now: datetime
) -> str:
    stamp = int(now.timestamp()) if purpose is Purpose.CONFIRM else 0
    content = f"{page_id}-{subscriber_id}-{digest[:_MARK]}-{stamp}"
    return f"{content}-{_mac(keys_of()[0], purpose, content)}"


def read_token(purpose: Purpose, token: str, now: datetime) -> Subscription | None:
    """The content of a token that is ours, for this purpose, and not too old."""
    content, _, mac = token.rpartition("-")
    right = (_mac(key, purpose, content) for key in keys_of())
    if not token.isascii() or not any(hmac.compare_digest(mac, candidate) for candidate in right):
        return None
    page_id, subscriber_id, mark, stamp = content.split("-")
    if purpose is Purpose.CONFIRM and now.timestamp() - int(stamp) > CONFIRM_WITHIN.total_seconds():
        return None
    return Subscription(int(page_id), int(subscriber_id), mark)


def _mac(key: str, purpose: Purpose, content: str) -> str:
    parts = ("subscription token v1", purpose, content)
    return hmac.new(key.encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:_MAC]
