"""The state of a status page in the local database (decision 12): from confirmed states, never
from a single check.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select

from app.config import Settings
from app.db import db
from app.db.tables import MonitorRow
from app.engine import recorder
from app.records import ComponentState, PageQuery, PageState
from app.stores.local import LocalStore
from app.stores.local.page_states import CountedState, counted_states
from app.stores.local.public import PublicPages
from tests.factories import make_incident, make_monitor, make_outcome, now, window
from tests.stores.contract.status_pages import add_page
from tests.support.queries import queries

AGES = timedelta(days=9)


def monitor(core: Flask, verdict: str | None = "up", *, checks: int = 2, **fields: Any) -> int:
    """A monitor that has been there for long and gave this verdict in its last ``checks``."""
    state = {"verdict": verdict, "checked_at": now() if verdict else None}
    if verdict:
        state["status_since"] = now() - timedelta(minutes=checks - 1)
    values = {"created_at": now() - AGES} | fields
    return make_monitor(core, state=state, **values).id


def down(core: Flask) -> int:
    row = make_monitor(core, state={"verdict": "down", "checked_at": now()})
    make_incident(core, row)
    return row.id


def state(core: Flask, id: int) -> tuple[str, bool]:
    db.session.rollback()  # the factories write through sessions of their own
    standing: CountedState = counted_states(select(MonitorRow.id), now())[id]
    return standing.state, standing.counts


def page_state(store: LocalStore, *monitors: int) -> PageState:
    state = add_page(store, monitors=monitors).state
    return PageState(state)


@pytest.mark.parametrize(
    ("verdict", "checks", "expected"),
    [
        ("up", 1, ComponentState.OPERATIONAL),
        ("up", 2, ComponentState.OPERATIONAL),
        ("degraded", 1, ComponentState.OPERATIONAL),
        ("degraded", 2, ComponentState.DEGRADED),
        ("unknown", 1, ComponentState.OPERATIONAL),
        ("unknown", 2, ComponentState.UNKNOWN),
        ("down", 1, ComponentState.OPERATIONAL),  # being confirmed: no incident is open yet
    ],
)
def test_a_single_check_changes_no_state(
    core: Flask, store: LocalStore, verdict: str, checks: int, expected: ComponentState
) -> None:
    assert state(core, monitor(core, verdict, checks=checks)) == (expected, True)


@pytest.mark.parametrize("verdict", ["down", "unknown", "degraded", None])
def test_until_a_first_answer_is_confirmed_a_monitor_is_unknown_and_does_not_count(
    core: Flask, store: LocalStore, verdict: str | None
) -> None:
    id = monitor(core, verdict, checks=1, created_at=now() - timedelta(seconds=5))
    assert state(core, id) == (ComponentState.UNKNOWN, False)


@pytest.mark.parametrize(
    ("verdicts", "in_window", "expected"),
    [
        (["up"], False, (ComponentState.OPERATIONAL, True)),
        (["up", "down"], False, (ComponentState.OPERATIONAL, True)),
        (["up", "degraded"], False, (ComponentState.OPERATIONAL, True)),
        (["up", "unknown"], False, (ComponentState.OPERATIONAL, True)),
        (["up", "down", "degraded"], False, (ComponentState.OPERATIONAL, True)),
        (["down"], False, (ComponentState.UNKNOWN, False)),
        (["down", "unknown"], False, (ComponentState.UNKNOWN, False)),
        (["up"], True, (ComponentState.MAINTENANCE, True)),
        (["down"], True, (ComponentState.MAINTENANCE, True)),
        (["unknown"], True, (ComponentState.MAINTENANCE, True)),
        (["up", "down"], True, (ComponentState.MAINTENANCE, True)),
        ([], True, (ComponentState.UNKNOWN, False)),
    ],
)
def test_the_first_checks_of_an_hourly_monitor(
    core: Flask,
    store: LocalStore,
    settings: Settings,
    verdicts: list[str],
    in_window: bool,
    expected: tuple[ComponentState, bool],
) -> None:
    """A single failing check changes no page, in the first interval either."""
    made = make_monitor(core, interval=3600, **(window(1, 2) if in_window else {}))
    page = add_page(store, monitors=(made.id,))
    for number, verdict in enumerate(verdicts):
        at = now() + timedelta(seconds=number)
        recorder.record([(made.id, make_outcome(verdict, at))], at)
    assert state(core, made.id) == expected
    (component,) = PublicPages(settings).page(page.id).components
    assert component.state == expected[0]


@pytest.mark.both_databases
def test_an_open_incident_is_an_outage_and_an_ended_one_is_none(
    core: Flask, store: LocalStore
) -> None:
    assert state(core, down(core)) == (ComponentState.OUTAGE, True)
    row = make_monitor(core, state={"verdict": "up", "checked_at": now()})
    make_incident(core, row, ended_at=now())
    assert state(core, row.id) == (ComponentState.OPERATIONAL, True)


def test_paused_monitors_are_unknown_and_count_neither_way(core: Flask, store: LocalStore) -> None:
    paused = monitor(core, paused=True)
    assert state(core, paused) == (ComponentState.UNKNOWN, False)
    up = monitor(core)
    assert page_state(store, paused, up) == PageState.OPERATIONAL
    assert page_state(store, paused, down(core)) == PageState.MAJOR_OUTAGE
    assert page_state(store, paused) == PageState.UNKNOWN


@pytest.mark.both_databases
def test_maintenance_of_a_monitors_own_and_of_a_window(core: Flask, store: LocalStore) -> None:
    own, shared, other = monitor(core, **window(1, 2)), monitor(core), monitor(core)
    times = {"start_at": now() - timedelta(hours=1), "end_at": now() + timedelta(hours=1)}
    store.windows.create({"name": "w", "monitors": (shared,)} | times)
    assert state(core, own) == state(core, shared) == (ComponentState.MAINTENANCE, True)
    assert state(core, other) == (ComponentState.OPERATIONAL, True)
    assert page_state(store, own, other) == PageState.MAINTENANCE


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("u", PageState.OPERATIONAL),
        ("", PageState.UNKNOWN),
        ("us", PageState.DEGRADED),
        ("uud", PageState.PARTIAL_OUTAGE),
        ("ud", PageState.MAJOR_OUTAGE),
        ("u?", PageState.UNKNOWN),
        ("s?", PageState.DEGRADED),
        ("uudss?", PageState.PARTIAL_OUTAGE),
    ],
)
def test_a_page_takes_the_worst_state(
    core: Flask, store: LocalStore, kinds: str, expected: PageState
) -> None:
    make = {
        "u": lambda: monitor(core),
        "s": lambda: monitor(core, "degraded"),
        "?": lambda: monitor(core, "unknown"),
        "d": lambda: down(core),
    }
    assert page_state(store, *(make[kind]() for kind in kinds)) == expected


@pytest.mark.parametrize(
    ("posts", "expected"),
    [
        (["in_progress"], PageState.MAINTENANCE),
        (["in_progress", "identified"], PageState.DEGRADED),
        (["monitoring"], PageState.DEGRADED),
        (["scheduled"], PageState.OPERATIONAL),
        (["resolved", "completed"], PageState.OPERATIONAL),
    ],
)
def test_an_open_post_never_leaves_a_page_operational(
    core: Flask, store: LocalStore, posts: list[str], expected: PageState
) -> None:
    page, other = (add_page(store, monitors=(monitor(core),)) for _ in range(2))
    times = {"starts_at": now(), "ends_at": now() + timedelta(hours=1)}
    for post in posts:
        store.posts.create(page.id, {"title": "t", "state": post, "body": "b"} | times)
    assert store.status_pages.get(page.id).state == expected
    assert store.status_pages.get(other.id).state == PageState.OPERATIONAL


def test_a_list_of_pages_takes_as_many_queries_as_one(core: Flask, store: LocalStore) -> None:
    ids = [monitor(core) for _ in range(4)]
    add_page(store, monitors=tuple(ids))
    with queries() as statements:
        store.status_pages.list(PageQuery())
    for number in range(8):
        add_page(store, monitors=tuple(ids[: number % 4]))
    with queries() as many:
        store.status_pages.list(PageQuery())
    assert len(statements) == len(many) <= 10
