"""One verdict from those of several locations."""

from datetime import UTC, datetime, timedelta

import pytest

from app.judge.verdict import Vote, valid_votes, verdict_of_votes
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
            persistent=mark == "D",
        )
        for place, mark in enumerate(newest)
    ]
    counted = valid_votes(votes, NOW, timedelta(minutes=5), maintenance=True)
    verdicts = [verdict_of_votes(counted, rule) for rule in LocationRule]
    assert verdicts == [MARKS[any_], MARKS[majority], MARKS[all_]]
