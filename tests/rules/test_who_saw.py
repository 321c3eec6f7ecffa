"""The places that saw a failure, in words."""

from __future__ import annotations

import pytest

from app.rules.who_saw import places_of, who_saw

DOWN = {"verdict": "down", "cause_code": "connection_refused"}
UP = {"verdict": "up", "status_code": 200}


def evidence(*places):
    return {"places": [{"name": f"place-{n}", **place} for n, place in enumerate(places)]}


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ([DOWN, DOWN, DOWN, UP | {"label": "Sydney"}], "3 of 4 places; Sydney still gets 200"),
        ([DOWN, DOWN], "2 of 2 places"),
        ([DOWN, DOWN, {"verdict": "up"}], "2 of 3 places; place-2 still reaches it"),
        ([DOWN, {"verdict": "unknown"}], "1 of 2 places; place-1 cannot tell"),
        ([DOWN, UP, UP, UP, UP, UP],
            "1 of 6 places (place-0); place-1, place-2 and place-3 still get 200;"
            " 2 more do not see it"),
        ([DOWN, UP, UP, UP, UP],
            "1 of 5 places (place-0); place-1, place-2 and place-3 still get 200;"
            " 1 more does not see it"),
        ([DOWN, UP, UP | {"status_code": 204}, UP, {"verdict": "unknown", "earlier": True}],
            "1 of 5 places (place-0); place-1 and place-3 still get 200; place-2 still gets 204;"
            " place-4 had not checked it since"),
        ([DOWN, {"verdict": "up"}, {"verdict": "up"}],
            "1 of 3 places (place-0); place-1 and place-2 still reach it"),
        ([DOWN, UP | {"earlier": True}],
            "1 of 2 places (place-0); place-1 had not checked it since"),
        ([DOWN | {"label": "Sydney"}], "Sydney"),
        ([DOWN | {"name": "default"}], None),
        ([UP], None),
        ([UP, UP], None),
    ],
)  # fmt: skip
def test_it_counts_who_saw_it_and_names_who_did_not(places, text):
    assert who_saw(evidence(*places)) == text


def test_of_an_incident_that_is_over_it_speaks_of_the_past():
    assert who_saw(evidence(DOWN, UP), is_open=False) == "1 of 2 places (place-0); place-1 got 200"


def test_evidence_of_before_there_were_places_says_nothing():
    assert who_saw(None) is None
    assert who_saw({"failing": {}}) is None
    assert places_of({"places": None}) == ()
