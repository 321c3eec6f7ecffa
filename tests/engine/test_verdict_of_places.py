"""The verdict of several places on a monitor (decision 14)."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from app.alerts.messages.incident import silent_places
from app.db import db, journal, writing
from app.db.tables import DeliveryRow, MonitorEvidenceRow, MonitorRow, PlaceRow, ResultRow
from app.db.types import to_ms
from app.engine import recorder
from app.engine.recorder.evidence import MIN_CHECKS
from app.engine.recorder.rows import in_whole_seconds
from app.engine.schedule import due
from app.rules import comments
from app.rules.time import iso
from app.rules.who_saw import CHANGED, who_saw
from tests.factories import make_outcome
from tests.support.recorders import NAMES, Places, at, change

CONFIRM = timedelta(seconds=10)


@pytest.fixture
def places(core):
    with core.app_context():
        yield Places(core)


def test_what_one_place_sees_through_all_confirmations_is_degraded_and_names_it(places):
    places.start(confirmations=2)
    places.round(0)
    for number in (1, 2):
        places.round(60 + 10 * number, sydney="down")
        assert places.shown.verdict == "up", "it is not confirmed yet"
    places.round(90, sydney="down")
    assert (places.shown.verdict, places.shown.cause_code) == ("degraded", "connection_refused")
    assert places.shown.unconfirmed_at is None, "it is not repeated for ever"
    assert places.shown.cause == "Down in 1 of 3 places (sydney): The server refused."
    assert places.opened == []
    assert places.events() == []
    places.round(150)
    assert (places.shown.verdict, places.shown.cause) == ("up", None)


def test_a_silent_place_is_named_beside_those_that_are_counted(places):
    """With three places, "1 of 2" made people look for the third."""
    places.start(confirmations=0)
    places.round(0)
    for minute in range(1, 6):
        places.see("berlin", "up", 60 * minute)
        places.see("sydney", "down", 60 * minute + 0.1)
    assert places.shown.verdict == "degraded"
    assert places.shown.cause == (
        "Down in 1 of 2 places (sydney): The server refused. oslo is silent and has no vote."
    )


def test_what_one_place_sees_once_is_repeated_soon_in_every_place_and_forgotten(places):
    places.start(confirmations=2)
    places.round(0)
    places.see("sydney", "down", 60)
    assert places.shown.unconfirmed_at == at(60.5)
    for name in ("berlin", "oslo"):
        places.see(name, "up", 60.2)
        assert places.shown.unconfirmed_at == at(60.5), "a check that belongs to the first"
    places.see("berlin", "up", 70)
    assert places.shown.unconfirmed_at == at(60.5), "the others still have to repeat it"
    places.see("sydney", "up", 70.1)
    assert places.shown.unconfirmed_at is None
    assert places.shown.verdict == "up"


@pytest.mark.settings(confirm_seconds=10.0)
@pytest.mark.parametrize(("rule", "late"), [("any", "up"), ("all", "down")])
def test_a_place_whose_check_begins_after_the_failure_was_recorded_repeats_it_with_the_others(
    places, rule, late
):
    """A queue gathers checks for a batch, so its place begins each of them 0.25 s later."""
    places.start(confirmations=1, location_rule=rule)
    places.round(0)
    for name in ("berlin", "oslo"):
        places.see(name, "down", 60, recorded=0.01)
    stood = places.see("sydney", late, 60.25)
    repeat = due(places.id, 60, stood, at(60.75), CONFIRM)
    assert repeat == stood.unconfirmed_at + CONFIRM, "with the others"
    for name in ("berlin", "oslo"):
        places.see(name, "up", 70.1, recorded=0.01)
    last = places.see("sydney", "up", 70.4)
    assert (last.unconfirmed_at, places.shown.verdict) == (None, "up"), "one round is enough"
    assert places.opened == []


def test_a_slow_answer_in_one_place_names_it(places):
    places.start()
    places.round(0, oslo="degraded")
    assert places.shown.verdict == "degraded"
    assert places.shown.cause.startswith("Slow in 1 of 3 places (oslo)")


def test_an_incident_keeps_who_saw_it_and_who_did_not(places):
    places.start(confirmations=1)
    places.round(0)
    for seconds in (60, 70):
        places.round(seconds, berlin="down", oslo="down")
    (incident,) = places.opened
    checks = incident.evidence["places"]
    assert [(check["name"], check["verdict"], check["cause_code"]) for check in checks] == [
        ("berlin", "down", "connection_refused"),
        ("oslo", "down", "connection_refused"),
        ("sydney", "up", None),
    ]
    assert checks[2]["status_code"] == 200


def test_what_was_usual_is_of_the_place_that_saw_the_failure(places):
    places.start(confirmations=0, location_rule="any", updated_at=at(-1))
    for number in range(MIN_CHECKS):
        places.see("berlin", "up", 60 * number, response_time=20)
        places.see("oslo", "up", 60 * number + 1, response_time=900)
    places.see("berlin", "down", 60 * MIN_CHECKS)
    (incident,) = places.opened
    assert incident.evidence["usual"]["response_time"] == 20


def test_a_check_from_before_the_failure_does_not_count_as_seeing_no_failure(places):
    places.start(confirmations=1, location_rule="any")
    places.round(0)
    places.see("sydney", "up", 60)  # a moment before the first failure, at the same time
    for seconds in (61, 70):
        places.see("berlin", "down", seconds)
    (incident,) = places.opened
    checks = {place["name"]: place for place in incident.evidence["places"]}
    assert checks["oslo"]["checked_at"] == iso(at(0))
    assert [checks[name]["earlier"] for name in NAMES] == [False, True, False]
    assert who_saw(incident.evidence) == (
        "1 of 3 places (berlin); oslo had not checked it since; sydney still gets 200"
    )
    places.see("oslo", "down", 75)
    db.session.expire_all()
    (incident,) = places.opened
    oslo = incident.evidence["places"][1]
    assert (oslo["verdict"], oslo["earlier"]) == ("down", False)


def test_an_incident_that_ends_because_its_place_fell_silent_says_so(places):
    places.start(confirmations=1, location_rule="any")
    for seconds in (0, 60, 70):
        places.round(seconds, sydney="down")
    for seconds in (120, 180, 240, 300):
        places.see("berlin", "up", seconds)
        places.see("oslo", "up", seconds)
    (incident,) = places.opened
    assert incident.ended_at is not None
    (remark,) = comments.remarks(incident.comment)
    sentence = "sydney saw the failure, then fell silent. The other places do not confirm it."
    assert (remark.text, remark.who, remark.at) == (sentence, "Wakeful", incident.ended_at)
    last = at(70).replace(microsecond=0)
    gap = {"from": iso(last), "to": iso(incident.ended_at)}
    assert incident.unwatched == [gap], "its length is a limit from the last failing check on"
    resolved = DeliveryRow.event == "incident.resolved"
    ended = db.session.scalars(select(DeliveryRow).where(resolved)).first()
    facts = ended.facts["incident"]
    assert (facts["ending"], facts["seen_by"]) == ("silence", ["sydney"])


@pytest.mark.parametrize(
    ("fields", "last", "ending"),
    [
        ({"location_rule": "majority"}, "down", "changed"),
        ({"name": "Shop"}, "up", "recovered"),
        ({"locations": ["berlin", "oslo"]}, None, "changed"),
    ],
)
def test_an_end_by_a_change_of_the_monitor_is_no_recovery(places, settings, fields, last, ending):
    places.start(confirmations=1, location_rule="any", updated_at=at(-60))
    for seconds in (0, 60, 70):
        places.round(seconds, sydney="down")
    change(settings, places.id, fields, at(80))
    for seconds in (120, 130, 180, 190):
        for name in ("berlin", "oslo"):
            places.see(name, "up", seconds)
        if last is not None:
            places.see("sydney", last, seconds)
    (incident,) = places.opened
    assert (incident.ending, incident.ended_at is None) == (ending, False)
    resolved = DeliveryRow.event == "incident.resolved"
    facts = db.session.scalars(select(DeliveryRow.facts).where(resolved)).first()
    assert facts["incident"]["ending"] == ending
    remarks = [remark.text for remark in comments.remarks(incident.comment)]
    assert remarks == ([CHANGED] if ending == "changed" else [])


def test_an_end_that_another_place_saw_is_a_recovery_though_one_fell_silent(places):
    places.start(confirmations=1)
    for seconds in (0, 60, 70):
        places.round(seconds, berlin="down", oslo="down", sydney="down")
    for verdict, times in (("down", (120, 180, 240, 300)), ("up", (360, 370))):
        for seconds in times:
            places.see("berlin", verdict, seconds)
            places.see("oslo", verdict, seconds)
    (incident,) = places.opened
    assert (incident.ending, incident.comment, incident.unwatched) == ("recovered", None, None)
    assert incident.seen_by == ["berlin", "oslo", "sydney"]


@pytest.mark.parametrize(
    ("rule", "silent", "ending"),
    [
        ("any", ["sydney"], "silence"),
        ("majority", ["oslo", "sydney"], "silence"),
        ("majority", ["sydney"], "recovered"),
        ("all", ["oslo", "sydney"], "recovered"),
    ],
)
def test_an_end_is_no_recovery_if_the_silent_places_would_still_hold_it(
    places, rule, silent, ending
):
    """All three saw it. The others are good again, and that alone would not have ended it."""
    places.start(confirmations=1, location_rule=rule)
    for seconds in (0, 60, 70):
        places.round(seconds, berlin="down", oslo="down", sydney="down")
    for seconds in (120, 180, 240, 300, 310):
        for name in {"berlin", "oslo", "sydney"} - set(silent):
            places.see(name, "up", seconds)
    (incident,) = places.opened
    assert (incident.ending, incident.ended_at is None) == (ending, False)
    resolved = DeliveryRow.event == "incident.resolved"
    facts = db.session.scalars(select(DeliveryRow.facts).where(resolved)).first()
    assert list(silent_places(facts) if ending == "silence" else silent) == silent
    texts = [remark.text for remark in comments.remarks(incident.comment)]
    saw = f"{', '.join(silent)} saw the failure, then fell silent."
    assert [text.startswith(saw) for text in texts] == ([True] if ending == "silence" else [])


def test_a_place_that_fell_silent_before_is_not_named_in_the_next_incident(places):
    places.start(confirmations=1, location_rule="any")
    for seconds in (0, 60, 70):
        places.round(seconds, sydney="down")
    for seconds in (120, 180, 240, 300):
        places.see("berlin", "up", seconds)
    for seconds in (360, 370):
        places.see("berlin", "down", seconds)
    for seconds in (420, 430):
        places.see("berlin", "up", seconds)
    assert len(places.opened) == 2
    assert sum(bool(incident.comment) for incident in places.opened) == 1


def test_a_monitor_that_is_down_by_what_one_place_sees_names_it(places):
    places.start(confirmations=0, location_rule="any")
    places.round(0)
    places.see("sydney", "down", 60)
    assert places.shown.verdict == "down"
    assert places.shown.cause == "Down in 1 of 3 places (sydney): The server refused."
    places.see("berlin", "down", 61)
    places.see("oslo", "down", 62)
    assert places.shown.cause == "The server refused."


def test_each_place_that_voted_down_has_its_evidence(places):
    places.start(confirmations=0)
    places.round(0)
    places.round(60, berlin="down", oslo="down", sydney="down")
    (incident,) = places.opened
    kept = incident.evidence
    assert kept["failing"]["from"] == "oslo", "the check that made it a majority"
    checks = {place["name"]: place["check"] for place in kept["places"]}
    assert checks["berlin"]["from"] == "berlin", "it failed before there was a majority"
    assert checks["sydney"]["from"] == "sydney", "it failed just after the incident had opened"
    assert checks["oslo"] is None, "it is the failing check"
    assert kept["failing"]["location"] == "oslo"
    assert [checks[name]["location"] for name in ("berlin", "sydney")] == ["berlin", "sydney"]
    assert [place["verdict"] for place in kept["places"]] == ["down"] * 3


def test_a_good_check_elsewhere_confirms_no_failure_and_hides_no_check_that_does(places):
    places.start(confirmations=2, location_rule="any")
    places.round(0)
    places.see("sydney", "down", 60)
    for seconds in (70, 80):  # the others repeat it too, and are recorded first
        assert places.opened == []
        places.see("berlin", "up", seconds)
        places.see("oslo", "up", seconds)
        assert places.opened == []
        places.see("sydney", "down", seconds)
    (incident,) = places.opened
    checks = [incident.evidence["failing"], *incident.evidence["confirming"]]
    assert [check["checked_at"] for check in checks] == [iso(at(s)) for s in (60, 70, 80)]
    assert {check["location"] for check in checks} == {"sydney"}


def test_evidence_of_a_place_that_has_recovered_is_not_kept(places):
    places.start(confirmations=2)
    places.round(0, sydney="down")
    assert db.session.scalars(select(MonitorEvidenceRow.failing)).one() is not None
    places.round(10)
    db.session.rollback()
    assert db.session.scalars(select(MonitorEvidenceRow.failing)).one() is None


def test_in_maintenance_a_failure_in_one_place_is_not_repeated(places):
    places.start(maintenance_start_at=at(-10), maintenance_end_at=at(3600))
    places.round(0, sydney="down")
    assert places.shown.unconfirmed_at is None


def test_a_monitor_with_one_place_has_it_in_the_evidence(places):
    id = places.monitor(confirmations=0)
    places.check(id, "up", 0)
    places.check(id, "down", 60)
    (incident,) = places.incidents(id)
    (place,) = incident.evidence["places"]
    assert (place["name"], place["verdict"], place["check"]) == ("default", "down", None)


def test_a_result_of_a_place_that_was_deleted_does_not_claim_another(places):
    places.start()
    places.see("oslo", "up", 0)
    with writing() as session:
        recorder.set_places(session, places.id, [places.places["berlin"]], at(1))
        session.delete(session.get(PlaceRow, places.places["oslo"]))
    (row,) = db.session.execute(select(*journal.RAW.values())).all()
    assert journal.decode([row])[0].location == "deleted"


@pytest.mark.parametrize(
    ("last", "shown", "cause"),
    [
        ("up", "up", None),
        ("down", "degraded", "Down in 1 of 3 places (sydney): The server refused."),
        ("degraded", "degraded", None),
    ],
)
def test_a_recovery_is_not_degraded_by_places_that_are_still_to_be_heard(
    places, last, shown, cause
):
    places.start(confirmations=1, location_rule="all")
    places.round(0)
    for seconds in (60, 70):
        places.round(seconds, 0.002, berlin="down", oslo="down", sydney="down")
    for name in ("berlin", "oslo"):
        places.see(name, "up", 120, 0.002)
        assert (places.shown.verdict, places.shown.cause) == ("down", "The server refused.")
        assert places.shown.recovering_since == at(120), "it has begun all the same"
    places.see("sydney", last, 120.01, 2, cause=cause and "The server refused.")
    assert (places.shown.verdict, places.shown.status_since) == (shown, at(120.01))
    assert cause is None or places.shown.cause == cause
    places.see("berlin", "up", 130, 0.002)
    assert places.opened[0].ended_at == at(120).replace(microsecond=0)
    assert places.shown.verdict == shown


def test_a_recovery_waits_for_a_place_that_brings_nothing_until_its_recheck(places):
    places.start(confirmations=1)
    places.round(0)
    for seconds in (60, 70):
        places.round(seconds, 0.002, berlin="down", oslo="down", sydney="down")
    for name in ("berlin", "oslo"):
        places.see(name, "up", 120, 0.002)
    assert places.shown.verdict == "down"
    places.see("oslo", "up", 130, 0.002)
    assert places.opened[0].ended_at == at(120).replace(microsecond=0)
    assert places.shown.verdict == "degraded"
    assert places.shown.cause == "Down in 1 of 3 places (sydney): The server refused."


def test_a_failure_that_is_recorded_after_a_later_check_elsewhere_is_repeated(places):
    places.start(confirmations=1)
    places.round(0)
    places.see("berlin", "up", 60.2)
    places.see("sydney", "down", 60.1)
    assert places.shown.unconfirmed_at == at(60.6)
    places.see("sydney", "down", 71)
    assert places.shown.verdict == "degraded"


def test_a_failure_elsewhere_that_comes_last_is_named_at_once(places):
    places.start(confirmations=1)
    places.round(0)
    for seconds in (60, 71):
        places.see("berlin", "down", seconds + 0.2)
        places.see("oslo", "down", seconds + 0.2)
        if seconds == 60:
            assert places.shown.cause == "Down in 2 of 3 places (berlin, oslo): The server refused."
        places.see("sydney", "down", seconds + 0.1)
        assert places.shown.cause == "The server refused."
    for seconds in (120.2, 130.2):
        places.see("berlin", "up", seconds)
        places.see("oslo", "up", seconds)
    assert places.shown.cause.startswith("Down in 1 of 3 places (sydney)")
    places.see("sydney", "up", 130.1)
    assert (places.shown.verdict, places.shown.cause) == ("up", None)


def test_a_check_on_request_has_no_vote_where_the_monitor_is_not_checked(places):
    places.start(confirmations=1, location_rule="all")
    for seconds in (0, 10):
        places.round(seconds, berlin="down", oslo="down", sydney="down")
    before = places.shown.verdict, places.shown.cause
    (result,) = recorder.record([(places.id, make_outcome("up", at(20), status_code=200))], at(21))
    assert result.verdict == "up"
    assert (places.shown.verdict, places.shown.cause) == before
    places.round(60, berlin="down", oslo="down", sydney="down")
    assert [incident.ended_at for incident in places.opened] == [None]


def test_what_places_saw_before_a_pause_has_no_vote_after_it(places):
    places.start(confirmations=0, location_rule="any")
    places.round(0, oslo="down")
    assert len(places.opened) == 1
    with writing() as session:
        recorder.pause(session, places.id, at(5))
    with writing() as session:
        recorder.resume(session, places.id, at(8))
    assert (places.shown.verdict, places.shown.status_since, places.shown.cause) == (None,) * 3
    places.see("berlin", "up", 8.1)
    assert (places.shown.verdict, places.shown.status_since) == ("up", at(8.1))
    places.see("oslo", "up", 8.2)
    assert (places.shown.verdict, len(places.opened)) == ("up", 1)
    places.see("berlin", "down", 60)
    kept = places.opened[1].evidence
    assert who_saw(kept) == (
        "1 of 3 places (berlin); oslo had not checked it since; sydney cannot tell"
    ), "sydney was not checked since the pause"


def test_what_places_saw_before_a_change_has_no_vote_and_ends_no_incident(places):
    places.start(confirmations=1)
    for seconds in (0, 10):
        places.round(seconds, berlin="down", oslo="down")
    with writing() as session:
        monitor = session.get(MonitorRow, places.id)
        recorder.apply_changes(session, monitor, {"alert_condition"}, at(20))
    assert places.shown.verdict == "down"
    for seconds in (20.1, 31):  # the others are slow, as places are that wait for an answer
        places.see("berlin", "down", seconds)
    assert [incident.ended_at for incident in places.opened] == [None]
    places.see("oslo", "up", 32)
    places.see("sydney", "up", 32.1)
    assert places.shown.recovering_since == at(32.1), "a majority has said so"


def test_a_change_of_the_rule_opens_an_incident_by_checks_that_fail(places):
    places.start(confirmations=1)
    for seconds in (0, 10, 60):
        places.round(seconds, oslo="down")
    with writing() as session:
        session.get(MonitorRow, places.id).location_rule = "any"
    for seconds in (120, 131):
        places.see("berlin", "up", seconds)
        places.see("sydney", "up", seconds + 0.1)
        assert places.opened == []
        places.see("oslo", "down", seconds + 0.2)
    (incident,) = places.opened
    assert incident.cause == "The server refused."
    assert incident.evidence["failing"]["location"] == "oslo"
    assert incident.started_at == at(120).replace(microsecond=0)


def test_a_place_that_fails_again_after_a_silence_is_named_with_its_evidence(places):
    places.start(confirmations=1)
    for seconds in (0, 10):
        places.round(seconds, oslo="down")
    for seconds in (300, 311):
        places.see("berlin", "down", seconds)
        places.see("sydney", "down", seconds)
    (incident,) = places.opened
    assert incident.seen_by == ["berlin", "sydney"]
    places.see("oslo", "down", 311.2)
    (incident,) = places.opened
    assert incident.seen_by == ["berlin", "oslo", "sydney"]
    oslo = incident.evidence["places"][1]
    assert (oslo["verdict"], oslo["earlier"], oslo["check"]["from"]) == ("down", False, "oslo")
    assert who_saw(incident.evidence) == "3 of 3 places"


@pytest.mark.parametrize("rule", ["any", "majority", "all"])
def test_an_outage_that_outlasts_its_maintenance_is_confirmed_again_in_each_place(places, rule):
    places.start(
        confirmations=1,
        location_rule=rule,
        maintenance_start_at=at(-10),
        maintenance_end_at=at(100),
    )
    all_down = dict.fromkeys(NAMES, "down")
    for seconds in (0, 60, 90):
        places.round(seconds, **all_down)
    places.see("berlin", "down", 120)
    assert places.opened == []
    places.see("berlin", "down", 131)
    assert len(places.opened) == (1 if rule == "any" else 0), "the others' votes are of before"
    if rule == "any":
        (incident,) = places.opened
        assert who_saw(incident.evidence) == (
            "1 of 3 places; oslo and sydney had not checked it since"
        )
    places.see("oslo", "down", 131.1)
    places.see("sydney", "down", 131.2)
    places.round(142, **all_down)
    (incident,) = places.opened
    begun = {"any": 120, "majority": 131, "all": 131}[rule]
    assert incident.started_at == at(begun).replace(microsecond=0)
    assert places.shown.status_since.replace(microsecond=0) == incident.started_at
    assert incident.seen_by == list(NAMES)
    kept = incident.evidence
    checks = [kept["failing"], *kept["confirming"], *(place["check"] for place in kept["places"])]
    assert min(check["checked_at"] for check in checks if check) > iso(at(100))


def test_the_good_check_that_a_failure_is_compared_with_is_of_its_place(places):
    places.start(confirmations=0, location_rule="any")
    for seconds in (0, 60):
        for number, name in enumerate(NAMES):
            places.see(name, "up", seconds + number / 100, evidence={"note": "good"})
    places.see("oslo", "down", 120)
    (incident,) = places.opened
    good = incident.evidence["last_good"]
    assert (good["location"], good["checked_at"]) == ("oslo", iso(at(60.01)))
    assert "elsewhere" not in good


def test_an_outage_begins_when_enough_places_fail_though_a_later_check_was_good(places):
    """Agents bring their checks after a newer one of the server was judged."""
    places.start(confirmations=1)
    places.round(0)
    places.see("berlin", "up", 90)
    places.see("sydney", "down", 61, recorded=30)
    places.see("oslo", "down", 71, recorded=21)
    for seconds in (95, 106, 117):
        places.round(seconds, **dict.fromkeys(NAMES, "down"))
    (incident,) = places.opened
    assert incident.started_at == in_whole_seconds(at(71))
    assert places.shown.status_since == at(71)


def test_an_outage_after_the_clock_was_set_back_does_not_begin_in_the_future(places):
    places.start(confirmations=0, location_rule="any")
    places.round(900, berlin="down")
    for seconds in (960, 971):
        places.round(seconds)
    places.see("berlin", "up", 300)
    places.see("sydney", "down", 280, recorded=25)
    first, second = places.opened
    assert first.ended_at == in_whole_seconds(at(960))
    assert second.started_at == in_whole_seconds(at(280))


def test_a_monitor_is_up_since_the_check_that_an_agent_brings_late(places):
    places.start(confirmations=0, location_rule="any")
    places.round(60, sydney="down")
    places.see("berlin", "up", 90)
    places.see("sydney", "up", 71, recorded=30)
    assert (places.shown.verdict, places.shown.status_since) == ("up", at(71))


def test_an_outage_after_the_clock_was_set_back_does_not_end_in_the_future(places):
    places.start(confirmations=0, location_rule="any")
    places.round(900, **dict.fromkeys(NAMES, "down"))
    places.see("berlin", "up", 960)
    for name, seconds in (("oslo", 903), ("sydney", 905)):
        places.see(name, "up", seconds)
    for seconds in (916, 927, 1020, 1031):
        places.round(seconds)
    (incident,) = places.opened
    assert incident.ended_at == in_whole_seconds(at(905))


@pytest.mark.both_databases
def test_results_of_several_places_keep_their_time_where_it_is_the_same(places):
    places.start(confirmations=0, location_rule="all")
    for seconds in (0, 60):
        for name in NAMES:
            places.see(name, "down" if seconds else "up", seconds)
    stored = db.session.execute(select(ResultRow.location_id, ResultRow.at)).all()
    assert sorted(stored) == [
        (place, to_ms(at(seconds))) for place in places.places.values() for seconds in (0, 60)
    ]
    assert len(places.opened) == 1


def test_a_place_that_failed_alone_for_long_keeps_its_evidence_when_others_join(places):
    """A failure of another place that was not confirmed drops no evidence of this one."""
    places.start(confirmations=1)
    for seconds in (0, 60, 70, 120, 180, 240):
        places.round(seconds, sydney="down")
    places.round(300, sydney="down", oslo="down")
    for seconds in (310, 360):
        places.round(seconds, sydney="down")
    for name in ("sydney", "berlin", "oslo"):
        places.see(name, "down", 420)
    for name in ("berlin", "oslo", "sydney"):
        places.see(name, "down", 430)
    (incident,) = places.opened
    checks = {place["name"]: place for place in incident.evidence["places"]}
    assert checks["sydney"]["verdict"] == "down"
    assert checks["sydney"]["check"] is not None


def test_no_incident_opens_for_an_outage_that_is_known_to_be_over(places):
    """The check that made it a majority comes after the one that was good again."""
    places.start(confirmations=0)
    places.round(0)
    places.see("oslo", "down", 60)
    places.see("oslo", "up", 70)
    places.see("sydney", "down", 65, recorded=30)
    assert places.opened == []
    assert places.shown.cause == "Down in 1 of 3 places (sydney): The server refused."


def test_a_recovery_of_the_only_place_is_shown_though_it_is_slow(places):
    """It was shown as down until the recheck, as if other places were to be heard."""
    id = places.monitor(confirmations=0)
    places.check(id, "down", 0)
    places.check(id, "degraded", 60)
    assert places.state(id).verdict == "degraded"
