"""What the server makes of the results of an agent, which several web processes may take."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from app import create_app
from app.db import db
from app.db.tables import HeartbeatRow
from app.engine import now as on_demand
from app.records import Verdict
from tests.engine.test_agent import place, result
from tests.factories import make_monitor

__all__ = ["place"]  # a fixture

DAY = timedelta(days=1)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def at():
    """The time, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def watched(app, place, at):
    """Makes a monitor that the place has checked for a day."""

    def make(**fields):
        return make_monitor(
            app, places=[place[0]], created_at=at - DAY, updated_at=at - DAY, **fields
        )

    return make


class Process:
    """A web process that takes results of the place."""

    def __init__(self, app, token):
        self.app, self.token = app, token

    def take(self, *results):
        with self.app.app_context():
            agents = self.app.extensions["wakeful.agents"]
            return agents.take(agents.place_of(self.token), {"results": list(results)})


@pytest.fixture
def one(app, place):
    return Process(app, place[1])


@pytest.fixture
def other(settings, place):
    app = create_app(settings)
    yield Process(app, place[1])
    on_demand.close(app)
    with app.app_context():
        db.engine.dispose()


def last_result_at(app):
    """When the place brought results last, as the silence watch reads it."""
    with app.app_context():
        return db.session.scalars(select(HeartbeatRow.last_check_at)).one()


def test_a_web_process_that_starts_again_does_not_forget_when_results_came(
    app, one, other, watched, at
):
    one.take(result(watched(interval=3600), Verdict.UP, at))
    came = last_result_at(app)
    assert came is not None
    other.take()
    assert last_result_at(app) == came, "the place would be told as silent"
