"""Our own network's failures are told apart from targets that fail (decisions.md 9, 10)."""

import threading

import pytest

from app.engine.network import AT_ONCE_SECONDS, DEAD_SECONDS, Network, may_be_ours
from app.records import Cause, Verdict
from tests.factories import make_outcome


class Canaries:
    """Stands where the canaries do: answers when the test says so."""

    def __init__(self, works):
        self.answers = works
        self.asked = 0
        self.answered = threading.Semaphore(0)
        self.go = threading.Event()
        self.go.set()
        self.network = Network(self._works, self.answered.release)

    def _works(self):
        self.asked += 1
        self.go.wait(10)
        return self.answers

    def sort(self, script, now):
        """``script``: monitors by id and mark, as "1d 2u"; what can be recorded, in like form."""
        return marks(self.network.sort([finished(one) for one in script.split()], now))

    def collect(self, now):
        assert self.answered.acquire(timeout=10)
        return marks(self.network.collect(now))


def finished(one):
    id, mark = int(one[:-1]), one[-1]
    return id, {
        "u": make_outcome("up", answered=True),
        "d": make_outcome("down"),
        "s": make_outcome("down", answered=True, cause_code="http_status:503"),
        "p": make_outcome("unknown", cause_code=Cause.BLOCKED_BY_POLICY),
    }[mark]


def marks(outcomes):
    names = {Verdict.UP: "u", Verdict.DOWN: "d", Verdict.UNKNOWN: "?"}
    return " ".join(f"{id}{names[outcome.result.verdict]}" for id, outcome in outcomes)


def test_one_failure_among_many_successes_asks_nobody():
    canaries = Canaries(works=False)
    assert canaries.sort("1u 2u 3u 4d", 0) == "1u 2u 3u 4d"
    assert canaries.sort("5d", 5) == "5d"
    assert canaries.asked == 0


@pytest.mark.parametrize(
    ("before", "failing"),
    [("", "1d"), ("", "1d 2d 3d"), ("1u 2u 3u", "4d 5d 6d 7d"), ("1u", "1d"), ("1p", "2d")],
)
def test_many_failures_or_nothing_but_failures_ask_and_become_unknown(before, failing):
    canaries = Canaries(works=False)
    canaries.sort(before, 0)
    assert canaries.sort(failing, 1) == ""
    assert canaries.collect(2) == failing.replace("d", "?")
    assert canaries.network.down


def test_with_a_canary_alive_failures_are_failures():
    canaries = Canaries(works=True)
    assert canaries.sort("1d 2d", 0) == ""
    assert canaries.collect(1) == "1d 2d"
    assert not canaries.network.down
    assert canaries.sort("3d", 1.5) == "3d", "the answer holds for a moment"
    assert canaries.asked == 1


def test_an_answer_from_the_target_is_recorded_at_once_and_never_blamed_on_us():
    canaries = Canaries(works=False)
    assert canaries.sort("1s 2s 3s 4s", 0) == "1d 2d 3d 4d"
    assert canaries.sort("1d 2s", 100) == "2d 1d", "who answers shows that our network works"
    assert canaries.asked == 0


def test_while_our_network_is_down_answers_still_count():
    canaries = Canaries(works=False)
    canaries.sort("1d", 0)
    canaries.collect(0)
    assert canaries.sort("1d 2u 3s", 1) == "2u 3d 1?"
    assert canaries.network.down


def test_the_return_of_our_network_is_noticed_though_nothing_is_due():
    canaries = Canaries(works=False)
    canaries.sort("1d", 0)
    canaries.collect(0)
    canaries.answers = True
    assert canaries.network.collect(DEAD_SECONDS - 1) == []
    assert canaries.asked == 1
    assert canaries.network.collect(DEAD_SECONDS) == []
    assert canaries.collect(DEAD_SECONDS) == ""
    assert not canaries.network.down


def test_failures_long_ago_do_not_count_as_at_once():
    canaries = Canaries(works=False)
    canaries.sort("1d 2d 9u 8u 7u 6u 5u", 0)
    assert canaries.sort("3d", AT_ONCE_SECONDS + 1) == "3d"
    assert canaries.asked == 0


def test_results_that_come_while_the_canaries_are_asked_wait_too():
    canaries = Canaries(works=False)
    canaries.go.clear()
    assert canaries.sort("1d", 0) == ""
    assert canaries.sort("2d 3u", 0.5) == "3u"
    assert canaries.network.waiting == [1, 2]
    canaries.go.set()
    assert canaries.collect(1) == "1? 2?"
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
