"""JSON schemas for the OpenAPI document: of forms, read off their fields, and of the records."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from app.checks.kinds import KINDS, kinds_that_know
from app.forms import fields as f
from app.forms.lists import IdList, PairList, Tags
from app.forms.monitor import MonitorForm
from app.forms.schema import SchemaField, SchemaForm
from app.records import (
    CACHE_BUSTER,
    CERTIFICATE,
    UPTIME_RANGES,
    Channel,
    Classification,
    DeliveryStatus,
    Event,
    IncidentStatus,
    MonitorStatus,
    RequestMethod,
    Scope,
    StatisticsRange,
    Verdict,
)
from app.stats import report

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
MOMENT: Schema = {"type": "string", "format": "date-time", "example": "2026-11-21T08:00:00Z"}
CLOCK_TIME: Schema = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}
SENT_MOMENT = (
    "Y-m-dTH:i:s, read as UTC; Z or an offset may follow (in a form, + must be written %2B)."
)


def array(of: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": of, **more}


def thing(properties: dict[str, Schema], **more: Any) -> Schema:
    return {"type": "object", "properties": properties, **more}


def record(
    properties: dict[str, Schema], *, where_asked_for: dict[str, Schema] | None = None
) -> Schema:
    """An answer's object: every one of ``properties`` is always there; /api/v1 may grow more
    (decisions.md 8)."""
    return thing(properties | (where_asked_for or {}), required=list(properties))


def nullable(schema: Schema) -> Schema:
    plain = dict(schema)
    kind = plain.pop("type", None)
    if kind is None:
        return {"anyOf": [schema, {"type": "null"}]}
    if "enum" in plain:
        plain["enum"] = [*plain["enum"], None]
    return {"type": [kind, "null"], **plain}


def words(of: type[StrEnum]) -> Schema:
    return {"type": "string", "enum": [word.value for word in of]}


PAIR = record({"key": STRING, "value": STRING})


def of_field(field: SchemaField) -> Schema:
    """What a field reads."""
    schema = _kind(field)
    if field.description:
        schema["description"] = str(field.description)
    if isinstance(field, f.Moment):
        schema["description"] = f"{field.description} {SENT_MOMENT}".strip()
    default = field.default
    if default not in (None, ()):
        schema["default"] = default.value if isinstance(default, StrEnum) else default
    return schema


def _kind(field: SchemaField) -> Schema:
    if isinstance(field, f.NumberSwitch):
        return {**INTEGER, "enum": list(CACHE_BUSTER)}
    if isinstance(field, f.Switch):
        return dict(BOOLEAN)
    if isinstance(field, f.Options):
        values = [v.value if isinstance(v, StrEnum) else v for v in field.allowed.values()]
        return {"type": "integer" if isinstance(values[0], int) else "string", "enum": values}
    if isinstance(field, f.Number):
        return INTEGER | {
            name: bound
            for name, bound in (("minimum", field.low), ("maximum", field.high))
            if bound is not None
        }
    if isinstance(field, f.ClockTime):
        return dict(CLOCK_TIME)
    if isinstance(field, f.RecordId):
        return dict(INTEGER)
    if isinstance(field, PairList):
        keys = {"enum": [key for key, _ in field.key_choices]} if field.key_choices else {}
        return array(record({"key": STRING | keys, "value": STRING}), maxItems=field.most)
    if isinstance(field, IdList):
        return array(INTEGER)
    if isinstance(field, Tags | f.Ids):
        return dict(STRING)
    return STRING | ({"maxLength": field.most} if isinstance(field, f.Text) and field.most else {})


def of_form(form_class: type[SchemaForm], *, update: bool) -> Schema:
    """A request body. An update requires nothing; an optional field may be null, which clears
    it."""
    form = form_class()
    monitors = issubclass(form_class, MonitorForm)
    required = [field.short_name for field in form.schema_fields() if getattr(field, "required", 0)]
    properties = {
        field.short_name: of_field(field)
        if field.short_name in required or isinstance(field, f.Switch)
        else nullable(of_field(field))
        for field in form.schema_fields()
    }
    for name, schema in properties.items() if monitors else ():
        _tell_kinds(schema, kinds_that_know(name))
    more = {"required": required} if required and not update else {}
    return thing(properties, additionalProperties=False, **more)


def _tell_kinds(schema: Schema, kinds: Sequence[str]) -> None:
    if len(kinds) < len(KINDS):
        said = f"Only for the kind {' or '.join(kinds)}; elsewhere empty or its default."
        schema["description"] = f"{schema.get('description', '')} {said}".strip()
        schema["x-kinds"] = list(kinds)


def parameters(form_class: type[SchemaForm]) -> list[Schema]:
    """A query's parameters."""
    found = []
    for field in form_class().schema_fields():
        schema = of_field(field)
        text = schema.pop("description", "")
        described = {"description": text} if text else {}
        found.append({"name": field.short_name, "in": "query", "schema": schema, **described})
    return found


PHASES = ("dns", "connect", "tls", "ttfb", "download")  # in ms
STATES = ("up", "down", "unknown", "maintenance")  # in seconds
SECONDS = ("downtime", "watched", "unknown", "maintenance")
BUCKET = record(
    {
        "start": MOMENT,
        "end": MOMENT,
        "checks": INTEGER,
        "uptime": nullable(NUMBER),
        **dict.fromkeys(STATES, INTEGER),
        **{name: nullable(NUMBER) for name in ("response_time", "p95", "max")},
        "timings": record({name: nullable(NUMBER) for name in PHASES}),
    }
)

HOUR = record(
    {"start": MOMENT, **dict.fromkeys(STATES, INTEGER), "response_time": nullable(NUMBER)}
)
FIGURES: dict[str, Schema] = {
    "uptime": nullable(NUMBER),
    **dict.fromkeys(report.COUNTS, INTEGER),
    **dict.fromkeys(report.MEASURES, nullable(INTEGER)),
}

RECORDS: dict[str, Schema] = {
    "Monitor": record(
        {
            "id": INTEGER,
            "name": STRING,
            "url": STRING,
            # null for a URL that no kind reads; none such can be stored
            "kind": nullable({"type": "string", "enum": [kind.name for kind in KINDS]}),
            "interval": INTEGER,
            "alert_condition": STRING,
            "alert_text_lookup": nullable(STRING),
            "request_method": words(RequestMethod),
            "request_headers": array(PAIR),
            "request_auth_username": nullable(STRING),
            "request_auth_password_set": BOOLEAN,
            "request_body": nullable(STRING),
            "cache_buster": {**INTEGER, "enum": list(CACHE_BUSTER)},
            "ssl_alert_days": nullable(INTEGER),
            "domain_alert_days": nullable(INTEGER),
            "maintenance_start_at": nullable(MOMENT),
            "maintenance_end_at": nullable(MOMENT),
            "alerts": array(PAIR),
            "timeout": INTEGER,
            "accepted_statuses": STRING,
            "follow_redirects": BOOLEAN,
            "verify_tls": BOOLEAN,
            "slow_after": nullable(INTEGER),
            "confirmations": INTEGER,
            "tags": array(STRING),
            "remind_after": nullable(INTEGER),
            "quiet_start": nullable(CLOCK_TIME),
            "quiet_end": nullable(CLOCK_TIME),
            "quiet_zone": STRING,
            "status": words(MonitorStatus),
            "status_since": nullable(MOMENT),
            "cause_code": nullable(STRING),
            "cause": nullable(STRING),
            "paused": BOOLEAN,
            "last_checked_at": nullable(MOMENT),
            "next_check_at": nullable(MOMENT),
            "response_time": nullable(INTEGER),
            "uptime": record({name: nullable(NUMBER) for name in UPTIME_RANGES}),
            "ssl_expires_at": nullable(MOMENT),
            "domain": nullable(STRING),
            "domain_expires_at": nullable(MOMENT),
            "open_incident_id": nullable(INTEGER),
            "created_at": MOMENT,
            "updated_at": MOMENT,
        },
        where_asked_for={"hours": array(HOUR)},
    ),
    "Incident": record(
        {
            "id": INTEGER,
            "monitor_id": INTEGER,
            "monitor": record({"id": INTEGER, "name": STRING, "url": STRING}),
            "status": words(IncidentStatus),
            "started_at": MOMENT,
            "acknowledged_at": nullable(MOMENT),
            "ended_at": nullable(MOMENT),
            "duration": INTEGER,
            "cause": nullable(STRING),
            "cause_code": nullable(STRING),
            "comment": nullable(STRING),
            "evidence": nullable(thing({})),
            "acknowledged_by": nullable(STRING),
            "by_hand": BOOLEAN,
            "classification": nullable(words(Classification)),
            "created_at": MOMENT,
            "updated_at": MOMENT,
        }
    ),
    "Result": record(
        {
            "id": nullable(STRING),
            "monitor_id": nullable(INTEGER),
            "checked_at": MOMENT,
            "verdict": words(Verdict),
            "cause_code": nullable(STRING),
            "cause": nullable(STRING),
            "status_code": nullable(INTEGER),
            "response_time": nullable(INTEGER),
            "timings": record({name: nullable(INTEGER) for name in PHASES}),
            "ip": nullable(STRING),
            "http_version": nullable(STRING),
            "redirects": array(STRING),
            "warnings": array(STRING),
            "location": STRING,
            "maintenance": BOOLEAN,
        }
    ),
    "Statistics": record(
        {
            "range": words(StatisticsRange),
            "from": MOMENT,
            "to": MOMENT,
            "uptime": nullable(NUMBER),  # percent
            **dict.fromkeys(SECONDS, INTEGER),
            "checks": INTEGER,
            "incidents": INTEGER,
            "mttr": nullable(INTEGER),
            "response_time": record(
                {name: nullable(NUMBER) for name in ("avg", "p50", "p95", "p99", "max")}
            ),
            "bucket_seconds": INTEGER,
            "buckets": array(BUCKET),
        }
    ),
    "Delivery": record(
        {
            "id": INTEGER,
            "event": words(Event),
            "monitor_id": nullable(INTEGER),
            "incident_id": nullable(INTEGER),
            "channel": words(Channel),
            "target": STRING,
            "status": words(DeliveryStatus),
            "reason": nullable(STRING),
            "attempts": array(record({"at": MOMENT, "ok": BOOLEAN, "answer": nullable(STRING)})),
            "created_at": MOMENT,
            "next_attempt_at": nullable(MOMENT),
            "delivered_at": nullable(MOMENT),
            "covers": array(INTEGER),
        }
    ),
    "DeliveryIds": record({"deliveries": array(INTEGER)}),
    "MaintenanceWindow": record(
        {
            "id": INTEGER,
            "name": STRING,
            "start_at": MOMENT,
            "end_at": MOMENT,
            "monitors": array(INTEGER),
            "repeat": STRING,
            "repeat_until": nullable(MOMENT),
            "zone": STRING,
            "created_at": MOMENT,
            "updated_at": MOMENT,
        }
    ),
    "Key": record(
        {
            "name": STRING,
            "scope": words(Scope),
            "expires_at": nullable(MOMENT),
            "last_used_at": nullable(MOMENT),
            "features": array(STRING),
        }
    ),
    "CertificateChain": record(
        {
            "seen_at": nullable(MOMENT),
            "certificates": array(
                record(
                    {
                        **dict.fromkeys(CERTIFICATE, nullable(STRING)),
                        "names": array(STRING),
                    }
                )
            ),
        }
    ),
    "Report": record(
        {
            "from": MOMENT,
            "to": MOMENT,
            "all": record(FIGURES),
            "monitors": array(record({"id": INTEGER, **FIGURES})),
        }
    ),
    "Overview": record({status.value: INTEGER for status in MonitorStatus}),
}
