"""An incident of severity degraded: it opens when a monitor is slow for minutes (decision 19)."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from app.db import db, packed, rollups, writing
from app.db.rollups.rows import columns_of
from app.db.tables import ContactRow, DeliveryRow, MonitorContactRow, MonitorStateRow, RollupRow
from app.db.types import to_ms
from app.engine import recorder
from app.records import Timings
from app.stats.tally import HOUR_MS, Sums
from app.stores.local import LocalStore
from tests.factories import keep_results, make_outcome
from tests.support.recorders import HOUR, NAMES, WHOLE, Engine, Places, at, change

MINUTE = 60


@pytest.fixture
def engine(core):
    """The recorder, driven check by check; times are seconds after START."""
    with core.app_context():
        yield SlowEngine(core)


class SlowEngine(Engine):
    """``script``: a letter for each check, a minute apart: fast, slow, down."""

    def watch(self, **fields):
        ours = {"slow_after": 1000, "slow_alert_after": 5, "updated_at": WHOLE}
        return self.monitor(**ours | fields)

    def minutes(self, id, script, first=0):
        for number, letter in enumerate(script.replace(" ", "")):
            seconds = (first + number) * MINUTE
            if letter == "d":
                self.check(id, "down", seconds)
            else:
                ms, verdict = (200, "up") if letter == "f" else (3000, "degraded")
                timings = Timings(dns=10, connect=20, tls=30, ttfb=ms - 70, download=10)
                self.check(id, verdict, seconds, response_time=ms, timings=timings)
        return [self.shown(incident) for incident in self.incidents(id)]

    def shown(self, incident):
        """Severity, first and last minute."""
        times = (incident.started_at, incident.ended_at)
        return (incident.severity, *(at and (at - WHOLE) // timedelta(minutes=1) for at in times))


@pytest.mark.parametrize(
    ("script", "incidents"),
    [
        ("ss", []),  # too few
        ("sss", [("degraded", 0, None)]),
        ("ffs ff sff", []),
        ("fffff sss", [("degraded", 5, None)]),
        ("fffff ss", []),
        ("fffff sss fff", [("degraded", 5, None)]),  # the median is fast once
        ("fffff sss ffff", [("degraded", 5, 10)]),
        ("sss fff ffff sss", [("degraded", 0, 5), ("degraded", 10, None)]),
        ("sfsfsfsfsfsf", [("degraded", 0, None)]),  # half of them: one alert, not one a minute
        ("sss d fffffff", [("degraded", 0, 6)]),  # one failure alone is cancelled
    ],
)
def test_the_median_of_the_last_minutes_opens_and_ends_it(engine, script, incidents):
    assert engine.minutes(engine.watch(), script) == incidents


def test_it_becomes_down_when_checks_fail_and_ends_with_the_outage(engine):
    id = engine.watch(confirmations=1)
    assert engine.minutes(id, "ffffff sss dd") == [("down", 6, None)]
    (incident,) = engine.incidents(id)
    assert incident.down_since == WHOLE + timedelta(minutes=9), "the first failing check"
    assert incident.cause_code == "connection_refused"
    assert "It was slow before it was down: The first byte takes 2.93 s" in incident.comment
    assert engine.minutes(id, "ss", first=11) == [("down", 6, 11)], "it is up again, and slow"
    facts = [row.facts for row in db.session.scalars(select(DeliveryRow).order_by(DeliveryRow.id))]
    assert [(fact["event"], fact["incident"]["severity"]) for fact in facts[::2]] == [
        ("incident.opened", "degraded"),
        ("incident.opened", "down"),
        ("incident.resolved", "down"),
    ]
    assert facts[-1]["extra"] == {"slow": True}
    assert engine.minutes(id, "sss", first=13)[1:] == [], "people have just heard that it is slow"
    assert engine.minutes(id, "s", first=16)[1:] == [("degraded", 12, None)]


@pytest.mark.both_databases
def test_its_time_is_no_downtime(engine):
    id = engine.watch(confirmations=0)
    engine.minutes(id, "ffffff sss ddd ff")
    figures = store_of(engine, 20 * MINUTE).results.statistics(id, "24h")
    assert (figures["downtime"], figures["incidents"], figures["mttr"]) == (180, 1, 180)
    slow = engine.watch()
    engine.minutes(slow, "ffffff sss")
    figures = store_of(engine, 20 * MINUTE).results.statistics(slow, "24h")
    assert (figures["downtime"], figures["incidents"]) == (0, 0)


def store_of(engine, seconds):
    store = LocalStore(engine.core.extensions["wakeful.settings"])
    store.now = lambda: at(seconds)
    return store


def test_checks_in_a_maintenance_do_not_count_and_open_nothing(engine):
    id = engine.watch(maintenance_start_at=at(3 * MINUTE), maintenance_end_at=at(7 * MINUTE))
    assert engine.minutes(id, "fff ssss") == []
    assert engine.minutes(id, "ss", first=7) == [], "two after it, and one fast before"
    assert engine.minutes(id, "s", first=9) == [("degraded", 7, None)]


def test_a_pause_ends_it_and_what_came_before_does_not_count_afterwards(engine):
    id = engine.watch()
    engine.minutes(id, "sss")
    with writing() as session:
        recorder.pause(session, id, at(3 * MINUTE))
    assert engine.minutes(id, "") == [("degraded", 0, 3)]
    assert engine.events() == ["incident.opened"] * 2, "no recovery"
    with writing() as session:
        recorder.resume(session, id, at(4 * MINUTE))
    assert engine.minutes(id, "ss", first=4)[1:] == []
    assert engine.minutes(id, "s", first=6)[1:] == [("degraded", 4, None)]


@pytest.mark.parametrize(
    ("fields", "script"),
    [
        ({"slow_alert_after": None}, "s"),
        ({"slow_after": 5000}, "UUUU"),  # a slow answer that counts as up now
    ],
)
def test_a_changed_rule_ends_it_and_says_so(engine, fields, script):
    id = engine.watch()
    engine.minutes(id, "sss")
    change(engine.core.extensions["wakeful.settings"], id, fields, at(3 * MINUTE))
    for number, letter in enumerate(script):
        verdict = "up" if letter == "U" else "degraded"
        engine.check(id, verdict, (3 + number) * MINUTE, response_time=3000)
    (incident,) = engine.incidents(id)
    assert incident.ending == "changed"
    assert "is not slow" in incident.comment


def test_it_recovers_where_it_began_in_the_second_of_the_last_change(engine):
    made = WHOLE + timedelta(milliseconds=100)
    id = engine.watch(created_at=made, updated_at=made)
    change(engine.core.extensions["wakeful.settings"], id, {"timeout": 20}, made)
    engine.minutes(id, "sss fff ffff")
    (incident,) = engine.incidents(id)
    assert incident.started_at == WHOLE
    assert (incident.ending, incident.comment) == ("recovered", None)


def test_a_long_interval_takes_the_time_of_three_checks(engine):
    id = engine.watch(interval=1800, slow_alert_after=1)
    for number in range(3):
        assert engine.incidents(id) == []
        engine.check(id, "degraded", number * 1800, response_time=3000)
    assert len(engine.incidents(id)) == 1


@pytest.mark.both_databases
def test_the_preview_leaves_hours_out_in_which_no_check_was_slow(engine, monkeypatch):
    id = engine.watch()
    script = {3 * 60: 40, 20 * 60 - 5: 10}  # the minute at which it gets slow, for how many
    slow_minutes = {m for start, length in script.items() for m in range(start, start + length)}
    results = [
        replace(
            make_outcome(
                "up", at(m * MINUTE), response_time=3000 if m in slow_minutes else 9
            ).result,
            monitor_id=id,
        )
        for m in range(30 * 60)
    ]
    keep_results(engine.core, results)
    preview = store_of(engine, 30 * HOUR).results.slow_alerts
    whole = preview(id, 1000, 5)
    assert whole.count == 2
    rollups.roll(at(30 * HOUR))
    read, checks = [], rollups.checks
    monkeypatch.setattr(
        rollups, "checks", lambda *span, **more: read.append(span[1:]) or checks(*span, **more)
    )
    assert preview(id, 1000, 5) == whole
    assert sum(end - start for start, end in read) < 8 * HOUR * 1000
    monkeypatch.setattr("app.stores.local.results.MAX_PREVIEWED", 3 * 60)
    newest = preview(id, 1000, 5)
    assert (newest.count, newest.last_at) == (1, whole.last_at)
    assert newest.since > whole.since, "and says since when"


@pytest.mark.both_databases
def test_results_that_are_packed_are_among_the_minutes(engine):
    twelve_hours = 12 * HOUR
    id = engine.watch(interval=twelve_hours, created_at=at(-twelve_hours))
    for number in range(2):
        engine.check(id, "degraded", number * twelve_hours, response_time=3000)
    with writing():
        db.session.get(MonitorStateRow, id).rolled_until = at(100 * HOUR).replace(minute=0)
    assert packed.pack_old(at(100 * HOUR), 60) == 2
    engine.check(id, "degraded", 2 * twelve_hours, response_time=3000)
    (incident,) = engine.incidents(id)
    assert incident.started_at == WHOLE


@pytest.mark.parametrize(
    ("late", "live", "incidents"),
    [
        ("ssss", "s", [("degraded", 0, None)]),
        ("ssss", "f", []),  # none opens by them alone
        ("fffff", "sss", []),
        ("fffff", "sssss s", [("degraded", 5, None)]),
    ],
)
def test_late_results_are_among_the_minutes_of_those_that_follow(engine, late, live, incidents):
    id = engine.watch(slow_alert_after=10)
    results = [
        make_outcome(
            "up" if letter == "f" else "degraded",
            at(minute * MINUTE),
            response_time=200 if letter == "f" else 3000,
        ).result
        for minute, letter in enumerate(late)
    ]
    results = [replace(result, monitor_id=id) for result in results]
    recorder.record_late(results, at(len(late) * MINUTE), location="default")
    assert engine.incidents(id) == []
    assert engine.minutes(id, live, first=len(late)) == incidents


@pytest.mark.both_databases
def test_the_cause_names_the_phase_that_grew_since_the_week_before(engine):
    id = engine.watch(created_at=WHOLE - timedelta(days=10))
    with writing() as session:
        for hour in range(48):
            start = to_ms(WHOLE - timedelta(hours=hour + 2)) // HOUR_MS * HOUR_MS
            ms = 9000 if hour == 5 else 300  # one bad hour is not usual
            phases = [10, 10, 10, ms - 40, 10]
            session.add(rollup(id, start, 60, ms, phases))
    engine.minutes(id, "sss")
    (incident,) = engine.incidents(id)
    assert incident.cause == (
        "The first byte takes 2.93 s, up from 0.26 s in the week before. 3 s in all; above 1 s is"
        " slow."
    )


def rollup(id, start, count, ms, phases):
    sums = Sums(checks=count, up=HOUR_MS, response_count=count, response_sum=count * ms)
    sums.phases = [count * phase for phase in phases]
    return RollupRow(**columns_of(id, HOUR, start, sums))


class TestSeveralPlaces:
    @pytest.fixture
    def places(self, core):
        with core.app_context():
            yield Places(core).start(slow_after=1000, slow_alert_after=5)

    @pytest.mark.parametrize(
        ("slow", "count"), [(("oslo",), 0), (("oslo", "sydney"), 1)], ids=["one", "two"]
    )
    def test_each_place_has_its_median_and_the_rule_decides(self, places, slow, count):
        for minute in range(4):
            for number, name in enumerate(NAMES):
                verdict, ms = ("degraded", 3000) if name in slow else ("up", 200)
                places.see(name, verdict, minute * MINUTE + number / 100, response_time=ms)
        assert len(places.opened) == count
        for incident in places.opened:
            assert incident.cause.startswith("Slow in 2 of 3 places (oslo, sydney): ")
            assert incident.seen_by == ["oslo", "sydney"]


@pytest.mark.both_databases
def test_a_contact_for_outages_alone_is_notified_when_it_becomes_down(engine):
    id = engine.watch(alerts=[], confirmations=0)
    with writing() as session:
        for number, severity in enumerate(("all", "down")):
            contact = make_contact(session, severity, min_severity=severity)
            session.add(MonitorContactRow(monitor_id=id, position=number, contact_id=contact))

    def notified():
        rows = db.session.execute(select(DeliveryRow.event, DeliveryRow.value).order_by("id"))
        return [(event, value.partition("@")[0]) for event, value in rows]

    engine.minutes(id, "sss")
    assert notified() == [("incident.opened", "all")]
    engine.minutes(id, "d", first=3)
    assert notified()[1:] == [("incident.opened", "all"), ("incident.opened", "down")]
    engine.minutes(id, "ff", first=4)
    assert notified()[3:] == [("incident.resolved", "all"), ("incident.resolved", "down")]


def make_contact(session, name, **fields):
    row = ContactRow(
        name=name, name_folded=name, channels=[["email", f"{name}@example.test"]],
        created_at=WHOLE, updated_at=WHOLE, **fields,
    )  # fmt: skip
    session.add(row)
    session.flush()
    return row.id
