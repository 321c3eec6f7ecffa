"""The change feed: nothing that was changed is missed, in whatever order transactions commit."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select, update

from app.db import changes, db, writing
from app.db.changes import Feed
from app.db.tables import ChangeRow
from app.records import MonitorQuery
from app.stores.local import LocalStore
from tests.factories import make_monitor

pytestmark = pytest.mark.both_databases


@pytest.fixture
def feed(core):
    with core.app_context():
        feed = Feed()
        feed.start()
        yield feed


def test_every_change_of_a_monitor_is_in_the_feed_once(core, settings, feed):
    store = LocalStore(settings)
    id = store.monitors.create({"name": "Shop", "url": "http://127.0.0.1/", "interval": 60}).id
    assert feed.news() == {id}
    for fields in ({"name": "Store"}, {"interval": 300}, {"pause": True}, {"pause": False}):
        store.monitors.update(id, fields)
        assert feed.news() == {id}, fields
        assert feed.news() == set()
    store.monitors.list(MonitorQuery())
    assert feed.news() == set(), "reading changes nothing"
    store.monitors.delete(id)
    assert feed.news() == {id}


def test_a_change_that_is_rolled_back_is_not_in_the_feed(core, feed):
    with writing() as session:
        changes.note(session, 7)
        session.rollback()
    with writing() as session:
        changes.note(session, 8)
    assert feed.news() == {8}


@pytest.mark.parametrize("first", ["commits", "is rolled back"])
def test_change_numbers_become_visible_in_their_order(core, feed, monkeypatch, first):
    """Each writer takes its number, then waits: the second one must not become visible alone."""
    taken, go_on = threading.Event(), threading.Event()
    faults = []

    def slow():
        with core.app_context():
            try:
                with writing() as session:
                    changes.note(session, 1)
                    changes._write(session())  # as just before it commits
                    taken.set()
                    go_on.wait(60)
                    if first != "commits":
                        raise KeyError(first)
            except KeyError:
                pass
            except Exception as fault:
                faults.append(fault)

    def quick():
        with core.app_context():
            try:
                with writing() as session:
                    changes.note(session, 2)
            except Exception as fault:
                faults.append(fault)

    threads = [threading.Thread(target=target) for target in (slow, quick)]
    threads[0].start()
    assert taken.wait(60)
    threads[1].start()
    threads[1].join(0.5)
    assert threads[1].is_alive(), "it waits for the number before its own"
    assert feed.news() == set()
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert feed.news() == ({1, 2} if first == "commits" else {2})


def test_old_changes_are_deleted_except_the_newest(core, feed):
    now = datetime.now(UTC)
    for _ in range(3):
        make_monitor(core)
    with writing() as session:
        session.execute(update(ChangeRow).values(at=now - timedelta(hours=5)))
    changes.trim(now - timedelta(hours=2), now + timedelta(hours=2))
    assert db.session.scalars(select(ChangeRow.monitor_id)).all() == [3]
    with writing() as session:
        changes.note(session, 9)
    assert feed.news() == {3, 9}
    with writing() as session:
        session.execute(delete(ChangeRow))
    assert feed.news() == set()
