"""Whether it is slower since a deploy: a sentence only where the figures carry it."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from app.records import PHASES
from app.stats.change import changes

START = datetime(2026, 11, 1, tzinfo=UTC)
WIDTH = timedelta(minutes=15)


def buckets(times, checks=15, phase="ttfb"):
    """One for each time (ms), which is spent in one phase but for 20 ms."""
    return [
        {
            "start": (START + index * WIDTH).isoformat(),
            "end": (START + (index + 1) * WIDTH).isoformat(),
            "checks": checks,
            "response_time": ms,
            "timings": dict.fromkeys(PHASES, ms and 5) | {phase: ms and ms - 20},
        }
        for index, ms in enumerate(times)
    ]


def at(*places):
    return [START + place * WIDTH for place in places]


DICE = random.Random(7)
NOISE = [round(200 * DICE.lognormvariate(0, 0.3)) for _ in range(40)]


@pytest.mark.parametrize(
    ("times", "moments", "expected"),
    [
        ([100] * 10 + [138] * 10, (10,), [((0,), 38, "ttfb")]),
        ([100] * 10 + [62] * 10, (10,), [((0,), -38, "ttfb")]),
        # The bucket of the moment has checks of both sides.
        ([100] * 9 + [900] + [138] * 10, (9.5,), [((0,), 38, "ttfb")]),
        # One slow quarter of an hour, or none measured, does not make a median.
        ([100] * 10 + [138, 138, None, 9000, 138, 138, None], (10,), [((0,), 38, "ttfb")]),
        # Too few on a side, or too small a difference.
        ([100] * 17 + [138] * 3, (17,), []),
        ([None] * 7 + [100] * 3 + [138] * 10, (10,), []),
        ([100] * 10 + [108] * 10, (10,), []),
        ([2] * 10 + [4] * 10, (10,), []),
        ([0] * 10 + [40] * 10, (10,), []),
        ([None] * 20, (10,), []),
        (NOISE, (20,), []),
        ([ms + 40 for ms in NOISE[:20]] + NOISE[20:], (20,), []),
        # Each change is compared with the time since the one before, deploys of one moment as one.
        ([100] * 6 + [200] * 6 + [100] * 6, (6, 12), [((0,), 100, "ttfb"), ((1,), -50, "ttfb")]),
        ([100] * 6 + [150] + [200] * 6, (6.2, 6.9), [((0, 1), 100, "ttfb")]),
        ([100] * 10 + [150] * 3 + [200] * 10, (10, 13), [((0, 1), 100, "ttfb")]),
        ([100] * 10 + [200] * 10, (2, 10, 18), [((1,), 100, "ttfb")]),
    ],
)  # fmt: skip
def test_a_change_is_named_where_it_is_more_than_noise(times, moments, expected):
    listed = changes(buckets(times), at(*moments))
    assert [(tuple(group), change.percent, change.phase) for group, change in listed] == expected


def test_a_change_names_its_medians_its_length_and_the_phase():
    times = [100] * 6 + [138] * 10
    ((_, change),) = changes(buckets(times, phase="dns"), at(6))
    assert change == (100, 138, 38, "dns", 6 * WIDTH)
    assert not [*changes(buckets(times, checks=1), at(6))], "six checks are chance"
    for bucket in (plain := buckets(times)):
        bucket["timings"] = dict.fromkeys(PHASES)
    ((_, change),) = changes(plain, at(6))
    assert change.phase is None
