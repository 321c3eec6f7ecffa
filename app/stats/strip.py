"""The last hours of a monitor for lists: a bar of states, a line of response times. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add
from typing import Any, NamedTuple

from app.stats.series import iso
from app.stats.tally import HOUR_MS

HOURS = 24


def start_of_strip(now_ms: int) -> int:
    """The start of a strip's first hour; its last hour contains ``now_ms``."""
    return now_ms - now_ms % HOUR_MS - (HOURS - 1) * HOUR_MS


class StripHour(NamedTuple):
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


NOTHING = StripHour(0, 0, 0, 0, 0, 0)


class LastHours(NamedTuple):
    """``entries``: one for each of ``HOURS``, oldest first, in the form of ``series.day_state``.
    ``newest``: the figures of the last hour that has any, which may still run, by its start (ms).
    """

    entries: Sequence[Mapping[str, Any]]
    newest: Mapping[int, StripHour]


def strips(start: int, hours: Mapping[int, Mapping[int, StripHour]]) -> dict[int, LastHours]:
    """The strip since ``start`` (ms) by the key of ``hours``, which are by their start (ms).

    In an entry, ``up``, ``down``, ``unknown``, ``maintenance`` and ``degraded`` (part of ``up``)
    are seconds, ``response_time`` a mean in ms or None.
    """
    # Once for all monitors: a list shows a hundred.
    begins = [(at, iso(at)) for at in range(start, start + HOURS * HOUR_MS, HOUR_MS)]
    return {
        id: LastHours(
            [_entry(text, own.get(at, NOTHING)) for at, text in begins],
            dict(sorted(own.items())[-1:]),
        )
        for id, own in hours.items()
    }


def with_hours(
    strip: LastHours, start: int, hours: Mapping[int, StripHour]
) -> list[Mapping[str, Any]]:
    """The entries of a strip since ``start`` (ms), with these hours (by their start) added."""
    entries = [*strip.entries]
    for begin, hour in hours.items():
        index = (begin - start) // HOUR_MS
        if 0 <= index < HOURS:
            whole = StripHour(*map(add, strip.newest.get(begin, NOTHING), hour))
            entries[index] = _entry(entries[index]["start"], whole)
    return entries


def _entry(start: str, hour: StripHour) -> dict[str, Any]:
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
