"""The assignments of monitors to places, as a checker needs them: one query for many monitors.

Needs an application context.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, and_, bindparam, delete, exists, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import aliased

from app.db import AnySession, db, faults, latest, shards
from app.db.statements import bulk_insert, pieces
from app.db.tables import AssignmentRow, IncidentRow, MonitorRow, MonitorStateRow, PlaceRow
from app.db.types import Why, readable, to_ms, unreadable_in
from app.i18n import N_, _
from app.records import CHECK_FIELDS, CHECK_OPTIONS, CheckSpec, Pair, words_of

IDS_PER_STATEMENT = 500
PIECE = 1_000  # monitors of a shard that one statement reads

_SPEC_COLUMNS = (
    MonitorRow.id, MonitorRow.url, MonitorRow.request_method, MonitorRow.request_headers,
    MonitorRow.request_auth_username, MonitorRow.request_auth_password, MonitorRow.request_body,
    MonitorRow.alert_condition, MonitorRow.alert_text_lookup, MonitorRow.timeout,
    MonitorRow.accepted_statuses, MonitorRow.follow_redirects, MonitorRow.verify_tls,
    MonitorRow.cache_buster, MonitorRow.slow_after, MonitorRow.ssl_alert_days, MonitorRow.options,
    MonitorRow.assertions,
)  # fmt: skip

_NEW = ("monitor_id", "location_id", AssignmentRow.generation.name, "blind", "failures")
# Built once, because each batch of results runs it.
_OF_EACH = select(
    AssignmentRow.monitor_id, AssignmentRow.location_id, AssignmentRow.generation,
    AssignmentRow.scheduled_at, AssignmentRow.checked_at, AssignmentRow.verdict,
    AssignmentRow.asked_at, AssignmentRow.blind, AssignmentRow.failures,
).where(AssignmentRow.monitor_id.in_(bindparam("ids", expanding=True)))  # fmt: skip
_PLACES = (
    select(PlaceRow.__table__.c.name, PlaceRow.__table__.c.id)
    .where(PlaceRow.__table__.c.name.in_(bindparam("names", expanding=True)))
    .order_by(PlaceRow.__table__.c.id)
    .with_for_update(read=True, key_share=True)
)
_OTHER = aliased(AssignmentRow)
# The columns that show whether the next good check changes anything
# (app/engine/recorder/steady.py).
_STATE_COLUMNS = (
    MonitorRow.paused, MonitorRow.tags, MonitorRow.maintenance_start_at,
    MonitorRow.maintenance_end_at, MonitorStateRow.checked_at, MonitorStateRow.verdict,
    MonitorStateRow.status_since, MonitorStateRow.failing_since, MonitorStateRow.failures,
    MonitorStateRow.recovering_since, MonitorStateRow.unconfirmed_at, MonitorStateRow.response_time,
    MonitorStateRow.behind_id,
    MonitorStateRow.ssl_fingerprint, MonitorStateRow.alerted_certificates,
    IncidentRow.started_at, IncidentRow.by_hand, IncidentRow.severity, IncidentRow.down_since,
    AssignmentRow.verdict.label("place_verdict"), AssignmentRow.failures.label("place_failures"),
    exists().where(
        _OTHER.monitor_id == AssignmentRow.monitor_id,
        _OTHER.location_id != AssignmentRow.location_id,
    ).label("has_other_places"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assigned:
    """A monitor that is checked from a place. The fields from ``generation`` to ``asked_at`` are
    those of ``app.engine.schedule.Standing``. ``newest``: the time of its newest result there (ms),
    which may be newer than the row. ``row`` has columns of its monitor, its state and its open
    incident, ``place_verdict`` and ``place_failures`` of the assignment, and ``has_other_places``:
    whether other places check it too.
    """

    spec: CheckSpec
    interval: int
    generation: int
    scheduled_at: datetime | None
    checked_at: datetime | None
    unconfirmed_at: datetime | None
    blind: bool
    asked_at: datetime | None
    newest: int | None
    row: Any


def of_place(place: int) -> list[Assigned]:
    """All assignments of a place, in the order of the monitors."""
    return _read(_query(place).order_by(AssignmentRow.monitor_id), place)


def piece(place: int, numbers: Collection[int], after_id: int) -> list[Assigned]:
    """The first ``PIECE`` assignments of these shards with a monitor id above ``after_id``."""
    if not numbers:
        return []
    id = AssignmentRow.monitor_id
    watched = _query(place).where((id % shards.count()).in_(numbers), id > after_id)
    return _read(watched.order_by(id).limit(PIECE), place)


def last_of(part: Sequence[Assigned]) -> int | None:
    """The ``after_id`` of the next piece; None if this was the last one."""
    return part[-1].spec.monitor_id if len(part) == PIECE else None


def of_monitors(place: int, monitor_ids: Iterable[int]) -> list[Assigned]:
    """The assignments of these monitors in the place, without paused ones."""
    return [
        assigned
        for part in pieces(sorted(monitor_ids), IDS_PER_STATEMENT)
        for assigned in _read(_query(place).where(AssignmentRow.monitor_id.in_(part)), place)
    ]


def _query(place: int) -> Select[Any]:
    columns: list[Any] = [*_SPEC_COLUMNS]
    return (
        select(
            *columns,
            MonitorRow.interval,
            AssignmentRow.generation,
            AssignmentRow.scheduled_at,
            AssignmentRow.checked_at.label("place_checked_at"),
            AssignmentRow.blind,
            AssignmentRow.asked_at,
            *_STATE_COLUMNS,
        )
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        # The recorder writes no result of a monitor without a state; housekeeping makes it one.
        .join(MonitorStateRow, MonitorStateRow.monitor_id == AssignmentRow.monitor_id)
        .outerjoin(
            IncidentRow,
            and_(
                IncidentRow.monitor_id == AssignmentRow.monitor_id, IncidentRow.ended_at.is_(None)
            ),
        )
        .where(AssignmentRow.location_id == place, MonitorRow.paused.is_(False))
    )


def _read(statement: Select[Any], place: int) -> list[Assigned]:
    rows = db.session.execute(statement).all()
    newest = _newest([row.id for row in rows], place)
    db.session.rollback()
    return [
        Assigned(
            _spec(row),
            row.interval,
            row.generation,
            row.scheduled_at,
            row.place_checked_at,
            row.unconfirmed_at,
            row.blind,
            row.asked_at,
            newest.get(row.id),
            row,
        )
        for row in rows
    ]


def _newest(monitor_ids: Sequence[int], place: int) -> dict[int, int]:
    """The times (ms) of the newest results in this place. If the file is damaged and they cannot be
    read, it is empty, and some checks may be repeated.
    """
    try:
        return latest.in_place(monitor_ids, place, datetime.now(UTC))
    except SQLAlchemyError as fault:
        db.session.rollback()
        if not faults.is_damage(fault):
            raise
        return {}


def specs(monitor_ids: Sequence[int]) -> list[CheckSpec]:
    """The check specs of these monitors; unknown ids are left out. A spec has a ``fault`` if a
    field of its monitor cannot be read.
    """
    if not monitor_ids:
        return []
    rows = db.session.execute(select(*_SPEC_COLUMNS).where(MonitorRow.id.in_(monitor_ids))).all()
    db.session.rollback()
    return [_spec(row) for row in rows]


def of_each(session: AnySession, monitor_ids: Collection[int]) -> dict[int, dict[int, Any]]:
    """The rows of each monitor's assignments, by place. The caller has locked the monitors' states
    before: then the rows include the changes that were committed while it waited for the locks.
    """
    by_monitor: dict[int, dict[int, Any]] = {id: {} for id in monitor_ids}
    for row in session.execute(_OF_EACH, {"ids": list(by_monitor)}):
        by_monitor[row.monitor_id][row.location_id] = row
    return by_monitor


def places(names: Collection[str]) -> dict[str, int]:
    """The row ids of these places; unknown names are left out. The places cannot be deleted until
    the transaction ends.
    """
    return {row.name: row.id for row in db.session.execute(_PLACES, {"names": list(names)})}


def assign(session: AnySession, monitor_id: int, place_ids: Collection[int], now: datetime) -> bool:
    """Assign a monitor to these places only; returns whether that is a change. The first check of a
    new place is due at once.
    """
    assigned_ids = set(
        session.scalars(
            select(AssignmentRow.location_id).where(AssignmentRow.monitor_id == monitor_id)
        )
    )
    removed, new = assigned_ids - set(place_ids), set(place_ids) - assigned_ids
    if removed:
        session.execute(
            delete(AssignmentRow).where(
                and_(AssignmentRow.monitor_id == monitor_id, AssignmentRow.location_id.in_(removed))
            )
        )
    assign_new(session, {monitor_id: new}, now)
    return bool(removed or new)


def assign_new(session: AnySession, added: Mapping[int, Collection[int]], now: datetime) -> None:
    """Assign monitors to more places: ``added`` has the new places of each monitor by its id."""
    # The generation must be new: a check of an earlier row of this pair may still be running.
    generation = to_ms(now)
    rows = [(id, place, generation, False, 0) for id, new in added.items() for place in sorted(new)]
    bulk_insert(session, AssignmentRow, _NEW, rows)


def _spec(row: Any) -> CheckSpec:
    user = row.request_auth_username
    password = () if user is None else ("request_auth_password",)
    unreadable = unreadable_in(
        row, ("request_headers", *password, "request_body", "assertions", *CHECK_FIELDS)
    )
    return CheckSpec(
        url=row.url,
        monitor_id=row.id,
        request_method=_shared(row.request_method),
        request_headers=tuple(
            Pair(key, value) for key, value in readable(row.request_headers) or ()
        ),
        auth=None if user is None else (user, readable(row.request_auth_password) or ""),
        request_body=readable(row.request_body),
        alert_condition=_shared(row.alert_condition),
        alert_text_lookup=row.alert_text_lookup,
        assertions=readable(row.assertions) or (),
        timeout=row.timeout,
        accepted_statuses=_shared(row.accepted_statuses),
        follow_redirects=row.follow_redirects,
        verify_tls=row.verify_tls,
        cache_buster=bool(row.cache_buster),
        slow_after=row.slow_after,
        ssl_alert_days=row.ssl_alert_days,
        fault=not_checked(unreadable) if unreadable else None,
        **{name: value for name, value in (row.options or {}).items() if name in CHECK_OPTIONS},
    )


@lru_cache(maxsize=1_000)
def _shared(text: str) -> str:
    """The same object for equal texts, which saves memory: most monitors have the same ones."""
    return text


def not_checked(unreadable: Mapping[str, Why]) -> str:
    """Why a check is not made, and what to do. ``unreadable``: the reasons by field."""
    what = words_of(list(unreadable))
    sentence = (
        N_(
            "Not checked: the stored %(what)s cannot be read, because %(why)s. Edit the monitor"
            " and enter the %(what)s again."
        )
        if unreadable.keys() & CHECK_FIELDS.keys()
        else N_(
            "Not checked: the stored %(what)s cannot be read, because %(why)s. Edit the monitor"
            " and enter the %(what)s again, or remove the %(what)s."
        )
    )
    return _(sentence, what=what, why=_(next(iter(unreadable.values()))))
