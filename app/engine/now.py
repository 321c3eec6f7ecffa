"""Checks on request, made by the process that gets the request and in the monitor's other places
(``elsewhere``).

Each process starts its prober at the first use, because a thread does not survive a fork.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from datetime import UTC, datetime
from typing import Generic, TypeVar

from flask import Flask, current_app

from app.access.settings import Policies
from app.checks.prober import Prober
from app.config import Settings
from app.db import assignments
from app.db.settings import is_notice_set
from app.engine import elsewhere, recorder
from app.engine.canaries import Canaries
from app.engine.checking import make_prober
from app.engine.elsewhere import CheckingPlace, PlaceAnswers
from app.engine.network import may_be_ours, unknown
from app.errors import Conflict, NotFound, Throttled, Unavailable, existing
from app.i18n import N_, _
from app.records import (
    CheckedNow,
    CheckSpec,
    Notice,
    Outcome,
    PlaceChecked,
    Result,
    Verdict,
    is_heartbeat,
)
from app.slots import BUSY_SECONDS, LONG_WAITS, WAITS_ELSEWHERE

_KEY = "wakeful.prober"
_SINGLE_FLIGHT = "wakeful.checks_on_request"
CALLED = N_("A heartbeat is not checked: it waits to be called at its ping URL.")
BUSY = N_("Too many manual checks are running at this moment. Try again in a few seconds.")
ALREADY = N_("This monitor is being checked at this moment. The results will be among its checks.")
# ``unknown`` comes last, because it says nothing about the target.
_WORST_FIRST = (Verdict.DOWN, Verdict.DEGRADED, Verdict.UP, Verdict.UNKNOWN)
_lock = threading.Lock()


class _OwnProber:
    """The prober of one process."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.policies = Policies(settings)
        self.prober: Prober = make_prober(settings, self.policies.current)


def check_now(monitor_id: int) -> CheckedNow:
    """Check a stored monitor in all of its places that can be reached, wait, and return the
    results, which are recorded. A paused monitor is checked by this process. Requests during a
    running check share its result.

    Raises NotFound, Throttled if too many requests wait, Conflict if all places are silent or it is
    a heartbeat, and Unavailable if no result comes in time.
    """
    specs = assignments.specs([monitor_id])
    if not specs:
        raise NotFound("monitor", monitor_id)
    spec, now = specs[0], datetime.now(UTC)
    if is_heartbeat(spec.url):
        raise Conflict(_(CALLED))
    here = _settings().location
    places = elsewhere.places_of(monitor_id, now)
    elsewhere_places = [place for place in places if place.name != here]
    is_here = len(elsewhere_places) == len(places) - 1 or not places
    reachable = [place for place in elsewhere_places if place.is_reachable(now)]
    if not is_here:
        elsewhere.require_reachable(elsewhere_places, now)
    with _waiting_for(monitor_id) if reachable else nullcontext(), _waiting():
        results, brought = _checked_in_places(spec, reachable, now, is_here=is_here)
    elsewhere.require_some(results, reachable, brought, datetime.now(UTC))
    return _answer(places, results, brought, {here, *(place.name for place in reachable)})


def _checked_in_places(
    spec: CheckSpec, reachable: Sequence[CheckingPlace], now: datetime, *, is_here: bool
) -> tuple[Mapping[str, Result], PlaceAnswers]:
    """The results by the place's name, and the answers of the other places."""
    request = elsewhere.ask(spec, reachable, now) if reachable else None
    results = {}
    if is_here:
        try:
            result = _shared(spec)
            results[str(result.location)] = result
        except Unavailable:
            if request is None:
                raise
    brought = elsewhere.wait(request) if request else PlaceAnswers()
    by_id = brought.results
    results |= {place.name: by_id[place.id] for place in reachable if place.id in by_id}
    return results, brought


def _shared(spec: CheckSpec) -> Result:
    """The result of a check that is made here, shared by all requests while it runs."""
    extensions = current_app.extensions
    running: SingleFlight[Result] = extensions.setdefault(_SINGLE_FLIGHT, SingleFlight())
    return running.get(spec, lambda: _recorded(spec))


def _recorded(spec: CheckSpec) -> Result:
    """The result of a check that is made here. Raises NotFound and Unavailable."""
    monitor_id, outcome = spec.monitor_id or 0, _checked(spec)
    at = datetime.now(UTC)
    result = recorder.record([(monitor_id, outcome)], at, location=_settings().location)[0]
    return existing(result, "monitor", monitor_id)


def _answer(
    places: Sequence[CheckingPlace],
    results: Mapping[str, Result],
    brought: PlaceAnswers,
    asked_names: Collection[str],
) -> CheckedNow:
    """The answer to a request. ``places``: the places of the monitor; none if it is paused.
    ``asked_names``: the names of the places that were asked for the check.
    """
    now = datetime.now(UTC)

    def of_place(place: CheckingPlace) -> PlaceChecked:
        if (result := results.get(place.name)) is not None:
            return PlaceChecked(place.name, place.label, result)
        why = elsewhere.why(place, brought, now, was_asked=place.name in asked_names)
        return PlaceChecked(place.name, place.label, message=why)

    checked = [of_place(place) for place in places]
    checked = checked or [PlaceChecked(name, result=result) for name, result in results.items()]
    made_results = [place.result for place in checked if place.result is not None]
    worst = min(made_results, key=lambda result: _WORST_FIRST.index(result.verdict))
    values = {field.name: getattr(worst, field.name) for field in fields(Result)}
    return CheckedNow(**values, places=checked)


def _network_works(settings: Settings) -> bool:
    """Whether our network works: the checker has set no notice, and a canary answers."""
    if is_notice_set(Notice.NETWORK_DOWN):
        return False
    canaries = Canaries(settings)
    canaries.recall()
    return canaries.works()


def check_fields(spec: CheckSpec) -> Outcome:
    """Make a check by fields that need not be those of a stored monitor, and wait for the outcome.
    Nothing is stored.

    Raises Unavailable if the check does not end in time, and Throttled if too many requests wait.
    """
    with _waiting():
        return _checked(spec)


@contextmanager
def _waiting() -> Iterator[None]:
    """Hold one of the few slots of waiting requests. Raises Throttled."""
    with LONG_WAITS.taken() as free:
        _require(free)
        yield


@contextmanager
def _waiting_for(monitor_id: int) -> Iterator[None]:
    """Hold one of the few slots of requests that wait for other places. Raises Throttled."""
    with WAITS_ELSEWHERE.taken(monitor_id) as free:
        _require(free, BUSY if WAITS_ELSEWHERE.is_below_limit(monitor_id) else ALREADY)
        yield


def _require(free: bool, why: str = BUSY) -> None:
    if not free:
        raise Throttled(_(why), BUSY_SECONDS)


def _checked(spec: CheckSpec) -> Outcome:
    process = _process_prober()
    process.policies.refresh()
    try:
        outcome = process.prober.check(spec)
    except TimeoutError:
        raise Unavailable(_("The check did not finish in time. Try again.")) from None
    if may_be_ours(outcome) and not _network_works(_settings()):
        return unknown(outcome)
    return outcome


def _settings() -> Settings:
    settings: Settings = current_app.extensions["wakeful.settings"]
    return settings


def close(app: Flask) -> None:
    """End this application's prober, if it has one."""
    process: _OwnProber | None = app.extensions.pop(_KEY, None)
    if process is not None and process.pid == os.getpid():
        process.prober.close()


def _process_prober() -> _OwnProber:
    with _lock:
        process: _OwnProber | None = current_app.extensions.get(_KEY)
        if process is None or process.pid != os.getpid():
            process = current_app.extensions[_KEY] = _OwnProber(_settings())
            atexit.register(process.prober.close)
        return process


T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Requests for the same key at the same time share one answer, within one process."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Future[T]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value or exception of ``make``, called here or by the first caller with this key."""
        with self._lock:
            running = self._running.get(key)
            if running is None:
                future = self._running[key] = Future()
        if running is not None:
            return running.result()
        try:
            try:
                answer = make()
            finally:  # before the answer is returned: a request after it wants a newer one
                with self._lock:
                    del self._running[key]
        except BaseException as fault:
            future.set_exception(fault)
            raise
        future.set_result(answer)
        return answer
