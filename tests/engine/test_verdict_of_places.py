"""What several places together make of a monitor (decisions.md 14), on both databases."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from app.db import db, journal, writing
from app.db.tables import LocationRow, MonitorEvidenceRow, ResultRow
from app.db.types import to_ms
from app.engine import recorder
from tests.engine.test_recorder import Engine, at
from tests.factories import make_outcome

NAMES = ("berlin", "oslo", "sydney")


class Places(Engine):
    """``id``: a monitor that is checked from three places."""

    def start(self, **fields):
        self.places = {name: journal.location_id(name) for name in NAMES}
        self.id = self.monitor(places=[*self.places.values()], **fields)
        return self

    def see(self, name, verdict, seconds, **fields):
        """The place's check of the schedule."""
        claim = self.claim(self.id, self.places[name])
        fields = ({} if verdict == "down" else {"status_code": 200}) | fields
        outcome = make_outcome(verdict, at(seconds), **fields)
        outcome = replace(
            outcome,
            result=replace(outcome.result, location=name),
            evidence=None if outcome.evidence is None else {"from": name},
        )
        recorder.record_claimed([(claim, outcome)], at(seconds + 0.5), location=name)

    def round(self, seconds, **verdicts):
        """All places check at the same time, and are recorded one after another."""
        for number, name in enumerate(NAMES):
            self.see(name, verdicts.get(name, "up"), seconds + number / 100)

    @property
    def shown(self):
        return self.state(self.id)

    @property
    def opened(self):
        return self.incidents(self.id)


@pytest.fixture
def places(core):
    with core.app_context():
        yield Places(core)


@pytest.mark.one_on_postgres
@pytest.mark.parametrize(("rule", "opened"), [("any", 1), ("majority", 0), ("all", 0)])
def test_a_failure_in_one_place_of_three_opens_an_incident_under_any_alone(places, rule, opened):
    places.start(confirmations=2, location_rule=rule)
    for number in range(5):
        places.round(10 * number, sydney="down")
    assert len(places.opened) == opened


def test_what_one_place_sees_through_all_confirmations_is_degraded_and_names_it(places):
    places.start(confirmations=2)
    places.round(0)
    for number in (1, 2):
        places.round(60 + 10 * number, sydney="down")
        assert places.shown.verdict == "up", "it is not confirmed yet"
    places.round(90, sydney="down")
    assert (places.shown.verdict, places.shown.cause_code) == ("degraded", "connection_refused")
    assert places.shown.cause == "Down in 1 of 3 places (sydney): The server refused."
    assert places.opened == []
    assert places.events() == []
    places.round(150)
    assert (places.shown.verdict, places.shown.cause) == ("up", None)


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


def test_a_place_that_keeps_failing_alone_is_not_repeated_for_ever(places):
    places.start(confirmations=1)
    for number in range(4):
        places.round(10 * number, sydney="down")
    assert places.shown.unconfirmed_at is None
    assert places.shown.verdict == "degraded"


def test_a_lasting_failure_of_one_place_counts_when_another_begins_to_fail(places):
    places.start(confirmations=1)
    for number in range(4):
        places.round(10 * number, sydney="down")
    places.round(60, sydney="down", oslo="down")
    assert places.opened == []
    places.round(70, sydney="down", oslo="down")
    (incident,) = places.opened
    assert incident.started_at == at(60).replace(microsecond=0), "since a majority fails"


def test_when_the_others_recover_the_incident_ends_and_one_place_remains(places):
    places.start(confirmations=1)
    for seconds in (0, 10):
        places.round(seconds, sydney="down", oslo="down")
    for seconds in (60, 70):
        places.round(seconds, sydney="down")
    (incident,) = places.opened
    assert incident.ended_at is not None
    assert places.shown.verdict == "degraded"
    assert places.shown.cause.startswith("Down in 1 of 3 places (sydney): ")


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
    seen = incident.evidence["places"]
    assert [(one["name"], one["verdict"], one["cause_code"]) for one in seen] == [
        ("berlin", "down", "connection_refused"),
        ("oslo", "down", "connection_refused"),
        ("sydney", "up", None),
    ]
    assert seen[2]["status_code"] == 200


def test_each_place_that_voted_down_has_its_evidence(places):
    places.start(confirmations=0)
    places.round(0)
    places.round(60, berlin="down", oslo="down", sydney="down")
    (incident,) = places.opened
    kept = incident.evidence
    assert kept["failing"]["from"] == "oslo", "the check that made it a majority"
    checks = {one["name"]: one["check"] for one in kept["places"]}
    assert checks["berlin"]["from"] == "berlin", "it failed before there was a majority"
    assert checks["sydney"]["from"] == "sydney", "it failed just after the incident had opened"
    assert checks["oslo"] is None, "it is the failing check"
    assert [one["verdict"] for one in kept["places"]] == ["down"] * 3


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
        recorder.watch_from(session, places.id, [places.places["berlin"]], at(1))
        session.delete(session.get(LocationRow, places.places["oslo"]))
    (row,) = db.session.scalars(select(ResultRow)).all()
    assert journal.decode([row])[0].location == "deleted"


@pytest.mark.one_on_postgres
@pytest.mark.parametrize(("waited", "opened"), [(100, 0), (200, 1)])
def test_the_first_place_of_a_new_monitor_is_not_its_majority(places, waited, opened):
    """It waits for the others as long as a result counts: two intervals and the time limit."""
    places.start(confirmations=0, assignment={"turn": to_ms(at(0))})
    places.see("berlin", "down", 10)
    assert len(places.opened) == 0
    places.see("berlin", "down", waited)
    assert len(places.opened) == opened


def test_an_outage_of_a_new_monitor_is_one_as_soon_as_the_majority_has_seen_it(places):
    places.start(confirmations=0, assignment={"turn": to_ms(at(0))})
    places.see("berlin", "down", 10)
    places.see("oslo", "down", 11)
    assert len(places.opened) == 1
