"""A refusal of a canary that has accepted before counts as a failure (decision 10).

A firewall or a captive portal refuses every connection. If its refusals counted as answers of the
canaries, an outage of our own network would open incidents for all monitors.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from app.commands.doctor import examine
from app.config import Settings
from app.db import db
from app.db.settings import setting
from app.db.tables import IncidentRow, MonitorStateRow
from app.engine import now
from app.engine.canaries import Canaries
from app.engine.checker import NOTICE_NETWORK
from app.net.canary import MEMORY, CanaryAnswer, read_memory
from app.records import CheckSpec, Role
from tests.factories import make_monitor, make_person
from tests.lab.net import ClosedPort, Listener
from tests.support.checkers import Place, due_at_once, running, until
from tests.web.visitor import Visitor

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def canary() -> Any:
    place = Place()
    yield place
    place.part.close()


def naming(settings: Settings, *canaries: Place) -> Settings:
    return replace(settings, canaries=",".join(f"127.0.0.1:{canary.port}" for canary in canaries))


def answers_of(place: str = "default") -> dict[str, CanaryAnswer]:
    return read_memory(setting(MEMORY), place)


def test_a_restart_remembers_who_has_accepted(core, settings, canary):
    settings = naming(settings, canary)
    with core.app_context():
        Canaries(settings).learn(NOW)
        canary.be(ClosedPort)
        after = Canaries(settings)
        assert after.works(), "before anything is recalled, a refusal is an answer"
        after.recall()
        assert not after.works()
        after.learn(NOW)
        assert not after.works(), "a refusal unlearns nothing"
        elsewhere = Canaries(replace(settings, location="elsewhere"))
        elsewhere.recall()
        assert elsewhere.works(), "another place has another network"


def test_one_canary_that_never_accepts_blinds_nobody(core, settings, canary):
    canary.be(ClosedPort)
    with core.app_context():
        canaries = Canaries(naming(settings, canary))
        canaries.learn(NOW)
        assert list(answers_of().values()) == [CanaryAnswer.REFUSED]
        assert canaries.works()


def test_a_memory_that_cannot_be_read_stops_no_check(core, settings, canary, caplog):
    canary.be(ClosedPort)
    canaries = Canaries(naming(settings, canary))
    with core.app_context():
        db.session.connection().exec_driver_sql("DROP TABLE settings")
        canaries.recall()
        assert canaries.works()
        db.session.rollback()
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize(("before", "verdict"), [(Listener, "unknown"), (ClosedPort, "down")])
def test_a_firewall_that_refuses_everything_opens_no_incident(
    core, settings, canary, before, verdict
):
    """``before``: what the canary does while all is well."""
    target = Place()
    canary.be(before)
    id = make_monitor(core, url=f"http://127.0.0.1:{target.port}/good", confirmations=0).id

    def stored_verdict():
        return db.session.get(MonitorStateRow, id).verdict

    try:
        with running(core, naming(settings, canary)):
            until(core, lambda: stored_verdict() == "up" and answers_of())
            canary.be(ClosedPort)
            target.be(ClosedPort)
            due_at_once(core, id)
            until(core, lambda: stored_verdict() == verdict)
            with core.app_context():
                incidents = db.session.scalars(select(IncidentRow)).all()
                assert len(incidents) == (verdict == "down")
                assert bool(setting(NOTICE_NETWORK)) == (verdict == "unknown")
    finally:
        target.part.close()


def test_the_canaries_are_asked_at_the_start_and_each_hour(core, settings, canary, monkeypatch):
    monkeypatch.setattr("app.engine.housekeeping.HOUR", 0.1)
    monkeypatch.setattr("app.engine.housekeeping.MIN_PAUSE_SECONDS", 0.02)
    canary.be(ClosedPort)
    with running(core, naming(settings, canary)):
        until(core, lambda: CanaryAnswer.REFUSED in answers_of().values())
        canary.be(Listener)
        until(core, lambda: CanaryAnswer.ACCEPTED in answers_of().values())


def test_a_check_by_hand_believes_no_refusal_either(core, settings, canary):
    core.extensions["wakeful.settings"] = naming(settings, canary)
    with core.app_context():
        Canaries(naming(settings, canary)).learn(NOW)
        canary.be(ClosedPort)
        outcome = now.check_fields(CheckSpec(url=f"http://127.0.0.1:{canary.port}/"))
    assert outcome.result.cause_code == "network_down"


def test_doctor_names_a_canary_that_refuses(core, settings, canary):
    def finding():
        findings = [finding for finding in examine(core, settings) if finding.label == "canary"]
        return findings[0].sentence.partition(" ")[2], findings[0].is_problem

    settings = naming(settings, canary)
    canary.be(ClosedPort)
    sentence, fault = finding()
    assert sentence.startswith("refuses, and has never accepted.")
    assert not fault
    canary.be(Listener)
    assert finding() == ("answers.", False)
    with core.app_context():
        Canaries(settings).learn(NOW)
    canary.be(ClosedPort)
    sentence, fault = finding()
    assert sentence.startswith("refuses, but has accepted before.")
    assert fault


def test_the_settings_page_names_a_canary_that_has_never_accepted(app, settings, canary):
    settings = app.extensions["wakeful.settings"] = naming(settings, canary)
    admin = Visitor(app).let_in(make_person(app, Role.ADMIN))
    admin.open("/settings")
    assert f"127.0.0.1:{canary.port}" in admin.text
    assert "has never accepted" not in admin.text
    canary.be(ClosedPort)
    with app.app_context():
        Canaries(settings).learn(NOW)
    admin.open("/settings")
    assert f"127.0.0.1:{canary.port} refuses connections and has never accepted" in admin.text
    canary.be(Listener)
    with app.app_context():
        Canaries(settings).learn(NOW)
    admin.open("/settings")
    assert "has never accepted" not in admin.text
