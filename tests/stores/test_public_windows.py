"""Maintenance that status pages show, and what their calendars are told to cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select

from app.config import Settings
from app.db import db, writing
from app.db.tables import (
    CancelledEventRow,
    PostMonitorRow,
    PostRow,
    PostUpdateRow,
    StatusPageMonitorRow,
    StatusPageRow,
)
from app.records import Post, PostState, PublicWindow
from app.rules.calendar_entries import sequence, series, uid_of_post
from app.stores.local import LocalStore
from app.stores.local.cancelling import cancel_post, keeping_calendars
from app.stores.local.public_windows import CANCELLED_NAME, MAX_OCCURRENCES, OWN_NAME, windows_of
from tests.stores.contract.making import add_monitor

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class World:
    """A store, and a page in its database."""

    def __init__(self, settings: Settings, clock: Any) -> None:
        self.store = LocalStore(settings)
        self.clock = clock
        self.monitor = add_monitor(self.store, name="Canary").id
        self.page = self.add_page(self.monitor)

    def add_page(self, *monitors: int) -> int:
        with writing() as session:
            count = len(session.scalars(select(StatusPageRow.id)).all())
            row = StatusPageRow(name="p", slug=f"p{count}", created_at=NOW, updated_at=NOW)
            session.add(row)
            session.flush()
            for position, monitor in enumerate(monitors):
                session.add(_member(row.id, monitor, position))
            return row.id

    def window(self, **fields: Any) -> int:
        values = {"start_at": NOW + DAY, "end_at": NOW + DAY + HOUR, "public": True}
        names = {"name": "internal", "public_name": fields.pop("name", "Backups")}
        return self.store.windows.create(values | names | fields).id

    def post(self, **fields: Any) -> int:
        with writing() as session:
            values = {
                "status_page_id": self.page,
                "title": "Upgrade",
                "state": PostState.SCHEDULED,
                "starts_at": NOW + DAY,
                "ends_at": NOW + DAY + HOUR,
                "created_at": NOW,
                "updated_at": NOW,
            }
            row = PostRow(**values | fields)
            session.add(row)
            session.flush()
            session.add(PostMonitorRow(post_id=row.id, monitor_id=self.monitor))
            for body in ("First.", "Second."):
                session.add(
                    PostUpdateRow(post_id=row.id, state=row.state, body=body, created_at=NOW)
                )
            return row.id

    def shows(self, page: int, *monitors: int) -> None:
        """Change what a page shows, as its store does."""
        now = self.store.now()
        with writing() as session, keeping_calendars(session, [page], now):
            row = session.get(StatusPageRow, page)
            assert row is not None
            row.updated_at = now
            for member in session.scalars(
                select(StatusPageMonitorRow).where(StatusPageMonitorRow.status_page_id == page)
            ):
                session.delete(member)
            session.flush()
            for position, monitor in enumerate(monitors):
                session.add(_member(page, monitor, position))

    def later(self, by: timedelta = timedelta(minutes=1)) -> None:
        self.clock.shift(by)

    def windows(
        self, page: int | None = None, start: datetime = NOW, days: int = 90
    ) -> list[PublicWindow]:
        page = page or self.page
        db.session.rollback()
        shown = db.session.scalars(
            select(StatusPageMonitorRow.monitor_id).where(
                StatusPageMonitorRow.status_page_id == page
            )
        ).all()
        return windows_of(page, shown, start, start + days * DAY)


def _member(page: int, monitor: int, position: int) -> StatusPageMonitorRow:
    return StatusPageMonitorRow(status_page_id=page, monitor_id=monitor, position=position)


@pytest.fixture
def world(core: Flask, settings: Settings) -> Iterator[World]:
    with time_machine.travel(NOW, tick=False) as clock, core.app_context():
        yield World(settings, clock)


def cancelled(windows: list[PublicWindow]) -> list[str]:
    return [window.uid for window in windows if window.cancelled]


def live(windows: list[PublicWindow]) -> list[str]:
    return [window.uid for window in windows if not window.cancelled]


@pytest.mark.both_databases
def test_windows_of_shown_monitors_and_of_all_are_there_by_start(world: World) -> None:
    other = add_monitor(world.store).id
    world.window(name="Ours", monitors=(world.monitor, other), start_at=NOW + HOUR)
    world.window(name="All")
    world.window(name="Others", monitors=(other,))
    world.window(name="Over", start_at=NOW - DAY, end_at=NOW - HOUR)
    windows = world.windows()
    assert [window.name for window in windows] == ["Ours", "All"]
    assert [window.components for window in windows] == [(world.monitor,), ()]
    assert world.windows(world.add_page()) == []  # a page without monitors has no maintenance


@pytest.mark.both_databases
def test_a_window_by_tag_is_there_while_a_monitor_of_the_page_has_the_tag(world: World) -> None:
    add_monitor(world.store, tags=("prod",))  # of another page
    window = world.window(tags=("prod", "eu"))
    assert world.windows() == []
    world.later()
    world.store.monitors.update(world.monitor, {"tags": ("prod",)})
    (shown,) = world.windows()
    assert shown.components == (world.monitor,)
    world.later()
    world.store.monitors.update(world.monitor, {"tags": ("shop",)})
    (gone,) = world.windows()
    assert (gone.uid, gone.cancelled) == (shown.uid, True)
    assert gone.sequence > shown.sequence
    world.later()
    world.store.monitors.update(world.monitor, {"tags": ("eu",)})
    (again,) = world.windows()
    assert (again.uid, again.cancelled) == (shown.uid, False)
    assert again.sequence > gone.sequence
    world.later()
    world.store.windows.update(window, {"tags": ("other",)})
    assert live(world.windows()) == []
    assert cancelled(world.windows()) == [shown.uid]


def test_each_occurrence_has_a_uid_of_its_own_that_stays(world: World) -> None:
    world.window(repeat="daily", zone="Europe/Berlin")
    windows = world.windows(days=5)
    assert [window.start_at for window in windows] == [NOW + day * DAY for day in range(1, 5)]
    assert len(set(live(windows))) == 4
    assert len({series(uid) for uid in live(windows)}) == 1
    assert live(world.windows(start=NOW + 2 * DAY, days=3)) == live(windows)[1:]


def test_a_window_that_recurs_all_the_time_is_cut(world: World) -> None:
    world.window(repeat="*/5 * * * *", end_at=NOW + DAY + timedelta(minutes=1))
    windows = world.windows()
    assert len(windows) == len(set(live(windows))) == MAX_OCCURRENCES


def test_a_monitors_own_window_is_there_without_its_name(world: World) -> None:
    own = {"maintenance_start_at": NOW + HOUR, "maintenance_end_at": NOW + 2 * HOUR}
    world.store.monitors.update(world.monitor, own)
    [row] = world.windows()
    assert (row.name, row.components) == (OWN_NAME, (world.monitor,))
    assert (row.start_at, row.end_at) == (NOW + HOUR, NOW + 2 * HOUR)


def test_a_post_with_times_is_there_under_the_uid_of_its_record(world: World) -> None:
    id = world.post()
    world.post(state=PostState.COMPLETED)
    world.post(state=PostState.INVESTIGATING)
    [row] = world.windows()
    record = Post(
        id=id, status_page_id=world.page, title="", state="scheduled", body="", created_at=NOW
    )
    assert row.uid == uid_of_post(record)
    assert (row.name, row.description) == ("Upgrade", "First.")
    assert row.components == (world.monitor,)


def test_a_changed_window_keeps_its_uid_and_has_a_higher_sequence(world: World) -> None:
    id = world.window(repeat="daily", repeat_until=NOW + 3 * DAY + 2 * HOUR)
    before = world.windows()
    world.later()
    world.store.windows.update(id, {"start_at": NOW + DAY + HOUR, "end_at": NOW + DAY + 2 * HOUR})
    after = world.windows()
    assert live(after) == live(before)
    assert after[0].start_at == before[0].start_at + HOUR
    assert after[0].sequence > before[0].sequence
    assert after[0].updated_at == NOW + timedelta(minutes=1)


def test_occurrences_that_a_change_leaves_out_are_cancelled(world: World) -> None:
    id = world.window(repeat="daily")
    before = live(world.windows(days=4))
    world.later()
    world.store.windows.update(id, {"repeat_until": NOW + 2 * DAY})
    after = world.windows(days=4)
    assert live(after) == before[:2]
    assert cancelled(after) == before[2:]
    world.later()
    world.store.windows.update(id, {"repeat_until": None})
    again = world.windows(days=4)
    assert (live(again), cancelled(again)) == (before, [])
    assert again[2].sequence > after[2].sequence


@pytest.mark.both_databases
def test_a_deleted_window_is_cancelled_on_its_pages_alone(world: World) -> None:
    other = world.add_page(add_monitor(world.store).id)
    id = world.window(name="Secret project", monitors=(world.monitor,))
    [before] = world.windows()
    world.later()
    world.store.windows.delete(id)
    [after] = world.windows()
    assert (after.uid, after.cancelled, after.name) == (before.uid, True, CANCELLED_NAME)
    assert (after.start_at, after.end_at) == (before.start_at, before.end_at)
    assert after.sequence > before.sequence
    assert after.updated_at == world.store.now()
    assert world.windows(other) == []


def test_a_cancellation_in_the_second_of_a_change_has_a_higher_sequence(world: World) -> None:
    id = world.window()
    [before] = world.windows()
    world.store.windows.delete(id)
    assert world.windows()[0].sequence == before.sequence + 1


def _window(world: World) -> Callable[[int], object]:
    id = world.window()
    return lambda n: world.store.windows.update(id, {"public_name": f"Backups {n}"})


def _moved_window(world: World) -> Callable[[int], object]:
    id = world.window(repeat="weekly")
    return lambda n: world.store.windows.update(id, {"end_at": NOW + DAY + (n + 2) * HOUR})


def _own_window(world: World) -> Callable[[int], object]:
    def change(n: int) -> object:
        end = NOW + DAY + (n + 1) * HOUR
        own = {"maintenance_start_at": NOW + DAY, "maintenance_end_at": end}
        return world.store.monitors.update(world.monitor, own)

    change(0)
    return change


def _post(world: World) -> Callable[[int], object]:
    id = world.post()
    return lambda n: world.store.posts.update(world.page, id, {"title": f"Upgrade {n}"})


def _corrected_post(world: World) -> Callable[[int], object]:
    id = world.post()
    first = world.store.posts.get(world.page, id).updates[0].id
    return lambda n: world.store.posts.correct_update(world.page, id, first, {"body": f"Is {n}."})


def _cancelled_window(world: World) -> Callable[[int], object]:
    id, other = world.window(monitors=(world.monitor,)), add_monitor(world.store).id
    turns = [(other,), (world.monitor,)]
    return lambda n: world.store.windows.update(id, {"monitors": turns[(n - 1) % 2]})


def _reopened_post(world: World) -> Callable[[int], object]:
    id = world.post()
    states = [PostState.COMPLETED, PostState.SCHEDULED]
    return lambda n: world.store.posts.add_update(
        world.page, id, {"state": states[(n - 1) % 2], "body": "Again."}
    )


@pytest.mark.parametrize(
    "kind",
    [_window, _moved_window, _own_window, _post, _corrected_post, _cancelled_window,
     _reopened_post],
)  # fmt: skip
def test_each_change_within_a_second_has_a_sequence_of_its_own(
    world: World, kind: Callable[[World], Callable[[int], object]]
) -> None:
    change = kind(world)
    windows = [world.windows()[0]]
    for number in range(1, 5):
        change(number)
        windows.append(world.windows()[0])
    assert len({window.uid for window in windows}) == 1
    numbers = [window.sequence for window in windows]
    assert numbers == sorted(set(numbers))


def test_what_is_over_is_not_cancelled(world: World) -> None:
    id = world.window(start_at=NOW - 2 * HOUR, end_at=NOW - HOUR)
    world.store.windows.delete(id)
    assert world.windows(start=NOW - DAY) == []


def test_a_window_that_is_taken_off_a_monitor_is_cancelled_and_comes_back(world: World) -> None:
    other = add_monitor(world.store).id
    elsewhere = world.add_page(other)
    id = world.window(monitors=(world.monitor,))
    before = live(world.windows())
    world.later()
    world.store.windows.update(id, {"monitors": (other,)})
    assert cancelled(world.windows()) == before
    assert len(live(world.windows(elsewhere))) == 1
    world.later()
    world.store.windows.update(id, {"monitors": (world.monitor,)})
    assert (live(world.windows()), cancelled(world.windows())) == (before, [])
    assert len(cancelled(world.windows(elsewhere))) == 1


def test_a_monitor_that_is_taken_off_the_page_takes_its_maintenance_along(world: World) -> None:
    other = add_monitor(world.store).id
    world.window(monitors=(world.monitor,), name="Canary")
    before = live(world.windows())
    world.later()
    world.shows(world.page, other)
    [gone] = world.windows()
    assert (gone.uid, gone.cancelled, gone.name) == (before[0], True, CANCELLED_NAME)
    world.later()
    world.shows(world.page, world.monitor, other)
    [back] = world.windows()
    assert (back.uid, back.cancelled) == (before[0], False)
    assert back.sequence > gone.sequence


def test_a_moved_or_ended_own_window_is_cancelled(world: World) -> None:
    own = {"maintenance_start_at": NOW + HOUR, "maintenance_end_at": NOW + 2 * HOUR}
    world.store.monitors.update(world.monitor, own)
    before = live(world.windows())
    world.store.monitors.update(world.monitor, {"name": "Other"})
    assert cancelled(world.windows()) == []
    world.store.monitors.update(world.monitor, dict.fromkeys(own))
    assert cancelled(world.windows()) == before


def test_a_deleted_monitor_takes_its_maintenance_along(world: World) -> None:
    own = {"maintenance_start_at": NOW + HOUR, "maintenance_end_at": NOW + 2 * HOUR}
    world.store.monitors.update(world.monitor, own)
    world.window(monitors=(world.monitor,))
    before = live(world.windows())
    assert len(before) == 2
    world.store.monitors.delete(world.monitor)
    assert cancelled(world.windows()) == before


def test_a_deleted_post_is_cancelled(world: World) -> None:
    id = world.post()
    world.post(title="Other", starts_at=NOW + 2 * DAY, ends_at=NOW + 3 * DAY)
    before = live(world.windows())
    world.later()
    with writing() as session:
        row = session.get(PostRow, id)
        assert row is not None
        cancel_post(session, row, world.store.now())
        session.delete(row)
    after = world.windows()
    assert (cancelled(after), live(after)) == (before[:1], before[1:])


def test_a_window_that_is_no_longer_public_is_cancelled_in_calendars(world: World) -> None:
    id = world.window(monitors=(world.monitor,), public_text="An hour.")
    entries = world.windows()
    assert [(entry.name, entry.description) for entry in entries] == [("Backups", "An hour.")]
    world.later()
    world.store.windows.update(id, {"public": False})
    assert live(world.windows()) == []
    assert cancelled(world.windows()) == [entry.uid for entry in entries]
    world.later()
    world.store.windows.update(id, {"public": True, "public_name": None})
    assert [entry.name for entry in world.windows()] == [OWN_NAME]


def test_damaged_times_take_nothing_else_along(world: World) -> None:
    world.window(name="Sound")
    broken = world.post()
    with writing() as session:
        session.connection().exec_driver_sql(
            "update posts set starts_at = 'never' where id = ?", (broken,)
        )
        session.connection().exec_driver_sql(
            "insert into cancelled_events values (?, 'x', 1, 'y', 'never', 'never', 1)",
            (world.page,),
        )
    assert [window.name for window in world.windows()] == ["Sound"]


def test_the_rows_keep_times_and_nothing_else(world: World) -> None:
    id = world.window(name="Secret project")
    world.store.windows.delete(id)
    [row] = db.session.scalars(select(CancelledEventRow)).all()
    assert row.name == CANCELLED_NAME
    assert row.sequence >= sequence(NOW)
