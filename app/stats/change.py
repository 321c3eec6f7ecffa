"""Whether response times changed at a moment, such as a deploy: compares equal times before and
after it. The functions are pure. docs/slow.md says it for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil, copysign, floor
from statistics import median, quantiles
from typing import Any, NamedTuple

from app.records import PHASES

Bucket = Mapping[str, Any]

# The buckets and checks that each side of the moment must have: with fewer, a difference may be
# chance.
MIN_BUCKETS, MIN_CHECKS = 4, 12
# Smaller changes are not shown: times are whole milliseconds, and a target nearby takes three.
MIN_PERCENT, MIN_MS = 10, 5


class ResponseChange(NamedTuple):
    """``before`` and ``after``: the medians in ms. ``percent`` is above 0 if it became slower.
    ``phase``: the phase that changed most in this direction; None if there is none. ``length``: the
    time of each side.
    """

    before: int
    after: int
    percent: int
    phase: str | None
    length: timedelta


def changes(
    buckets: Sequence[Bucket], moments: Sequence[datetime]
) -> Iterator[tuple[Sequence[int], ResponseChange]]:
    """The changes at ``moments``, which are in order and within the buckets, each with the indexes
    of its moments: moments with too few buckets between them are one group.

    A side ends at the next moment, because something else may have changed then. A bucket with a
    moment in it is on neither side.
    """
    start = datetime.fromisoformat(buckets[0]["start"])
    width = datetime.fromisoformat(buckets[0]["end"]) - start
    offsets = [(moment - start) / width for moment in moments]
    groups: list[list[int]] = []
    for index, offset in enumerate(offsets):
        if groups and floor(offset) - ceil(offsets[groups[-1][-1]]) < MIN_BUCKETS:
            groups[-1].append(index)
        else:
            groups.append([index])
    begins = [0, *(ceil(offsets[group[-1]]) for group in groups)]
    ends = [*(floor(offsets[group[0]]) for group in groups), len(buckets)]
    sides = [_trimmed(buckets[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    for group, (left_side, right_side) in zip(groups, pairwise(sides), strict=True):
        count = min(len(left_side), len(right_side))
        earlier = list(filter(_has_time, left_side[len(left_side) - count :]))
        later = list(filter(_has_time, right_side[:count]))
        if _is_enough(earlier) and _is_enough(later):
            change = _change(earlier, later, count * width)
            if change is not None:
                yield group, change


def _trimmed(buckets: Sequence[Bucket]) -> Sequence[Bucket]:
    """The buckets from the first with a response time to the last."""
    measured = [index for index, bucket in enumerate(buckets) if _has_time(bucket)]
    return buckets[measured[0] : measured[-1] + 1] if measured else ()


def _has_time(bucket: Bucket) -> bool:
    return bucket["response_time"] is not None


def _is_enough(side: Sequence[Bucket]) -> bool:
    checks = sum(bucket["checks"] for bucket in side)
    return len(side) >= MIN_BUCKETS and checks >= MIN_CHECKS


def _change(
    earlier: Sequence[Bucket], later: Sequence[Bucket], length: timedelta
) -> ResponseChange | None:
    """The change between two sides; None if it is no larger than the differences within them."""
    times = [[bucket["response_time"] for bucket in side] for side in (earlier, later)]
    before, after = map(median, times)
    difference = after - before
    smallest = max(MIN_MS, before * MIN_PERCENT / 100)
    if not before or abs(difference) < smallest or _overlap(*times):
        return None
    sign = copysign(1, difference)
    by_phase = {name: sign * (_median(later, name) - _median(earlier, name)) for name in PHASES}
    phase = max(PHASES, key=by_phase.__getitem__)
    percent = round(100 * difference / before)
    largest = phase if by_phase[phase] > 0 else None
    return ResponseChange(round(before), round(after), percent, largest, length)


def _overlap(times: Sequence[int], others: Sequence[int]) -> bool:
    """Whether the middle halves (between the quartiles) overlap."""
    low, _, high = quantiles(times, n=4, method="inclusive")
    other_low, _, other_high = quantiles(others, n=4, method="inclusive")
    return low <= other_high and other_low <= high


def _median(side: Sequence[Bucket], phase: str) -> float:
    return float(median(bucket["timings"][phase] or 0 for bucket in side))
