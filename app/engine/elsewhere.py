"""Ask a monitor's other places for a check ("check now"), and wait for their results.

A request is a time in the places' assignments, and the change feed names the monitor. A checker
reads it within a second, an agent within five, and the check counts like any other of the place.
Needs an application context.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from app.db import db, journal, places
from app.db.tables import AssignmentRow, MonitorRow, PlaceRow
from app.engine import recorder
from app.engine.recorder import evidence
from app.engine.schedule import is_fresh
from app.errors import Conflict, Unavailable
from app.i18n import N_, _
from app.records import CheckSpec, Result
from app.rules.figures import about

# The wait beyond the check's time limit: an agent must read the request, and bring its result.
WAIT_SECONDS = 10.0
LOOK_SECONDS = 0.25  # how often new results are read
# A place whose last sign of life is older is not asked. Agents give a sign every 5 s, or every 15 s
# after a fault; those of probers are stored every 3 s. After an answer 429, an agent is silent for
# as long as the server asks, up to 60 s, and would not read the request in time.
REACHABLE = timedelta(seconds=30)
# The wait for a place ends after this time without a sign: it has probably ended. Agents and
# probers give signs during a long check too.
SIGN_SECONDS = 7.0
SIGNS_SECONDS = 1.0  # how often signs are read after that


@dataclass(frozen=True, slots=True)
class CheckingPlace:
    """A place that makes a monitor's checks. ``seen_at``: the last sign of life of its checker,
    agent or probers. Those of a queue's checker do not count: it may outlive all probers.
    """

    id: int
    name: str
    label: str | None
    seen_at: datetime | None

    @property
    def title(self) -> str:
        return self.label or self.name

    def is_reachable(self, now: datetime) -> bool:
        return self.seen_at is not None and now - self.seen_at <= REACHABLE


def places_of(monitor_id: int, now: datetime) -> Sequence[CheckingPlace]:
    """The places that check a monitor; none if nobody does, because it is paused."""
    rows = db.session.scalars(
        select(PlaceRow)
        .join(AssignmentRow, AssignmentRow.location_id == PlaceRow.id)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .where(AssignmentRow.monitor_id == monitor_id, MonitorRow.paused.is_(False))
        .order_by(PlaceRow.id)
    ).all()
    signs = places.signs_of(rows, now) if rows else {}
    checking = [CheckingPlace(row.id, row.name, row.label, signs[row.id].seen_at) for row in rows]
    db.session.rollback()
    return checking


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A request to places for a check. ``since``: when each place was asked, by its id.
    ``seconds``: the longest wait; ``began``: its start (monotonic).
    """

    monitor_id: int
    places: Sequence[CheckingPlace]
    since: Mapping[int, datetime]
    seconds: float
    began: float


@dataclass(frozen=True, slots=True)
class PlaceAnswers:
    """The answers of the places that were asked. ``results``: by the place's id. ``silent``: places
    without a sign of life, for which the wait ended early. ``seconds``: how long the others had.
    """

    results: Mapping[int, Result] = field(default_factory=dict)
    silent: Mapping[int, CheckingPlace] = field(default_factory=dict)
    seconds: float = 0.0


def ask(spec: CheckSpec, checking_places: Sequence[CheckingPlace], now: datetime) -> CheckRequest:
    """Ask these places for a check. Raises NotFound."""
    monitor_id, seconds = spec.monitor_id or 0, spec.timeout + WAIT_SECONDS
    since = recorder.ask(monitor_id, [place.id for place in checking_places], now, seconds)
    return CheckRequest(monitor_id, checking_places, since, seconds, time.monotonic())


def wait(request: CheckRequest) -> PlaceAnswers:
    """Wait until each place has brought a result or is silent, or the time is over.

    If the clock is set during the wait, the time of the request is too old or in the future, and
    places ignore it. Therefore they are asked again.
    """
    results: dict[int, Result] = {}
    since, missing = dict(request.since), set(request.since)
    signs = _Signs(request)
    while True:
        now = datetime.now(UTC)
        if not all(is_fresh(since[id], now) for id in missing):
            since |= recorder.ask(request.monitor_id, missing, now, request.seconds)
        brought = journal.first_since(request.monitor_id, {id: since[id] for id in missing}, now)
        results |= {
            id: evidence.with_assertions(db.session, result) for id, result in brought.items()
        }
        db.session.rollback()  # gives the connection back for the wait
        missing -= results.keys()
        clock = time.monotonic()
        silent = signs.silent(clock) if missing else {}
        if missing <= silent.keys() or clock - request.began > request.seconds:
            return PlaceAnswers(results, silent, clock - request.began)
        time.sleep(LOOK_SECONDS)


class _Signs:
    """When each place last gave a sign of life during the wait (monotonic)."""

    def __init__(self, request: CheckRequest) -> None:
        self._monitor_id = request.monitor_id
        self._places = {place.id: place for place in request.places}
        self._since = dict.fromkeys(self._places, request.began)
        self._look_at = request.began + SIGN_SECONDS

    def silent(self, clock: float) -> Mapping[int, CheckingPlace]:
        """The places without a new sign for ``SIGN_SECONDS``, by id."""
        if clock >= self._look_at:
            self._look_at = clock + SIGNS_SECONDS
            for place in places_of(self._monitor_id, datetime.now(UTC)):
                if place.id in self._places and place.seen_at != self._places[place.id].seen_at:
                    self._places[place.id], self._since[place.id] = place, clock
        silent = [id for id, since in self._since.items() if clock - since >= SIGN_SECONDS]
        return {id: self._places[id] for id in silent}


# --- Sentences about places that have brought no result

SILENT = N_("Nothing was checked: its place %(place)s was last heard from %(time)s ago.")
NEVER_HEARD = N_("Nothing was checked: no check has come from its place %(place)s yet.")
LEFT_OUT = N_("%(place)s was last heard from %(time)s ago and was not asked.")
LEFT_OUT_NEW = N_("No check has come from %(place)s yet, so it was not asked.")
GONE = N_("No result from %(place)s, last heard from %(time)s ago.")
LATE = N_("No result from %(place)s within %(seconds)d s.")
LATER = N_("If one comes later, it is among the monitor's checks.")
OLD_AGENT = N_("An agent older than this server ignores such requests.")


def require_reachable(places: Sequence[CheckingPlace], now: datetime) -> None:
    """Raise Conflict if all of these places are silent."""
    if any(place.is_reachable(now) for place in places):
        return
    last = max(places, key=lambda place: (place.seen_at is not None, place.seen_at or now))
    if last.seen_at is None:
        raise Conflict(_(NEVER_HEARD, place=last.title))
    raise Conflict(_(SILENT, place=last.title, time=_ago(last.seen_at, now)))


def require_some(
    results: Mapping[str, object],
    places: Sequence[CheckingPlace],
    brought: PlaceAnswers,
    now: datetime,
) -> None:
    """Raise Unavailable without any results. ``places``: those that were asked."""
    if results:
        return
    names = ", ".join(place.title for place in places)
    times = [place.seen_at for place in brought.silent.values() if place.seen_at is not None]
    if len(times) == len(places):
        why = _(GONE, place=names, time=_ago(max(times), now))
        raise Unavailable(f"{why} {_(LATER)}")
    why = _(LATE, place=names, seconds=brought.seconds)
    raise Unavailable(f"{why} {_(LATER)} {_(OLD_AGENT)}")


def why(place: CheckingPlace, brought: PlaceAnswers, now: datetime, *, was_asked: bool) -> str:
    """Why there is no result of a place, if others have brought one. ``was_asked``: whether this
    place was asked for the check.
    """
    if was_asked:
        silent = brought.silent.get(place.id)
        if silent is not None and silent.seen_at is not None:
            return _(GONE, place=place.title, time=_ago(silent.seen_at, now))
        return _(LATE, place=place.title, seconds=brought.seconds)
    if place.seen_at is None:
        return _(LEFT_OUT_NEW, place=place.title)
    return _(LEFT_OUT, place=place.title, time=_ago(place.seen_at, now))


def _ago(seen_at: datetime, now: datetime) -> str:
    """How long ago, such as "45 seconds"."""
    return about((now - seen_at).total_seconds())
