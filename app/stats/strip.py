"""The last hours of a monitor for lists: a bar of states, a line of response times. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from app.stats.series import iso
from app.stats.tally import HOUR_MS

HOURS = 24


def start_of_strip(now_ms: int) -> int:
    """The start of a strip's first hour; its last hour contains ``now_ms``."""
    return now_ms - now_ms % HOUR_MS - (HOURS - 1) * HOUR_MS


class Hour(NamedTuple):
    """The figures of one hour for a strip: seconds, and response times (count and sum in ms).
    ``degraded`` is part of ``up``.
    """

    up: int
    down: int
    unknown: int
    maintenance: int
    responses: int
    response_sum: int
    degraded: int = 0


NOTHING = Hour(0, 0, 0, 0, 0, 0)


Strip = list[dict[str, Any]]


def strips(start: int, found: Mapping[int, Iterable[tuple[int, Hour]]]) -> dict[int, Strip]:
    """One entry for each of ``HOURS`` since ``start`` (ms), oldest first, by the key of ``found``;
    in the form of ``series.day_state``.

    ``found``: start (ms) and figures of hours, each hour once. ``up``, ``down``, ``unknown``,
    ``maintenance`` and ``degraded`` (part of ``up``) are seconds, ``response_time`` a mean in ms or
    None.
    """
    # Once for all monitors: a list shows a hundred.
    begins = [(at, iso(at)) for at in range(start, start + HOURS * HOUR_MS, HOUR_MS)]
    return {
        id: [_entry(text, hours.get(at, NOTHING)) for at, text in begins]
        for id, hours in ((id, dict(pieces)) for id, pieces in found.items())
    }


def with_hours(strip: Strip, start: int, hours: Mapping[int, Hour]) -> Strip:
    """A copy of a strip since ``start`` (ms) with these hours, by their start, in place of its
    own.
    """
    changed = [*strip]
    for begin, hour in hours.items():
        place = (begin - start) // HOUR_MS
        if 0 <= place < HOURS:
            changed[place] = _entry(changed[place]["start"], hour)
    return changed


def _entry(start: str, hour: Hour) -> dict[str, Any]:
    up, down, unknown, maintenance, responses, total, degraded = hour
    return {
        "start": start,
        "up": up,
        "down": down,
        "unknown": unknown,
        "maintenance": maintenance,
        "degraded": degraded,
        "response_time": round(total / responses) if responses else None,
    }
