"""Several who change a monitor at the same moment."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text

from app.config import Settings
from app.db import db
from app.engine import recorder
from app.errors import NotFound
from app.stores.local import LocalStore
from tests.stores.contract.making import add_monitor
from tests.stores.test_status_pages_at_once import store

__all__ = ["store"]  # a fixture

WAITING = text(
    "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE NOT granted AND datname = current_database()"
)


def test_who_deletes_a_monitor_waits_for_who_changes_it(
    core: Flask, settings: Settings, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change has written the monitor, and locks its state when the deletion waits already."""
    if db.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    id = add_monitor(store).id
    begun: list[Future[None]] = []
    lock_state = recorder.rewatch

    def delete() -> None:
        with core.app_context():
            LocalStore(settings).monitors.delete(id)

    def when_the_deletion_waits(*arguments: Any) -> None:
        begun.append(pool.submit(delete))
        until = time.monotonic() + 60
        with db.engine.connect() as beside:
            while not beside.scalar(WAITING):
                assert time.monotonic() < until, "the deletion does not wait"
                beside.rollback()
        lock_state(*arguments)

    monkeypatch.setattr(recorder, "rewatch", when_the_deletion_waits)
    with ThreadPoolExecutor(1) as pool:
        with suppress(NotFound):  # it was stored, and is deleted before it is read back
            store.monitors.update(id, {"name": "Another"})
        begun[0].result(60)
    with pytest.raises(NotFound):
        store.monitors.get(id)
