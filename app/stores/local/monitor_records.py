"""Read the rows of monitors, and make records of them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from app.config import Settings
from app.db import changes, db, dependencies, latest, rollups
from app.db.cached import Cached, of_transaction, reading, stored
from app.db.tables import DomainRow, IncidentRow, MonitorRow, MonitorStateRow
from app.db.tags import notes_of, tags_of
from app.db.types import SHORT, Encrypted, of_fields, readable, unreadable_in
from app.records import (
    CHECK_FIELDS,
    KIND_OPTIONS,
    SECRET_FIELDS,
    UPTIME_RANGES,
    MaintenanceWindow,
    Monitor,
    MonitorStatus,
    interval_fields,
    is_heartbeat,
    nearest_interval,
)
from app.rules.recurrence import applies_to, next_occurrences
from app.stores.local import contacts, heartbeats, states
from app.stores.local.contacts import pairs_of
from app.stores.local.locations import next_check_at, watched_from
from app.stores.local.part import copier, names_in
from app.stores.mail import base_here

# Fields that are stored in another form than the record's.
IN_OTHER_FORM = (
    "request_headers", "alerts", "tags", "request_body", "interval", "check_every", "assertions",
)  # fmt: skip
OF_ONE_MONITOR = ("notes",)  # lists do not load them
MAX_CACHED = 2_000  # monitors, some 5 KB each

_MONITOR: Any = MonitorRow.__table__
_STATE: Any = MonitorStateRow.__table__
_monitor_fields = copier(Monitor, MonitorRow, (*IN_OTHER_FORM, *OF_ONE_MONITOR))
_state_fields = copier(Monitor, MonitorStateRow, ("domain", "response_time"))
# The columns of a monitor that a record needs, and the columns of its state that few checks change.
COLUMNS: tuple[Any, ...] = (
    *(
        _MONITOR.c[name]
        for name in dict.fromkeys(
            (*names_in(Monitor, MonitorRow, OF_ONE_MONITOR), "request_auth_password", "options")
        )
    ),
    *(_STATE.c[name] for name in names_in(Monitor, MonitorStateRow, ("response_time",))),
)
_LATE: Any = IncidentRow.__table__.alias().c
# Further columns that ``_since`` needs.
_OF_SINCE = (
    _STATE.c.paused_at,
    select(func.max(_LATE.ended_at))
    .where(_LATE.monitor_id == _MONITOR.c.id, _LATE.found_late)
    .scalar_subquery()
    .label("late_until"),
)
_Row = namedtuple("_Row", [column.name for column in COLUMNS])  # type: ignore[misc]


class MonitorRecords:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._figures = rollups.ListFigures()
        # A monitor is cached until its stored values change, also by a restored backup. Its short
        # secrets, such as headers and alerts, are cached in clear: this process caches them in any
        # case (``_Cipher`` in app/db/types.py).
        self._cached: Cached[Monitor] = Cached(MAX_CACHED)

    def records(
        self,
        ids: Sequence[int],
        windows: Sequence[MaintenanceWindow],
        now: datetime,
        *,
        ranges: Collection[str] = UPTIME_RANGES,
        hours: bool = False,
        brief: bool = False,
        notes: bool = False,
    ) -> Sequence[Monitor]:
        """The monitors with these ids, in their order. The number of queries does not depend on the
        number of ids.
        """
        if not ids:
            return []
        with_figures = bool(ranges) or hours
        change = newest_change() if with_figures else 0
        statement = _reading(tuple(windows), with_figures=with_figures)
        parameters = {"ids": list(ids), "now": now, "until": latest.last_moment(now)}
        rows = db.session.execute(statement, parameters).all()
        own = self._own(rows)
        figures = rollups.NO_FIGURES
        if with_figures:
            figures = self._figures.read(rows, now, ranges, hours=hours, change=change)
        confirm = timedelta(seconds=self._settings.confirm_seconds)
        watched = {} if brief else watched_from(list(own), now)
        alerts_without_contacts = (
            {} if brief else {id: monitor.alerts for id, monitor in own.items()}
        )
        alerts = (
            contacts.alerts_with_contacts(alerts_without_contacts)
            if alerts_without_contacts
            else {}
        )
        texts = notes_of(db.session, ids) if notes else {}
        heartbeat_ids = [id for id, monitor in own.items() if is_heartbeat(monitor.url)]
        of_pings = {}
        if heartbeat_ids:
            of_pings = heartbeats.states_of(heartbeat_ids, base_here(self._settings))
        starts: list[tuple[MaintenanceWindow, datetime]] = []
        if any(row.status == MonitorStatus.MAINTENANCE for row in rows):
            starts = [(window, next_occurrences(window, 1, now)[0][0]) for window in windows]
        by_id = {}
        for row in rows:
            id, in_maintenance = row.id, row.status == MonitorStatus.MAINTENANCE
            places = watched.get(id, {})
            by_id[id] = _record(
                own[id],
                row,
                latest.newer_check(row),
                _maintenance_since(own[id], starts, now) if in_maintenance else None,
                uptime=figures.uptimes.get(id, {}),
                hours=figures.hours.get(id, ()),
                next_check_at=None if brief else next_check_at(row, places.values(), now, confirm),
                locations=tuple(places),
                depends_on=tuple(dependencies.parents_in(row.depends_on)),
                alerts=tuple(alerts.get(id, ())),
                notes=texts.get(id),
                **of_pings.get(id, {}),
            )
        return [by_id[id] for id in ids if id in by_id]

    def with_status(
        self, rows: Sequence[Any], windows: Sequence[MaintenanceWindow], now: datetime
    ) -> Sequence[Monitor]:
        """The monitors of rows of ``status_columns``, with the fields of ``status_only``."""
        # The start of a maintenance depends on the windows, so these records are made in full.
        maintained = [row.id for row in rows if row.status == MonitorStatus.MAINTENANCE]
        records = self.records(maintained, windows, now, ranges=(), brief=True)
        by_id = {monitor.id: monitor for monitor in records}
        monitors = []
        for row in rows:
            monitor = by_id.get(row.id)
            if monitor is None:
                fields = {
                    "id": row.id,
                    "name": row.name,
                    "url": row.url,
                    "interval": nearest_interval(row.interval),
                    "status": row.status,
                    "cause": row.cause,
                    "status_since": _since(row.status_since, row.checked_at, row),
                    "uptime": {},
                }
                monitor = of_fields(Monitor, fields)
            monitors.append(monitor)
        return monitors

    def _own(self, rows: Sequence[Any]) -> dict[int, Monitor]:
        """The part of each monitor that few checks change, from the cache. A monitor with a long
        secret is not cached.
        """
        read = reading(COLUMNS, db.engine.dialect)
        values = {row.id: row[: len(COLUMNS)] for row in rows}
        short = {
            id: stored for id, stored in values.items() if all(map(_is_short, _secrets(stored)))
        }
        cached = self._cached.read(
            short, "", lambda missing: {id: _configured(read(values[id])) for id in missing}
        )
        long = values.keys() - short.keys()
        return cached | {id: _configured(read(values[id])) for id in long}


def _configured(values: Iterable[Any]) -> Monitor:
    """A monitor with the values of ``COLUMNS``. Its alerts are without contacts."""
    row: Any = _Row(*values)
    fields = {
        **_monitor_fields(row),
        **_state_fields(row),
        "domain": row.domain or None,
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


def _record(
    own: Monitor,
    row: Any,
    newer: tuple[datetime, int | None] | None,
    maintenance_since: datetime | None,
    **derived: Any,
) -> Monitor:
    """The record of a monitor. ``own``: the result of ``_configured``. ``row``: a row of
    ``_reading``. ``newer``: the time and response time of a later check than the state has, if
    there is one. ``derived``: fields that are no columns.
    """
    checked_at, response_time = newer or (row.checked_at, row.response_time)
    fields = {
        **vars(own),
        **derived,
        "status_since": maintenance_since or _since(own.status_since, checked_at, row),
        "status": row.status,
        "last_checked_at": checked_at,
        "response_time": response_time,
        "domain_expires_at": row.domain_expires_at,
        "open_incident_id": row.open_incident_id,
    }
    return of_fields(Monitor, fields)


def _since(status_since: datetime | None, checked_at: datetime | None, row: Any) -> datetime | None:
    """Since when a monitor has its status. An incident that was found late changes no state, but a
    monitor that is up now was not up before the end of that incident. The time is at most that of
    the last check, which was good.
    """
    if row.status == MonitorStatus.PAUSED:
        paused_at: datetime | None = row.paused_at  # null if an earlier version paused it
        return paused_at or status_since
    until: datetime | None = row.late_until
    is_good = row.status in (MonitorStatus.UP, MonitorStatus.DEGRADED)
    if not is_good or until is None or status_since is None or checked_at is None:
        return status_since
    return max(status_since, min(until, checked_at))


def _maintenance_since(
    monitor: Monitor, starts: Sequence[tuple[MaintenanceWindow, datetime]], now: datetime
) -> datetime | None:
    """When the maintenance of a monitor began. ``starts``: the active windows with their starts."""
    times = [start for window, start in starts if applies_to(window, monitor.id, monitor.tags)]
    own_start, end = monitor.maintenance_start_at, monitor.maintenance_end_at
    times += [own_start] if own_start and end and own_start <= now < end else []
    return min(times, default=None)


_secrets = itemgetter(
    *(index for index, column in enumerate(COLUMNS) if isinstance(column.type, Encrypted))
)


def _is_short(secret: Any) -> bool:
    return secret is None or (isinstance(secret, str) and len(secret) <= SHORT)


@lru_cache(maxsize=16)
def _reading(windows: tuple[MaintenanceWindow, ...], *, with_figures: bool) -> Select[Any]:
    """The statement that reads monitors while these windows are active. It needs the parameters
    ``ids``, ``now`` and ``until``. ``with_figures``: add the columns of ``ListFigures``. Building a
    statement takes longer than running it, so the last ones are cached. It reads tables, not
    classes: the ORM would double its time, and could return rows that this session has read before.
    """
    incident, domain = IncidentRow.__table__, DomainRow.__table__
    return (
        select(
            *stored(COLUMNS),
            # These are decoded by the types of the columns: they change often, or are needed alone.
            *(_STATE.c.checked_at, _STATE.c.response_time),
            *(_MONITOR.c.id, _MONITOR.c.paused, _STATE.c.unconfirmed_at),
            *(rollups.SUMMED if with_figures else (_MONITOR.c.interval, _MONITOR.c.updated_at)),
            *latest.NEWEST,
            states.status(windows).label("status"),
            incident.c.id.label("open_incident_id"),
            domain.c.expires_at.label("domain_expires_at"),
            *_OF_SINCE,
            dependencies.parents_of(_MONITOR.c.id).label("depends_on"),
        )
        .select_from(_MONITOR)
        .join(_STATE, _STATE.c.monitor_id == _MONITOR.c.id)
        .outerjoin(
            incident, (incident.c.monitor_id == _MONITOR.c.id) & incident.c.ended_at.is_(None)
        )
        .outerjoin(domain, domain.c.domain == _STATE.c.domain)
        .where(_MONITOR.c.id.in_(bindparam("ids", expanding=True)))
    )


@lru_cache(maxsize=16)
def status_columns(windows: tuple[MaintenanceWindow, ...]) -> tuple[Any, ...]:
    """The columns that ``with_status`` needs besides the id, while ``windows`` are active."""
    return (
        *(_MONITOR.c.name, _MONITOR.c.url, _MONITOR.c.interval),
        states.status(windows).label("status"),
        *(_STATE.c.cause, _STATE.c.status_since, _STATE.c.checked_at, *_OF_SINCE),
    )


def newest_change() -> int:
    """The number of the newest change. A transaction reads it once, before the rows."""
    cache = of_transaction()
    if "change" not in cache:
        cache["change"] = changes.newest_of(db.session)
    number: int = cache["change"]
    return number
