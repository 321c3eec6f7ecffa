"""An incident of severity degraded: it opens when a monitor is slow for minutes (decision 19)."""

from datetime import timedelta

import pytest

from app.records import Timings
from tests.support.recorders import WHOLE, Engine

MINUTE = 60


@pytest.fixture
def engine(core):
    """The recorder, driven check by check; times are seconds after START."""
    with core.app_context():
        yield SlowEngine(core)


class SlowEngine(Engine):
    """``script``: a letter for each check, a minute apart: fast, slow, down."""

    def watch(self, **fields):
        return self.monitor(**{"slow_after": 1000, "slow_alert_after": 5} | fields)

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
