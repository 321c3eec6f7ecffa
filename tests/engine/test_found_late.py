"""Late results that show a failure make an incident that has ended, and alert nobody
(decision 14)."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import delete, select

from app.config import Settings
from app.db import db, dependencies, journal, rollups, writing
from app.db.tables import IncidentRow, MonitorRow, ResultRow, RollupRow, UnreachableRow
from app.engine import recorder
from app.engine.recorder import late
from app.judge.verdict import Effect, NewResult, State, advance
from app.records import IncidentQuery, MonitorQuery, Verdict
from app.stores.local import LocalStore
from tests.factories import make_outcome
from tests.support.recorders import HOUR, NAMES, ROLLED, WHOLE, Figures, at

SLOT = 60
COVER = 60 + 30 + 60  # of the factory's monitor: interval, time limit, and what a check may be late


class Late(Figures):
    def alone(self, **fields):
        """A monitor that oslo alone checks."""
        self.places = {"oslo": journal.place_id("oslo")}
        self.id = self.monitor(places=[*self.places.values()], **fields)
        return self.id

    def late(self, script, name="oslo", id=None, in_time=(), now=365 * 24 * HOUR):
        """Results that ``name`` sends after a cut: verdict and time of each."""
        late, in_time = (
            [self.result(verdict, seconds, id or self.id) for verdict, seconds in part]
            for part in (script, in_time)
        )
        return recorder.record_late(late, at(now), location=name, in_time=in_time)

    @staticmethod
    def result(verdict, seconds, id):
        return replace(make_outcome(verdict, at(seconds)).result, monitor_id=id)

    def live(self, verdict, seconds, name="oslo"):
        """A result in time, as the server takes it from the agent."""
        self.see(name, verdict, seconds)
        self.late([], name, in_time=[(verdict, seconds)])

    @property
    def outages(self):
        """Start and end in seconds, of all monitors."""
        return [(whole(row.started_at), whole(row.ended_at)) for row in self.found_late]

    @property
    def found_late(self):
        db.session.rollback()
        rows = select(IncidentRow).where(IncidentRow.found_late).order_by(IncidentRow.started_at)
        return db.session.scalars(rows).all()

    def in_time(self, id):
        """The incidents of a monitor that were not found late."""
        return [incident for incident in self.incidents(id) if not incident.found_late]

    def forget(self):
        with writing() as session:
            session.execute(delete(IncidentRow).where(IncidentRow.found_late))


def since(moment):
    return (moment - at(0)).total_seconds()


def whole(moment):
    """The seconds since the start of a time of an incident, which is in whole seconds."""
    return (moment - WHOLE).total_seconds()


def script(verdict, first, last):
    """A check each minute, from one minute to before another."""
    return [(verdict, SLOT * minute) for minute in range(first, last)]


# Good, down from minute 5 to 12, good.
AN_HOUR_AGO = [*script("up", 0, 5), *script("down", 5, 12), *script("up", 12, 20)]
THEN = [(5 * SLOT, 12 * SLOT)]


@pytest.fixture
def lab(core, settings: Settings):
    with core.app_context():
        yield Late(core, LocalStore(settings))


@pytest.mark.parametrize("verdict", ["up", "degraded"])
def test_a_monitor_is_up_since_the_end_of_an_outage_that_was_found_afterwards(lab, verdict):
    """Beside the outage, its page said that it had been up for longer."""
    lab.alone()
    lab.live(verdict, 0)
    lab.late([(verdict if other == "up" else other, when) for other, when in AN_HOUR_AGO[1:]])
    lab.live(verdict, 20 * SLOT)
    assert lab.outages == THEN
    (shown,) = lab.store.monitors.list(MonitorQuery()).items
    assert (shown.status, whole(shown.status_since)) == (verdict, 12 * SLOT)
    assert lab.store.monitors.get(lab.id).status_since == shown.status_since


def test_a_monitor_that_is_down_is_so_since_its_own_failure(lab):
    lab.alone(confirmations=0)
    lab.live("up", 0)
    lab.live("down", 10 * SLOT)
    lab.late(script("down", 2, 5) + script("up", 5, 8))
    assert lab.outages == [(2 * SLOT, 5 * SLOT)]
    shown = lab.store.monitors.get(lab.id)
    assert (shown.status, since(shown.status_since)) == ("down", 10 * SLOT)


@pytest.mark.both_databases
def test_an_outage_that_only_late_results_show_is_down_time_and_nothing_else(lab):
    """In hours that are summed already and in others, also when the results come twice."""
    lab.alone(confirmations=2)
    lab.live("up", HOUR)
    state = lab.state(lab.id)
    before = (state.verdict, state.status_since, state.checked_at)
    assert lab.late(AN_HOUR_AGO) == 20
    assert lab.late(AN_HOUR_AGO) == 0
    assert lab.outages == THEN
    (row,) = lab.found_late
    assert (row.cause, row.cause_code) == ("The server refused.", "connection_refused")
    assert (row.seen_by, row.ending) == (["oslo"], None)
    live = lab.seconds(HOUR + 60)
    assert live["down"] == pytest.approx(7 * SLOT, abs=1)
    state = lab.state(lab.id)
    assert (state.verdict, state.status_since, state.checked_at) == before
    assert (lab.in_time(lab.id), lab.events()) == ([], [])

    db.session.execute(RollupRow.__table__.delete())
    rollups.roll(at(ROLLED + HOUR))
    assert lab.seconds(ROLLED + HOUR)["down"] == live["down"], "sums are made of the same"
    assert lab.late(script("down", 30, 36)) == 6, "in an hour that is summed"
    assert lab.seconds(ROLLED + HOUR)["down"] == live["down"] + 5 * SLOT + COVER


def test_an_outage_may_begin_with_results_in_time_and_goes_on_until_no_result_counts(lab):
    lab.alone(confirmations=2)
    lab.live("up", 0)
    lab.live("down", SLOT)
    lab.late(script("down", 2, 6))
    assert lab.outages == [(SLOT, 5 * SLOT + COVER)]
    assert lab.seconds(HOUR)["down"] == pytest.approx(4 * SLOT + COVER, abs=1)


def test_an_outage_that_goes_on_meets_the_incident_that_opens_for_it(lab):
    """Without a gap, and without counting twice."""
    lab.alone(confirmations=2)
    lab.late([*script("up", 0, 5), *script("down", 5, 10)])
    lab.late(script("down", 11, 20))
    lab.late(script("down", 10, 11))
    for minute in (20, 21):
        lab.live("down", minute * SLOT)
        assert lab.in_time(lab.id) == []
        assert lab.outages == [(5 * SLOT, minute * SLOT + COVER)]
    lab.live("down", 22 * SLOT)
    (incident,) = lab.in_time(lab.id)
    assert incident.started_at == WHOLE + timedelta(seconds=20 * SLOT)
    assert lab.outages == [(5 * SLOT, 20 * SLOT)]
    lab.live("up", 23 * SLOT)
    lab.live("up", 24 * SLOT)
    assert lab.outages == [(5 * SLOT, 20 * SLOT)]
    assert lab.seconds(25 * SLOT)["down"] == pytest.approx(18 * SLOT, abs=1)
    assert lab.events() == ["incident.opened"] * 2 + ["incident.resolved"] * 2


def test_an_incident_that_goes_on_has_not_ended_in_the_future(lab):
    lab.alone(confirmations=1)
    lab.late(script("down", 0, 3))
    lab.store.now = lambda: at(2 * SLOT + 30)
    (incident,) = lab.store.incidents.list(IncidentQuery()).items
    assert (whole(incident.ended_at), incident.duration) == (2 * SLOT + 30, 2 * SLOT + 30)
    assert (incident.status, incident.found_late) == ("resolved", True)
    lab.store.incidents.update(incident.id, {"comment": "The switch."})
    assert lab.outages == [(0, 2 * SLOT + COVER)]


@pytest.mark.parametrize(
    ("confirmations", "late", "outages"),
    [
        (2, [*script("up", 0, 5), *script("down", 5, 7), *script("up", 7, 9)], []),
        (0, [("down", 0), ("up", 60), ("down", 120), ("up", 180), ("up", 240)], [(0, 180)]),
        (1, [*script("down", 0, 5), *script("down", 20, 25)],
         [(0, 4 * SLOT + COVER), (20 * SLOT, 24 * SLOT + COVER)]),
    ],
    ids=["not confirmed", "a recheck confirms its end", "time without results ends it"],
)  # fmt: skip
def test_late_results_of_one_place_show_the_outages_that_they_show_in_time(
    lab, confirmations, late, outages
):
    lab.alone(confirmations=confirmations)
    lab.late(late)
    assert lab.outages == outages
    assert lab.seconds(HOUR)["down"] == sum(end - start for start, end in outages)


def judged(checks, confirmations):
    """Start and end of each outage by results that are judged one after another."""
    state, outages = State(), []
    for verdict, seconds in checks:
        began = state.down_since
        after = advance(state, NewResult(0, at(seconds), Verdict(verdict)), confirmations)
        state = after.state
        if after.effect is Effect.END:
            outages.append((since(began), since(after.moment)))
    return outages


def test_pieces_in_any_order_show_the_same_as_results_in_time(lab):
    """Whatever the backlog is cut into. The seeds are fixed; a failing one is named."""
    for seed in range(3):
        chance = random.Random(seed)
        confirmations = chance.randrange(3)
        verdicts, verdict = [], "up"
        for _minute in range(50):
            if chance.random() < 0.3:
                verdict = chance.choice(["up", "down", "down", "unknown", "degraded"])
            verdicts.append(verdict)
        checks = [
            (verdict, SLOT * minute) for minute, verdict in enumerate([*verdicts, "up", "up"])
        ]
        lab.alone(confirmations=confirmations)
        pieces = [checks[start : start + 7] for start in range(0, len(checks), 7)]
        chance.shuffle(pieces)
        for piece in pieces:
            lab.late(piece)
        assert lab.outages == judged(checks, confirmations), seed
        lab.forget()


def test_a_batch_across_hours_is_counted_in_each(lab):
    lab.alone(confirmations=2)
    first = 50  # minutes after START, which is on the hour
    lab.live("up", 3 * HOUR)
    rollups.roll(at(3 * HOUR))
    lab.late([*script("down", first, first + 20), *script("up", first + 20, first + 25)])
    rows = db.session.execute(
        select(RollupRow.start, RollupRow.down_s)
        .where(RollupRow.period == HOUR, RollupRow.down_s > 0)
        .order_by(RollupRow.start)
    ).all()
    assert [down for _start, down in rows] == [600, 600]


def test_a_result_that_counts_into_an_hour_that_is_summed_is_counted_there(lab):
    lab.alone(confirmations=1, interval=1800)
    lab.live("up", 2 * HOUR + 1900)
    rollups.roll(at(3 * HOUR + ROLLED))
    lab.late([("up", 1700), ("up", 3500)])
    seconds = lab.seconds(3 * HOUR + ROLLED)
    with writing():
        rollups.reroll(lab.id, at(-HOUR))
    assert lab.seconds(3 * HOUR + ROLLED) == seconds


def test_a_request_is_written_in_pieces(lab, monkeypatch):
    """Others wait for SQLite's only writer no longer than for one of them."""
    ids = [lab.alone() for _number in range(5)]
    monkeypatch.setattr(late, "CHUNK", 2)
    pieces, real = [], late.journal.insert_results
    monkeypatch.setattr(
        late.journal, "insert_results", lambda rows: pieces.append(len(rows)) or real(rows)
    )
    results = [lab.result("down", SLOT * minute, id) for minute in range(4) for id in ids]
    assert recorder.record_late(results, at(HOUR), location="oslo") == 20
    assert pieces == [8, 8, 4]
    assert len(lab.outages) == 5


# --- What keeps time from being such an outage


def test_what_is_in_maintenance_is_no_outage(lab):
    window = {"maintenance_start_at": at(4 * SLOT), "maintenance_end_at": at(13 * SLOT)}
    lab.alone(confirmations=2, **window)
    lab.late(AN_HOUR_AGO)
    assert lab.outages == []
    lab.late([("down", second) for second in range(13 * SLOT + 1, 13 * SLOT + 50, 10)])
    assert lab.outages == [(13 * SLOT + 1, 14 * SLOT)], "what lasts is confirmed after it"
    seconds = lab.seconds(20 * SLOT)
    assert (seconds["down"], seconds["maintenance"]) == (59, 9 * SLOT)


def test_a_paused_monitor_has_no_outage(lab):
    lab.alone(confirmations=0)
    lab.late(script("down", 0, 3))
    with writing() as session:
        recorder.pause(session, lab.id, at(130))
    assert lab.outages == [(0, 130)], "the pause ends what goes on"
    assert lab.late(script("down", 3, 9)) == 6
    assert lab.outages == [(0, 130)]
    with writing() as session:
        recorder.resume(session, lab.id, at(HOUR - 1))
    lab.live("down", HOUR)
    assert lab.outages == [(0, 130)]
    assert lab.seconds(HOUR + 1)["down"] == pytest.approx(131, abs=1), "and the new incident"


def test_results_of_a_pause_that_is_over_count_for_nothing(lab):
    """An agent was cut off; a person paused the monitor meanwhile, and resumed it."""
    lab.alone(confirmations=1)
    paused, resumed = 5 * SLOT + 30, 12 * SLOT - 30
    with writing() as session:
        recorder.pause(session, lab.id, at(paused))
        recorder.resume(session, lab.id, at(resumed))
    assert lab.late(script("up", 0, 3) + script("down", 3, 14) + script("up", 14, 16)) == 16
    assert lab.outages == [(3 * SLOT, paused), (12 * SLOT, 14 * SLOT)]
    seconds = lab.seconds(16 * SLOT)
    assert seconds["down"] == paused - 3 * SLOT + 2 * SLOT
    assert seconds["up"] == 3 * SLOT + 2 * SLOT


def test_results_of_before_a_pause_count_during_it(lab):
    lab.alone(confirmations=1)
    with writing() as session:
        recorder.pause(session, lab.id, at(5 * SLOT + 30))
    lab.late(script("down", 3, 14))
    assert lab.outages == [(3 * SLOT, 5 * SLOT + 30)]


def test_results_of_before_a_change_of_the_rule_show_no_outage(lab):
    """The monitor was checked each 30 minutes. Under its present interval, nobody else has
    a vote.
    """
    lab.start(confirmations=0, interval=1800)
    for number in range(8):
        for more, name in enumerate(("berlin", "sydney")):
            lab.see(name, "up", 1800 * number + 60 + more)
    lab.store.now = lambda: at(8 * 1800)
    lab.store.monitors.update(lab.id, {"interval": 20})
    checks = [("down" if number in (2, 3) else "up", 1800 * number) for number in range(8)]
    assert lab.late(checks, "oslo") == 8
    assert lab.outages == []
    late = [("down", 8 * 1800 + 100), ("down", 8 * 1800 + 120), ("up", 8 * 1800 + 140)]
    lab.late(late, "oslo")
    assert lab.outages == [(8 * 1800 + 100, 8 * 1800 + 140)], "since the change, it is as ever"


def test_what_was_judged_in_time_is_not_found_again(lab):
    """Its incident was deleted: a late failure within it must not bring it back."""
    lab.alone(confirmations=1)
    for verdict, first, last in (("up", 0, 3), ("down", 3, 8), ("up", 8, 10)):
        for _verdict, seconds in script(verdict, first, last):
            lab.live(verdict, seconds)
    (incident,) = lab.incidents(lab.id)
    with writing() as session:
        recorder.delete_incident(session, recorder.lock_incident(session, incident.id), at(0))
    lab.late([("down", 4 * SLOT + 30)])
    assert lab.outages == []
    lab.late([("down", 2 * SLOT + 30)])
    assert lab.outages == [(2 * SLOT + 30, 3 * SLOT)], "what late results add alone"


def test_what_another_place_saw_in_time_at_the_same_moments_is_not_found_again(lab):
    lab.start(confirmations=1, location_rule="any")
    for verdict, first, last in (("up", 0, 3), ("down", 3, 8), ("up", 8, 10)):
        for _verdict, seconds in script(verdict, first, last):
            lab.live(verdict, seconds, name="sydney")
    (incident,) = lab.incidents(lab.id)
    with writing() as session:
        recorder.delete_incident(session, recorder.lock_incident(session, incident.id), at(0))
    lab.late(script("down", 4, 7))
    assert lab.outages == []


def test_a_late_failure_does_not_make_what_a_later_rule_says_an_outage(lab):
    """In time, two good places outvoted a third; the rule alone is as it was stored later."""
    lab.start(confirmations=1)
    for minute in range(20):
        lab.see("sydney", "down" if 5 <= minute < 15 else "up", SLOT * minute + 1)
        lab.see("berlin", "up", SLOT * minute + 2)
    with writing() as session:
        session.get(MonitorRow, lab.id).location_rule = "any"
    lab.late([*script("up", 0, 9), ("down", 9 * SLOT), *script("up", 10, 20)])
    assert lab.outages == []


def test_time_of_an_incident_is_the_incidents(lab):
    """After one that was closed by hand, failing checks are confirmed again."""
    lab.alone(confirmations=2)
    for verdict, minute in (("up", 0), ("down", 1), ("down", 2), ("down", 3)):
        lab.live(verdict, SLOT * minute)
    lab.late(script("down", 4, 8))
    assert lab.outages == [], "the incident is still open"
    (incident,) = lab.incidents(lab.id)
    with writing() as session:
        fields = {"ended_at": WHOLE + timedelta(seconds=8 * SLOT)}
        row = recorder.lock_incident(session, incident.id)
        recorder.change_incident(session, row, fields, at(8 * SLOT))
    lab.late(script("down", 8, 10))
    assert lab.outages == [], "two failing checks after it are not confirmed"
    lab.late(script("down", 10, 11))
    assert lab.outages == [(8 * SLOT, 10 * SLOT + COVER)]
    assert lab.seconds(HOUR)["down"] == pytest.approx(9 * SLOT + COVER, abs=1)


def test_late_good_results_do_not_shorten_an_incident(lab):
    lab.alone(confirmations=0)
    lab.live("down", 0)
    lab.late(script("up", 1, 10))
    assert lab.incidents(lab.id)[0].ended_at is None
    assert lab.seconds(10 * SLOT)["down"] == pytest.approx(10 * SLOT, abs=1)


def test_what_people_say_of_an_incident_that_was_found_late_stays_as_results_correct_it(lab):
    lab.alone(confirmations=1)
    lab.late(script("down", 5, 10))
    (incident,) = lab.found_late
    lab.store.now = lambda: at(HOUR)
    lab.store.incidents.update(incident.id, {"comment": "The switch."})
    assert lab.seconds(HOUR)["down"] == pytest.approx(4 * SLOT + COVER, abs=1)
    lab.late([*script("up", 0, 4), *script("down", 4, 5), *script("up", 10, 12)])
    (corrected,) = lab.found_late
    assert (corrected.id, corrected.comment) == (incident.id, "The switch.")
    assert lab.outages == [(4 * SLOT, 10 * SLOT)]
    lab.store.incidents.update(incident.id, {"classification": "false_alarm"})
    assert lab.seconds(HOUR)["down"] == 0


def test_the_end_that_a_person_set_is_not_corrected(lab):
    lab.alone(confirmations=1)
    lab.late(script("down", 5, 10))
    (incident,) = lab.found_late
    lab.store.now = lambda: at(HOUR)
    lab.store.incidents.update(incident.id, {"ended_at": WHOLE + timedelta(seconds=8 * SLOT)})
    lab.late(script("up", 9, 12))
    assert lab.outages == [(5 * SLOT, 8 * SLOT)]
    assert lab.found_late[0].ending == "person"
    recorder_deletes(lab, incident.id)
    lab.late(script("up", 12, 14))
    assert lab.outages == [], "and one that a person deleted does not come back"


def test_an_incident_that_was_found_late_can_be_reopened_and_ends_as_any_other(lab):
    lab.alone(confirmations=1)
    lab.late(AN_HOUR_AGO)
    (incident,) = lab.found_late
    lab.store.now = lambda: at(HOUR)
    lab.store.incidents.update(incident.id, {"ended_at": None})
    assert lab.events() == ["incident.opened"] * 2
    lab.late(script("down", 20, 30))
    assert [row.ended_at for row in lab.found_late] == [None]
    lab.live("up", HOUR)
    lab.live("up", HOUR + SLOT)
    assert lab.found_late[0].ending == "recovered"


def test_deleting_a_monitor_takes_its_late_outages(lab):
    lab.alone()
    lab.late(AN_HOUR_AGO)
    with writing() as session:
        recorder.delete_monitor(session, lab.id, at(0))
    assert lab.outages == []


# --- Several places


def recorder_deletes(lab, id):
    with writing() as session:
        recorder.delete_incident(session, recorder.lock_incident(session, id), at(0))


def in_time(lab, *names, verdict="up"):
    for minute in range(20):
        for name in names:
            lab.see(name, verdict, SLOT * minute + 1)


def test_late_results_of_two_places_are_a_majority_together(lab):
    lab.start(confirmations=2)
    in_time(lab, "sydney")
    lab.late(AN_HOUR_AGO)
    assert lab.outages == [], "one of two voters"
    lab.late([(verdict, seconds + 2) for verdict, seconds in AN_HOUR_AGO], name="berlin")
    assert lab.outages == [(5 * SLOT + 2, 12 * SLOT)], "to when oslo is up again"
    assert [row.seen_by for row in lab.found_late] == [["berlin"]]


def test_an_outage_is_none_any_more_once_a_place_brings_other_results(lab):
    lab.start(confirmations=2, location_rule="all")
    lab.late(AN_HOUR_AGO)
    assert lab.outages == THEN
    assert lab.seconds(HOUR)["down"] == pytest.approx(7 * SLOT, abs=1)
    lab.late(script("up", 0, 20), name="berlin")
    assert lab.outages == []
    assert lab.seconds(HOUR)["down"] == 0


def in_time_and_late(lab, checks, pause=(), **fields):
    """The time of the incidents that checks (place, verdict, seconds) open as they are made, and
    the outages that the same checks show when all of them come late. ``pause``: its begin and end.
    """
    lab.start(**fields)
    turns = [*zip((recorder.pause, recorder.resume), pause, strict=False)]

    def turn(until):
        while turns and turns[0][1] <= until:
            change, seconds = turns.pop(0)
            with writing() as session:
                change(session, lab.id, at(seconds))

    for name, verdict, seconds in checks:
        turn(seconds)
        lab.see(name, verdict, seconds)
    times = [
        (whole(incident.started_at), whole(incident.ended_at)) for incident in lab.incidents(lab.id)
    ]
    lab.start(**fields)
    turns = [*zip((recorder.pause, recorder.resume), pause, strict=False)]
    turn(HOUR)
    for name in NAMES:
        lab.late([check[1:] for check in checks if check[0] == name], name)
    outages = lab.outages
    lab.forget()
    return times, outages


MAINTENANCE = {"maintenance_start_at": at(90), "maintenance_end_at": at(130)}


@pytest.mark.parametrize("between", [{"pause": (110, 130)}, MAINTENANCE])
def test_what_failed_before_the_end_of_a_pause_or_a_maintenance_has_no_vote_after_it(lab, between):
    checks = [("berlin", "up", 1), ("oslo", "up", 2), ("sydney", "up", 3)]
    checks += [("berlin", "down", 100), ("oslo", "down", 140)]
    checks += [
        ("berlin", "up", 145),
        ("sydney", "up", 146),
        ("oslo", "up", 150),
        ("berlin", "up", 160),
    ]
    assert in_time_and_late(lab, checks, confirmations=0, **between) == ([], [])
    live, late = in_time_and_late(lab, checks, confirmations=0)
    assert live == late == [(140, 145)], "without it two of three fail together"


def test_late_results_of_places_show_the_same_as_in_time(lab):
    recorded = 0
    for seed in (2, 4, 6):
        chance = random.Random(seed)
        rule = ("any", "majority", "all")[seed % 3]
        verdict = dict.fromkeys(NAMES, "up")
        checks = []
        for number in range(14):
            for more, name in enumerate(NAMES):
                if chance.random() < 0.25:
                    verdict[name] = chance.choice(["up", "down", "down", "degraded", "unknown"])
                if chance.random() < 0.9:
                    checks.append((name, verdict[name], 20 * number + more))
        for end in (280, 300):
            checks += [(name, "up", end + more) for more, name in enumerate(NAMES)]
        live, late = in_time_and_late(
            lab,
            checks,
            confirmations=chance.randrange(3),
            location_rule=rule,
            **({}, {"pause": (130, 210)}, MAINTENANCE)[seed // 3],
        )
        assert late == live, seed
        recorded += len(live)
    assert recorded > 1


# --- Behind an outage of what it is reached through (decision 20)


@pytest.fixture
def behind(lab):
    """A router and a server behind it, which oslo alone checks: their ids."""
    server = lab.alone(name="Server", confirmations=1)
    router = lab.alone(name="Router", confirmations=1)
    with writing() as session:
        dependencies.replace_parents(session, server, [router])
    return router, server


def spans(id):
    rows = select(UnreachableRow).where(UnreachableRow.monitor_id == id)
    return [
        (whole(row.started_at), whole(row.ended_at))
        for row in db.session.scalars(rows.order_by(UnreachableRow.started_at))
    ]


FAILS = [*script("up", 0, 5), *script("down", 5, 12), *script("up", 12, 20)]
LONGER = [*script("up", 0, 4), *script("down", 4, 14), *script("up", 14, 20)]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "order", ["together", "the parent in time", "the parent first", "the parent last"]
)
def test_late_failures_behind_an_outage_are_neither_up_nor_down(lab, behind, order):
    router, server = behind
    if order == "the parent in time":
        for verdict, seconds in LONGER:
            lab.id = router
            lab.see("oslo", verdict, seconds)
    elif order == "the parent first":
        lab.late(LONGER, id=router)
    elif order == "the parent last":
        lab.late(FAILS, id=server)
        assert lab.outages == THEN
    sent = [(server, FAILS)]
    if order in ("together", "the parent last"):
        sent.append((router, LONGER))
    results = [lab.result(*check, id) for id, checks in sent for check in checks]
    for _again in range(2):
        recorder.record_late(results, at(365 * 24 * HOUR), location="oslo")
    assert lab.incidents(server) == [], "it opens nothing"
    assert spans(server) == [(5 * SLOT, 12 * SLOT)]
    lab.store.now = lambda: at(20 * SLOT)
    figures = lab.store.results.statistics(server, "24h")
    assert (figures["downtime"], figures["unknown"], figures["uptime"]) == (0, 7 * SLOT, 100)
    (incident,) = lab.incidents(router)
    (affected,) = dependencies.affected(db.session, [incident]).values()
    assert [monitor.id for monitor in affected] == [server]


def test_pieces_of_a_backlog_behind_an_outage_show_the_same_in_any_order(lab, behind):
    router, server = behind
    lab.late(LONGER, id=router)
    order = random.Random(20)
    for _time in range(5):
        pieces = [FAILS[first : first + 3] for first in range(0, len(FAILS), 3)]
        order.shuffle(pieces)
        for piece in pieces:
            lab.late(piece, id=server)
        assert spans(server) == [(5 * SLOT, 12 * SLOT)]
        assert lab.incidents(server) == []
        with writing() as session:
            session.execute(delete(UnreachableRow))
            session.execute(delete(ResultRow).where(ResultRow.monitor_id == server))
