"""An incident of severity degraded: it opens when a monitor is slow for minutes (decision 19)."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from app.db import db
from app.db.tables import DeliveryRow
from app.records import Timings
from app.stores.local import LocalStore
from tests.support.recorders import WHOLE, Engine, at

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


@pytest.mark.both_databases
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


@pytest.mark.both_databases
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
    assert engine.minutes(id, "s", first=13)[1:] == [("degraded", 11, None)]


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
