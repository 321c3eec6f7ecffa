"""A lasting fault is logged when it begins, when its cause changes, and again after its end."""

import logging

import pytest

from app.lasting import Lasting

AWAY, FULL, OTHER = ("away", None), ("full", None), ("away", "other topic")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([AWAY, AWAY, AWAY], ["away"]),
        ([AWAY, FULL, FULL, AWAY], ["away", "full", "away"]),
        ([AWAY, "over", AWAY], ["away", "away"]),
        ([AWAY, OTHER, AWAY, OTHER], ["away", "away"]),
        (["over", AWAY, "over", "over"], ["away"]),
    ],
)
def test_what_lasts_is_logged_once(events, expected, caplog):
    lasting = Lasting(logging.getLogger("app.test"))
    for event in events:
        if event == "over":
            lasting.end()
        else:
            lasting.error("%s", event[0], topic=event[1])
    assert caplog.messages == expected
    assert {record.filename for record in caplog.records} == {"test_lasting.py"}


def test_the_same_cause_in_other_words_is_logged_once(caplog):
    lasting = Lasting(logging.getLogger("app.test"))
    for seconds in (3, 2, 1):
        lasting.error("Wait %d s", seconds, cause="busy")
    assert caplog.messages == ["Wait 3 s"]
    assert (lasting.cause(), lasting.end(), lasting.end()) == ("busy", True, False)


def test_after_its_seconds_the_same_is_logged_again(caplog):
    lasting = Lasting(logging.getLogger("app.test"), seconds=0.0)
    lasting.error("away")
    lasting.error("away")
    assert caplog.messages == ["away", "away"]
