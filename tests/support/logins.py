"""Somebody who logs in with a second factor, as the tests of these need it."""

from __future__ import annotations

import re

from flask import Flask

from tests.web.visitor import Visitor

EMAIL = "ada@example.org"
CODES = re.compile(r"\b[0-9a-z]{4}(?:-[0-9a-z]{4}){3}\b")  # recovery codes


def pending_login(app: Flask) -> Visitor:
    """A browser in which Ada has typed her password."""
    visitor = Visitor(app).log_in(EMAIL)
    assert visitor.page.location == "/login/second"
    return visitor.open("/login/second")


def is_in(visitor: Visitor) -> bool:
    return visitor.open("/monitors").path == "/monitors"
