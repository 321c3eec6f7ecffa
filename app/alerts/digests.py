"""Quiet hours in the outbox: rows that are due in them are on hold. When the quiet hours end, each
channel value gets one message about all of these rows, the digest. Every function runs inside a
transaction.

A row on hold stays in the log with its reason and, later, the id of its digest. Its
``next_attempt_at`` is the end of the quiet hours, as they were when the row was put on hold. The
present quiet hours of the monitor and its contacts decide when the row is released, so that a
change of them leaves no row on hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, or_, select

from app.alerts import claims
from app.alerts.claims import give_up_unreadable, unsent_facts
from app.alerts.lanes import Reason
from app.alerts.messages import FIRST_NAMED
from app.alerts.outbox import NEVER_QUIET, ON_HOLD, add_group, unleased
from app.alerts.snapshots import snapshot
from app.alerts.targets import contact_hours, hours_of, notified_lanes, quiet_until, source_ids
from app.db import AnySession
from app.db.statements import is_among, updating
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow
from app.records import BY_INCIDENT, DeliveryStatus, Event, IncidentSeverity
from app.rules.time import iso

MonitorSources = tuple[int, str | None]  # a monitor's id, and the sources of some of its rows
Incidents = dict[int, tuple[IncidentRow, MonitorRow]]  # by the incident's id

_NOTICES = (Event.CERTIFICATE_EXPIRING, Event.DOMAIN_EXPIRING)
_HOURS = (MonitorRow.quiet_start, MonitorRow.quiet_end, MonitorRow.quiet_zone)
_COLUMNS = (
    DeliveryRow.id, DeliveryRow.lane, DeliveryRow.event, DeliveryRow.incident_id,
    DeliveryRow.created_at, DeliveryRow.monitor_id, DeliveryRow.sources, DeliveryRow.channel,
)  # fmt: skip
# Built once, because almost every turn of the worker runs them.
_WAITING = (
    select(DeliveryRow.monitor_id, DeliveryRow.sources, *_HOURS)
    .join(MonitorRow, MonitorRow.id == DeliveryRow.monitor_id)
    .where(ON_HOLD)
    .distinct()
)
_BY_HAND = DeliveryRow.reason.is_not(None) & (DeliveryRow.reason == Reason.BY_HAND)
_NOW = bindparam("now", type_=DeliveryRow.next_attempt_at.type)
_MAY_BE_QUIET = (
    select(DeliveryRow.id, DeliveryRow.sources, *_HOURS)
    .join(MonitorRow, MonitorRow.id == DeliveryRow.monitor_id)
    .where(
        DeliveryRow.status == DeliveryStatus.PENDING,
        DeliveryRow.next_attempt_at <= _NOW,
        DeliveryRow.event.not_in(NEVER_QUIET),
        or_(MonitorRow.quiet_start.is_not(None), DeliveryRow.sources.is_not(None)),
        ~_BY_HAND,
        unleased(_NOW),
    )
)


def put_on_hold(session: AnySession, now: datetime) -> None:
    """Put on hold the due rows whose quiet hours have begun since the row was written."""
    rows = session.execute(_MAY_BE_QUIET, {"now": now}).all()
    for row, until in _with_ends(session, rows, now):
        if until is None:
            continue
        session.execute(
            updating(DeliveryRow)
            .where(DeliveryRow.id == row.id, DeliveryRow.status == DeliveryStatus.PENDING)
            .values(status=DeliveryStatus.HELD, reason=Reason.QUIET_HOURS, next_attempt_at=until)
        )


def due(session: AnySession, now: datetime) -> set[MonitorSources]:
    """The monitors and sources with rows on hold whose quiet hours are over."""
    return {
        (row.monitor_id or 0, row.sources)
        for row, until in _with_ends(session, session.execute(_WAITING).all(), now)
        if until is None
    }


def _with_ends(
    session: AnySession, rows: Sequence[Any], now: datetime
) -> Iterator[tuple[Any, datetime | None]]:
    """Each row with the end of its quiet hours, which is None outside of them. The rows have
    ``sources`` and ``_HOURS``.
    """
    contacts = contact_hours(session, {row.sources for row in rows})
    for row in rows:
        sources = [contacts.get(id) for id in source_ids(row.sources)]
        yield row, quiet_until(hours_of(row), sources, now)


def release(session: AnySession, ended: Collection[MonitorSources], now: datetime) -> int:
    """Release the rows on hold of these monitors and sources. Each channel value gets one digest,
    whose id is the ``covered_by`` of the rows; a service of BY_INCIDENT gets the rows themselves.
    Returns the number of digests.
    """
    lanes: dict[str, list[Any]] = defaultdict(list)
    of_these = is_among(DeliveryRow.monitor_id, {id for id, _ in ended})
    on_hold = select(*_COLUMNS).where(ON_HOLD, of_these)
    for row in session.execute(on_hold.order_by(DeliveryRow.id)):
        if (row.monitor_id, row.sources) in ended:
            lanes[row.lane].append(row)
    if not lanes:
        return 0
    incidents = _incidents(session, [row for rows in lanes.values() for row in rows])
    _drop_settled(session, lanes, incidents)
    by_incident = [lane for lane, rows in lanes.items() if rows[0].channel in BY_INCIDENT]
    _send_each(session, [row for lane in by_incident for row in lanes.pop(lane)], incidents, now)
    for lane, rows in lanes.items():
        rows.extend(_recoveries(session, lane, rows, now))
    # The digest is a reminder too, so the next reminder is due a whole period from now. Every
    # writer writes incidents before deliveries: in another order, two writers could deadlock.
    session.execute(
        updating(IncidentRow)
        .where(is_among(IncidentRow.id, incidents), IncidentRow.ended_at.is_(None))
        .values(reminded_at=now)
    )
    return sum(_write_digest(session, rows, incidents, now) for rows in lanes.values())


def _drop_settled(session: AnySession, lanes: dict[str, list[Any]], incidents: Incidents) -> None:
    """Hold for good the rows of ended incidents whose outage was delivered before and whose
    recovery is not on hold: for example, an acknowledgement that only a contact in quiet hours
    wants.
    """
    ended = {id for id, (incident, _monitor) in incidents.items() if incident.ended_at is not None}
    notified = notified_lanes(session, ended)
    for lane, rows in list(lanes.items()):
        with_recovery = {row.incident_id for row in rows if row.event == Event.INCIDENT_RESOLVED}
        settled = notified.get(lane, frozenset()) - with_recovery
        ids = [row.id for row in rows if row.incident_id in settled]
        claims.hold_for_good(session, ids, Reason.SETTLED)
        lanes[lane] = [row for row in rows if row.incident_id not in settled]
        if not lanes[lane]:
            del lanes[lane]


def _send_each(
    session: AnySession, rows: Sequence[Any], incidents: Incidents, now: datetime
) -> None:
    """Make these rows due. Rows of an incident that opened and ended in quiet hours are held for
    good: nobody is called for an outage that is over.
    """
    opened = {row.incident_id for row in rows if row.event == Event.INCIDENT_OPENED}
    ended = {id for id in opened if id in incidents and incidents[id][0].ended_at is not None}
    claims.hold_for_good(
        session, [row.id for row in rows if row.incident_id in ended], Reason.SETTLED
    )
    session.execute(
        updating(DeliveryRow)
        .where(is_among(DeliveryRow.id, [row.id for row in rows if row.incident_id not in ended]))
        .values(status=DeliveryStatus.PENDING, reason=None, next_attempt_at=now)
    )


def _recoveries(
    session: AnySession, lane: str, rows: Sequence[Any], now: datetime
) -> Sequence[Any]:
    """The pending recoveries of outages among these rows: the digest covers them too."""
    opened = [row.incident_id for row in rows if row.event == Event.INCIDENT_OPENED]
    query = select(*_COLUMNS).where(
        DeliveryRow.lane == lane,
        DeliveryRow.event == Event.INCIDENT_RESOLVED,
        DeliveryRow.status == DeliveryStatus.PENDING,
        is_among(DeliveryRow.incident_id, opened),
        ~_BY_HAND,
        unleased(now),
    )
    return session.execute(query).all() if opened else ()


def _write_digest(
    session: AnySession, rows: Sequence[Any], incidents: Incidents, now: datetime
) -> bool:
    """Write the digest of one channel value. It needs the value of the first row and the facts of
    notices; rows that cannot be read are given up. Returns False if no row is left.
    """
    ids = [row.id for row in rows]
    notice_ids = [row.id for row in rows if row.event in _NOTICES]
    needed = [ids[0], *notice_ids[:FIRST_NAMED]]
    if unreadable := give_up_unreadable(session, needed):
        rows = [row for row in rows if row.id not in unreadable]
        return bool(rows) and _write_digest(session, rows, incidents, now)
    query = select(DeliveryRow).where(DeliveryRow.id.in_(needed))
    loaded = {row.id: row for row in session.scalars(query)}
    facts = _facts(rows, incidents, now) | {
        "notices": [unsent_facts(loaded[id]) for id in notice_ids[:FIRST_NAMED]],
        "notice_count": len(notice_ids),
        "deliveries": ids,
    }
    digest_id = add_group(session, Event.INCIDENTS_DIGEST, loaded[ids[0]], facts, now)
    claims.hold_for_good(session, ids, Reason.QUIET_HOURS, digest_id)
    return True


def _incidents(session: AnySession, rows: Sequence[Any]) -> Incidents:
    ids = {row.incident_id for row in rows if row.incident_id is not None}
    pairs = session.execute(
        select(IncidentRow, MonitorRow)
        .execution_options(populate_existing=True)
        .join(MonitorRow, MonitorRow.id == IncidentRow.monitor_id)
        .where(is_among(IncidentRow.id, ids))
        .order_by(IncidentRow.id)
    )
    return {incident.id: (incident, monitor) for incident, monitor in pairs}


def _facts(rows: Sequence[Any], incidents: Incidents, now: datetime) -> dict[str, Any]:
    """The content of a digest: its incidents as they are now, the open ones first."""
    ids = dict.fromkeys(row.incident_id for row in rows if row.incident_id in incidents)
    pairs = [incidents[id] for id in ids if id is not None]
    pairs.sort(key=lambda pair: pair[0].ended_at is not None)
    still_open = sum(incident.ended_at is None for incident, _monitor in pairs)
    return {
        "since": iso(rows[0].created_at),
        "open": still_open,
        "degraded": sum(
            incident.ended_at is None and incident.severity == IncidentSeverity.DEGRADED
            for incident, _monitor in pairs
        ),
        "resolved": len(pairs) - still_open,
        "incidents": [
            snapshot(Event.INCIDENTS_DIGEST, monitor, incident, now)
            for incident, monitor in pairs[:FIRST_NAMED]
        ],
    }
