"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask

MORNING = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


class Clock:
    """Called, it says ``now``: a time, or seconds where what asks it counts those."""

    def __init__(self, now: Any = MORNING) -> None:
        self.now = now

    def __call__(self) -> Any:
        return self.now

    def advance(self, **parts: float) -> None:
        """``advance(hours=1)``; negative to set it back."""
        self.now += timedelta(**parts)


def clock_of(app: Flask, now: datetime = MORNING) -> Clock:
    """A clock that tells people, sessions and keys of ``app`` the time."""
    clock = app.extensions["wakeful.access"].clock = Clock(now)
    return clock


@pytest.fixture
def clock(app: Flask) -> Clock:
    return clock_of(app)
