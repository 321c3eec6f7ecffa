"""Records as the API shows them (decisions.md 3, 4, 5 and 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from app.checks.kinds import kind_of
from app.records import (
    UPTIME_RANGES,
    ApiKey,
    Delivery,
    Incident,
    MaintenanceWindow,
    Monitor,
    Pair,
    Result,
    mask,
)


def moment(value: datetime | None) -> str | None:
    if value is None:
        return None
    return value.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat() + "Z"


def _pairs(pairs: tuple[Pair, ...], masked: bool) -> list[dict[str, str]]:
    shown = (pair.masked() if masked else pair for pair in pairs)
    return [{"key": str(pair.key), "value": pair.value} for pair in shown]


def monitor(record: Monitor, masked: bool) -> dict[str, Any]:
    """``masked``: header values, alert values and body for a key that may only read."""
    body, kind = record.request_body, kind_of(record.url)
    return {
        "id": record.id,
        "name": record.name,
        "url": record.url,
        "kind": kind.name if kind else None,
        "interval": record.interval,
        "alert_condition": str(record.alert_condition),
        "alert_text_lookup": record.alert_text_lookup,
        "request_method": str(record.request_method),
        "request_headers": _pairs(record.request_headers, masked),
        "request_auth_username": record.request_auth_username,
        "request_auth_password_set": record.request_auth_password_set,
        "request_body": mask(body) if masked and body is not None else body,
        "cache_buster": int(record.cache_buster),
        "ssl_alert_days": record.ssl_alert_days,
        "domain_alert_days": record.domain_alert_days,
        "maintenance_start_at": moment(record.maintenance_start_at),
        "maintenance_end_at": moment(record.maintenance_end_at),
        "alerts": _pairs(record.alerts, masked),
        "timeout": record.timeout,
        "accepted_statuses": record.accepted_statuses,
        "follow_redirects": record.follow_redirects,
        "verify_tls": record.verify_tls,
        "slow_after": record.slow_after,
        "confirmations": record.confirmations,
        "tags": list(record.tags),
        "remind_after": record.remind_after,
        "quiet_start": record.quiet_start,
        "quiet_end": record.quiet_end,
        "quiet_zone": record.quiet_zone,
        "status": str(record.status),
        "status_since": moment(record.status_since),
        "cause_code": record.cause_code,
        "cause": record.cause,
        "paused": record.paused,
        "last_checked_at": moment(record.last_checked_at),
        "next_check_at": moment(record.next_check_at),
        "response_time": record.response_time,
        "uptime": {range_: record.uptime.get(range_) for range_ in UPTIME_RANGES},
        "ssl_expires_at": moment(record.ssl_expires_at),
        "domain": record.domain,
        "domain_expires_at": moment(record.domain_expires_at),
        "open_incident_id": record.open_incident_id,
        "created_at": moment(record.created_at),
        "updated_at": moment(record.updated_at),
        **({"hours": plain(record.hours)} if record.hours else {}),
    }


def incident(record: Incident) -> dict[str, Any]:
    about = record.monitor
    return {
        "id": record.id,
        "monitor_id": record.monitor_id,
        "monitor": {"id": about.id, "name": about.name, "url": about.url} if about else None,
        "status": str(record.status),
        "started_at": moment(record.started_at),
        "acknowledged_at": moment(record.acknowledged_at),
        "ended_at": moment(record.ended_at),
        "duration": record.duration,
        "cause": record.cause,
        "cause_code": record.cause_code,
        "comment": record.comment,
        "evidence": plain(record.evidence),
        "acknowledged_by": record.acknowledged_by,
        "by_hand": record.by_hand,
        "classification": record.classification,
        "created_at": moment(record.created_at),
        "updated_at": moment(record.updated_at),
    }


def result(record: Result) -> dict[str, Any]:
    return {
        "id": record.id,
        "monitor_id": record.monitor_id,
        "checked_at": moment(record.checked_at),
        "verdict": str(record.verdict),
        "cause_code": record.cause_code,
        "cause": record.cause,
        "status_code": record.status_code,
        "response_time": record.response_time,
        "timings": asdict(record.timings),
        "ip": record.ip,
        "http_version": record.http_version,
        "redirects": list(record.redirects),
        "warnings": [str(warning) for warning in record.warnings],
        "location": record.location,
        "maintenance": record.maintenance,
    }


def delivery(record: Delivery) -> dict[str, Any]:
    return {
        "id": record.id,
        "event": str(record.event),
        "monitor_id": record.monitor_id,
        "incident_id": record.incident_id,
        "channel": str(record.channel),
        "target": record.target,
        "status": str(record.status),
        "reason": record.reason,
        "attempts": plain(record.attempts),
        "created_at": moment(record.created_at),
        "next_attempt_at": moment(record.next_attempt_at),
        "delivered_at": moment(record.delivered_at),
        "covers": list(record.covers),
    }


def window(record: MaintenanceWindow) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "start_at": moment(record.start_at),
        "end_at": moment(record.end_at),
        "monitors": list(record.monitors),
        "repeat": record.repeat,
        "repeat_until": moment(record.repeat_until),
        "zone": record.zone,
        "created_at": moment(record.created_at),
        "updated_at": moment(record.updated_at),
    }


def key(record: ApiKey) -> dict[str, Any]:
    return {
        "name": record.name,
        "scope": str(record.scope),
        "expires_at": moment(record.expires_at),
        "last_used_at": moment(record.last_used_at),
    }


def plain(value: Any) -> Any:
    """Nested data with its times written as the API writes them."""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
