"""Incidents in the local database. The rules of decision 4 that need stored data are here and in
``app/engine/recorder/incidents_by_hand.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, or_, select

from app.db import DbSession, db, dependencies, rollups, writing
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow, MonitorStateRow
from app.db.tags import tagged
from app.db.types import of_fields, readable, unreadable_in
from app.engine import recorder
from app.engine.recorder import gaps
from app.errors import CHANGED_MEANWHILE, Conflict, Invalid, NotFound, WakefulError
from app.i18n import _
from app.records import (
    MAX_IN_BATCH,
    Classification,
    Incident,
    IncidentQuery,
    IncidentSearchBy,
    IncidentSortBy,
    IncidentStatus,
    MonitorRef,
    Page,
    Sort,
)
from app.rules import text
from app.rules.cross_field import INCIDENT_TIMES, incident_times
from app.rules.what_changed import changes_of
from app.stores import base
from app.stores.base import HAS_ENDED, Fields
from app.stores.local.part import (
    LocalPart,
    Order,
    PageStatements,
    contains,
    copier,
    fits,
    fitting,
    get_monitor,
    names_in,
    ordered,
    page_statements,
)

# The statements use tables, because the ORM would double the time of a list.
_INCIDENT: Any = IncidentRow.__table__.c
OF_MONITORS: Mapping[IncidentSearchBy, Sequence[Order]] = {
    IncidentSearchBy.MONITOR: [MonitorRow.name_folded],
    IncidentSearchBy.URL: [MonitorRow.name_folded, MonitorRow.url_folded],
}


# Lists do not have these fields.
_DETAILS = ("evidence", "comment", "created_at", "updated_at")
# Evidence is decrypted when it is read.
_COMPUTED = ("evidence", "seen_by", "unwatched")


def _reading(*, brief: bool) -> Select[Any]:
    """The statement that reads incidents. It uses tables, because the ORM would double its time,
    and could return rows that this session has read before.
    """
    incident, monitor = IncidentRow.__table__, MonitorRow.__table__
    state = MonitorStateRow.__table__
    names = names_in(Incident, IncidentRow, _DETAILS if brief else ())
    return (
        select(
            *(incident.c[name] for name in names),
            monitor.c.name,
            monitor.c.url,
            state.c.verdict,
            state.c.checked_at,
            state.c.status_since,
        )
        .join_from(incident, monitor, monitor.c.id == incident.c.monitor_id)
        .join(state, state.c.monitor_id == incident.c.monitor_id, isouter=True)
    )


# Built once: building them takes longer than running them.
_READING: Mapping[bool, Select[Any]] = {brief: _reading(brief=brief) for brief in (False, True)}
_BY_ID: Mapping[bool, Select[Any]] = {
    brief: reading.where(_INCIDENT.id.in_(bindparam("ids", expanding=True)))
    for brief, reading in _READING.items()
}
_copied = {
    False: copier(Incident, IncidentRow, _COMPUTED),
    True: copier(Incident, IncidentRow, {*_COMPUTED, *_DETAILS}),
}


class LocalIncidents(LocalPart, base.Incidents):
    def list(self, query: IncidentQuery) -> Page[Incident]:
        rows, total = _statements(query).rows(None if query.counted else 0)
        incidents = _records(rows, self.now(), brief=query.brief)
        return Page(incidents, query.page, query.per_page, total)

    def open(self, limit: int) -> Page[Incident]:
        rows, total = _open_statements(limit).rows()
        return Page(_records(rows, self.now(), brief=True), 1, limit, total)

    def get(self, id: int) -> Incident:
        records = _by_id([id], self.now()) if fits(id) else []
        if not records:
            raise NotFound("incident", id)
        return records[0]

    def create(self, fields: Fields) -> Incident:
        now, fields = self.now(), whole_seconds(fields)
        with writing() as session:
            faults = incident_times(fields, now)
            try:
                get_monitor(session, fields["monitor_id"])
            except NotFound as missing:
                faults["monitor_id"] = str(missing)
            _refuse(faults)
            row = recorder.create_incident(session, fields, now)
            id = row.id
            rollups.reroll(row.monitor_id, row.started_at, row.ended_at)
        return self.get(id)

    def update(
        self, id: int, fields: Fields, *, by: str | None = None, expected: Fields | None = None
    ) -> Incident:
        now, fields = self.now(), whole_seconds(fields)
        if fields.get("classification") not in (None, *Classification):
            raise Invalid({"classification": [text.one_of(Classification)]})
        with writing() as session:
            row = _locked(session, id)
            if any(getattr(row, name) != value for name, value in (expected or {}).items()):
                raise Conflict(_(CHANGED_MEANWHILE))
            before = row.ended_at, row.classification
            merged = {name: fields.get(name, getattr(row, name)) for name in INCIDENT_TIMES}
            _refuse(incident_times(merged, now, fields.keys()))
            recorder.change_incident(session, row, fields, now, by=by)
            if before != (row.ended_at, row.classification):
                rollups.reroll(row.monitor_id, row.started_at, _later(before[0], row.ended_at))
        return self.get(id)

    def acknowledge(
        self, ids: Sequence[int], *, by: str | None = None
    ) -> Sequence[Incident | WakefulError]:
        now, faults = self.now(), dict[int, WakefulError]()
        fields, fitting = whole_seconds({"acknowledged_at": now}), [id for id in ids if fits(id)]
        with writing() as session:
            for id in _by_monitor(session, fitting):
                try:
                    row = recorder.lock_incident(session, id)
                    if row.ended_at is not None:
                        raise Conflict(_(HAS_ENDED))
                    if row.acknowledged_at is None:
                        # Alerts with one time become one message.
                        recorder.change_incident(session, row, fields, now, by=by)
                except (NotFound, Conflict) as fault:
                    faults[id] = fault
        records = {record.id: record for record in _by_id(fitting, now)}
        return [faults.get(id) or records.get(id) or NotFound("incident", id) for id in ids]

    def unacknowledged_in(self, delivery_id: int) -> Sequence[Incident]:
        of_message = select(DeliveryRow.incident_id).where(DeliveryRow.covered_by == delivery_id)
        is_open = IncidentRow.ended_at.is_(None), IncidentRow.acknowledged_at.is_(None)
        waiting = select(IncidentRow.id).where(IncidentRow.id.in_(of_message), *is_open)
        ids = db.session.scalars(waiting.order_by(IncidentRow.id).limit(MAX_IN_BATCH)).all()
        return _by_id(ids, self.now(), brief=True)

    def delete(self, id: int) -> None:
        with writing() as session:
            row = _locked(session, id)
            monitor_id, started_at, ended_at = row.monitor_id, row.started_at, row.ended_at
            recorder.delete_incident(session, row, self.now())
            rollups.reroll(monitor_id, started_at, ended_at)


def whole_seconds(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Round times down to whole seconds, so that the API returns the stored value."""
    return {
        name: value.replace(microsecond=0) if isinstance(value, datetime) else value
        for name, value in fields.items()
    }


def _refuse(faults: Mapping[str, str]) -> None:
    if faults:
        raise Invalid({name: [sentence] for name, sentence in faults.items()})


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    """The later of two ends; None, an open end, is later than any."""
    return None if first is None or second is None else max(first, second)


@lru_cache(maxsize=64)
def _statements(query: IncidentQuery) -> PageStatements:
    return page_statements(
        _matching(query), _order(query), query.page, query.per_page, reading=_READING[query.brief]
    )


@lru_cache(maxsize=4)
def _open_statements(limit: int) -> PageStatements:
    matching = select(_INCIDENT.id).where(_INCIDENT.ended_at.is_(None))
    newest = ordered(Sort.DESC, _INCIDENT.started_at, _INCIDENT.id)
    order = [_INCIDENT.acknowledged_at.is_not(None), *newest]
    return page_statements(matching, order, 1, limit, reading=_READING[True])


def _matching(query: IncidentQuery) -> Select[Any]:
    statement = select(_INCIDENT.id)
    if query.search:
        statement = statement.where(_search_condition(query.search, query.search_by))
    if query.monitor_id is not None:
        statement = statement.where(_INCIDENT.monitor_id == fitting(query.monitor_id))
    if query.bound_tag is not None:
        monitor_ids = select(MonitorRow.id).where(tagged([query.bound_tag]))
        statement = statement.where(_INCIDENT.monitor_id.in_(monitor_ids))
    if query.severity:
        statement = statement.where(_INCIDENT.severity == query.severity)
    is_open = _INCIDENT.ended_at.is_(None)
    if query.status == IncidentStatus.RESOLVED:
        statement = statement.where(~is_open)
    elif query.status == IncidentStatus.ACKNOWLEDGED:
        statement = statement.where(is_open, _INCIDENT.acknowledged_at.is_not(None))
    elif query.status == IncidentStatus.UNRESOLVED:
        statement = statement.where(is_open, _INCIDENT.acknowledged_at.is_(None))
    return statement


def _search_condition(search: str, search_by: str | None) -> ColumnElement[bool]:
    """SQL condition: the cause, or the searched field of the monitor, contains ``search``. Monitors
    are searched before their incidents: in a join, the database compares the text of the same
    monitor for each of its incidents.
    """
    by = IncidentSearchBy(search_by or IncidentSearchBy.URL)
    if by is IncidentSearchBy.CAUSE:
        return contains(_INCIDENT.cause_folded, search)
    matches = or_(*(contains(column, search) for column in OF_MONITORS[by]))
    return IncidentRow.monitor_id.in_(select(MonitorRow.id).where(matches))


def _order(query: IncidentQuery) -> Sequence[Any]:
    if query.sort_by == IncidentSortBy.STARTED_AT:
        return ordered(query.sort, _INCIDENT.started_at, _INCIDENT.id)
    ends, ids = ordered(query.sort, _INCIDENT.ended_at, _INCIDENT.id)
    # Open incidents sort after all others. This is explicit, because databases sort NULL
    # differently.
    return [ends.nulls_last() if query.sort == Sort.ASC else ends.nulls_first(), ids]


def _by_id(ids: Sequence[int], now: datetime, *, brief: bool = False) -> list[Incident]:
    """The incidents with these ids, in their order, without those that do not exist."""
    rows = db.session.execute(_BY_ID[brief], {"ids": ids}).all() if ids else []
    by_id = {record.id: record for record in _records(rows, now, brief=brief)}
    return [by_id[id] for id in ids if id in by_id]


def _records(rows: Sequence[Any], now: datetime, *, brief: bool) -> list[Incident]:
    with_affected = [row for row in rows if not brief or row.ended_at is None]
    affected = dependencies.affected(db.session, with_affected)
    return [_record(row, now, affected.get(row.id, ()), brief=brief) for row in rows]


def _record(row: Any, now: datetime, affected: Iterable[Any], *, brief: bool) -> Incident:
    """``row`` has the columns of ``_READING``; ``affected``: monitors."""
    evidence = None if brief else readable(row.evidence)
    unwatched = gaps.gaps_until(row, row, now) if row.ended_at is None else row.unwatched
    fields = _copied[brief](row)
    if row.found_late and row.ended_at is not None:
        # The stored end is when its last result stops counting. That may be in the future.
        fields["ended_at"] = min(row.ended_at, max(now.replace(microsecond=0), row.started_at))
    fields |= {
        "status": _status(row),
        "evidence": evidence,
        "changes": changes_of(evidence),
        "duration": max(0, int(((fields["ended_at"] or now) - row.started_at).total_seconds())),
        "monitor": MonitorRef(row.monitor_id, row.name, row.url),
        "seen_by": tuple(row.seen_by or ()),
        "affected": tuple(monitor.id for monitor in affected),
        "unreadable": () if brief else tuple(unreadable_in(row, ("evidence",))),
        "unwatched": tuple(
            (datetime.fromisoformat(gap["from"]), datetime.fromisoformat(gap["to"]))
            for gap in unwatched or ()
        ),
    }
    return of_fields(Incident, fields)


def _status(row: Any) -> str:
    if row.ended_at is not None:
        return IncidentStatus.RESOLVED
    return IncidentStatus.UNRESOLVED if row.acknowledged_at is None else IncidentStatus.ACKNOWLEDGED


def _by_monitor(session: DbSession, ids: Sequence[int]) -> Sequence[int]:
    """The existing ids, ordered by monitor: every transaction locks in this order."""
    statement = select(IncidentRow.id).where(IncidentRow.id.in_(ids))
    return session.scalars(statement.order_by(IncidentRow.monitor_id, IncidentRow.id)).all()


def _locked(session: DbSession, id: int) -> IncidentRow:
    if not fits(id):
        raise NotFound("incident", id)
    return recorder.lock_incident(session, id)
