"""kill -9 at each step between a check and its alert leaves nothing half done.

The alert worker's steps are in ``tests/alerts/test_crash.py``.
"""

from __future__ import annotations

from contextlib import closing

import pytest
import sqlalchemy as sa

from app.db import db, dependencies, writing
from app.db.tables import AssignmentRow, DeliveryRow, IncidentRow, MonitorStateRow, ResultRow
from app.db.types import from_ms
from app.engine.recorder.rows import in_whole_seconds
from tests.factories import make_monitor, now
from tests.faults import crash_checker
from tests.support.checkers import Site
from tests.support.command import start
from tests.support.service import eventually

pytestmark = [pytest.mark.more, pytest.mark.timeout(300), pytest.mark.both_databases]


@pytest.fixture
def run(core, settings):
    """Starts a checker that kills itself at this step."""

    def run(step):
        where = settings.database_url, settings.secret_key, str(settings.instance)
        return start(crash_checker.main, *where, step)

    return run


def killed(checker):
    checker.join(120)
    assert checker.exitcode == -9


def rows(core, statement):
    with core.app_context():
        rows = db.session.scalars(statement).all()
        db.session.remove()
        return rows


def test_a_checker_killed_at_any_step_leaves_nothing_half_done(core, run, site):
    site.status = 503
    hook = [["webhook", "http://127.0.0.1:9/hook"]]
    make_monitor(core, url=site.url, interval=2, timeout=5, confirmations=1, alerts=hook)
    results = sa.select(ResultRow.at).order_by(ResultRow.at)
    failures = sa.select(MonitorStateRow.failures)
    deliveries = sa.select(DeliveryRow.event)

    for asked, step in enumerate(("checking", "checked", "recording"), start=1):
        killed(run(step))
        eventually(lambda asked=asked: site.asked == asked, "the target was asked")
        assert rows(core, results) == [], "what was not committed is not there"
        assert rows(core, failures) == [0]

    killed(run("recorded"))
    assert (len(rows(core, results)), rows(core, failures)) == (1, [1])
    assert rows(core, deliveries) == [], "it is not confirmed"

    killed(run("recorded"))  # which is the confirmation
    [incident] = rows(core, sa.select(IncidentRow))
    assert incident.started_at == in_whole_seconds(from_ms(rows(core, results)[0]))
    assert rows(core, deliveries) == ["incident.opened"], "in the same transaction"

    checker = run("never")
    eventually(lambda: len(rows(core, results)) >= 4, "the next one goes on", 60)
    site.status = 200
    eventually(lambda: len(rows(core, deliveries)) == 2, "the recovery is noticed", 60)
    checker.terminate()
    checker.join(60)
    assert checker.exitcode == 0
    assert rows(core, deliveries) == ["incident.opened", "incident.resolved"]
    assert len(rows(core, sa.select(IncidentRow))) == 1
    # Three checks ended with their checker. Every other one is a result, and none is two.
    assert len(rows(core, results)) == site.asked - 3


@pytest.mark.parametrize("parent", ["up", "down"])
def test_a_kill_between_a_request_to_a_parent_and_its_answer_loses_neither(core, run, site, parent):
    """The parent is not due for a day: only the request brings its check."""
    site.status = 503
    long_ago = {"checked_at": now(), "verdict": "up"}
    with closing(Site()) as router_site:
        router_site.status = 200 if parent == "up" else 503
        router = make_monitor(
            core, name="Router", url=router_site.url, interval=86_400, confirmations=0,
            state=long_ago, assignment=long_ago | {"scheduled_at": now()},
        ).id  # fmt: skip
        child = make_monitor(core, url=site.url, interval=86_400, confirmations=0).id
        with core.app_context(), writing() as session:
            dependencies.replace_parents(session, child, [router])
        of_child = sa.select(IncidentRow.started_at).where(IncidentRow.monitor_id == child)
        of_router = sa.select(IncidentRow.id).where(IncidentRow.monitor_id == router)
        asked = sa.select(AssignmentRow.asked_at).where(AssignmentRow.monitor_id == router)
        behind = sa.select(MonitorStateRow.behind_id).where(MonitorStateRow.monitor_id == child)

        killed(run("recording"))
        assert rows(core, asked) == [None], "what was not committed is not there"
        killed(run("recorded"))
        assert rows(core, asked) != [None]
        assert (router_site.asked, rows(core, of_child)) == (0, [])
        if parent == "down":
            while rows(core, behind) != [router]:  # each check is the last of its checker
                killed(run("recorded"))
            assert len(rows(core, of_router)) == 1
        else:
            checker = run("never")
            eventually(lambda: rows(core, of_child), "its own incident", 60)
            failed = sa.select(sa.func.min(ResultRow.at)).where(ResultRow.monitor_id == child)
            assert rows(core, of_child) == [in_whole_seconds(from_ms(rows(core, failed)[0]))]
            checker.terminate()
            checker.join(60)
            assert checker.exitcode == 0
        assert router_site.asked > 0, "the request was carried out"
        assert len(rows(core, of_child)) == (parent == "up")
