"""One way to write moments and to count days: the ISO stamp, the days until an expiry, zones.

List, page, alert and condition count a certificate's days here. Separate counts disagreed: one
said "expires today" while another said "tomorrow".
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def iso(moment: datetime) -> str:
    """``2026-11-21T08:00:00Z``."""
    return moment.astimezone(UTC).isoformat()[:19] + "Z"  # 19: down to the seconds


def days_left(expires: datetime, now: datetime) -> int:
    """Calendar days (UTC) until the day of expiry: 0 on that day, negative after it."""
    return (expires.astimezone(UTC).date() - now.astimezone(UTC).date()).days


def expiry(expires: datetime, now: datetime) -> str:
    """``expires tomorrow``, ``expires in 5 days``, ``expired today``."""
    days = days_left(expires, now)
    if expires <= now:
        return f"expired {_ago(-days)}"
    return f"expires {_ahead(days)}"


def is_zone(name: str) -> bool:
    """Whether this is the name of a time zone, such as ``Europe/Berlin``."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: a folder's name, such as "Europe"
        return False
    return True


def _ahead(days: int) -> str:
    return {0: "today", 1: "tomorrow"}.get(days, f"in {days} days")


def _ago(days: int) -> str:
    return {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
