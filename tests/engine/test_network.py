"""Failures of our own network are distinguished from those of targets (decisions 9, 10)."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from app.engine.network import (
    DEAD_SECONDS,
    HOLD_SECONDS,
    LAST_CHECKS_SECONDS,
    MAX_ASKED_FAILURES,
    OwnNetwork,
    distance,
    may_be_ours,
)
from app.records import Cause, Verdict
from tests.factories import make_outcome

SECOND = timedelta(seconds=1)


class Canaries:
    """Stands where the canaries do: answers when the test says so."""

    def __init__(self, works):
        self.answers = works
        self.asked = 0
        self.answered = threading.Semaphore(0)
        self.go = threading.Event()
        self.go.set()
        self.network = OwnNetwork(self._works, self.answered.release)

    def _works(self):
        self.asked += 1
        self.go.wait(60)
        return self.answers

    def sort(self, script, now):
        """``script``: monitors by id and mark, as "1d 2u"; what can be recorded, in like form."""
        return marks(self.network.sort([finished(word) for word in script.split()], now))

    def later(self, now):
        """The outcomes that can be recorded after a while in which nothing came."""
        return marks(self.network.collect(now))

    def collect(self, now):
        """The same, once the canaries have answered."""
        assert self.answered.acquire(timeout=60)
        return self.later(now)

    def out(self, script, now):
        """All of ``script`` fails and is held until the canaries are asked; what comes of it."""
        assert self.sort(script, now) == ""
        assert self.later(now + HOLD_SECONDS) == ""
        return self.collect(now + HOLD_SECONDS)


def finished(outcome, at=None):
    id, mark = int(outcome[:-1]), outcome[-1]
    down = "down", at
    return id, {
        "u": make_outcome("up", at, answered=True),
        "U": make_outcome("up", at, answered=True, ip="192.0.32.7"),
        "L": make_outcome("up", at, answered=True, ip="192.168.1.9"),
        "d": make_outcome(*down, evidence={"resolved": ["127.0.0.1"]}),
        "D": make_outcome(*down, evidence={"resolved": ["192.0.32.8"]}),
        "l": make_outcome(*down, evidence={"resolved": ["192.168.1.8"]}),
        "n": make_outcome(*down, cause_code=Cause.DNS_TIMEOUT, evidence={"resolved": []}),
        "s": make_outcome(*down, answered=True, cause_code="http_status:503"),
        "t": make_outcome(*down, answered=True, cause_code=Cause.TIMEOUT_BODY),
        "p": make_outcome("unknown", at, cause_code=Cause.BLOCKED_BY_POLICY),
    }[mark]


def marks(outcomes):
    names = {Verdict.UP: "u", Verdict.DOWN: "d", Verdict.UNKNOWN: "?"}
    return " ".join(f"{id}{names[outcome.result.verdict]}" for id, outcome in outcomes)


def test_a_failure_before_an_answer_of_another_target_does_not_ask_the_canaries():
    canaries = Canaries(works=False)
    assert canaries.sort("4d 1u", 0) == "4d 1u"
    assert canaries.sort("5d", 5) == ""
    assert canaries.sort("1s", 5 + HOLD_SECONDS / 2) == "5d 1d"
    assert canaries.asked == 0


@pytest.mark.parametrize("failing", ["1d", "1d 2d 3d", "4d 5d 6d 7d"])
@pytest.mark.parametrize("before", ["", "1u 2u 3u", "1p"])
def test_if_only_failures_follow_the_canaries_are_asked(before, failing):
    """Answers from before the failures are no sign: a network that has just died had answers."""
    canaries = Canaries(works=False)
    canaries.sort(before, 0)
    assert canaries.out(failing, 1) == failing.replace("d", "?")
    assert canaries.network.down
    assert canaries.asked == 1


@pytest.mark.parametrize(
    ("script", "recorded"),
    [
        ("1D 2L 3u", "2u 3u"),  # our own rooms answer though the line to the internet is dead
        ("1n 2L", "2u"),
        ("1D 2U", "1d 2u"),
        ("1n 2U", "1d 2u"),
        ("1l 2u", "2u"),
        ("1l 2L", "1d 2u"),
        ("1l 2U", "1d 2u"),
        ("1d 2u", "1d 2u"),
        ("1D 2t", "2d"),  # these bytes may have come a minute ago
        ("1D 2p", "2?"),
    ],
)
def test_a_nearer_target_says_nothing_about_a_farther_one(script, recorded):
    assert Canaries(works=False).sort(script, 0) == recorded


@pytest.mark.parametrize(
    ("fields", "far"),
    [
        ({"ip": "127.0.0.1"}, 0),
        ({"ip": "::1"}, 0),
        ({"ip": "10.0.0.1"}, 1),
        ({"ip": "fd00::1"}, 1),
        ({"ip": "169.254.1.1"}, 1),
        ({"ip": "192.0.32.7"}, 2),
        ({"evidence": {"resolved": ["10.0.0.1"]}}, 1),
        ({"evidence": None}, 2),
    ],
)
def test_the_distance_of_a_target_follows_from_its_address(fields, far):
    assert distance(make_outcome("down", **fields)) == far


def test_if_a_canary_answers_failures_are_recorded_as_down():
    canaries = Canaries(works=True)
    assert canaries.out("1d 2d", 0) == "1d 2d"
    assert not canaries.network.down
    assert canaries.asked == 1
    assert canaries.out("3d", HOLD_SECONDS) == "3d"
    assert canaries.asked == 2, "their answer says nothing of the moment after"


def test_an_answer_of_a_target_decides_before_the_canaries():
    canaries = Canaries(works=False)
    canaries.go.clear()
    canaries.sort("1d 2D", 0)
    assert canaries.later(HOLD_SECONDS) == ""
    assert canaries.sort("3u", HOLD_SECONDS + 1) == "1d 3u"
    canaries.go.set()
    assert canaries.collect(HOLD_SECONDS + 2) == "2?"


def test_without_canaries_nothing_waits():
    network = OwnNetwork(None, lambda: None)
    assert marks(network.sort([finished("1d")], 0)) == "1d"


def test_a_fault_in_asking_the_canaries_is_logged_and_hides_no_outage(caplog):
    asked = threading.Semaphore(0)

    def broken():
        raise ZeroDivisionError

    network = OwnNetwork(broken, asked.release)
    assert network.sort([finished("1d")], 0) == []
    network.collect(HOLD_SECONDS)
    assert asked.acquire(timeout=60)
    assert marks(network.collect(HOLD_SECONDS)) == "1d"
    assert "ZeroDivisionError" in caplog.text


def test_the_canaries_are_asked_only_a_few_times_about_a_target_that_stays_down():
    canaries = Canaries(works=True)
    for turn in range(MAX_ASKED_FAILURES):
        assert canaries.out("1d", 60 * turn) == "1d"
    assert canaries.sort("1d", 60 * MAX_ASKED_FAILURES) == "1d"
    assert canaries.asked == MAX_ASKED_FAILURES
    canaries.sort("1u", 3600)
    assert canaries.sort("1d", 3660) == "", "after its recovery they are"


def test_a_failure_with_an_answer_is_recorded_at_once_as_the_targets():
    canaries = Canaries(works=False)
    assert canaries.sort("1s 2s 3s 4s", 0) == "1d 2d 3d 4d"
    assert canaries.sort("1d 2s", 100) == "1d 2d", "who answers shows that our network works"
    assert canaries.asked == 0


def test_while_our_network_is_down_answers_still_count():
    canaries = Canaries(works=False)
    canaries.out("1d", 0)
    assert canaries.sort("1d 2u 3s", HOLD_SECONDS + 1) == "1? 2u 3d"
    assert canaries.network.down


def test_the_return_of_our_network_is_noticed_although_no_check_is_due():
    canaries = Canaries(works=False)
    canaries.out("1d", -HOLD_SECONDS)
    canaries.answers = True
    assert canaries.later(DEAD_SECONDS - 1) == ""
    assert canaries.asked == 1
    assert canaries.later(DEAD_SECONDS) == ""
    assert canaries.collect(DEAD_SECONDS) == ""
    assert not canaries.network.down


def test_a_check_that_ran_when_our_network_came_back_is_unknown():
    canaries = Canaries(works=False)
    canaries.out("1d", -HOLD_SECONDS)
    canaries.answers = True
    began = datetime.now(UTC)
    assert canaries.sort("1d", DEAD_SECONDS) == "", "it waits for the canaries"
    assert canaries.collect(DEAD_SECONDS) == "1?", "and failed before they answered"
    network, now = canaries.network, DEAD_SECONDS + 30
    assert marks(network.sort([finished("2d", began)], now)) == "2?"
    assert marks(network.sort([finished("2d", datetime.now(UTC) + SECOND)], now)) == ""
    later = DEAD_SECONDS + LAST_CHECKS_SECONDS
    assert marks(network.sort([finished("3d", began - SECOND)], later)) == "", "a clock set back"


def test_results_that_come_while_the_canaries_are_asked_wait_too():
    canaries = Canaries(works=False)
    canaries.go.clear()
    assert canaries.sort("1d", 0) == ""
    assert canaries.later(HOLD_SECONDS) == ""
    assert canaries.sort("2d 3p", HOLD_SECONDS + 0.5) == "3?"
    canaries.go.set()
    assert canaries.collect(HOLD_SECONDS + 1) == "1?"
    assert canaries.later(2 * HOLD_SECONDS + 1) == "2?"
    assert canaries.asked == 1


@pytest.mark.parametrize(
    ("cause", "answered", "ours"),
    [
        (Cause.TIMEOUT_CONNECT, False, True),
        (Cause.DNS_TIMEOUT, False, True),
        (Cause.TIMEOUT_TTFB, False, True),
        (Cause.TIMEOUT_TTFB, True, False),
        (Cause.TLS_EXPIRED, True, False),
        ("http_status:503", True, False),
        (Cause.TEXT_MISSING, True, False),
        (Cause.REDIRECT_BLOCKED, False, False),
    ],
)
def test_which_failures_may_be_ours(cause, answered, ours):
    assert may_be_ours(make_outcome("down", cause_code=cause, answered=answered)) == ours
