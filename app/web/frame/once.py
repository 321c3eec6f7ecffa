"""Forms that make a secret that is shown once: the same form sent again, as when somebody reloads
the page with the secret, makes no second one.

A form counts as sent when what it asks for was done. One that failed, as in a database that was
busy, does its work when it is sent again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TypeVar

from flask import request

from app.stores import current_access

R = TypeVar("R")

TOKEN_BYTES = 16
LONGEST_TOKEN = 64
# How long a form that was sent is known again: longer than one can stand open and still be taken.
# Counts are of windows aligned to the clock, so a long one has fewer ends to slip through at.
KEPT_SECONDS = 12 * 3600


def token() -> str:
    """What a new form is known by, in its hidden field ``once``."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def do(act: Callable[[], R], of: str | None = None) -> R | None:
    """Call ``act``, and return what it returns; None if this very form has done it already.

    ``of``: what the form is known by, if not by ``token``. A form without it is not known: it may
    be of a page from before an update.
    """
    sent = (request.form.get("once", "") if of is None else of)[:LONGEST_TOKEN]
    if not sent:
        return act()
    return _unless_done(f"once:{sent}", act)


def _unless_done(name: str, act: Callable[[], R]) -> R | None:
    """Counted before ``act``, so that of two clicks that come to two processes one does it."""
    access = current_access()
    if access.counters.is_too_many(name, KEPT_SECONDS, 1):
        return None
    try:
        return act()
    except BaseException:
        access.counters.forget_if_possible(name, KEPT_SECONDS)
        raise
