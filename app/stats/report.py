"""The figures of an availability report: for each monitor between two times, and for all. Pure.

``app/stats`` defines up, down, maintenance and gap. An incident belongs to a report if it overlaps
the time and is an outage (not ``NO_OUTAGE``). ``longest`` counts only the part of an incident
within that time; ``mttr`` is the mean whole length of the incidents that ended in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.stats.series import iso, mttr, total_of, totals_of
from app.stats.tally import DAY_MS, NO_OUTAGE, IncidentSpan, Sums, percentile, seconds

ALL = 0  # the key of the sum over all monitors; no record has this id

# The figures besides ``uptime``: seconds and counts (``COUNTS``), and those that may be None
# (``MEASURES``).
COUNTS = ("downtime", "watched", "maintenance", "unknown", "gaps", "checks", "incidents")
STATES = ("up", "down", "unknown", "maintenance")  # of a day, in seconds
MEASURES = ("mttr", "longest", "avg", "p95")

Pieces = Iterable[tuple[int, Sums]]


def figures(
    start: int,
    end: int,
    pieces: Mapping[int, Pieces],
    incidents: Mapping[int, Sequence[IncidentSpan]],
    *,
    days: bool = False,
) -> dict[int, dict[str, Any]]:
    """``uptime`` (percent), ``COUNTS`` and ``MEASURES`` by monitor id, and for all under ``ALL``.
    ``start``, ``end`` and the times in ``pieces`` are ms since 1970; durations in the answer are
    whole seconds, response times ms. ``days``: add the UTC days of each monitor (``_day``).
    """
    total_of_all, outages_of_all = Sums(), list[IncidentSpan]()
    answer: dict[int, dict[str, Any]] = {}
    for id, parts in pieces.items():
        by_day = _by_day(parts, start, end)
        total = total_of(by_day.values())
        total_of_all.add(total)
        outages = [incident for incident in incidents.get(id, ()) if incident[2] not in NO_OUTAGE]
        outages_of_all += outages
        answer[id] = _figures(total, outages, start, end, 1)
        if days:
            answer[id]["days"] = [_day(at, sums) for at, sums in by_day.items()]
    answer[ALL] = _figures(total_of_all, outages_of_all, start, end, len(answer))
    return answer


def _by_day(parts: Pieces, start: int, end: int) -> dict[int, Sums]:
    """The sums of each day, by its start and in order. A day without data has one too."""
    days = {at: Sums() for at in range(start - start % DAY_MS, end, DAY_MS)}
    for at, sums in parts:
        days[at - at % DAY_MS].add(sums)
    return days


def _day(at: int, sums: Sums) -> dict[str, Any]:
    return {
        "start": iso(at),
        "uptime": sums.uptime,
        **{state: seconds(getattr(sums, state)) for state in STATES},
    }


def _figures(
    total: Sums, incidents: Sequence[IncidentSpan], start: int, end: int, monitors: int
) -> dict[str, Any]:
    lengths = [min(end, stop or end) - max(start, at) for at, stop, _ in incidents]
    return {
        **totals_of(total),
        "gaps": seconds(max(0, (end - start) * monitors - total.covered)),
        "incidents": len(incidents),
        "mttr": mttr(incidents, end),
        "longest": seconds(max(lengths)) if lengths else None,
        "avg": round(total.response_sum / total.response_count) if total.response_count else None,
        "p95": percentile(total, 95),
    }
