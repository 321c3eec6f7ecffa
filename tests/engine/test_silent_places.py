"""Places that fall silent (decision 14)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from app.db import db, journal, liveness, places, writing
from app.db.settings import setting
from app.db.tables import (
    ContactRow,
    DeliveryRow,
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    PlaceRow,
)
from app.engine import recorder
from app.engine.silence_watch import SilenceWatch
from app.records import IncidentQuery, Notice
from app.rules.time import iso
from app.stores.local import LocalStore
from app.stores.local.incidents import LocalIncidents
from tests.factories import make_monitor, make_outcome

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def house(core, settings):
    with core.app_context():
        yield House(core, settings)


class House:
    """A checker that looks after the places while time passes."""

    def __init__(self, core, settings):
        self.core, self.settings, self.now = core, settings, START
        self.watch = SilenceWatch(self.now)
        self.id = journal.place_id("oslo")
        with writing() as session:
            session.get(PlaceRow, self.id).label = "Oslo"
        self.contact("Ops", "ops@example.test")
        self.worker_runs = True

    def contact(self, name, address, **fields):
        values = {"default": True, "quiet_zone": "UTC", "min_severity": "all"} | fields
        row = ContactRow(
            name=name,
            name_folded=name.casefold(),
            channels=[["email", address]],
            acknowledgements=True,
            created_at=START,
            updated_at=START,
            **values,
        )
        with writing() as session:
            session.add(row)

    def monitor(self, *names, **fields):
        ids = [journal.place_id(name) for name in names]
        return make_monitor(self.core, places=ids, updated_at=START, **fields).id

    def check(self, id, name, verdict="up"):
        recorder.record([(id, make_outcome(verdict, self.now))], self.now, location=name)

    def hear(self, name):
        places.store_sign(name, self.now, process=f"agent:{name}", last_check_at=self.now)

    def pass_minutes(self, minutes, *heard, every=MINUTE):
        """Look so often, and at the end, while results come from the places ``heard``."""
        until = self.now + minutes * MINUTE
        while self.now < until:
            self.now += min(every, until - self.now)
            for name in heard:
                self.hear(name)
            if self.worker_runs:
                liveness.write("worker:host:1", self.now)
            self.watch.look(self.now)

    def up_seconds(self, id):
        """How long the monitor was up, as its figures say."""
        store = LocalStore(self.settings)
        store.now = lambda: self.now
        return sum(bucket["up"] for bucket in store.results.statistics(id, "24h")["buckets"])

    def messages(self):
        db.session.rollback()
        rows = db.session.scalars(select(DeliveryRow).order_by(DeliveryRow.id))
        return [(row.event, row.value) for row in rows]

    def state(self, id):
        db.session.rollback()
        return db.session.get(MonitorStateRow, id)


SILENT, ONLINE = "location.silent", "location.online"


def test_a_silent_place_and_its_return_are_alerted_once_to_the_default_contacts(house):
    house.contact("Others", "others@example.test", default=False)
    house.monitor("default", "oslo")
    house.pass_minutes(1, "default", "oslo")
    house.pass_minutes(2, "default")
    assert house.messages() == [], "two minutes are not silence yet"
    house.pass_minutes(10, "default")
    assert house.messages() == [(SILENT, "ops@example.test")]
    assert setting(Notice.PLACES_SILENT) == "Oslo"
    house.pass_minutes(2, "default", "oslo")
    assert house.messages() == [(SILENT, "ops@example.test"), (ONLINE, "ops@example.test")]
    assert setting(Notice.PLACES_SILENT) is None
    facts = db.session.scalars(select(DeliveryRow.facts).order_by(DeliveryRow.id)).first()
    assert facts["extra"] == {
        "location": {"id": house.id, "name": "oslo", "label": "Oslo"},
        "monitors": 1,
        "unknown": 0,
        "since": "2026-11-21T08:01:00Z",
    }


def test_a_monitor_without_a_place_that_is_heard_is_unknown_until_one_is(house):
    both, alone = house.monitor("default", "oslo"), house.monitor("oslo", confirmations=0)
    for id in (both, alone):
        house.check(id, "oslo")
    house.pass_minutes(1, "default", "oslo")
    for _minute in range(5):
        house.check(both, "default")
        house.pass_minutes(1, "default")
    assert house.state(both).verdict == "up"
    state = house.state(alone)
    assert (state.verdict, state.cause) == (
        "unknown",
        "Not checked: no results are coming from its place Oslo.",
    )
    assert state.checked_at == START, "nothing was checked"
    assert not db.session.scalars(select(IncidentRow)).all()
    house.check(alone, "oslo")
    assert (house.state(alone).verdict, house.state(alone).cause) == ("up", None)


@pytest.mark.parametrize(("interval", "timeout"), [(10, 5), (60, 30), (300, 60)])
def test_a_monitor_is_up_as_long_as_its_figures_say(house, interval, timeout):
    """Its place is silent later, or sooner if it checks another monitor more often."""
    house.pass_minutes(3, "default", "oslo")  # who looks waits so long after a start
    id = house.monitor("oslo", interval=interval, timeout=timeout)
    house.check(id, "oslo")
    counts = interval + timeout + 60
    house.pass_minutes(counts / 60, "default", "oslo")
    assert house.state(id).verdict == "up"
    house.now += timedelta(seconds=5)
    house.watch.look(house.now)
    state = house.state(id)
    assert (state.verdict, state.status_since) == ("unknown", house.now)
    assert house.up_seconds(id) == counts
    assert house.messages() == [], "its place brings the results of others"


@pytest.mark.parametrize(
    ("before", "after", "minutes", "counted", "verdict"),
    [(3600, 60, 10, 605, "up"), (60, 3600, 20, 150, "unknown")],
    ids=["shorter", "longer"],
)
def test_after_another_interval_too_a_monitor_is_up_as_long_as_its_figures_say(
    house, before, after, minutes, counted, verdict
):
    id = house.monitor("default", interval=before, timeout=30)
    house.monitor("default", interval=60)  # so that the place is heard
    house.check(id, "default")
    house.pass_minutes(minutes if after < before else 1, "default")
    store = LocalStore(house.settings)
    store.now = lambda: house.now
    store.monitors.update(id, {"interval": after})
    house.now += timedelta(seconds=5)
    if after > before:
        house.pass_minutes(minutes, "default")
    house.watch.look(house.now)
    assert (house.up_seconds(id), house.state(id).verdict) == (counted, verdict)


@pytest.mark.parametrize("silent", [False, True], ids=["late", "of a silent place"])
def test_a_result_that_comes_during_the_look_counts(house, monkeypatch, silent):
    id = house.monitor("oslo", interval=3600, timeout=30)
    house.monitor("default")
    house.check(id, "oslo")
    if silent:  # because it brings nothing of a monitor with a shorter interval
        house.monitor("oslo", interval=60)
        house.pass_minutes(1, "default", "oslo")
        house.pass_minutes(2.75, "default")
        house.now += timedelta(seconds=30)
    else:
        house.pass_minutes(61, "default", "oslo")
        house.now += timedelta(seconds=31)
    show = recorder.show_unknown

    def recorded_first(causes, *more):
        assert id in causes
        house.check(id, "oslo")  # as another process does it between the look and the lock
        show(causes, *more)

    monkeypatch.setattr(recorder, "show_unknown", recorded_first)
    house.watch.look(house.now)
    assert house.state(id).checked_at == house.now
    assert house.state(id).verdict == "up"


@pytest.mark.parametrize("change", ["paused", "moved"])
def test_a_change_that_is_made_during_the_look_counts(house, monkeypatch, change):
    id = house.monitor("oslo", interval=3600, timeout=30)
    house.monitor("default")
    house.monitor("oslo", interval=60)
    house.check(id, "oslo")
    house.pass_minutes(1, "default", "oslo")
    house.pass_minutes(2.75, "default")
    house.now += timedelta(seconds=30)
    show = recorder.show_unknown

    def changed_first(causes, *more):
        assert id in causes
        with writing() as session:
            if change == "paused":
                recorder.pause(session, id, house.now)
            else:
                recorder.set_places(session, id, [journal.place_id("default")], house.now)
        show(causes, *more)

    monkeypatch.setattr(recorder, "show_unknown", changed_first)
    house.watch.look(house.now)
    assert house.state(id).verdict == "up"


def test_after_a_restart_without_a_checker_a_status_is_as_old_as_its_figures(house):
    id = house.monitor("default", interval=3600, timeout=30)
    house.check(id, "default")
    house.now += 120 * MINUTE  # the machine was off, and its checker does not come back
    alone = SilenceWatch(house.now, alone=True)
    for passed, verdict in ((timedelta(minutes=2), "up"), (timedelta(minutes=2), "unknown")):
        until = house.now + passed
        while house.now < until:
            house.now += timedelta(seconds=15)
            alone.look(house.now)
        assert house.state(id).verdict == verdict
    assert house.up_seconds(id) == 3690


def test_a_result_that_the_state_does_not_know_of_counts(house):
    """Good checks that change nothing are not written into the state each time."""
    id = house.monitor("oslo")
    house.check(id, "oslo")
    house.pass_minutes(2, "oslo")
    house.check(id, "oslo")
    with writing() as session:
        session.get(MonitorStateRow, id).checked_at = START
    house.pass_minutes(2.25, "oslo")
    assert house.state(id).verdict == "up"
    house.pass_minutes(0.5, "oslo")
    assert house.state(id).verdict == "unknown"


def test_a_place_that_a_monitor_loses_takes_no_result_of_another_one(house):
    """What it saw counts until then; what the other one saw before counts on."""
    store = LocalStore(house.settings)
    store.now = lambda: house.now
    id = house.monitor("default", "oslo", interval=600)
    for name in ("default", "oslo"):
        house.check(id, name)
        house.now += timedelta(seconds=1)
    store.monitors.update(id, {"locations": ["default"]})
    house.pass_minutes(10, "default", "oslo")
    assert house.state(id).verdict == "up"
    house.pass_minutes(2, "default", "oslo")
    assert house.state(id).verdict == "unknown"


def test_without_a_checker_the_alert_worker_looks(house):
    """A monitor would be up for ever, and nobody would be told that nothing is checked."""
    id = house.monitor("default")
    watched = SilenceWatch(house.now, alone=True)

    def pass_seconds(seconds):
        for _step in range(seconds // 5):
            house.now += timedelta(seconds=5)
            watched.look(house.now)

    def checker():
        name = liveness.process_name(liveness.CHECKER)
        liveness.write(name, house.now, house.now, location="default")

    checker()
    house.check(id, "default")
    pass_seconds(150)
    assert (house.state(id).verdict, house.messages()) == ("up", [])
    pass_seconds(35)
    assert house.state(id).verdict == "unknown"
    assert house.messages() == [(SILENT, "ops@example.test")]


def test_the_alert_worker_does_not_look_while_a_checker_runs(house):
    """The checker looks itself."""
    id = house.monitor("default")
    house.check(id, "default")
    watched = SilenceWatch(house.now, alone=True)
    name = liveness.process_name(liveness.CHECKER)
    for _step in range(60):
        house.now += timedelta(seconds=5)
        liveness.write(name, house.now, house.now, location="default")
        watched.look(house.now)
    assert house.state(id).verdict == "up"


def test_an_open_incident_stays_open_while_nobody_checks(house):
    id = house.monitor("oslo", confirmations=0)
    house.check(id, "oslo", "down")
    house.pass_minutes(1, "default", "oslo")
    house.pass_minutes(5)
    assert house.state(id).verdict == "unknown"
    incident = db.session.scalars(select(IncidentRow)).one()
    assert incident.ended_at is None
    last_known = house.state(id).status_since
    assert incident.unwatched == [{"from": iso(START), "to": iso(last_known)}], (
        "its length is a limit"
    )
    house.now += MINUTE
    house.check(id, "oslo", "down")
    db.session.expire_all()
    assert incident.unwatched == [{"from": iso(START), "to": iso(house.now)}]


def test_what_came_late_from_a_silent_place_is_watched_time(house):
    id = house.monitor("oslo", confirmations=0)
    house.check(id, "oslo", "down")
    house.pass_minutes(1, "default", "oslo")
    house.pass_minutes(5)
    late = [replace(make_outcome("down", START + n * MINUTE).result, monitor_id=id) for n in (1, 2)]
    house.check(id, "oslo", "down")  # an agent sends its newest result first
    incident = db.session.scalars(select(IncidentRow)).one()
    assert incident.unwatched == [{"from": iso(START), "to": iso(house.now)}]
    recorder.record_late(late, house.now, location="oslo")
    db.session.expire_all()
    assert incident.unwatched == [{"from": iso(START + 2 * MINUTE), "to": iso(house.now)}]
    assert incident.seen_by == ["Oslo"]


def test_a_place_is_shown_as_silent_from_its_message_to_that_of_its_return(house):
    """A change of a monitor, which begins a new wait for others, ends no silence."""
    monitor = house.monitor("default", "oslo")
    house.pass_minutes(1, "default", "oslo")

    def shown():
        rows = db.session.scalars(select(PlaceRow).where(PlaceRow.id == house.id)).all()
        return places.states_of(places.signs_of(rows, house.now), house.now)[house.id]

    for _look in range(20):
        house.pass_minutes(0.25, "default")
        events = [event for event, _value in house.messages()]
        assert (shown() == "silent") == (events == [SILENT])
        if events == [SILENT]:
            places.store_sign(
                "oslo", house.now, process="agent:oslo"
            )  # it lives, and brings nothing
            with writing() as session:
                session.get(MonitorRow, monitor).updated_at = house.now
    assert shown() == "silent"
    house.pass_minutes(0.25, "default", "oslo")
    assert (shown(), house.messages()[-1][0]) == ("online", ONLINE)


def test_a_result_that_nobody_looked_at_for_minutes_ends_the_silence_too(house):
    """With a long interval, the next result may come long after the one of the return."""
    id = house.monitor("oslo", interval=1200)
    house.hear("oslo")
    house.check(id, "oslo")
    last = house.now
    house.pass_minutes(45)
    assert house.state(id).verdict == "unknown"
    house.hear("oslo")
    house.check(id, "oslo")
    house.now += 4 * MINUTE  # whoever looks after the places is restarted
    house.pass_minutes(10)
    assert house.state(id).verdict == "up", "the fresh verdict stays"
    assert [event for event, _ in house.messages()] == [SILENT, ONLINE]
    since = {facts["extra"]["since"] for facts in db.session.scalars(select(DeliveryRow.facts))}
    assert since == {iso(last)}, "both give the last result before the silence"
    house.pass_minutes(45)
    assert [event for event, _ in house.messages()] == [SILENT, ONLINE, SILENT]


@pytest.mark.parametrize("how", ["person", "pause"])
def test_the_gap_of_a_silence_lasts_until_now_and_until_the_end_of_its_incident(house, how):
    id = house.monitor("oslo", confirmations=0)
    house.hear("oslo")
    house.check(id, "oslo", "down")
    last = house.now
    house.pass_minutes(20)
    incidents = LocalIncidents(SimpleNamespace(now=lambda: house.now))
    (shown,) = incidents.list(IncidentQuery(brief=True)).items
    assert shown.unwatched == ((last, house.now),)
    assert incidents.get(shown.id).unwatched == shown.unwatched
    db.session.rollback()
    with writing() as session:
        if how == "pause":
            recorder.pause(session, id, house.now)
        else:
            row = recorder.lock_incident(session, shown.id)
            recorder.change_incident(session, row, {"ended_at": house.now}, house.now)
    ended, house.now = house.now, house.now + MINUTE
    over = incidents.get(shown.id)
    assert (over.ending, over.ended_at, over.unwatched) == (how, ended, ((last, ended),))


def test_a_place_with_slow_monitors_alone_is_silent_after_two_of_their_intervals(house):
    house.monitor("oslo", interval=600)
    house.pass_minutes(1, "oslo")
    house.pass_minutes(18)
    assert house.messages() == []
    house.pass_minutes(3)
    assert [event for event, _ in house.messages()] == [SILENT]


def test_a_place_that_was_never_there_or_has_nothing_to_check_is_not_alerted(house):
    house.monitor("bergen")
    house.pass_minutes(1, "default", "oslo")
    house.pass_minutes(30, "default")
    assert house.messages() == []


def test_after_the_server_was_off_no_place_is_silent_until_it_could_have_been_heard(house):
    house.monitor("oslo")
    house.pass_minutes(1, "oslo")
    house.now += timedelta(hours=9)
    house.pass_minutes(2)
    assert house.messages() == []
    house.pass_minutes(3)
    assert [event for event, _ in house.messages()] == [SILENT]


def test_places_that_were_silent_while_the_server_was_off_are_not_alerted(house):
    """A checker of another place looked on, and at the restart people got two messages for each
    place: silent, and seconds later online.
    """
    id = house.monitor("default", "oslo")
    house.check(id, "default")
    house.pass_minutes(1, "default", "oslo")
    house.worker_runs = False  # nor do web server and checker
    house.pass_minutes(6)
    assert house.state(id).verdict == "unknown", "it is shown all the same"
    house.worker_runs = True
    house.pass_minutes(10, "default", "oslo")
    assert house.messages() == []
    assert setting(Notice.PLACES_SILENT) is None


def test_a_place_that_does_not_come_back_with_the_server_is_alerted(house):
    house.monitor("default", "oslo")
    house.pass_minutes(1, "default", "oslo")
    house.worker_runs = False
    house.pass_minutes(6)
    house.worker_runs = True
    house.pass_minutes(2.75, "default")
    assert house.messages() == [], "it has as long as after a start"
    house.pass_minutes(1, "default")
    assert house.messages() == [(SILENT, "ops@example.test")]


def test_in_quiet_hours_the_message_waits_for_their_end(house):
    house.contact("Night", "night@example.test", quiet_start="07:00", quiet_end="09:00")
    house.monitor("oslo")
    house.pass_minutes(1, "oslo")
    house.pass_minutes(5)
    rows = db.session.scalars(select(DeliveryRow).order_by(DeliveryRow.id)).all()
    assert [row.status for row in rows] == ["pending"] * 2
    assert rows[0].next_attempt_at == rows[0].created_at
    assert rows[1].next_attempt_at == START + timedelta(hours=1)


@pytest.mark.both_databases
def test_two_checkers_that_look_at_once_tell_once(house):
    other = SilenceWatch(house.now)
    house.monitor("oslo")
    house.pass_minutes(1, "oslo")
    for _ in range(20):
        house.pass_minutes(0.25)
        other.look(house.now)
    assert [event for event, _ in house.messages()] == [SILENT]
