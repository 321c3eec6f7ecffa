"""Places that have fallen silent: people are told once, and of the return (decisions.md 14).

Several checkers may look at once; the guarded update of ``silent_at`` lets one of them tell. Needs
an application context.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, update

from app.alerts import outbox
from app.alerts.words import count_of
from app.db import db, places, writing
from app.db.places import Signs
from app.db.settings import keep_setting, setting
from app.db.tables import AssignmentRow, LocationRow, MonitorRow, MonitorStateRow
from app.engine import recorder
from app.i18n import _n
from app.records import Event, Notice, PlaceState, Verdict
from app.rules.time import iso

log = logging.getLogger(__name__)


def tend(now: datetime, watching_since: datetime) -> None:
    """Tell of the places that have fallen silent or are back, and show the monitors as unknown that
    no place checks. ``watching_since``: when this process began to look.
    """
    rows = db.session.scalars(select(LocationRow).order_by(LocationRow.id)).all()
    signs = places.signs_of(rows, now)
    heard = {id for id, state in places.states_of(signs, now).items() if state is PlaceState.ONLINE}
    states = places.states_of(signs, now, watching_since)
    known = [_Place(row.id, row.name, row.label, signs[row.id]) for row in rows]
    silent = {id for id, state in states.items() if state is PlaceState.SILENT}
    if silent:  # a place that nothing is checked from loses nothing by its silence
        silent &= places.work_of(silent).keys()
    titles = {one.id: one.label or one.name for one in known}
    unheard = silent | {id for id, state in states.items() if state is PlaceState.NEVER_SEEN}
    alone = _only_from(unheard) if silent else {}
    db.session.rollback()
    for one in known:
        unknown = sum(one.id in ids for ids in alone.values())
        if one.id in silent and one.signs.silent_at is None:
            _tell(one, Event.LOCATION_SILENT, unknown, now)
        elif one.id in heard and one.signs.silent_at is not None:
            _tell(one, Event.LOCATION_ONLINE, unknown, now)
    _notice([titles[one.id] for one in known if one.id in silent], now)
    recorder.unwatched({id: _cause(ids, titles) for id, ids in alone.items()}, now)


@dataclass(frozen=True, slots=True)
class _Place:
    id: int
    name: str
    label: str | None
    signs: Signs


def _only_from(unheard: Collection[int]) -> Mapping[int, Sequence[int]]:
    """The places of each monitor that is checked from none but these, of those that do not show it
    yet.
    """
    others = select(AssignmentRow.monitor_id).where(AssignmentRow.location_id.not_in(unheard))
    state = MonitorStateRow
    rows = db.session.execute(
        select(AssignmentRow.monitor_id, AssignmentRow.location_id)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .join(state, state.monitor_id == AssignmentRow.monitor_id)
        .where(
            MonitorRow.paused.is_(False),
            state.verdict.is_not(None),
            state.verdict != Verdict.UNKNOWN,
            AssignmentRow.monitor_id.not_in(others),
        )
        .order_by(AssignmentRow.monitor_id, AssignmentRow.location_id)
    )
    found: dict[int, list[int]] = {}
    for monitor_id, place in rows:
        found.setdefault(monitor_id, []).append(place)
    return found


def _cause(ids: Sequence[int], titles: Mapping[int, str]) -> str:
    names = ", ".join(titles[id] for id in ids)
    return _n(
        "Not checked: its place %(names)s is silent.",
        "Not checked: all its places are silent: %(names)s.",
        len(ids),
        names=names,
    )


def _tell(place: _Place, event: Event, unknown: int, now: datetime) -> None:
    """``unknown``: how many monitors are so because of it."""
    silent = event is Event.LOCATION_SILENT
    # Both messages give the last result before the silence.
    since = place.signs.result_at if silent else place.signs.silent_since
    was = LocationRow.silent_at.is_(None) if silent else LocationRow.silent_at.is_not(None)
    with writing() as session:
        done = session.execute(
            update(LocationRow)
            .where(LocationRow.id == place.id, was)
            .values(silent_at=now if silent else None, silent_since=since if silent else None)
            .execution_options(synchronize_session=False)
        )
        if getattr(done, "rowcount", 0) != 1:
            return  # another checker was faster
        counted = select(func.count()).where(AssignmentRow.location_id == place.id)
        facts = {
            "location": {"id": place.id, "name": place.name, "label": place.label},
            "monitors": session.scalar(counted) or 0,
            "unknown": unknown,
            "since": since and iso(since),
        }
        told = outbox.tell_of_place(session, event, facts, now)
    what = "is silent" if silent else "is back"
    log.warning("The place %s %s: %s.", place.name, what, count_of(told, "message"))


def _notice(titles: Sequence[str], now: datetime) -> None:
    """What every page shows while places are silent."""
    said = ", ".join(titles) or None
    if setting(Notice.PLACES_SILENT) != said:
        keep_setting(Notice.PLACES_SILENT, said, now)
