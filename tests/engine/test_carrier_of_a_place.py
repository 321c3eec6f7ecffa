"""A checker makes the checks of a place only with the carrier that the place has."""

from __future__ import annotations

import base64
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, update

from app.db import db, writing
from app.db.tables import PlaceRow, ShardRow
from app.engine.carriers import RemoteNetwork
from app.engine.checker import Checker, OtherCarrier
from tests.support import command


def make_checker(core, settings, *, queued: bool) -> Checker:
    return Checker(core, settings, remote=RemoteNetwork() if queued else None)


def stored_carrier(name: str) -> str:
    return db.session.scalars(select(PlaceRow.carrier).where(PlaceRow.name == name)).one()


@pytest.mark.both_databases
@pytest.mark.parametrize(("queued", "carrier"), [(True, "queue"), (False, "local")])
def test_the_first_checker_of_a_place_adds_it_with_its_own_carrier(core, settings, queued, carrier):
    with core.app_context():
        checker = make_checker(core, replace(settings, location="oslo"), queued=queued)
        checker._look_at_shards(time.monotonic())
        assert stored_carrier("oslo") == carrier


@pytest.mark.parametrize(
    ("stored", "queued", "named"),
    [
        ("local", True, "a checker on the database (wakeful checker)"),
        ("queue", False, "probers on a queue (wakeful checker --carrier queue)"),
        ("agent", True, "an agent (wakeful agent)"),
        ("agent", False, "an agent (wakeful agent)"),
    ],
)
def test_a_checker_of_another_carrier_does_not_start_and_changes_nothing(
    core, settings, stored, queued, named
):
    """The place would be shown with a carrier that makes no check from it."""
    with core.app_context():
        with writing() as session:
            session.add(PlaceRow(name="oslo", carrier=stored, created_at=datetime.now(UTC)))
        checker = make_checker(core, replace(settings, location="oslo"), queued=queued)
        with pytest.raises(OtherCarrier) as caught:
            checker.run(threading.Event())
        message = str(caught.value)
        assert f"The place oslo is checked by {named}" in message
        assert "WAKEFUL_LOCATION" in message
        assert "Settings, Places" in message
        assert stored_carrier("oslo") == stored
        assert db.session.scalars(select(ShardRow.owner)).all() == []


def test_a_checker_ends_when_its_place_gets_another_carrier(core, settings):
    """People see the carrier that they chose; the checker of the other one must not go on."""
    checker = make_checker(core, settings, queued=False)

    def change() -> None:
        if checker._shards.tokens:
            with core.app_context(), writing() as session:
                session.execute(update(PlaceRow).values(carrier="queue"))
            checker._shards_at = float("-inf")

    checker.checks.on_turn = change
    with pytest.raises(OtherCarrier):
        checker.run(threading.Event())
    with core.app_context():
        owners = db.session.scalars(select(ShardRow.owner)).all()
        assert owners, "it had shards"
        assert set(owners) == {None}, "they are free at once"


def test_the_command_says_why_it_does_not_start(tmp_path):
    """WAKEFUL_LOCATION was forgotten: ``wakeful serve`` checks from the place default."""
    own = {
        "WAKEFUL_INSTANCE": str(tmp_path / "instance"),
        "WAKEFUL_BROKER_URL": "redis://127.0.0.1:9/0",
        "WAKEFUL_BATCH_KEY": base64.b64encode(bytes(32)).decode(),
    }
    command.wakeful(["db", "upgrade"], own)
    ended = command.wakeful(["checker", "--carrier", "queue"], own)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "The place default is checked by a checker on the database (wakeful checker), not by "
        "probers on a queue (wakeful checker --carrier queue). Set WAKEFUL_LOCATION to another "
        'place, or change "Checked by" of this one under Settings, Places.'
    )
