"""The notices at the top of every page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flask import request
from flask_login import current_user

from app.records import Notice
from app.stores import current_access
from app.stores.writable import cannot_write
from app.web.frame import session
from app.web.shown import times

DEMO = (
    "This is a demonstration. A script makes the targets fail. All data from before the start is "
    "made up."
)


SILENT = (
    "No results come from these places, so they have no vote: {}. Monitors that are checked from"
    " nowhere else are unknown."
)
STUCK = "Until then no check is recorded and nobody is alerted to anything new."


def standing() -> Sequence[tuple[str, str]]:
    """(category, sentence) of each notice; none for people who are not logged in."""
    if session.database_away() or not current_user.is_authenticated:
        return []
    said = [_said(notice, value) for notice, value in current_access().notices().items()]
    # On home alone: to find out is to write.
    stuck = cannot_write() if request.endpoint == "home.show" else None
    return [("warning", f"{stuck} {STUCK}"), *said] if stuck else said


def _said(notice: Notice, value: str) -> tuple[str, str]:
    if notice is Notice.DEMO:
        return "info", DEMO
    if notice is Notice.PLACES_SILENT:
        return "warning", SILENT.format(value)
    return (
        "warning",
        f"Wakeful's own network does not work{_since(value)}. Monitors that cannot be reached are"
        " unknown until it does. No incident opens for them, and the time counts neither as up nor"
        " as down.",
    )


def _since(value: str) -> str:
    try:
        return f" since {times.exact(datetime.fromisoformat(value))}"
    except ValueError:
        return ""  # the stored time cannot be read
