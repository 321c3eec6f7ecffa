"""One verdict from those of several locations."""

from datetime import UTC, datetime, timedelta

import pytest

from app.engine.quorum import Rule, Vote, decide
from app.records import Verdict

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MARKS = {"u": Verdict.UP, "s": Verdict.DEGRADED, "d": Verdict.DOWN, "?": Verdict.UNKNOWN}


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
    ],
)
def test_the_rule_over_the_newest_result_of_each_location(newest, any_, majority, all_):
    votes = [
        Vote(str(place), NOW - timedelta(hours=1 if mark == "-" else 0), MARKS.get(mark, "d"))
        for place, mark in enumerate(newest)
    ]
    verdicts = [decide(votes, rule, NOW, timedelta(minutes=5)) for rule in Rule]
    assert verdicts == [MARKS[any_], MARKS[majority], MARKS[all_]]
