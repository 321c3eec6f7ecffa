"""The checks and incidents of one monitor, summed by period. ``app/stats`` defines what counts.

Times are whole milliseconds since 1970. No clock is read: callers pass an ``end`` that is not in
the future.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from operator import add

from app.judge.verdict import PastResult
from app.records import CHECK_EVERY_SECONDS, GOOD_VERDICTS, PHASES, TIMEOUT_SECONDS, Classification
from app.stats.cover import (
    DEGRADED,
    MAINTENANCE,
    UNKNOWN,
    At,
    Span,
    cover_limit_ms,
    covered,
    overlap,
    split,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


# The start, end (None: it is open) and classification of an incident. With the classification
# ``BEHIND``, it is a time in which the monitor was unreachable because of a parent.
IncidentSpan = tuple[int, int | None, str | None]
BEHIND = "behind"
NO_OUTAGE = (*Classification, BEHIND)

# The longest time that a result of any monitor can cover
MAX_COVER_MS = cover_limit_ms(max(CHECK_EVERY_SECONDS), max(TIMEOUT_SECONDS))


@dataclass(slots=True)
class Sums:
    """The sums of one period. ``up``, ``down``, ``unknown`` and ``maintenance`` are milliseconds,
    as are response times and ``phases`` (sums, in the order of ``PHASES``). ``degraded`` is part of
    ``up``.
    """

    checks: int = 0
    up: int = 0
    down: int = 0
    unknown: int = 0
    maintenance: int = 0
    degraded: int = 0
    response_count: int = 0
    response_sum: int = 0
    response_max: int | None = None
    histogram: Histogram = field(default_factory=dict)
    phases: list[int] = field(default_factory=lambda: [0] * len(PHASES))

    def add(self, other: Sums) -> None:
        self.checks += other.checks
        self.up += other.up
        self.down += other.down
        self.unknown += other.unknown
        self.maintenance += other.maintenance
        self.degraded += other.degraded
        self.response_count += other.response_count
        self.response_sum += other.response_sum
        if other.response_max is not None:
            self.response_max = max(self.response_max or 0, other.response_max)
        self.phases = list(map(add, self.phases, other.phases))
        if not self.histogram:  # copied without a loop in Python
            self.histogram = dict(other.histogram)
            return
        histogram = self.histogram  # a local name: 90 days add 5,000 of these counts
        for bucket_number, number in other.histogram.items():
            histogram[bucket_number] = histogram.get(bucket_number, 0) + number

    def add_responses(self, times: Sequence[int], phases: Iterable[tuple[int | None, ...]]) -> None:
        """Add response times (ms), and the phases of each."""
        if not times:
            return
        self.response_count += len(times)
        self.response_sum += sum(times)
        self.response_max = max(self.response_max or 0, *times)
        for bucket_number in map(bucket, times):
            self.histogram[bucket_number] = self.histogram.get(bucket_number, 0) + 1
        for index, spent in enumerate(zip_longest(*phases)):
            self.phases[index] += sum(filter(None, spent))

    @property
    def uptime(self) -> float | None:
        return percent(self.up, self.down)

    @property
    def covered(self) -> int:
        return self.up + self.down + self.unknown + self.maintenance


def seconds(ms: int) -> int:
    # Halves are rounded up: ``round`` would drop half a second of downtime.
    return (ms + 500) // 1000


def percent(up: int, down: int) -> float | None:
    """Uptime in percent, with four decimal places; None without data. It is 100 only if nothing was
    down, and 0 only if nothing was up.
    """
    if up + down == 0:
        return None
    value = round(100 * up / (up + down), 4)
    if down and value == 100:
        return 99.9999
    return 0.0001 if up and value == 0 else value


@dataclass(frozen=True, slots=True)
class OutageTimes:
    """The spans (ms, merged and in order) in which a monitor was down, excused or unreachable."""

    down: tuple[Span, ...] = ()
    excused: tuple[Span, ...] = ()  # classified as maintenance
    planned: tuple[Span, ...] = ()  # maintenance windows
    behind: tuple[Span, ...] = ()  # unreachable because of a parent, outside of its own incidents


def outage_times(
    incidents: Iterable[IncidentSpan], end: int, planned: Iterable[Span] = ()
) -> OutageTimes:
    """The spans of ``incidents``; an open one lasts until ``end``. ``planned``: maintenance
    windows.
    """
    down, excused, behind = [], [], []
    for start, stop, classification in incidents:
        span = (start, end if stop is None else stop)
        if classification == Classification.MAINTENANCE:
            excused.append(span)
        elif classification == BEHIND:
            behind.append(span)
        elif classification != Classification.FALSE_ALARM:
            down.append(span)
    outside = merged(without(merged(behind), [*down, *excused]))
    return OutageTimes(merged(down), merged(excused), merged(planned), outside)


def merged(spans: Iterable[tuple[At, At]]) -> tuple[tuple[At, At], ...]:
    """Spans in order; adjoining ones are merged, empty ones left out."""
    result: list[tuple[At, At]] = []
    for start, stop in sorted(spans):
        if stop <= start:
            continue
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(stop, result[-1][1]))
        else:
            result.append((start, stop))
    return tuple(result)


def without(
    spans: Iterable[tuple[At, At]], removed: Iterable[tuple[At, At]]
) -> list[tuple[At, At]]:
    """The time of ``spans`` that is in none of ``removed``."""
    removed = merged(removed)
    return [
        (start, stop)
        for span in spans
        for is_removed, start, stop in split(removed, *span)
        if not is_removed and start < stop
    ]


def tally(
    checks: Sequence[PastResult],
    spans: OutageTimes,
    limit: int,
    period: int,
    start: int,
    end: int,
    confirmations: int = 0,
) -> dict[int, Sums]:
    """The sums of each period of ``period`` ms from ``start`` to ``end``, by its start.

    ``checks`` are in order and begin before ``start``: an earlier check may cover time after it,
    and with several places, a failure may have been confirmed by even earlier ones. ``limit``: the
    longest time that a check counts, in ms. Periods are aligned to 1970; those without data are
    left out.
    """
    by_start: dict[int, Sums] = {}
    answers: list[tuple[Sums, list[int], list[tuple[int | None, ...]]]] = []
    times: list[int]
    spent: list[tuple[int | None, ...]]
    following = start  # the start of the period after the one of ``sums``
    # Tuples are unpacked here and below: reading a field of a named tuple is slow, and a list of
    # monitors reads thousands of checks.
    for at, verdict, maintenance, response_time, phases, covers_ms, _ in checks:
        if not start <= at < end or covers_ms == 0:
            continue
        if at >= following:
            period_start = at - at % period
            sums = by_start[period_start] = Sums()
            times, spent = [], []
            answers.append((sums, times, spent))
            following = period_start + period
        sums.checks += 1
        if response_time is not None and verdict in GOOD_VERDICTS and not maintenance:
            times.append(response_time)
            spent.append(phases)
    for sums, times, spent in answers:  # a period at once: adding a day's checks one by one is slow
        sums.add_responses(times, spent)
    for kind, since, until in covered(checks, limit, spans.planned, confirmations):
        begin, stop = max(since, start), min(until, end)
        while begin < stop:
            period_start = begin - begin % period
            cut = min(stop, period_start + period)
            sums = by_start.setdefault(period_start, Sums())
            for inside, first, last in split(spans.planned, begin, cut):
                for is_behind, piece_start, piece_end in split(spans.behind, first, last):
                    piece_kind = MAINTENANCE if inside else UNKNOWN if is_behind else kind
                    _add_time(sums, piece_kind, spans, piece_start, piece_end)
            begin = cut
    return by_start


def _add_time(sums: Sums, kind: int, spans: OutageTimes, begin: int, end: int) -> None:
    if kind == MAINTENANCE:
        sums.maintenance += end - begin
        return
    if kind == UNKNOWN:
        sums.unknown += end - begin
        return
    for is_excused, first, last in split(spans.excused, begin, end):
        if is_excused:  # also if it is down
            sums.maintenance += last - first
            continue
        down = overlap(spans.down, first, last)
        sums.down += down
        sums.up += last - first - down
        if kind == DEGRADED:
            sums.degraded += last - first - down


# --- Response times, counted in fixed buckets: the sums of hours give the percentiles of a day
#
# Bucket ``i`` holds times above ``RATIO ** i`` ms and up to ``RATIO ** (i + 1)`` ms; bucket 0
# begins at 0. With a ratio of 1.05 a percentile is accurate to 2.5 %, and a minute is in
# bucket 225.

RATIO = 1.05
_LOG = math.log(RATIO)

Histogram = dict[int, int]


@lru_cache(maxsize=4096)  # a logarithm is slow, and most response times are among a few values
def bucket(ms: int) -> int:
    """The bucket of a response time in milliseconds."""
    return 0 if ms <= 1 else max(0, math.ceil(math.log(ms) / _LOG - 1e-9) - 1)


def representative(bucket: int) -> float:
    """The response time that represents a bucket, in ms: its geometric mean."""
    return float(RATIO ** (bucket + 0.5))


def percentile(sums: Sums, percent: float) -> int | None:
    """The response time in ms that ``percent`` of all do not exceed. For the highest rank it is the
    maximum. If all are in one bucket, it is their mean, which is more accurate than the bucket.
    """
    count = sum(sums.histogram.values())
    if not count:
        return None
    rank, count_until = max(1, math.ceil(count * percent / 100 - 1e-9)), 0  # the nearest rank
    highest = sums.response_max
    if rank == count and highest is not None:
        return highest
    if len(sums.histogram) == 1 and sums.response_count:
        return round(sums.response_sum / sums.response_count)
    for bucket_number in sorted(sums.histogram):
        count_until += sums.histogram[bucket_number]
        if count_until >= rank:
            value = round(representative(bucket_number))
            return value if highest is None else min(value, highest)
    raise AssertionError("the ranks are those of the counts")
