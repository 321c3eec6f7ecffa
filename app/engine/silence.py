"""Silent places, and monitors that nothing checks (decision 14).

How long a result counts follows from the monitor's interval (``app/stats/cover.py``). A monitor
becomes unknown when none of its results counts any more, or earlier if all its places are silent.
People are notified once of a silent place, and once of its return.

``silence_watch`` calls ``act_on_silence``, in several processes in parallel. Of these, the one that
changes ``silent_at`` first notifies people. Needs an application context.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, and_, bindparam, cast, func, literal, or_, select, type_coerce

from app.alerts import outbox
from app.alerts.words import count_of
from app.db import AnySession, db, places, writing
from app.db.assignments import IDS_PER_STATEMENT
from app.db.latest import last_moment
from app.db.places import MIN_SILENCE
from app.db.settings import setting, store_setting
from app.db.statements import grouped, pieces, rows_changed, updating
from app.db.tables import AssignmentRow, MonitorRow, MonitorStateRow, PlaceRow, ResultRow
from app.db.types import to_ms
from app.engine import recorder
from app.i18n import _n
from app.records import Event, Notice, PlaceState, Verdict
from app.rules.time import iso
from app.stats.cover import cover_limit_ms
from app.stats.tally import MAX_COVER_MS

log = logging.getLogger(__name__)

_MONITORS: Any = MonitorRow.__table__
_STATES: Any = MonitorStateRow.__table__
_RESULTS: Any = ResultRow.__table__
_PLACES: Any = PlaceRow.__table__
_SHOWN = (
    _MONITORS.c.paused.is_(False),
    _STATES.c.verdict.is_not(None),
    _STATES.c.verdict != Verdict.UNKNOWN,
)
_NOW: Any = bindparam("now", type_=BigInteger)
_INTERVAL: Any = cast(_MONITORS.c.interval, BigInteger)
_TIMEOUT: Any = cast(_MONITORS.c.timeout, BigInteger)
_LIMIT = cover_limit_ms(_INTERVAL, _TIMEOUT)
_COUNTS_UNTIL = _RESULTS.c.at + _RESULTS.c.covers_s * literal(1000, BigInteger)


def _has_result(since: Any, until: Any, *conditions: Any) -> Any:
    """The condition that a monitor has a result between two times."""
    of_monitor = _RESULTS.c.monitor_id == _STATES.c.monitor_id
    query = select(_RESULTS.c.monitor_id).where(of_monitor, *conditions)
    return query.where(_RESULTS.c.at.between(since, until)).exists()


# How long a result counts follows from the interval when it was made. A state may lack the newest
# results (``app/db/latest.py``). Therefore results are read if the state is old or the interval may
# have changed since: first the newest ones, which nearly always decide.
_IS_OLD = type_coerce(_STATES.c.checked_at, BigInteger) < _NOW - _LIMIT
_CHANGED = _STATES.c.judged_since >= _STATES.c.checked_at
# Without a change today, no older result counts for longer than a new one would. Otherwise, when a
# checker stops, a day of results of its thousands of monitors would be read.
_CHANGED_TODAY = (
    func.coalesce(type_coerce(_STATES.c.judged_since, BigInteger), 0) >= _NOW - MAX_COVER_MS
)
_STILL_COUNTS = or_(_RESULTS.c.covers_s.is_(None), _COUNTS_UNTIL >= _NOW)
_WITHOUT_RESULT = (
    select(_STATES.c.monitor_id)
    .join(_MONITORS, _MONITORS.c.id == _STATES.c.monitor_id)
    .where(
        *_SHOWN,
        or_(_IS_OLD, _CHANGED),
        ~_has_result(_NOW - _LIMIT, bindparam("until", type_=BigInteger), _STILL_COUNTS),
        ~and_(
            _CHANGED_TODAY, _has_result(_NOW - MAX_COVER_MS, _NOW - _LIMIT, _COUNTS_UNTIL >= _NOW)
        ),
    )
)
# How long monitors are left alone after the start of the watch: a checker that starts makes overdue
# checks at once, and an agent brings its buffered results.
GRACE = MIN_SILENCE
RECENT_MS = 120_000  # a place that has made a check within this time is not silent


def act_on_silence(now: datetime, watching_since: datetime, notifying_since: datetime) -> None:
    """Notify people of places that are silent or back, and show monitors that no place checks as
    unknown. ``watching_since``: when this process began to watch. ``notifying_since``: since when
    messages can be sent; people are notified of a place that has been silent for long enough since.
    """
    rows = db.session.execute(select(_PLACES).order_by(_PLACES.c.id)).all()
    signs = places.signs_of(rows, now)
    work = places.work_without_results(signs, now)
    states_now = places.states_of(signs, now, work=work)
    online = {id for id, state in states_now.items() if state is PlaceState.ONLINE}
    states = places.states_of(signs, now, watching_since, work)
    # The silence of a place without monitors has no effect.
    silent = {id for id, state in states.items() if state is PlaceState.SILENT} & work.keys()
    to_report = silent & {
        id
        for id, state in places.states_of(signs, now, notifying_since, work).items()
        if state is PlaceState.SILENT
    }
    titles = {place.id: place.label or place.name for place in rows}
    dead_places = silent | {id for id, state in states.items() if state is PlaceState.NEVER_SEEN}
    grace_is_over = now - watching_since >= GRACE
    unchecked_monitors = _without_result(db.session, now) if grace_is_over else []
    unchecked = _places_of(unchecked_monitors)
    if silent:
        unchecked |= _only_from(dead_places)
    db.session.rollback()
    for place in rows:
        of_place = signs[place.id]
        if place.id in to_report and of_place.silent_at is None:
            _notify_change(place, Event.LOCATION_SILENT, of_place.result_at, dead_places, now)
        elif place.id in online and of_place.silent_at is not None:
            _notify_change(place, Event.LOCATION_ONLINE, of_place.silent_since, dead_places, now)
    # The notice that every page shows while places are silent.
    listed = ", ".join(titles[place.id] for place in rows if place.id in silent) or None
    if setting(Notice.PLACES_SILENT) != listed:
        store_setting(Notice.PLACES_SILENT, listed, now)
    causes = {id: _cause(ids, titles) for id, ids in unchecked.items()}
    checked = partial(_checked_meanwhile, now, set(unchecked_monitors), dead_places)
    recorder.show_unknown(causes, now, checked)


def _without_result(
    session: AnySession, now: datetime, among: Collection[int] | None = None
) -> list[int]:
    """The monitors that are not shown as unknown yet, although none of their results counts."""
    query = _WITHOUT_RESULT
    if among is not None:
        query = query.where(_STATES.c.monitor_id.in_(among))
    return list(session.scalars(query, {"now": to_ms(now), "until": last_moment(now)}))


def _checked_meanwhile(
    now: datetime,
    unchecked_monitors: Collection[int],
    dead_places: Collection[int],
    session: AnySession,
    ids: Collection[int],
) -> set[int]:
    """The monitors among ``ids`` that must not be shown as unknown: ``unchecked_monitors`` that
    have a result again, and others that have a recent result, are paused, or are checked from a
    place that is none of the ``dead_places``. Their states are locked, so that no later result is
    overwritten.
    """
    without = set(ids) & set(unchecked_monitors)
    checked_again = without - set(_without_result(session, now, without))
    others = set(ids) - without
    recent = (
        select(_RESULTS.c.monitor_id)
        .distinct()
        .where(
            _RESULTS.c.monitor_id.in_(others),
            _RESULTS.c.at.between(to_ms(now) - RECENT_MS, last_moment(now)),
        )
    )
    changed = others - _only_from(dead_places, among=others).keys()
    return checked_again | set(session.scalars(recent)) | changed


def _places_of(ids: Sequence[int]) -> dict[int, list[int]]:
    by_monitor: dict[int, list[int]] = {}
    for part in pieces(ids, IDS_PER_STATEMENT):
        by_monitor |= _places_of_each(part)
    return by_monitor


def _only_from(
    dead_places: Collection[int], among: Collection[int] | None = None
) -> dict[int, list[int]]:
    """The monitors that are checked only from ``dead_places`` and not shown as unknown yet, with
    their places.
    """
    query = select(_STATES.c.monitor_id).join(_MONITORS, _MONITORS.c.id == _STATES.c.monitor_id)
    if among is not None:
        query = query.where(_STATES.c.monitor_id.in_(among))
    return _places_of_each(
        query.where(*_SHOWN, _STATES.c.monitor_id.not_in(_checked_elsewhere(dead_places)))
    )


def _checked_elsewhere(dead_places: Collection[int]) -> Any:
    query = select(AssignmentRow.monitor_id)
    return query.where(AssignmentRow.location_id.not_in(dead_places))


def _places_of_each(monitors: Any) -> dict[int, list[int]]:
    query = (
        select(AssignmentRow.monitor_id, AssignmentRow.location_id)
        .where(AssignmentRow.monitor_id.in_(monitors))
        .order_by(AssignmentRow.monitor_id, AssignmentRow.location_id)
    )
    return grouped(db.session.execute(query))


def _cause(ids: Sequence[int], titles: Mapping[int, str]) -> str:
    names = ", ".join(titles[id] for id in ids if id in titles)
    return _n(
        "Not checked: no results are coming from its place %(names)s.",
        "Not checked: no results are coming from its places: %(names)s.",
        len(ids),
        names=names,
    )


def _notify_change(
    place: Any, event: Event, since: datetime | None, dead_places: Collection[int], now: datetime
) -> None:
    """Write the messages about a place that is silent or back, once. ``since``: the last result
    before the silence. The messages count the monitors that are unknown, because they are checked
    only from ``dead_places``.
    """
    silent = event is Event.LOCATION_SILENT
    is_new = PlaceRow.silent_at.is_(None) if silent else PlaceRow.silent_at.is_not(None)
    with writing() as session:
        change = (
            updating(PlaceRow)
            .where(PlaceRow.id == place.id, is_new)
            .values(silent_at=now if silent else None, silent_since=since if silent else None)
        )
        if rows_changed(session, change) != 1:
            return  # another checker was faster
        all_assigned = select(func.count()).select_from(AssignmentRow)
        counted = all_assigned.where(AssignmentRow.location_id == place.id)
        watched = (MonitorRow.id == AssignmentRow.monitor_id) & MonitorRow.paused.is_(False)
        only_here = AssignmentRow.monitor_id.not_in(_checked_elsewhere(dead_places))
        alone = counted.join(MonitorRow, watched).where(only_here)
        facts = {
            "location": {"id": place.id, "name": place.name, "label": place.label},
            "monitors": session.scalar(counted) or 0,
            "unknown": session.scalar(alone) or 0,
            "since": since and iso(since),
        }
        messages = outbox.notify_of_place(session, event, facts, now)
    what = "is silent" if silent else "is back"
    log.warning("The place %s %s: %s.", place.name, what, count_of(messages, "message"))
