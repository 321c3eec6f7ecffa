"""Times in messages, for services that show them in each reader's own zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from app.alerts.words import CLOCK_FORMAT

_WRITTEN = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC\b", re.ASCII)


def localized(text: str, escape: Callable[[str], str], write: Callable[[int, str], str]) -> str:
    """``text``, escaped, with every time in it as ``write`` makes it: of the seconds since 1970 and
    the time as it was written. Times are found as ``words.clock_time`` writes them, because causes
    and the names of others contain some too.
    """
    parts: list[str] = []
    done = 0
    for found in _WRITTEN.finditer(text):
        seconds = _seconds(found[0])
        if seconds is not None:
            parts += [escape(text[done : found.start()]), write(seconds, found[0])]
            done = found.end()
    return "".join([*parts, escape(text[done:])])


def _seconds(written: str) -> int | None:
    """None for a time that does not exist, as a person may have written it."""
    try:
        at = datetime.strptime(written, CLOCK_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp())
