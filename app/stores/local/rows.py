"""Database rows as the records that everyone speaks, and a form's fields as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.db.tables import (
    IncidentRow,
    MaintenanceWindowRow,
    MonitorRow,
    MonitorStateRow,
)
from app.db.types import Unreadable, readable
from app.records import (
    SECRET_FIELDS,
    Incident,
    IncidentStatus,
    MaintenanceWindow,
    Monitor,
    MonitorRef,
    Pair,
)

# Fields that are kept under another form than the record's.
PAIRS = ("request_headers", "alerts")


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a monitor beside its own two rows."""

    status: str
    open_incident_id: int | None
    domain_expires_at: datetime | None
    uptime: Mapping[str, float | None]
    hours: Sequence[Mapping[str, Any]] = ()


def monitor_record(row: MonitorRow, state: MonitorStateRow, known: Known) -> Monitor:
    return Monitor(
        id=row.id,
        name=row.name,
        url=row.url,
        interval=row.interval,
        alert_condition=row.alert_condition,
        alert_text_lookup=row.alert_text_lookup,
        request_method=row.request_method,
        request_headers=_pairs(row.request_headers),
        request_auth_username=row.request_auth_username,
        cache_buster=row.cache_buster,
        ssl_alert_days=row.ssl_alert_days,
        domain_alert_days=row.domain_alert_days,
        maintenance_start_at=row.maintenance_start_at,
        maintenance_end_at=row.maintenance_end_at,
        alerts=_pairs(row.alerts),
        timeout=row.timeout,
        accepted_statuses=row.accepted_statuses,
        follow_redirects=row.follow_redirects,
        verify_tls=row.verify_tls,
        request_body=readable(row.request_body),
        slow_after=row.slow_after,
        confirmations=row.confirmations,
        tags=tags_of(row.tags),
        remind_after=row.remind_after,
        quiet_start=row.quiet_start,
        quiet_end=row.quiet_end,
        quiet_zone=row.quiet_zone,
        unreadable=unreadable_fields(row),
        request_auth_password_set=row.request_auth_password is not None,
        status=known.status,
        paused=row.paused,
        last_checked_at=state.checked_at,
        next_check_at=state.next_check_at,
        response_time=state.response_time,
        uptime=known.uptime,
        hours=known.hours,
        ssl_expires_at=state.ssl_expires_at,
        domain=state.domain or None,
        domain_expires_at=known.domain_expires_at,
        open_incident_id=known.open_incident_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        cause_code=state.cause_code,
        cause=state.cause,
        status_since=state.status_since,
    )


def incident_record(
    row: IncidentRow, monitor: MonitorRef, now: datetime, *, brief: bool = False
) -> Incident:
    return Incident(
        id=row.id,
        monitor_id=row.monitor_id,
        started_at=row.started_at,
        acknowledged_at=row.acknowledged_at,
        ended_at=row.ended_at,
        cause=row.cause,
        comment=row.comment,
        status=incident_status(row),
        cause_code=row.cause_code,
        evidence=None if brief else readable(row.evidence),
        duration=max(0, int(((row.ended_at or now) - row.started_at).total_seconds())),
        monitor=monitor,
        created_at=row.created_at,
        updated_at=row.updated_at,
        acknowledged_by=row.acknowledged_by,
        by_hand=row.by_hand,
        classification=row.classification,
        unreadable=() if brief or not isinstance(row.evidence, Unreadable) else ("evidence",),
        unwatched=tuple(
            (datetime.fromisoformat(gap["from"]), datetime.fromisoformat(gap["to"]))
            for gap in row.unwatched or ()
        ),
    )


def unreadable_fields(row: MonitorRow) -> tuple[str, ...]:
    """The fields of a monitor whose stored value cannot be read."""
    return tuple(name for name in SECRET_FIELDS if isinstance(getattr(row, name), Unreadable))


def incident_status(row: IncidentRow) -> str:
    if row.ended_at is not None:
        return IncidentStatus.RESOLVED
    return IncidentStatus.UNRESOLVED if row.acknowledged_at is None else IncidentStatus.ACKNOWLEDGED


def window_record(row: MaintenanceWindowRow, monitors: Iterable[int]) -> MaintenanceWindow:
    return MaintenanceWindow(
        id=row.id,
        name=row.name,
        start_at=row.start_at,
        end_at=row.end_at,
        monitors=tuple(sorted(monitors)),
        repeat=row.repeat,
        repeat_until=row.repeat_until,
        zone=row.zone,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def monitor_columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A form's fields as columns of ``MonitorRow``; ``pause`` is no column."""
    columns = {name: value for name, value in fields.items() if name != "pause"}
    for name in PAIRS:
        if name in columns:
            columns[name] = [[pair.key, pair.value] for pair in columns[name] or ()] or None
    if "tags" in columns:
        columns["tags"] = tags_text(columns["tags"] or ())
    for name in ("name", "url"):
        if name in columns:
            columns[f"{name}_folded"] = columns[name].casefold()
    return columns


def tags_text(tags: Iterable[str]) -> str:
    """Tags in one column, each between line breaks, so that a whole tag can be searched for."""
    joined = "\n".join(tags)
    return f"\n{joined}\n" if joined else ""


def tags_of(text: str) -> tuple[str, ...]:
    return tuple(tag for tag in text.split("\n") if tag)


def _pairs(stored: list[list[str]] | Unreadable | None) -> tuple[Pair, ...]:
    return tuple(Pair(key, value) for key, value in readable(stored) or ())
