"""How long a server asks its client to wait: the header Retry-After."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def pause_of(header: str | None, now: datetime, longest: float) -> float | None:
    """The pause in seconds, ``longest`` at most, which the header gives as such or as a date. None
    where it is neither, or a date that has passed.
    """
    text = (header or "").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():  # Discord's has a fraction
        return min(float(text[:9]), longest)  # a very long number overflows a float
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the latter of an offset of twenty digits
        return None
    seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return min(seconds, longest) if seconds > 0 else None
