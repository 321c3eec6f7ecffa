"""People who look at the dashboard."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.factories import make_person
from tests.web.visitor import Visitor


@pytest.fixture
def stranger(app: Flask) -> Visitor:
    """Somebody without an account."""
    return Visitor(app)


@pytest.fixture
def admin(app: Flask) -> Visitor:
    return _logged_in(app, "admin")


@pytest.fixture
def editor(app: Flask) -> Visitor:
    return _logged_in(app, "editor")


@pytest.fixture
def viewer(app: Flask) -> Visitor:
    return _logged_in(app, "viewer")


def _logged_in(app: Flask, role: str) -> Visitor:
    person = make_person(app, role)
    return Visitor(app).log_in(person.email)
