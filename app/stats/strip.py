"""The last hours of a monitor in a few figures, for lists: a bar of states and a line of response
times. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.stats.series import iso
from app.stats.tally import HOUR_MS, Sums

HOURS = 24


def start_of_strip(now_ms: int) -> int:
    """Where the first hour of a strip begins; its last hour is the one that ``now_ms`` is in."""
    return now_ms - now_ms % HOUR_MS - (HOURS - 1) * HOUR_MS


def strip(now_ms: int, pieces: Iterable[tuple[int, Sums]]) -> list[dict[str, Any]]:
    """One entry for each of the last ``HOURS``, oldest first, in the form of ``series.day_state``.

    ``pieces``: start and sums of hours. ``up``, ``down``, ``unknown`` and ``maintenance`` are
    seconds, ``response_time`` a mean in ms or None.
    """
    start = start_of_strip(now_ms)
    hours = {begin: Sums() for begin in range(start, start + HOURS * HOUR_MS, HOUR_MS)}
    for begin, sums in pieces:
        if begin in hours:
            hours[begin].add(sums)
    return [
        {
            "start": iso(begin),
            "up": sums.up // 1000,
            "down": -(-sums.down // 1000),  # up: a second of downtime must not vanish
            "unknown": sums.unknown // 1000,
            "maintenance": sums.maintenance // 1000,
            "response_time": round(sums.response_sum / sums.response_count)
            if sums.response_count
            else None,
        }
        for begin, sums in hours.items()
    ]
