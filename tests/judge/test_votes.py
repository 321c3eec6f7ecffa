"""One verdict from those of several locations."""

from datetime import UTC, datetime, timedelta

import pytest

from app.db.types import to_ms
from app.judge.verdict import Check, Vote, decide, decided_since, heard, since_each
from app.records import LocationRule, Verdict

NOW = datetime(2026, 11, 21, tzinfo=UTC)
# "D" is down through all confirmations.
MARKS = {
    "u": Verdict.UP,
    "s": Verdict.DEGRADED,
    "d": Verdict.DOWN,
    "D": Verdict.DOWN,
    "?": Verdict.UNKNOWN,
}


@pytest.mark.parametrize(
    ("newest", "any_", "majority", "all_"),
    [
        ("u", "u", "u", "u"),
        ("s", "s", "s", "s"),
        ("d", "d", "d", "d"),
        ("?", "?", "?", "?"),
        ("", "?", "?", "?"),
        ("du", "d", "u", "u"),
        ("ds", "d", "s", "s"),
        ("dd", "d", "d", "d"),
        ("ddu", "d", "d", "u"),
        ("duu", "d", "u", "u"),
        ("dduu", "d", "u", "u"),
        ("dddu", "d", "d", "u"),
        ("us", "s", "s", "s"),
        # an unknown result has no vote
        ("d?", "d", "d", "d"),
        ("u?", "u", "u", "u"),
        ("du?", "d", "u", "u"),
        ("d??", "d", "d", "d"),
        ("??", "?", "?", "?"),
        # nor has a result that is too old
        ("ud-", "d", "u", "u"),
        # what too few see through all confirmations is degraded
        ("Duu", "d", "s", "s"),
        ("Ddu", "d", "d", "s"),
        ("Du?", "d", "s", "s"),
    ],
)
def test_the_rule_over_the_newest_result_of_each_location(newest, any_, majority, all_):
    votes = [
        Vote(
            place,
            NOW - timedelta(hours=1 if mark == "-" else 0),
            MARKS.get(mark, Verdict.DOWN),
            lasting=mark == "D",
        )
        for place, mark in enumerate(newest)
    ]
    counted = heard(votes, NOW, timedelta(minutes=5), maintenance=True)
    verdicts = [decide(counted, rule) for rule in LocationRule]
    assert verdicts == [MARKS[any_], MARKS[majority], MARKS[all_]]


@pytest.mark.parametrize(
    ("newest", "awaited", "any_", "majority", "all_"),
    [
        ("ddd", 0, 1, 2, 3),
        ("ddu", 0, 1, 2, 3),
        ("duu", 0, 1, 3, 2),  # by all of them, the first good one was enough
        ("uuu", 0, 3, 2, 1),
        ("duuu", 0, 1, 3, 2),
        ("duuu", 1, 1, 4, 2),  # the one that is awaited counts as failing
    ],
)
def test_since_when_the_votes_are_down_together_or_no_more(newest, awaited, any_, majority, all_):
    """The first location sees what it sees since second 1, the second one since second 2."""
    votes = [Vote(place, NOW, MARKS[mark]) for place, mark in enumerate(newest, 1)]
    since = {vote.location: NOW + timedelta(seconds=vote.location) for vote in votes}
    wanted = dict(zip(LocationRule, (any_, majority, all_), strict=True))
    for rule, seconds in wanted.items():
        down = decide(votes, rule, awaited, incident=True) is Verdict.DOWN
        found = decided_since(votes, since, rule, awaited, down=down)
        assert (found - NOW).total_seconds() == seconds, rule


def test_since_when_each_location_fails_or_is_good():
    marks = {1: "ududd", 2: "d?d?d", 3: "us?su", 4: "dmmdd", 5: "dmmmu"}
    checks = [
        Check(to_ms(NOW) + second, MARKS.get(mark, Verdict.DOWN), mark == "m", place=place)
        for place, seen in marks.items()
        for second, mark in enumerate(seen)
    ]
    times = since_each(checks, maintenance=False)
    assert {place: to_ms(at) - to_ms(NOW) for place, at in times.items()} == {
        1: 3, 2: 0, 3: 0, 4: 0, 5: 4,
    }  # fmt: skip
    only = [Check(to_ms(NOW), Verdict.DOWN, maintenance=True, place=6)]
    assert since_each(only, maintenance=False) == {}, "it counts for nothing after it"
    assert since_each(only, maintenance=True) == {6: NOW}
