"""The answer of ``statistics`` (decision 11): figures of a range, and chart buckets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from operator import add
from typing import Any, NamedTuple

from app.records import PHASES
from app.rules import time
from app.rules.figures import BRIEF_OUTAGE
from app.stats import RANGES
from app.stats.tally import DAY_MS, HOUR_MS, NO_OUTAGE, IncidentSpan, Sums, percentile, seconds

MINUTE_MS = 60_000
# The width of a bucket of each range: a range has from 60 to some 370 of them.
BUCKETS: Mapping[str, int] = {
    "3h": 3 * MINUTE_MS,
    "24h": 15 * MINUTE_MS,
    "7d": HOUR_MS,
    "30d": 6 * HOUR_MS,
    "90d": DAY_MS,
    "365d": DAY_MS,
}
# Between two chosen times, buckets get the first of these widths that makes at most MAX_BUCKETS.
WIDTHS = (MINUTE_MS, 3 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS)
MAX_BUCKETS = 200  # with more, the points of a chart would run into each other
PERCENTILES = (50, 95, 99)


def start_of(range_: str, now_ms: int) -> int:
    """The start of a range in ms. It is rounded up to the hour (for ``3h``: to a bucket), so that
    the range is not longer than its name says.
    """
    unit = HOUR_MS if range_ != "3h" else BUCKETS["3h"]
    begin = now_ms - RANGES[range_] // timedelta(milliseconds=1)
    return begin + -begin % unit


class ChartSpan(NamedTuple):
    """The time that a chart shows, and the width of its buckets, in ms."""

    start: int
    end: int
    width: int


def span_of_range(range_: str, now_ms: int) -> ChartSpan:
    return ChartSpan(start_of(range_, now_ms), now_ms, BUCKETS[range_])


def span_of(start: int, end: int, now_ms: int, *, min_width: int = MINUTE_MS) -> ChartSpan:
    """The span of a chart from ``start`` to ``end``, with buckets of ``min_width`` or wider. It has
    whole buckets, but does not end in the future.
    """
    fitting = (width for width in WIDTHS if (end - start) <= width * MAX_BUCKETS)
    width = max(min_width, next(fitting, DAY_MS))
    return ChartSpan(start - start % width, min(now_ms, end + -end % width), width)


class ChartSums:
    """The sums of a chart's buckets by their start (ms), their total, and the figures of each
    bucket in an answer. It is not changed, because it is cached.
    """

    def __init__(self, pieces: Iterable[tuple[int, Sums]], width: int) -> None:
        self.buckets = by_bucket(pieces, width)
        self.total = total_of(self.buckets.values())
        self.figures = {begin: _figures(sums) for begin, sums in self.buckets.items()}


def statistics_of(
    span: ChartSpan,
    pieces: Iterable[tuple[int, Sums]],
    incidents: Sequence[IncidentSpan],
    summed: ChartSums | None = None,
) -> dict[str, Any]:
    """The answer for a span, ready for JSON. Times are ISO 8601 in UTC, durations seconds, response
    times ms. ``range`` is None.

    ``pieces``: the start and sums of periods within the span that are not in ``summed`` and not
    wider than a bucket. ``incidents``: those that overlap the span.
    """
    start, end, width = span
    summed = summed or ChartSums((), width)
    added = by_bucket(pieces, width)
    total = total_of([summed.total, *added.values()])
    figures = dict(summed.figures)
    for begin, sums in added.items():
        cached = summed.buckets.get(begin)
        figures[begin] = _figures(total_of([cached, sums]) if cached else sums)
    outages = [incident for incident in incidents if incident[2] not in NO_OUTAGE]
    return {
        "range": None,
        "from": iso(start),
        "to": iso(end),
        **totals_of(total),
        "incidents": len(outages),
        "mttr": mttr(outages, end),
        "response_time": _response(total),
        "bucket_seconds": width // 1000,
        # Buckets without data are gaps in the chart.
        "buckets": [
            {"start": iso(begin), "end": iso(begin + width), **figures.get(begin, _NO_FIGURES)}
            for begin in range(start - start % width, end, width)
        ],
    }


def totals_of(total: Sums) -> dict[str, Any]:
    """The figures that statistics and reports have for a whole time."""
    return {
        "uptime": total.uptime,
        "downtime": seconds(total.down),
        "watched": seconds(total.up + total.down),
        "unknown": seconds(total.unknown),
        "maintenance": seconds(total.maintenance),
        "checks": total.checks,
    }


def total_of(parts: Iterable[Sums]) -> Sums:
    total = Sums()
    for sums in parts:
        total.add(sums)
    return total


def by_bucket(pieces: Iterable[tuple[int, Sums]], width: int) -> dict[int, Sums]:
    """The sums of each bucket of this width (ms), by its start; ``pieces`` are not changed."""
    buckets: dict[int, Sums] = {}
    for begin, sums in pieces:
        start = begin - begin % width
        if start not in buckets:
            buckets[start] = Sums()
        buckets[start].add(sums)
    return buckets


def mttr(incidents: Iterable[IncidentSpan], end: int) -> int | None:
    """The mean time to recovery of the incidents that ended by ``end``, in whole seconds; None
    without such incidents.
    """
    lengths = [stop - start for start, stop, _ in incidents if stop is not None and stop <= end]
    return seconds(sum(lengths) // len(lengths)) if lengths else None


def day_state(bucket: Mapping[str, Any]) -> str:
    """The state of a day or an hour in a bar: ``brief`` or ``down`` if any of it was down, else the
    first of ``up``, ``maintenance`` and ``unknown`` that occurs, else ``none``.
    """
    if 0 < bucket["down"] <= BRIEF_OUTAGE:
        return "brief"
    for name in ("down", "up", "maintenance", "unknown"):
        if bucket[name]:
            return name
    return "none"


@lru_cache(maxsize=4096)  # buckets begin and end at the same times in each answer
def iso(ms: int) -> str:
    """A time as the API writes it."""
    return time.iso(time.from_ms(ms))


def _figures(sums: Sums) -> Mapping[str, Any]:
    """The figures of a bucket in an answer."""
    return {
        "checks": sums.checks,
        "uptime": sums.uptime,
        "up": seconds(sums.up),
        "down": seconds(sums.down),
        "unknown": seconds(sums.unknown),
        "maintenance": seconds(sums.maintenance),
        "response_time": _mean(sums.response_sum, sums.response_count),
        "p95": percentile(sums, 95),
        "max": sums.response_max,
        "timings": {
            name: _mean(spent, sums.response_count)
            for name, spent in zip(PHASES, sums.phases, strict=True)
        },
    }


def _response(total: Sums) -> dict[str, int | None]:
    # The percentiles are those of the histogram, as in a report.
    answer = {"avg": _mean(total.response_sum, total.response_count)}
    for percent in PERCENTILES:
        answer[f"p{percent}"] = percentile(total, percent)
    return answer | {"max": total.response_max}


def _mean(total: int, count: int) -> int | None:
    return round(total / count) if count else None


_NO_FIGURES: Mapping[str, Any] = _figures(Sums())


# --- The last hours of a monitor for lists: a bar of states, a line of response times

STRIP_HOURS = 24


def start_of_strip(now_ms: int) -> int:
    """The start of a strip's first hour; its last hour contains ``now_ms``."""
    return now_ms - now_ms % HOUR_MS - (STRIP_HOURS - 1) * HOUR_MS


class StripHour(NamedTuple):
    """The figures of one hour for a strip: seconds, and the count and sum (ms) of response times.
    ``degraded`` is part of ``up``.
    """

    up: int
    down: int
    unknown: int
    maintenance: int
    responses: int
    response_sum: int
    degraded: int = 0


EMPTY_HOUR = StripHour(0, 0, 0, 0, 0, 0)


class LastHours(NamedTuple):
    """``entries``: one for each of ``STRIP_HOURS``, oldest first. ``newest``: the last hour with
    data, by its start (ms); it may not have ended.
    """

    entries: Sequence[Mapping[str, Any]]
    newest: Mapping[int, StripHour]


def strips_since(start: int, hours: Mapping[int, Mapping[int, StripHour]]) -> dict[int, LastHours]:
    """The strip of each monitor since ``start`` (ms). ``hours``: by monitor, then by start (ms).

    In an entry, ``up``, ``down``, ``unknown``, ``maintenance`` and ``degraded`` (part of ``up``)
    are seconds, and ``response_time`` is a mean in ms or None.
    """
    # The times are formatted once for all monitors: a list has a hundred.
    begins = [(at, iso(at)) for at in range(start, start + STRIP_HOURS * HOUR_MS, HOUR_MS)]
    return {
        id: LastHours(
            [_strip_entry(text, by_start.get(at, EMPTY_HOUR)) for at, text in begins],
            dict(sorted(by_start.items())[-1:]),
        )
        for id, by_start in hours.items()
    }


def with_hours(
    strip: LastHours, start: int, hours: Mapping[int, StripHour]
) -> list[Mapping[str, Any]]:
    """The entries of a strip since ``start`` (ms), with these hours (by their start) added."""
    entries = [*strip.entries]
    for begin, hour in hours.items():
        index = (begin - start) // HOUR_MS
        if 0 <= index < STRIP_HOURS:
            total = StripHour(*map(add, strip.newest.get(begin, EMPTY_HOUR), hour))
            entries[index] = _strip_entry(entries[index]["start"], total)
    return entries


def _strip_entry(start: str, hour: StripHour) -> dict[str, Any]:
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
