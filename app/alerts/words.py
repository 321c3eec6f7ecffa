"""How messages write times, durations and names. Pure."""

from __future__ import annotations

from datetime import datetime

from app.i18n import _
from app.rules.figures import INSTANT, UNITS

MAX_NAME_SHOWN = 80
MAX_URL_SHOWN = 200
CLOCK_FORMAT = "%Y-%m-%d %H:%M UTC"


def read_moment(text: str) -> datetime:
    """Read a time that ``iso`` wrote into a row's facts."""
    return datetime.fromisoformat(text)


def clock_time(at: datetime) -> str:
    """``2026-11-21 08:00 UTC``: a mail may be read in another zone than the sender's."""
    return at.strftime(CLOCK_FORMAT)


def duration(seconds: float) -> str:
    """``2 hours 5 minutes``: the two largest units, which are exact enough for a message."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for size, written in UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(written(count))
        elif parts:
            break
    return " ".join(parts[:2]) or _(INSTANT)


def count_of(count: int, noun: str) -> str:
    """For the log, which is in English."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters on one line, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
