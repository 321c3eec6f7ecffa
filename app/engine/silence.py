"""Monitors that nobody sees any more, and the places that are the reason (decision 14).

A monitor is unknown as soon as no result of it counts, and then so is its time in the figures
(``app/stats/cover.py``). It is unknown sooner if all its places are silent. People are notified
once of a silent place, and of its return.

``silence_watch`` says who looks, and when. Several may look at once; the guarded update of
``silent_at`` lets one of them notify. Needs an application context.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, bindparam, cast, func, literal, or_, select, type_coerce

from app.alerts import outbox
from app.alerts.words import count_of
from app.db import AnySession, db, places, writing
from app.db.assignments import AT_ONCE
from app.db.latest import last_moment
from app.db.places import LEAST_SILENCE, PlaceSigns
from app.db.settings import keep_setting, setting
from app.db.statements import updating
from app.db.tables import AssignmentRow, LocationRow, MonitorRow, MonitorStateRow, ResultRow
from app.db.types import to_ms
from app.engine import recorder
from app.i18n import _n
from app.records import Event, Notice, PlaceState, Verdict
from app.rules.time import iso
from app.stats.cover import cover_limit_ms
from app.stats.tally import LONGEST_COVER_MS

log = logging.getLogger(__name__)

_MONITORS: Any = MonitorRow.__table__
_STATES: Any = MonitorStateRow.__table__
_RESULTS: Any = ResultRow.__table__
_SHOWN = (
    _MONITORS.c.paused.is_(False),
    _STATES.c.verdict.is_not(None),
    _STATES.c.verdict != Verdict.UNKNOWN,
)
_NOW: Any = bindparam("now", type_=BigInteger)
_INTERVAL: Any = cast(_MONITORS.c.interval, BigInteger)
_TIMEOUT: Any = cast(_MONITORS.c.timeout, BigInteger)
_LIMIT = cover_limit_ms(_INTERVAL, _TIMEOUT)
_UNTIL = _RESULTS.c.at + _RESULTS.c.covers_s * literal(1000, BigInteger)


def _has_result(since: Any, until: Any, *counts: Any) -> Any:
    """Whether a monitor has a result that counts between two times."""
    mine = _RESULTS.c.monitor_id == _STATES.c.monitor_id
    query = select(_RESULTS.c.monitor_id).where(mine, _RESULTS.c.at.between(since, until), *counts)
    return query.exists()


# A result counts as long as the monitor's interval was when it was made. A state may not know of
# its newest results yet (``app/db/latest.py``), so the results of the monitors whose state is old
# are asked, and of those whose interval may have changed since: first the latest, which nearly
# always decides.
_OVER = type_coerce(_STATES.c.checked_at, BigInteger) < _NOW - _LIMIT
_CHANGED = _STATES.c.judged_since >= _STATES.c.checked_at
_STILL_COUNTS = or_(_RESULTS.c.covers_s.is_(None), _UNTIL >= _NOW)
_WITHOUT_RESULT = (
    select(_STATES.c.monitor_id)
    .join(_MONITORS, _MONITORS.c.id == _STATES.c.monitor_id)
    .where(
        *_SHOWN,
        or_(_OVER, _CHANGED),
        ~_has_result(_NOW - _LIMIT, bindparam("until", type_=BigInteger), _STILL_COUNTS),
        ~_has_result(_NOW - LONGEST_COVER_MS, _NOW - _LIMIT, _UNTIL >= _NOW),
    )
)
# A checker that starts makes what is overdue at once, and an agent brings what it has kept.
GRACE = LEAST_SILENCE
# A place that is silent has made no check for longer than this.
LATELY_MS = 120_000


def tend(now: datetime, watching_since: datetime, notifying_since: datetime) -> None:
    """Notify people of places that are silent or back, and show the monitors as unknown that nobody
    sees. ``watching_since``: when this process began to look. ``notifying_since``: since when
    messages could leave; people are notified of a place that is silent for long enough since then.
    """
    rows = db.session.scalars(select(LocationRow).order_by(LocationRow.id)).all()
    signs = places.signs_of(rows, now)
    heard = {id for id, state in places.states_of(signs, now).items() if state is PlaceState.ONLINE}
    states = places.states_of(signs, now, watching_since)
    all_places = [_Place(row.id, row.name, row.label, signs[row.id]) for row in rows]
    silent = {id for id, state in states.items() if state is PlaceState.SILENT}
    if silent:  # a place that nothing is checked from loses nothing by its silence
        silent &= places.work_of(silent).keys()
    to_report = silent & {
        id
        for id, state in places.states_of(signs, now, notifying_since).items()
        if state is PlaceState.SILENT
    }
    titles = {place.id: place.label or place.name for place in all_places}
    unheard = silent | {id for id, state in states.items() if state is PlaceState.NEVER_SEEN}
    waited = now - watching_since >= GRACE
    without = _without_result(db.session, now) if waited else []
    unseen = _places_of(without)
    if silent:
        unseen |= _only_from(unheard)
    db.session.rollback()
    for place in all_places:
        if place.id in to_report and place.signs.silent_at is None:
            _notify(place, Event.LOCATION_SILENT, unheard, now)
        elif place.id in heard and place.signs.silent_at is not None:
            _notify(place, Event.LOCATION_ONLINE, unheard, now)
    _notice([titles[place.id] for place in all_places if place.id in silent], now)
    causes = {id: _cause(ids, titles) for id, ids in unseen.items()}
    checked_meanwhile = partial(_checked_meanwhile, now=now, without=set(without), unheard=unheard)
    recorder.show_unknown(causes, now, checked_meanwhile)


@dataclass(frozen=True, slots=True)
class _Place:
    id: int
    name: str
    label: str | None
    signs: PlaceSigns


def _without_result(
    session: AnySession, now: datetime, among: Collection[int] | None = None
) -> list[int]:
    """The monitors of which no result counts any more, of those that do not show it yet."""
    asked = _WITHOUT_RESULT
    if among is not None:
        asked = asked.where(_STATES.c.monitor_id.in_(among))
    return list(session.scalars(asked, {"now": to_ms(now), "until": last_moment(now)}))


def _checked_meanwhile(
    session: AnySession,
    ids: Collection[int],
    *,
    now: datetime,
    without: Collection[int],
    unheard: Collection[int],
) -> set[int]:
    """The monitors of which a result came since they were looked at, when ``without`` had none that
    counts, and those that were paused or given another place than ``unheard``. Their states are
    locked: what is recorded or changed meanwhile would be overwritten, by unknown until the next
    check.
    """
    looked = set(ids) & set(without)
    back = looked - set(_without_result(session, now, looked))
    rest = set(ids) - looked
    lately = (
        select(_RESULTS.c.monitor_id)
        .distinct()
        .where(
            _RESULTS.c.monitor_id.in_(rest),
            _RESULTS.c.at.between(to_ms(now) - LATELY_MS, last_moment(now)),
        )
    )
    changed = rest - _only_from(unheard, among=rest).keys()
    return back | set(session.scalars(lately)) | changed


def _places_of(ids: Sequence[int]) -> dict[int, list[int]]:
    by_monitor: dict[int, list[int]] = {}
    for start in range(0, len(ids), AT_ONCE):
        part = AssignmentRow.monitor_id.in_(ids[start : start + AT_ONCE])
        by_monitor |= _places_of_each(select(AssignmentRow.monitor_id).where(part))
    return by_monitor


def _only_from(
    unheard: Collection[int], among: Collection[int] | None = None
) -> dict[int, list[int]]:
    """The places of each monitor that is checked from none but these, of those that do not show it
    yet.
    """
    shown = select(_STATES.c.monitor_id).join(_MONITORS, _MONITORS.c.id == _STATES.c.monitor_id)
    if among is not None:
        shown = shown.where(_STATES.c.monitor_id.in_(among))
    return _places_of_each(
        shown.where(*_SHOWN, _STATES.c.monitor_id.not_in(_seen_elsewhere(unheard)))
    )


def _seen_elsewhere(unheard: Collection[int]) -> Any:
    query = select(AssignmentRow.monitor_id)
    return query.where(AssignmentRow.location_id.not_in(unheard))


def _places_of_each(monitors: Any) -> dict[int, list[int]]:
    rows = db.session.execute(
        select(AssignmentRow.monitor_id, AssignmentRow.location_id)
        .where(AssignmentRow.monitor_id.in_(monitors))
        .order_by(AssignmentRow.monitor_id, AssignmentRow.location_id)
    )
    by_monitor: dict[int, list[int]] = {}
    for monitor_id, place in rows:
        by_monitor.setdefault(monitor_id, []).append(place)
    return by_monitor


def _cause(ids: Sequence[int], titles: Mapping[int, str]) -> str:
    names = ", ".join(titles[id] for id in ids if id in titles)
    return _n(
        "Not checked: no results are coming from its place %(names)s.",
        "Not checked: no results are coming from its places: %(names)s.",
        len(ids),
        names=names,
    )


def _notify(place: _Place, event: Event, unheard: Collection[int], now: datetime) -> None:
    """``unheard``: the places of which nothing is heard. Monitors that no other one checks are
    unknown because of them.
    """
    silent = event is Event.LOCATION_SILENT
    # Both messages give the last result before the silence.
    since = place.signs.result_at if silent else place.signs.silent_since
    was = LocationRow.silent_at.is_(None) if silent else LocationRow.silent_at.is_not(None)
    with writing() as session:
        done = session.execute(
            updating(LocationRow)
            .where(LocationRow.id == place.id, was)
            .values(silent_at=now if silent else None, silent_since=since if silent else None)
        )
        if getattr(done, "rowcount", 0) != 1:
            return  # another checker was faster
        counted = (
            select(func.count())
            .select_from(AssignmentRow)
            .where(AssignmentRow.location_id == place.id)
        )
        alone = counted.join(
            MonitorRow, (MonitorRow.id == AssignmentRow.monitor_id) & MonitorRow.paused.is_(False)
        ).where(AssignmentRow.monitor_id.not_in(_seen_elsewhere(unheard)))
        facts = {
            "location": {"id": place.id, "name": place.name, "label": place.label},
            "monitors": session.scalar(counted) or 0,
            "unknown": session.scalar(alone) or 0,
            "since": since and iso(since),
        }
        messages = outbox.notify_of_place(session, event, facts, now)
    what = "is silent" if silent else "is back"
    log.warning("The place %s %s: %s.", place.name, what, count_of(messages, "message"))


def _notice(titles: Sequence[str], now: datetime) -> None:
    """What every page shows while places are silent."""
    listed = ", ".join(titles) or None
    if setting(Notice.PLACES_SILENT) != listed:
        keep_setting(Notice.PLACES_SILENT, listed, now)
