"""Checks on request: made in the process that gets the request, unless the monitor is checked from
other places alone (``elsewhere``).

Each process has one prober, started at its first use: a thread does not survive a fork.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from flask import Flask, current_app

from app.access.networks import Policies
from app.checks.prober import Prober
from app.config import Settings
from app.db import assignments
from app.db.settings import noticed
from app.engine import elsewhere, recorder
from app.engine.canaries import Canaries
from app.engine.network import may_be_ours, unknown
from app.engine.probing import make_prober
from app.errors import NotFound, Throttled, Unavailable
from app.i18n import N_, _
from app.records import CheckSpec, Notice, Outcome, Result
from app.slots import BUSY_SECONDS, LONG_WAITS, WAITS_ELSEWHERE

_KEY = "wakeful.prober"
BUSY = N_("Too many manual checks are running at this moment. Try again in a few seconds.")
_lock = threading.Lock()


class _Own:
    """The prober of one process."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.policies = Policies(settings)
        self.prober: Prober = make_prober(settings, self.policies.current)


def check_now(monitor_id: int) -> Result:
    """Check a stored monitor where it is checked, wait, and record the result. One that nobody
    checks, because it is paused, is checked here.

    Raises NotFound, and what ``check_fields`` and ``elsewhere.check`` raise.
    """
    found = assignments.specs([monitor_id])
    if not found:
        raise NotFound("monitor", monitor_id)
    settings: Settings = current_app.extensions["wakeful.settings"]
    now = datetime.now(UTC)
    if places := elsewhere.places_of(monitor_id, settings.location, now):
        with _waiting_for(monitor_id), _waiting():
            return elsewhere.check(found[0], places, now)
    outcome = check_fields(found[0])
    at = datetime.now(UTC)
    result = recorder.record([(monitor_id, outcome)], at, location=settings.location)[0]
    if result is None:
        raise NotFound("monitor", monitor_id)
    return result


def _network_works(settings: Settings) -> bool:
    """Whether our network works: the checker has set no notice, and a canary answers."""
    if noticed(Notice.NETWORK_DOWN):
        return False
    canaries = Canaries(settings)
    canaries.recall()
    return canaries.works()


def check_fields(spec: CheckSpec) -> Outcome:
    """Check fields that need not be stored, and wait for the outcome. Nothing is stored.

    Raises Unavailable if the check does not come back, and Throttled if too many are running.
    """
    with _waiting():
        return _checked(spec)


@contextmanager
def _waiting() -> Iterator[None]:
    """Hold one of the few slots of requests that wait. Raises Throttled."""
    with LONG_WAITS.taken() as free:
        _require(free)
        yield


@contextmanager
def _waiting_for(monitor_id: int) -> Iterator[None]:
    """The same, of those that wait for other places. Raises Throttled."""
    with WAITS_ELSEWHERE.taken(monitor_id) as free:
        _require(free)
        yield


def _require(free: bool) -> None:
    if not free:
        raise Throttled(_(BUSY), BUSY_SECONDS)


def _checked(spec: CheckSpec) -> Outcome:
    own = _own()
    own.policies.refresh()
    try:
        outcome = own.prober.check(spec)
    except TimeoutError:
        raise Unavailable(_("The check did not finish in time. Try again.")) from None
    settings: Settings = current_app.extensions["wakeful.settings"]
    if may_be_ours(outcome) and not _network_works(settings):
        return unknown(outcome)
    return outcome


def close(app: Flask) -> None:
    """End this application's prober, if it has one."""
    own: _Own | None = app.extensions.pop(_KEY, None)
    if own is not None and own.pid == os.getpid():
        own.prober.close()


def _own() -> _Own:
    with _lock:
        own: _Own | None = current_app.extensions.get(_KEY)
        if own is None or own.pid != os.getpid():
            own = current_app.extensions[_KEY] = _Own(current_app.extensions["wakeful.settings"])
            atexit.register(own.prober.close)
        return own
