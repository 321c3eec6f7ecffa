"""What goes over the broker: encrypted and authenticated, fresh, and taken once. Whoever has the
broker can read, forge, change and repeat nothing.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

from app.codec.packing import moment
from app.codec.sealing import NONCE_BYTES, BatchKey, Forged

# Messages that are older are refused, so that a copy cannot be used later. The clocks of checker
# and probers may differ by as much.
FRESH_SECONDS = 30.0
# Older ones are refused by their age. Both clocks may differ by FRESH_SECONDS, each way.
REMEMBERED_SECONDS = 3 * FRESH_SECONDS


def about_checks(location: str) -> str:
    """What a batch is encrypted for: one that is moved to another place cannot be read there."""
    return f"wakeful checks v1 {location}"


def about_outcomes(location: str, checker: str) -> str:
    """What outcomes are encrypted for: another checker cannot read them."""
    return f"wakeful outcomes v1 {location} {checker}"


class MessageRefused(Exception):
    """A message that counts nothing. The text says why."""


class Receiver:
    """Opens the messages that were encrypted for ``about``. ``dated``: the name of the time in
    them; ``plural``: what people call them. Not safe from several threads.
    """

    def __init__(self, key: BatchKey, about: str, *, dated: str, plural: str) -> None:
        self._key, self._about, self._dated, self._plural = key, about, dated, plural
        self._once = Once()

    def open(self, sealed: bytes, now: datetime) -> tuple[Any, timedelta]:
        """The message, and how far its time is ahead of ``now``. Raises MessageRefused."""
        try:
            message = self._key.open(sealed, self._about)
        except Forged:
            why = "not made with our BATCH_KEY, or for another place"
            raise MessageRefused(f"{self._plural} were dropped: {why}.") from None
        at = moment(message[self._dated])
        if at is None:
            raise MessageRefused(
                f"{self._plural} that do not say when they were sent were dropped."
            )
        if abs(at - now) > timedelta(seconds=FRESH_SECONDS):
            raise MessageRefused(
                f"{self._plural} are {(now - at).total_seconds():.0f} s old by our clock;"
                f" {FRESH_SECONDS:.0f} s are allowed. They were held back, or the clocks of the"
                " checker and of the prober differ."
            )
        # The nonce cannot be changed, and no two messages have the same.
        if not self._once.is_new(sealed[:NONCE_BYTES], time.monotonic()):
            raise MessageRefused(f"{self._plural} came a second time, and were dropped.")
        return message, at - now


class Once:
    """What names each message, for as long as a copy would count."""

    def __init__(self) -> None:
        self._since: dict[bytes, float] = {}  # the oldest first

    def is_new(self, name: bytes, now: float) -> bool:
        """True when it is first asked for this name; ``now`` is monotonic."""
        while self._since and now - next(iter(self._since.values())) > REMEMBERED_SECONDS:
            del self._since[next(iter(self._since))]
        is_new = name not in self._since
        self._since.setdefault(name, now)
        return is_new
