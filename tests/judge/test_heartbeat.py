"""The meaning of a heartbeat's pings (decision 18): a story for each rule, with the clock given."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from app.judge.heartbeat import (
    HeartbeatRules,
    HeartbeatState,
    after_absence,
    after_change,
    after_ping,
    after_resume,
    after_time,
)
from app.records import ArrivedPing, PingKind
from tests.lab.heartbeats import BOUNDED, HOURLY, MINUTE, STORIES, at, story

R1, R2 = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


@pytest.mark.parametrize("row", STORIES)
def test_verdict_cause_and_deadline_after(row):
    assert list(row.faults()) == []


def test_a_missed_deadline_is_down_since_the_deadline_and_not_since_the_grace_is_over():
    fault = story(HOURLY, "03:00 success", "04:30").fault
    assert (fault.code, fault.since) == ("heartbeat_missed", at("04:00"))


def test_a_schedule_is_meant_in_its_zone_and_the_sentence_names_it():
    berlin = HeartbeatRules(timedelta(hours=1), 5 * MINUTE, ("0 4 * * *",), "Europe/Berlin")
    state = story(berlin, "01:00 success", "02:05")
    assert state.fault.sentence == "No ping since 03:00; one was due by 04:05 (Europe/Berlin)."


def test_each_run_is_timed_by_itself_and_the_oldest_shows():
    state = story(HOURLY, f"03:00 start {R1}", f"03:10 start {R2}")
    assert state.running_since == at("03:00")
    ended = ArrivedPing(at("03:15"), PingKind.SUCCESS, rid=R2)
    state, took = after_ping(HOURLY, state, ended)
    assert (took, state.running_since) == (5 * MINUTE, at("03:00"))
    state, took = after_ping(HOURLY, state, ArrivedPing(at("03:20"), PingKind.SUCCESS))
    assert (took, state.running_since) == (None, at("03:00")), "a ping without rid is another run"


def test_a_run_that_lasts_too_long_is_down_at_once_and_once():
    state = story(BOUNDED, "03:00 start", "03:09")
    assert state.fault is None
    state = story(BOUNDED, "03:00 start", "03:10")
    assert (state.fault.code, state.fault.since) == ("heartbeat_overran", at("03:10"))
    assert state.fault.sentence == "It started at 03:00 and had not ended after 10 min."
    state = story(replace(BOUNDED, zone="Europe/Berlin"), "03:00 start", "03:10")
    assert state.fault.sentence.startswith("It started at 05:00 (Europe/Berlin) and had not")
    state = story(BOUNDED, f"03:00 start {R1}", "03:10", f"03:11 success {R2}", "03:30")
    assert state.fault is None, "a later success ends it"


def test_what_acts_next_is_the_grace_of_the_deadline_or_the_end_of_a_run():
    assert story(HOURLY, "03:00 success").acts_at(HOURLY) == at("04:05")
    assert story(BOUNDED, "03:00 success", "03:58 start").acts_at(BOUNDED) == at("04:05")
    assert story(BOUNDED, "03:00 success", "03:02 start").acts_at(BOUNDED) == at("03:12")
    assert story(HOURLY, "03:00 success", "04:05").acts_at(HOURLY) is None
    assert HeartbeatState().acts_at(HOURLY) is None


def test_resuming_is_pending_and_waits_for_a_full_period():
    state = after_resume(HOURLY, story(HOURLY, "03:00 success", "04:05"), at("06:00"))
    assert (state.verdict(at("06:30")), state.expected_at) == (None, at("07:00"))
    state = after_time(HOURLY, state, at("07:05"))
    assert state.fault.sentence == "No ping came; one was due by 07:05."


def test_time_without_a_web_process_is_added_and_what_was_lost_is_unknown():
    state = story(HOURLY, "03:00 success")
    back = after_absence(HOURLY, state, at("03:30"), at("05:00"))
    assert back.expected_at == at("05:30")
    assert back.verdict(at("05:00")) == "unknown"
    assert after_time(HOURLY, back, at("05:34")).fault is None
    assert after_time(HOURLY, back, at("05:35")).fault.code == "heartbeat_missed"
    short = after_absence(HOURLY, state, at("03:30"), at("03:32"))
    assert (short.verdict(at("03:32")), short.expected_at) == ("up", at("04:02"))
    late = after_absence(HOURLY, state, at("04:03"), at("04:06"))
    assert late.expected_at == at("04:06"), "at least a full grace after it is back"


def test_after_a_change_nothing_was_missed_before_it():
    quick = HeartbeatRules(10 * MINUTE, 5 * MINUTE)
    state = after_change(quick, story(HOURLY, "03:00 success"), at("03:30"))
    assert (state.expected_at, state.verdict(at("03:30"))) == (at("03:30"), "up")
    assert after_change(quick, story(HOURLY, "03:00 success"), at("03:02")).expected_at == at(
        "03:10"
    )
