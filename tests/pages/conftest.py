"""Readers of status pages: strangers without a key, a login or a cookie."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from flask import Flask

from app.pages.serving import StatusPageLayer


@pytest.fixture
def layer(app: Flask) -> StatusPageLayer:
    """The application that answers for status pages, with its caches."""
    pages: StatusPageLayer = app.extensions["wakeful.pages"]
    return pages


@pytest.fixture
def later(layer: StatusPageLayer) -> Callable[[float], None]:
    """Lets so many seconds pass for what is kept in memory."""
    passed = 0.0

    def later(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        layer.clock = lambda: time.monotonic() + passed

    return later
