"""The effect of the results of several places, in the order in which they arrive (decision 14)."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from itertools import product

import pytest

from app.judge.verdict import PastResult, Rules
from app.records import LocationRule, Verdict
from tests.support.live_judge import BEGIN, COVERS, Live

MARKS = {"+": Verdict.UP, "-": Verdict.DOWN, "~": Verdict.DEGRADED, "?": Verdict.UNKNOWN}
AGES = BEGIN - timedelta(days=1)  # no place is awaited any more


def judged(rule, confirmations, script, places=3, since=AGES):
    """The effect of checks of berlin, oslo and sydney. ``60+-.``: at 60 s berlin is up, 10 ms later
    oslo is down, and sydney has no check; with an ``m`` behind it they are in a maintenance. The
    incidents with their whole seconds, and the verdict.
    """
    numbers = range(1, places + 1)
    live = Live(Rules(rule, confirmations, COVERS, dict.fromkeys(numbers, since), COVERS))
    for part in script.split():
        seconds, marks, quiet = re.fullmatch(r"([\d.]*\d)([-+~?.]{2,3})(m?)", part).groups()
        for place, mark in enumerate(marks, 1):
            if mark != ".":
                ms = round(BEGIN.timestamp() * 1000 + float(seconds) * 1000) + 10 * (place - 1)
                live.record(PastResult(ms, MARKS[mark], bool(quiet), place=place))
    state = live.situation.state
    spans = [*live.incidents, *([(state.down_since, None)] if state.down_since else [])]
    return [
        tuple(time and (time - BEGIN).seconds for time in span) for span in spans
    ], state.verdict


ROWS = [
    # What one place sees through all confirmations is the monitor's verdict under "any" alone.
    ("any", 2, "0++- 10++- 20++- 30++-", [(0, None)], "down"),
    ("majority", 2, "0++- 10++- 20++- 30++-", [], "degraded"),
    ("all", 2, "0++- 10++- 20++- 30++-", [], "degraded"),
    ("majority", 2, "0++- 10++- 20+++", [], "up"),
    # The newest result of each place decides by the rule; unknown is no vote.
    ("any", 0, "0+.. 1.-.", [(1, None)], "down"),
    ("majority", 0, "0+.. 1.-.", [], "degraded"),
    ("majority", 0, "0+.. 1.-. 2-..", [(2, None)], "down"),
    ("all", 0, "0+.+ 1.-. 2-..", [], "degraded"),
    ("all", 0, "0+.+ 1.-. 2-.-", [(2, None)], "down"),
    ("all", 0, "0?.. 1.-.", [(1, None)], "down"),
    # Its lasting failure counts when another place begins to fail, and remains when that recovers.
    ("majority", 1, "0++- 10++- 20++- 60+-- 70+--", [(60, None)], "down"),
    ("majority", 1, "0+-- 10+-- 60++- 70++-", [(0, 60)], "degraded"),
    ("majority", 0, "0+++ 60..- 61+.. 120..- 121+.. 180..- 181+.. 170.-.", [(170, None)], "down"),
    # Places that repeat a failure, or a recovery, at once confirm it once together.
    *((rule, 1, "0+++ 60---", [], "down") for rule in LocationRule),
    *((rule, 1, "0+++ 60--- 70---", [(60, None)], "down") for rule in LocationRule),
    *((rule, 2, "0+++ 60--- 70---", [], "down") for rule in ("any", "all")),
    ("majority", 1, "0--- 10--- 60+++", [(0, None)], "up"),
    ("majority", 1, "0--- 10--- 60+++ 70+++", [(0, 60)], "up"),
    ("any", 1, "0+++ 60--. 60.25..- 70.1++. 70.1..-", [(60, None)], "down"),
    ("majority", 1, "0+++ 60--+ 71-.. 71.1.++ 120-..", [], "degraded"),
    ("any", 1, "0+++ 60-++ 71.-. 71.1+.+", [], "down"),  # each of them failed once
    ("any", 1, "0+++ 60-++ 71.-. 71.1+.+ 82+-+", [(60, None)], "down"),
    # The first place of a new monitor is not its majority; see ``new`` below. A check that comes
    # after later ones of other places is judged in its turn.
    ("any", 1, "0+++ 80++. 61..- 93++. 93..-", [(61, None)], "down"),
    ("any", 1, "0+++ 90+.. 61..- 71.-. 95--- 106---", [(61, None)], "down"),
    ("majority", 1, "0+++ 90+.. 61..- 71.-. 95--- 106---", [(71, None)], "down"),
    ("all", 1, "0+++ 90+.. 61..- 71.-. 95--- 106---", [(95, None)], "down"),
    ("any", 1, "0+++ 70-.. 61..- 82--- 93---", [(61, None)], "down"),
    ("majority", 1, "0+++ 70-.. 75.-. 72..- 82--- 93---", [(72, None)], "down"),
    ("any", 0, "60--- 76+.. 91+.. 71..+ 81.+. 103+++ 114+++", [(60, 81)], "up"),
    ("majority", 0, "60--- 76+.. 91+.. 71..+ 81.+. 103+++ 114+++", [(60, 76)], "up"),
    ("all", 0, "60--- 76+.. 71..+ 103+++ 114+++", [(60, 71)], "up"),
    ("any", 0, "0-++ 60+.. 71+.. 90+.. 55..-", [(0, 60), (60, None)], "down"),
    ("majority", 0, "0+++ 45..- 60.-. 63+.. 58..+ 80+++ 91+++", [(60, 60)], "up"),
    ("all", 0, "0+++ 60.?. 60.3..- 60.1?..", [], "degraded"),
    # A silent place has no vote: the recovery begins when the last of the others is good.
    ("any", 0, "60+-- 120+.- 180+.- 240+.- 290+.. 285..+ 300+.+ 311+.+", [(60, 285)], "up"),
    # An incident from before a maintenance ends when places see its end.
    ("majority", 1, "0--. 10--. 60--.m 120-.. 131-..", [(0, None)], "down"),
    ("majority", 1, "0--. 10--. 60--.m 120-.. 131-.. 132.+. 140++. 150++.", [(0, 132)], "up"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "confirmations", "script", "incidents", "verdict"),
    ROWS,
    ids=[f"{rule} {count}: {script}" for rule, count, script, *_ in ROWS],
)
def test_checks_of_places_lead_to_incidents(rule, confirmations, script, incidents, verdict):
    assert judged(rule, confirmations, script) == (incidents, verdict)


@pytest.mark.parametrize(
    ("script", "incidents"),
    [("10-.. 100-..", []), ("10-.. 200-..", [(200, None)]), ("10-.. 11.-.", [(11, None)])],
)
def test_the_first_place_of_a_new_monitor_waits_for_the_others(script, incidents):
    """A result counts as long: two intervals and the time limit."""
    assert judged("majority", 0, script, since=BEGIN)[0] == incidents


@pytest.mark.parametrize(
    ("rule", "confirmations", "places"), [*product(LocationRule, (1, 2), (2, 3))]
)
def test_only_a_failure_that_lasts_opens_an_incident_in_whatever_order_places_are_heard(
    rule, confirmations, places
):
    chance = random.Random(20261123)
    needed = {"any": 1, "majority": places // 2 + 1, "all": places}[rule]
    for failing, rounds in product(range(1, places + 1), (1, confirmations + 1)):
        over = 60 + 11 * rounds
        parts = []
        for seconds in [0, *range(60, over, 11), over, over + 11, over + 22]:
            for place in chance.sample(range(places), places):
                marks = ["."] * places
                marks[place] = "-" if place < failing and 60 <= seconds < over else "+"
                parts.append(f"{seconds}{''.join(marks)}")
        opened = failing >= needed and rounds > confirmations
        wanted = [(60, over)] if opened else []
        assert judged(rule, confirmations, " ".join(parts), places) == (wanted, "up"), parts
