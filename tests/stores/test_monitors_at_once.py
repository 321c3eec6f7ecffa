"""Several who change a monitor, or a window, at the same moment."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select

from app.config import Settings
from app.db import db, places, writing
from app.db.tables import AssignmentRow
from app.engine import recorder
from app.engine.recorder import assigned
from app.errors import Invalid, NotFound
from app.records import DEFAULT_PLACE_ID, MaintenanceWindow
from app.stores.local import LocalStore, windows
from tests.factories import make_outcome, now
from tests.stores.contract.making import add_monitor
from tests.support.locks import until_somebody_waits

pytestmark = pytest.mark.both_databases


def test_who_deletes_a_monitor_waits_for_who_changes_it(
    core: Flask, settings: Settings, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change has written the monitor, and locks its state when the deletion waits already."""
    if db.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    id = add_monitor(store).id
    begun: list[Future[None]] = []
    lock_state = recorder.apply_changes

    def delete() -> None:
        with core.app_context():
            LocalStore(settings).monitors.delete(id)

    def when_the_deletion_waits(*arguments: Any) -> None:
        begun.append(pool.submit(delete))
        until_somebody_waits()
        lock_state(*arguments)

    monkeypatch.setattr(recorder, "apply_changes", when_the_deletion_waits)
    with ThreadPoolExecutor(1) as pool:
        with suppress(NotFound):  # it was stored, and is deleted before it is read back
            store.monitors.update(id, {"name": "Another"})
        begun[0].result(60)
    with pytest.raises(NotFound):
        store.monitors.get(id)


def test_an_update_of_a_window_is_judged_with_one_that_was_stored_meanwhile(
    core: Flask, settings: Settings, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is valid by itself; together the window would end before it starts."""
    if db.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    start = now()
    hours = [start + timedelta(hours=count) for count in range(4)]
    id = store.windows.create({"name": "Move", "start_at": hours[0], "end_at": hours[3]}).id
    check = windows._check

    def end_earlier() -> list[str]:
        with core.app_context():
            try:
                LocalStore(settings).windows.update(id, {"end_at": hours[1]})
            except Invalid as fault:
                return list(fault.errors)
            return []

    begun: list[Future[list[str]]] = []

    def when_the_other_waits(window: MaintenanceWindow) -> None:
        if not begun:
            begun.append(pool.submit(end_earlier))
            until_somebody_waits()
        check(window)

    monkeypatch.setattr(windows, "_check", when_the_other_waits)
    with ThreadPoolExecutor(1) as pool:
        store.windows.update(id, {"start_at": hours[2]})
        assert begun[0].result(60) == ["end_at"]


def test_who_forgets_the_trouble_of_a_place_waits_for_who_records_its_checks(
    core: Flask, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write the assignments of many monitors: in different orders, they could deadlock."""
    if db.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    ids = [add_monitor(store).id, add_monitor(store).id]

    def check(verdict: str) -> None:
        moment = now()
        recorder.record([(id, make_outcome(verdict, moment)) for id in ids], moment)

    def forget() -> None:
        with core.app_context(), writing() as session:
            places.drop_unknown(session, DEFAULT_PLACE_ID)

    def write_while_the_other_waits(*arguments: Any) -> None:
        begun.append(pool.submit(forget))
        until_somebody_waits()
        write(*arguments)

    check("unknown")
    begun: list[Future[None]] = []
    write = assigned.write
    monkeypatch.setattr(assigned, "write", write_while_the_other_waits)
    with ThreadPoolExecutor(1) as pool:
        check("unknown")
        begun[0].result(60)
    verdicts = db.session.scalars(select(AssignmentRow.verdict)).all()
    assert verdicts == [None, None], "those that were written meanwhile too"
