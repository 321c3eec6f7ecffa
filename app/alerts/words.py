"""Times, durations and names in the text of messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from app.i18n import _
from app.rules.figures import INSTANT, UNITS

MAX_NAME_SHOWN = 80
MAX_URL_SHOWN = 200
CLOCK_FORMAT = "%Y-%m-%d %H:%M UTC"
ZONED_FORMAT = "%Y-%m-%d %H:%M %Z"
_WRITTEN = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d UTC)\b", re.ASCII)


def clock_time(at: datetime) -> str:
    """``2026-11-21 08:00 UTC``. ``in_zone`` replaces it by the time in the zone of the reader."""
    return at.strftime(CLOCK_FORMAT)


def in_zone(text: str, zone: tzinfo) -> str:
    """``text``, with every time in it in this zone: ``2026-11-21 09:00 CET``."""

    def write(seconds: int, _in_utc: str) -> str:
        return datetime.fromtimestamp(seconds, zone).strftime(ZONED_FORMAT)

    return localized(text, str, write)


def duration(seconds: float) -> str:
    """``2 hours 5 minutes``: the two largest units, which are exact enough for a message."""
    remaining = max(0, round(seconds))
    parts: list[str] = []
    for size, written in UNITS:
        count, remaining = divmod(remaining, size)
        if count:
            parts.append(written(count))
        elif parts:
            break
    return " ".join(parts[:2]) or _(INSTANT)


def count_of(count: int, noun: str) -> str:
    """``2 messages``, for the log, which is in English."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters on one line, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def localized(text: str, escape: Callable[[str], str], write: Callable[[int, str], str]) -> str:
    """``text``, escaped, with each time that ``clock_time`` wrote replaced by the result of
    ``write``. ``write`` gets the seconds since 1970 and the written time. The text is searched,
    because causes and names of monitors contain times too.
    """
    return "".join(
        escape(part) if (seconds := _seconds(part)) is None else write(seconds, part)
        for part in _WRITTEN.split(text)
    )


def _seconds(written: str) -> int | None:
    """The seconds since 1970; None for a text that is no time, or a date that does not exist."""
    try:
        at = datetime.strptime(written, CLOCK_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp())
