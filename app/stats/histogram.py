"""Response times counted in fixed buckets, so that hours can be added to days with percentiles.

Bucket ``i`` holds times above ``RATIO ** i`` ms and up to ``RATIO ** (i + 1)`` ms; bucket 0 begins
at 0. With a ratio of 1.05 a percentile is accurate to 2.5 %, and a minute is in bucket 225.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

RATIO = 1.05
_LOG = math.log(RATIO)

Histogram = dict[int, int]


@lru_cache(maxsize=4096)  # the same few values come again and again, and a logarithm is slow
def bucket(ms: int) -> int:
    """The bucket of a response time in milliseconds."""
    return 0 if ms <= 1 else max(0, math.ceil(math.log(ms) / _LOG - 1e-9) - 1)


def middle(bucket: int) -> float:
    """The response time that represents a bucket, in ms: its geometric mean."""
    return float(RATIO ** (bucket + 0.5))


def merge(histograms: Iterable[Mapping[int, int]]) -> Histogram:
    total: Histogram = {}
    for histogram in histograms:
        for place, number in histogram.items():
            total[place] = total.get(place, 0) + number
    return total


def percentile(histogram: Mapping[int, int], percent: float, highest: int | None) -> int | None:
    """The response time in ms that ``percent`` of all do not exceed; ``highest`` bounds it."""
    count = sum(histogram.values())
    if not count:
        return None
    rank, counted = max(1, math.ceil(count * percent / 100 - 1e-9)), 0  # the nearest rank
    for place in sorted(histogram):
        counted += histogram[place]
        if counted >= rank:
            value = round(middle(place))
            return value if highest is None else min(value, highest)
    raise AssertionError("the ranks are those of the counts")
