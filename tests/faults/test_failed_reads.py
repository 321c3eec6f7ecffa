"""The database fails between two statements of the checker: the next turn does what was left."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from app.db import assignments
from app.engine.checker import Checker
from tests.factories import make_monitor

pytestmark = pytest.mark.both_databases


def test_shards_that_were_taken_but_not_read_are_read_by_the_next_turn(core, settings, monkeypatch):
    """Otherwise nobody would check their monitors: the checker renews what it owns."""
    id = make_monitor(core).id
    checker = Checker(core, settings)

    def fails(*_arguments):
        raise sa.exc.OperationalError("SELECT", {}, Exception("the server went away"))

    with core.app_context():
        with monkeypatch.context() as patch:
            patch.setattr(assignments, "piece", fails)
            with pytest.raises(sa.exc.OperationalError):
                checker._keep_shards(time.monotonic())
        assert checker._shards.tokens
        assert checker._plan.checks_per_second == 0
        checker._keep_shards(time.monotonic())
        assert checker._plan._jobs[id].monitor_id == id
