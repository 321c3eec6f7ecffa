"""A change of a monitor's rules or places takes hold at once, whenever its next check is."""

import pytest
from sqlalchemy import select

from app.db import db
from app.db.tables import DeliveryRow, MonitorEvidenceRow
from app.rules import comments
from app.rules.who_saw import CHANGED
from app.stores.local import LocalStore
from tests.support.recorders import NAMES, Places, at, change

HOUR = 3600
MOMENT = 0.002  # a check is recorded so soon after it began


class Hourly(Places):
    """A monitor that each place checks once an hour, and its stored figures."""

    def __init__(self, core, settings):
        super().__init__(core)
        self.settings = settings

    def start(self, **fields):
        return super().start(interval=HOUR, updated_at=at(-60), **fields)

    def rounds(self, *times, **verdicts):
        for seconds in times:
            self.round(seconds, MOMENT, **verdicts)

    def change(self, seconds, **fields):
        change(self.settings, self.id, fields, at(seconds))

    def downtime(self, seconds):
        store = LocalStore(self.settings)
        store.now = lambda: at(seconds)
        return store.results.statistics(self.id, "24h")["downtime"]


@pytest.fixture
def places(core, settings):
    with core.app_context():
        yield Hourly(core, settings)


@pytest.mark.parametrize(
    ("fields", "shown", "cause"),
    [
        (
            {"location_rule": "majority"},
            "degraded",
            "Down in 1 of 3 places (sydney): The server refused.",
        ),
        ({"locations": ["berlin", "oslo"]}, "up", None),
        ({"locations": ["berlin"]}, "up", None),
    ],
)
def test_an_incident_ends_with_the_change_that_makes_it_none(places, fields, shown, cause):
    places.start(confirmations=1, location_rule="any")
    places.rounds(0)
    places.rounds(60, 70, sydney="down")
    assert (places.shown.verdict, len(places.opened)) == ("down", 1)
    places.change(100.7, **fields)
    (incident,) = places.opened
    assert (incident.ended_at, incident.ending) == (at(100.7).replace(microsecond=0), "changed")
    assert [remark.text for remark in comments.remarks(incident.comment)] == [CHANGED]
    state = places.shown
    assert (state.verdict, state.cause, state.status_since) == (shown, cause, at(100.7))
    assert state.unconfirmed_at is None, "no check is needed to know it"
    assert state.checked_at == at(70.02), "and none was made"
    assert places.events().count("incident.resolved") == 2, "one for each channel"
    for seconds in (HOUR, HOUR + 10):
        for name in fields.get("locations", NAMES):
            places.see(name, "down" if name == "sydney" else "up", seconds, MOMENT)
    assert (len(places.opened), places.shown.verdict) == (1, shown)
    assert places.downtime(HOUR + 20) == 40, "from 60 to the change at 100"


def test_what_is_still_down_without_a_place_says_where(places):
    places.start(confirmations=1, location_rule="any")
    places.rounds(0)
    places.rounds(60, 70, sydney="down")
    places.change(100, locations=["oslo", "sydney"])
    assert [incident.ended_at for incident in places.opened] == [None]
    assert places.shown.cause == "Down in 1 of 2 places (sydney): The server refused."
    places.change(110, locations=["sydney"])
    assert [incident.ended_at for incident in places.opened] == [None]
    assert (places.shown.verdict, places.shown.cause) == ("down", "The server refused.")
    assert places.shown.status_since == at(60.02), "it has been down all the time"
    assert "incident.resolved" not in places.events()


def test_a_place_that_is_added_ends_nothing_before_it_has_checked(places):
    places.start(confirmations=0)
    places.change(0, locations=["berlin", "oslo"])
    places.see("berlin", "down", 10, MOMENT)
    places.see("oslo", "down", 10.01, MOMENT)
    places.change(20, locations=[*NAMES], location_rule="all")
    assert [incident.ended_at for incident in places.opened] == [None]
    places.change(25, locations=["sydney"])
    assert [incident.ended_at for incident in places.opened] == [None], "nobody has seen it end"
    assert places.shown.verdict == "down"


@pytest.mark.parametrize("confirmations", [0, 1])
def test_what_places_saw_before_the_change_opens_no_incident(places, confirmations):
    places.start(confirmations=confirmations)
    places.rounds(0)
    places.rounds(60, 70, sydney="down")
    places.change(100, location_rule="any")
    assert (places.opened, places.events()) == ([], [])
    assert places.shown.verdict == "degraded"
    assert places.shown.unconfirmed_at == at(100), "all places are asked again, and soon"
    again = [110 + 10 * number for number in range(confirmations + 1)]
    for seconds in again:
        assert places.opened == []
        places.rounds(seconds, sydney="down")
    (incident,) = places.opened
    assert incident.started_at == at(110.02).replace(microsecond=0)


def test_what_places_saw_before_the_change_is_forgotten_by_good_checks_after_it(places):
    places.start(confirmations=1)
    places.rounds(0)
    places.rounds(60, 70, sydney="down")
    places.change(100, location_rule="any")
    places.rounds(110)
    assert (places.shown.verdict, places.shown.unconfirmed_at, places.opened) == ("up", None, [])


def test_a_failure_that_is_being_confirmed_goes_with_its_place(places):
    places.start(confirmations=2, location_rule="any")
    places.rounds(0)
    places.rounds(60, sydney="down")
    assert places.shown.verdict == "down"
    places.change(65, locations=["berlin", "oslo"])
    state = places.shown
    assert (state.verdict, state.cause, state.failing_since) == ("up", None, None)
    assert (state.failures, state.unconfirmed_at) == (0, None)
    assert db.session.scalars(select(MonitorEvidenceRow.failing)).one() is None


def test_a_recovery_that_is_being_confirmed_goes_with_its_place(places):
    places.start(confirmations=0, location_rule="all")
    places.rounds(0)
    places.rounds(60, berlin="down", oslo="down", sydney="down")
    places.see("berlin", "up", 100, MOMENT)
    assert places.shown.recovering_since == at(100)
    places.change(105, locations=["oslo", "sydney"])
    state = places.shown
    assert (state.verdict, state.recovering_since, state.status_since) == ("down", None, at(60.02))
    assert [incident.ended_at for incident in places.opened] == [None]


def test_in_maintenance_a_change_ends_no_incident_before_its_end(places):
    places.start(
        confirmations=0,
        location_rule="any",
        maintenance_start_at=at(90),
        maintenance_end_at=at(1000),
    )
    places.rounds(0)
    places.rounds(60, sydney="down")
    places.change(100, location_rule="majority")
    assert [incident.ended_at for incident in places.opened] == [None]
    assert "incident.resolved" not in places.events()
    places.rounds(HOUR, sydney="down")
    (incident,) = places.opened
    ended = at(100).replace(microsecond=0)
    assert (incident.ended_at, incident.ending) == (ended, "changed")


def test_an_incident_whose_place_is_silent_ends_by_silence_and_not_by_a_change(places):
    places.start(confirmations=0, location_rule="any")
    places.rounds(0, sydney="down")
    for hours in (1, 2, 3):
        places.see("berlin", "down" if hours < 3 else "up", hours * HOUR, MOMENT)
    places.change(3 * HOUR + 5, location_rule="majority")
    assert [incident.ended_at for incident in places.opened] == [None]
    places.see("berlin", "up", 3 * HOUR + 10, MOMENT)
    assert places.opened[0].ended_at is not None
    assert places.opened[0].ending != "changed"


@pytest.mark.parametrize(
    "fields", [{"name": "Shop"}, {"locations": [*NAMES]}, {"location_rule": "any"}]
)
def test_a_change_of_nothing_that_matters_judges_nothing(places, fields):
    places.start(confirmations=1, location_rule="any")
    places.rounds(0)
    places.rounds(60, sydney="down")
    before = {column: getattr(places.shown, column) for column in ("cause", "unconfirmed_at")}
    places.change(65, **fields)
    state = places.shown
    assert {column: getattr(state, column) for column in before} == before
    assert (state.verdict, state.failures, state.status_since) == ("down", 1, at(60.02))


def test_a_rule_and_places_that_change_together_are_judged_together(places):
    """Under the new rule and the old places, or the other way round, it would be over."""
    places.start(confirmations=0, location_rule="any")
    places.rounds(0, sydney="down")
    places.change(10, location_rule="all", locations=["sydney"])
    assert [incident.ended_at for incident in places.opened] == [None]
    assert (places.shown.verdict, places.shown.cause) == ("down", "The server refused.")


def test_a_change_with_a_pause_ends_the_incident_by_the_pause(places):
    places.start(confirmations=0, location_rule="any")
    places.rounds(0, sydney="down")
    places.change(10, location_rule="all", pause=True)
    assert [incident.ending for incident in places.opened] == ["pause"]
    resolved = select(DeliveryRow).where(DeliveryRow.event == "incident.resolved")
    assert db.session.scalars(resolved).all() == []
