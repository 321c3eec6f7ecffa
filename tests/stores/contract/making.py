"""Helpers for the suites of all collections: create records, and skip tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest

from app.errors import NotFound
from app.records import Incident, Monitor
from app.stores.base import Store

T = TypeVar("T")
HUGE = 2**70


def over_bare(test: T) -> T:
    """Marks a test of what the base API has too, without our own fields and rules."""
    test.over_bare = True  # type: ignore[attr-defined]
    return test


def moment(store: Store, **ago: float) -> datetime:
    """A time before now, in whole seconds as the interface has them."""
    return store.now().replace(microsecond=0) - timedelta(**ago)


def add_monitor(store: Store, **fields: Any) -> Monitor:
    values = {"name": "Shop", "url": "http://127.0.0.1:9/", "interval": 60} | fields
    return store.monitors.create(values)


def add_incident(store: Store, monitor: Monitor, **fields: Any) -> Incident:
    values = {"monitor_id": monitor.id, "started_at": moment(store, hours=2)} | fields
    return store.incidents.create(values)


def not_found(*attempts: Callable[[], object]) -> None:
    """Each attempt says that the record does not exist."""
    for place, attempt in enumerate(attempts):
        try:
            attempt()
        except NotFound:
            continue
        pytest.fail(f"attempt {place} found something")
