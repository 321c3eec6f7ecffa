"""The heartbeat tells a service elsewhere, each minute, that checks are made and alerts leave."""

from __future__ import annotations

import logging
import queue
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from werkzeug import Request, Response

from app.alerts import outbox
from app.commands import heartbeat
from app.commands.doctor import examine
from app.commands.heartbeat import Heartbeat
from app.db import connections, db, shards, writing
from app.db.settings import store_setting
from app.db.tables import DeliveryRow, ShardRow, SignOfLifeRow
from app.records import Notice
from app.stores import health
from tests.factories import make_monitor
from tests.support import command
from tests.support.loopback import serving

SECRET = "5f0c0a1e-secret"
PATH = f"/ping/{SECRET}?from=wakeful"
MINUTE = timedelta(minutes=1)


class Receiver:
    """The service elsewhere. ``answer`` is its status."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self.answer = 200

    def __call__(self, environ, start_response):
        self.requests.put(Request(environ, populate_request=False))
        headers = {"Location": "/elsewhere"} if self.answer == 302 else {}
        return Response("OK", self.answer, headers)(environ, start_response)

    def got(self) -> list[str]:
        """The requests since the last call."""
        received = []
        while not self.requests.empty():
            request = self.requests.get()
            received.append(f"{request.method} {request.full_path}")
        return received


@pytest.fixture
def receiver():
    receiver = Receiver()
    with serving(receiver) as url:
        receiver.url = url
        yield receiver


@pytest.fixture
def here(core, settings, receiver, monkeypatch):
    monkeypatch.setattr(health, "PROBE_EVERY", 0.0)
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 100)
    with core.app_context():
        yield Here(core, settings, receiver)


class Here:
    """An installation in which a checker and an alert worker live, and one monitor was checked."""

    def __init__(self, core, settings, receiver):
        self.now = datetime.now(UTC)
        self.core = core
        object.__setattr__(settings, "heartbeat_url", receiver.url + PATH)
        self.settings = settings
        self.heartbeat = Heartbeat(core, settings, lambda: self.now)
        self.monitor = make_monitor(core, assignment={"scheduled_at": self.now})
        self.live()

    def live(self, **changed):
        """Both give a sign of life."""
        with writing() as session:
            for part in ("checker", "worker"):
                values = {"at": self.now, "last_check_at": self.now, "ended_at": None} | changed
                session.merge(SignOfLifeRow(name=f"{part}:here:1", **values))
            shards.make(1)
            its = {"owner": "checker:here:1", "until": self.now + shards.LEASE}
            session.execute(sa.update(ShardRow).values(its))

    def change(self, name, **values):
        with writing() as session:
            its = SignOfLifeRow.name == f"{name}:here:1"
            session.execute(sa.update(SignOfLifeRow).where(its).values(values))

    def alert(self, age, *, delivered=None, subscriber=None):
        """An alert that was written so long ago. ``delivered``: and delivered so long ago."""
        columns = outbox.columns("incident.opened", "webhook", "http://a/", {}, self.now - age)
        row = DeliveryRow(**columns)
        row.subscriber_id = subscriber
        if delivered is not None:
            row.status, row.next_attempt_at = "delivered", None
            row.delivered_at = self.now - delivered
        with writing() as session:
            session.add(row)

    def silence_checker(self):
        self.change("checker", at=self.now - MINUTE)

    def silence_worker(self):
        self.change("worker", at=self.now - MINUTE)

    def end_worker(self):
        self.change("worker", ended_at=self.now)

    def keep_an_alert(self):
        self.alert(16 * MINUTE)

    def never_start_worker(self):
        with writing() as session:
            session.execute(
                sa.delete(SignOfLifeRow).where(SignOfLifeRow.name.startswith("worker:"))
            )

    def break_database(self):
        with writing() as session:
            session.execute(sa.text("DROP TABLE heartbeats"))

    def lose_network(self):
        store_setting(Notice.NETWORK_DOWN, "now", self.now)


def test_an_installation_that_checks_and_alerts_calls_the_url(here, receiver, caplog):
    with caplog.at_level(logging.INFO):
        assert here.heartbeat.send()
        assert here.heartbeat.send()
    assert receiver.got() == [f"GET {PATH}"] * 2
    messages = [
        record.getMessage() for record in caplog.records if record.name == heartbeat.__name__
    ]
    assert messages == ["Heartbeat: 127.0.0.1 accepts it."], "said once"
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("stop", "sentence"),
    [
        (Here.silence_checker, "No checker is running."),
        (Here.silence_worker, "No alert worker is running"),
        (Here.end_worker, "No alert worker is running"),
        (Here.never_start_worker, "No alert worker is running"),
        (Here.keep_an_alert, "An alert has waited for 15 minutes"),
        (Here.lose_network, "Wakeful's own network does not work."),
        (Here.break_database, "The database does not answer."),
    ],
)
def test_no_heartbeat_leaves_when_checks_or_alerts_stand_still(
    here, receiver, caplog, stop, sentence
):
    stop(here)
    assert not here.heartbeat.send()
    assert not here.heartbeat.send()
    assert receiver.got() == []
    assert caplog.text.count(f"Heartbeat: {sentence}") == 1
    assert SECRET not in caplog.text


def test_checks_that_are_due_but_not_made_withhold_it_until_they_are_made(here, receiver):
    here.now += 4 * MINUTE
    here.live(last_check_at=here.now - 4 * MINUTE)
    assert not here.heartbeat.send()
    here.live()
    assert here.heartbeat.send()
    assert len(receiver.got()) == 1
    with writing() as session:  # then none is due
        session.execute(sa.text("UPDATE monitors SET interval = 3600"))
    here.now += 4 * MINUTE
    here.live(last_check_at=here.now - 4 * MINUTE)
    assert here.heartbeat.send()


@pytest.mark.parametrize(
    ("alerts", "well"),
    [
        ([{"age": timedelta(minutes=14, seconds=59)}], True),
        ([{"age": timedelta(minutes=15, seconds=1)}], False),
        # One dead receiver among several that work
        ([{"age": 20 * MINUTE}, {"age": 14 * MINUTE, "delivered": 14 * MINUTE}], True),
        ([{"age": 20 * MINUTE}, {"age": 20 * MINUTE, "delivered": 16 * MINUTE}], False),
        ([{"age": 20 * MINUTE, "subscriber": 7}], True),
        ([{"age": 20 * MINUTE}, {"age": MINUTE, "delivered": MINUTE, "subscriber": 7}], False),
    ],
)
def test_alerts_leave_as_long_as_some_are_delivered(here, alerts, well):
    for alert in alerts:
        here.alert(**alert)
    assert here.heartbeat.send() == well


@pytest.mark.settings(allow_networks="")
def test_policy_judges_the_receiver_and_the_log_says_what_to_allow(here, receiver, caplog):
    assert not here.heartbeat.send()
    assert receiver.got() == []
    assert "127.0.0.1" in caplog.text
    assert "WAKEFUL_ALLOW_NETWORKS" in caplog.text
    assert SECRET not in caplog.text


def test_an_answer_that_accepts_nothing_is_named_by_its_status_alone(here, receiver, caplog):
    for status in (302, 404, 503):
        receiver.answer = status
        assert not here.heartbeat.send(), status
        assert receiver.got() == [f"GET {PATH}"], f"{status}: a redirect is not followed"
        assert f"Heartbeat: 127.0.0.1 answered {status}." in caplog.text
    receiver.answer = 204
    assert here.heartbeat.send(), "and the next one is sent all the same"
    here.heartbeat._url = f"http://127.0.0.1:9{PATH}"
    assert not here.heartbeat.send()
    assert "Heartbeat: 127.0.0.1 refused the connection." in caplog.text
    assert SECRET not in caplog.text


def test_doctor_says_whether_it_is_set_and_why_it_is_not_sent(here):
    def heartbeat_findings():
        return [
            finding for finding in examine(here.core, here.settings) if finding.label == "heartbeat"
        ]

    [set_] = heartbeat_findings()
    assert (set_.is_problem, set_.sentence) == (False, "Checkers call 127.0.0.1 each minute.")
    here.keep_an_alert()
    [stuck] = heartbeat_findings()
    assert stuck.is_problem
    assert "Not now: An alert has waited for 15 minutes" in stuck.sentence
    object.__setattr__(here.settings, "heartbeat_url", None)
    [unset] = heartbeat_findings()
    assert not unset.is_problem
    assert "WAKEFUL_HEARTBEAT_URL is not set" in unset.sentence


def check(every):
    """``wakeful checker`` that does not take a minute for each heartbeat."""
    heartbeat.EVERY_SECONDS = every
    command.be("checker")


def test_a_running_checker_sends_it_again_and_again_until_it_is_stopped(here, receiver):
    with writing() as session:  # the test is the alert worker, and the only one
        session.execute(sa.delete(SignOfLifeRow))
        worker = SignOfLifeRow(name="worker:here:1", at=here.now + timedelta(seconds=9))
        session.merge(worker)
        session.execute(sa.delete(ShardRow))
        session.execute(sa.delete(DeliveryRow))
    db.session.remove()
    process = command.start(
        check,
        0.1,
        environ={
            "WAKEFUL_DATABASE_URL": here.settings.database_url,
            "WAKEFUL_INSTANCE": str(here.settings.instance),
            "WAKEFUL_SECRET_KEY": here.settings.secret_key,
            "WAKEFUL_ALLOW_NETWORKS": "loopback",
            "WAKEFUL_CANARIES": "",
            "WAKEFUL_HEARTBEAT_URL": receiver.url + PATH,
        },
    )
    for _ in range(2):
        assert receiver.requests.get(timeout=40).full_path == PATH
    process.terminate()
    process.join(40)
    assert process.exitcode == 0
