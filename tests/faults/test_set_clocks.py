"""The clock of a machine is set an hour forward and back while its processes run.

They are real processes whose clock the test sets (``tests/support/stepped.py``).
``test_clock_steps.py`` looks at each kind of stored time alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.access.keys import give_token
from app.config import Settings
from app.db import db, writing
from app.db.tables import DeliveryRow, IncidentRow, PlaceRow, ResultRow
from app.db.types import from_ms
from app.engine.schedule import last_scheduled
from tests.factories import make_monitor
from tests.support.agents import Gate
from tests.support.loopback import serving
from tests.support.service import eventually
from tests.support.stepped import Stepped

HOUR = 3600.0
SOON = 60.0  # everything is in step again within a minute

pytestmark = [pytest.mark.more, pytest.mark.timeout(300)]


@contextmanager
def stepped(folder: Path, words: list[str], **settings: str) -> Iterator[Stepped]:
    common = {"ALLOW_NETWORKS": "loopback", "CANARIES": "", "CONFIRM_SECONDS": "0.1"}
    environ = {f"WAKEFUL_{name}": value for name, value in (common | settings).items()}
    running = Stepped(folder / f"clock of {words[0]}", words, environ)
    try:
        yield running
    finally:
        assert running.end() == 0


def goes_on(site) -> None:
    before = site.asked
    eventually(lambda: site.asked >= before + 4, "checks go on", SOON)


def await_messages(sink, count: int) -> None:
    eventually(lambda: len(sink.to("/hook")) == count, f"alert {count} arrives", SOON)


def scalars(app, statement):
    with app.app_context():
        rows = db.session.scalars(statement).all()
        db.session.remove()
        return rows


def test_an_agents_clock_is_set_while_its_server_is_away_and_while_it_is_there(app, site, tmp_path):
    """Once it knows the server's time, its own clock does not matter."""
    with app.app_context(), writing() as session:
        row = PlaceRow(name="oslo", carrier="agent", created_at=datetime.now(UTC))
        session.add(row)
        token = give_token(row)
        session.flush()
        place = row.id
    monitor = make_monitor(app, url=site.url, interval=2, confirmations=0, places=[place])
    gate, began = Gate(app), datetime.now(UTC)
    results = sa.select(ResultRow.at).order_by(ResultRow.at)
    instance = str(tmp_path / "agent")
    with (
        serving(gate) as url,
        stepped(tmp_path, ["agent"], SERVER=url, AGENT_TOKEN=token, INSTANCE=instance) as agent,
    ):
        eventually(lambda: len(scalars(app, results)) >= 2, "the first results")
        for away in (True, False):
            gate.cut = away
            for ahead in (-HOUR, 0.0, HOUR, 0.0):
                agent.ahead(ahead)
                goes_on(site)
        eventually(lambda: len(scalars(app, results)) >= site.asked - 2, "none is lost", SOON)
    ended = datetime.now(UTC)
    times = [from_ms(at) for at in scalars(app, results)]
    assert len(times) == site.asked
    assert began < times[0] < times[-1] < ended
    scheduled = [last_scheduled(monitor.id, 2, at) for at in times[1:]]
    assert len(scheduled) == len(set(scheduled)), "no scheduled check is made twice"
    assert max(later - earlier for earlier, later in pairwise(times)) < timedelta(seconds=30)
    assert scalars(app, sa.select(IncidentRow)) == []


def test_a_servers_clock_is_set_and_checks_and_alerts_go_on(
    app, settings: Settings, site, sink, tmp_path
):
    make_monitor(
        app, url=site.url, interval=2, confirmations=1, alerts=[["webhook", f"{sink.url}/hook"]]
    )
    database = {
        "DATABASE_URL": settings.database_url,
        "SECRET_KEY": settings.secret_key,
        "INSTANCE": str(settings.instance),
    }
    incidents = sa.select(IncidentRow.ended_at).order_by(IncidentRow.id)
    with (
        stepped(tmp_path, ["checker"], **database) as checker,
        stepped(tmp_path, ["worker"], **database) as worker,
    ):
        eventually(lambda: site.asked >= 2, "the first checks")
        for turn, ahead in enumerate((HOUR, 0.0, -HOUR, 0.0), start=1):
            for part in (checker, worker):
                part.ahead(ahead)
            goes_on(site)
            assert len(scalars(app, incidents)) == turn - 1, "no false incident"
            site.status = 503
            await_messages(sink, 2 * turn - 1)
            site.status = 200
            await_messages(sink, 2 * turn)
            assert None not in scalars(app, incidents)
    types = [request.json["type"] for request in sink.to("/hook")]
    assert types == ["incident.opened", "incident.resolved"] * 4
    assert set(scalars(app, sa.select(DeliveryRow.status))) == {"delivered"}
    assert len(scalars(app, sa.select(ResultRow.at))) == site.asked
