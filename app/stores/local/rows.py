"""Convert database rows to records, and a form's fields to columns."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from app.alerts.outbox import lanes_text
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow
from app.db.tags import tags_of, tags_text
from app.db.types import Unreadable, readable, unreadable_in
from app.engine.recorder import gaps
from app.records import (
    CHECK_FIELDS,
    CONTACT,
    KIND_OPTIONS,
    SECRET_FIELDS,
    Incident,
    IncidentStatus,
    Monitor,
    MonitorRef,
    MonitorStatus,
    Pair,
    interval_fields,
    nearest_interval,
)
from app.rules.what_changed import changes_of

# Fields that are stored in another form than the record's.
PAIRS = ("request_headers", "alerts")
IN_OTHER_FORM = (*PAIRS, "tags", "request_body", "interval", "check_every", "assertions")
# Fields that are stored in other tables: the state, the assignments.
NO_COLUMNS = ("pause", "locations", "depends_on", "heartbeat_token")
OF_ONE_MONITOR = ("notes",)  # a list does not load them


def _names(record: type[Any], row: type[Any], without: Iterable[str] = ()) -> list[str]:
    columns = set(row.__table__.columns.keys()) - set(without)
    return [field.name for field in fields(record) if field.name in columns]


def _copier(
    record: type, row: type[Any], without: Iterable[str] = ()
) -> Callable[[Any], dict[str, Any]]:
    """A function that copies the columns of a row whose names are also fields of ``record``."""
    names = _names(record, row, without)
    values = attrgetter(*names)
    return lambda row: dict(zip(names, values(row), strict=True))


_monitor_fields = _copier(Monitor, MonitorRow, (*IN_OTHER_FORM, *OF_ONE_MONITOR))
_state_fields = _copier(Monitor, MonitorStateRow, ("domain", "response_time"))
# The columns that a record needs of a monitor and of its state.
MONITOR_COLUMNS: tuple[Any, ...] = tuple(
    MonitorRow.__table__.c[name]
    for name in dict.fromkeys(
        (*_names(Monitor, MonitorRow, OF_ONE_MONITOR), "request_auth_password", "options")
    )
)
_Row = namedtuple("_Row", [column.name for column in MONITOR_COLUMNS])  # type: ignore[misc]
STATE_COLUMNS = tuple(
    MonitorStateRow.__table__.c[name] for name in (*_names(Monitor, MonitorStateRow), "checked_at")
)
# Evidence loads when read.
_incident_fields = _copier(Incident, IncidentRow, ("evidence", "seen_by", "unwatched"))


@dataclass(frozen=True, slots=True)
class Derived:
    """What the record of a monitor has besides its row. ``latest``: its last check and response
    time, which are newer than those of its state. ``maintenance_since``: of one that is in it.
    """

    uptime: Mapping[str, float | None]
    next_check_at: datetime | None = None
    locations: Sequence[str] = ()
    depends_on: Sequence[int] = ()
    alerts: Sequence[Pair] = ()
    notes: str | None = None
    hours: Sequence[Mapping[str, Any]] = ()
    heartbeat: Mapping[str, Any] = field(default_factory=dict)
    latest: tuple[datetime, int | None] | None = None
    maintenance_since: datetime | None = None


def configured(values: Iterable[Any]) -> Monitor:
    """What a monitor's own row says, without its contacts among the alerts; its state is missing.
    ``values`` of ``MONITOR_COLUMNS``.
    """
    row: Any = _Row(*values)
    fields = {
        **_monitor_fields(row),
        "interval": nearest_interval(row.interval),
        "check_every": row.check_every or interval_fields(row.interval).get("check_every"),
        **KIND_OPTIONS,
        **(row.options or {}),
        "request_headers": pairs_of(row.request_headers),
        "tags": tags_of(row.tags),
        "request_body": readable(row.request_body),
        "assertions": readable(row.assertions) or (),
        "unreadable": tuple(unreadable_in(row, (*SECRET_FIELDS, *CHECK_FIELDS))),
        "request_auth_password_set": row.request_auth_password is not None,
    }
    return Monitor(**fields, alerts=pairs_of(row.alerts))


def monitor_record(own: Monitor, row: Any, derived: Derived) -> Monitor:
    """``own``: of ``configured``. ``row`` has ``STATE_COLUMNS``, ``status``, ``open_incident_id``,
    ``domain_expires_at`` and ``late_until``: the end of the last incident that was found late.
    """
    checked_at, response_time = derived.latest or (row.checked_at, row.response_time)
    state = _state_fields(row)
    since = derived.maintenance_since or _since(state["status_since"], checked_at, row)
    state["status_since"] = since
    # Not by its constructor, which sets each of the 68 fields by a call: a tenth of a list's time.
    monitor = object.__new__(Monitor)
    vars(monitor).update(
        vars(own),
        **state,
        alerts=tuple(derived.alerts),
        notes=derived.notes,
        status=row.status,
        last_checked_at=checked_at,
        response_time=response_time,
        next_check_at=derived.next_check_at,
        locations=tuple(derived.locations),
        depends_on=tuple(derived.depends_on),
        uptime=derived.uptime,
        hours=derived.hours,
        **derived.heartbeat,
        domain=row.domain or None,
        domain_expires_at=row.domain_expires_at,
        open_incident_id=row.open_incident_id,
    )
    return monitor


def _since(status_since: datetime | None, checked_at: datetime | None, row: Any) -> datetime | None:
    """Since when a monitor has its status. An incident that was found late changes no state,
    but a monitor that is up now was not so before its end. The last check was good, so it is not
    later than that.
    """
    if row.status == MonitorStatus.PAUSED:
        paused_at: datetime | None = row.paused_at  # null: before it was stored
        return paused_at or status_since
    until: datetime | None = row.late_until
    is_good = row.status in (MonitorStatus.UP, MonitorStatus.DEGRADED)
    if not is_good or until is None or status_since is None or checked_at is None:
        return status_since
    return max(status_since, min(until, checked_at))


def incident_record(
    row: Any,
    monitor: MonitorRef,
    now: datetime,
    affected: Iterable[int] = (),
    *,
    brief: bool = False,
) -> Incident:
    """``row`` has the columns of ``IncidentRow``, and ``verdict``, ``checked_at`` and
    ``status_since`` of its monitor's state.
    """
    evidence = None if brief else readable(row.evidence)
    unwatched = gaps.until(row, row, now) if row.ended_at is None else row.unwatched
    fields = _incident_fields(row)
    if row.found_late and row.ended_at is not None:
        # The stored end is when its last result stops counting, which may be in the future.
        fields["ended_at"] = min(row.ended_at, max(now.replace(microsecond=0), row.started_at))
    return Incident(
        **fields,
        status=_incident_status(row),
        evidence=evidence,
        changes=changes_of(evidence),
        duration=max(0, int(((fields["ended_at"] or now) - row.started_at).total_seconds())),
        monitor=monitor,
        seen_by=tuple(row.seen_by or ()),
        affected=tuple(affected),
        unreadable=() if brief else tuple(unreadable_in(row, ("evidence",))),
        unwatched=tuple(
            (datetime.fromisoformat(gap["from"]), datetime.fromisoformat(gap["to"]))
            for gap in unwatched or ()
        ),
    )


def _incident_status(row: Any) -> str:
    if row.ended_at is not None:
        return IncidentStatus.RESOLVED
    return IncidentStatus.UNRESOLVED if row.acknowledged_at is None else IncidentStatus.ACKNOWLEDGED


def monitor_columns(fields: Mapping[str, Any], stored: MonitorRow | None = None) -> dict[str, Any]:
    """A form's fields as columns of ``MonitorRow``, without those of ``NO_COLUMNS``. ``stored``:
    the row that they change.
    """
    columns = {name: value for name, value in fields.items() if name not in NO_COLUMNS}
    if not columns.keys().isdisjoint(("interval", "check_every")):
        columns["check_every"] = every = columns.get("check_every")
        before = nearest_interval(stored.interval) if stored else None
        columns["interval"] = every or columns.get("interval") or before
    for name in PAIRS:
        if name in columns:
            # Contacts among the alerts are rows of another table.
            contact = CONTACT if name == "alerts" else None
            own_pairs = (pair for pair in columns[name] or () if pair.key != contact)
            columns[name] = [[pair.key, pair.value] for pair in own_pairs] or None
    if "assertions" in columns:
        columns["assertions"] = columns["assertions"] or None
    if "alerts" in columns:
        columns["alert_lanes"] = lanes_text(columns["alerts"] or ())
    if "tags" in columns:
        columns["tags"] = tags_text(columns["tags"] or ())
    return columns


def pairs_of(stored: list[list[str]] | Unreadable | None) -> tuple[Pair, ...]:
    return tuple(Pair(key, value) for key, value in readable(stored) or ())
