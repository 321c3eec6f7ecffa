"""JSON schemas for the OpenAPI document: of forms, by their fields, and of records."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from app import records
from app.checks.kinds import KINDS, kinds_with
from app.codec import schema_of
from app.codec.schema import (
    ALERT_DAYS,
    BOOLEAN,
    CLOCK_TIME,
    INTEGER,
    MOMENT,
    NAME,
    NUMBER,
    PAIR,
    STRING,
    Schema,
    array,
    json_object,
    nullable,
    record,
    words,
)
from app.forms import fields as f
from app.forms.assertions import AssertionList
from app.forms.lists import EntryList, IdList, PairList, Tags
from app.forms.monitor import MonitorForm
from app.forms.page_lists import GroupList, MonitorPairs
from app.forms.schema import SchemaField, SchemaForm
from app.records import CACHE_BUSTER, MAX_ASSERTION_PROPERTY, MAX_GROUPS, PHASES
from app.records.resources import RESOURCES
from app.stats import report

SENT_MOMENT = (
    "Y-m-dTH:i:s, read as UTC; Z or an offset may follow (in a form, + must be written %2B). "
    "A fraction of a second is dropped."
)


SENT_ASSERTION = {
    **json_object(
        {
            "source": words(records.AssertionSource),
            "property": nullable({**STRING, "maxLength": MAX_ASSERTION_PROPERTY}),
            "op": words(records.AssertionOp),
            "value": {"type": ["string", "number", "boolean", "null"]},
        },
        required=["source", "op"],
        additionalProperties=False,
    ),
    NAME: "NewAssertion",
}


def of_field(field: SchemaField, *, update: bool = False) -> Schema:
    """The schema of a field's input. In an update it has no default: generated clients would send
    the default, and change fields that the caller did not want to change.
    """
    schema = _schema_of(field)
    if field.description:
        schema["description"] = str(field.description)
    if isinstance(field, f.DateTime):
        schema["description"] = f"{field.description} {SENT_MOMENT}".strip()
    if isinstance(field, f.Text) and field.required:
        schema["minLength"] = 1
    if isinstance(field, PairList) and field.required:
        schema["minItems"] = 1
    default = field.default
    if default not in (None, ()) and not update:
        schema["default"] = default.value if isinstance(default, StrEnum) else default
    return schema


# The schemas of fields and of the entries of lists, by class. The nearest class counts.
FIELDS: dict[type, Schema] = {
    f.NumberSwitch: {**INTEGER, "enum": list(CACHE_BUSTER)},
    f.Switch: BOOLEAN,
    f.CertificateDays: ALERT_DAYS,
    f.ClockTime: CLOCK_TIME,
    f.DateTime: MOMENT,
    f.RecordId: INTEGER,
    f.Ids: STRING,
    Tags: {"oneOf": [STRING, array(STRING)]},
}
LISTS: dict[type, Schema] = {
    GroupList: schema_of(records.Group),
    AssertionList: SENT_ASSERTION,
    IdList: INTEGER,
    EntryList: STRING,
}


def _schema_of(field: SchemaField) -> Schema:
    limit = MAX_GROUPS if isinstance(field, GroupList) else getattr(field, "limit", None)
    for cls in type(field).__mro__:
        if cls in LISTS:
            return _list_of(LISTS[cls], limit)
        if cls in FIELDS:
            schema = FIELDS[cls]
            return (
                schema | {"maxLength": limit} if isinstance(field, f.Text) and limit else {**schema}
            )
    if isinstance(field, MonitorPairs):
        return _list_of(schema_of(field.entry), limit)
    if isinstance(field, PairList):
        keys = [key for key, _ in field.choices.get("key", ())]
        pair_schema = record({"key": {**STRING, "enum": keys}, "value": STRING})
        return _list_of(pair_schema if keys else PAIR, limit)
    if isinstance(field, f.WordChoice):
        return words(field.words)
    if isinstance(field, f.Options):
        values = list(field.allowed.values())
        return {**(STRING if isinstance(values[-1], str) else INTEGER), "enum": values}
    if isinstance(field, f.Number):
        bounds = {"minimum": field.low, "maximum": field.high}
        return INTEGER | {name: bound for name, bound in bounds.items() if bound is not None}
    return STRING | ({"maxLength": limit} if isinstance(field, f.Text) and limit else {})


def _list_of(entry: Schema, limit: int | None) -> Schema:
    return array(entry) if limit is None else array(entry, maxItems=limit)


def of_form(form_class: type[SchemaForm], *, update: bool) -> Schema:
    """The schema of a request body. An update requires nothing; an optional field may be null,
    which clears it.
    """
    form = form_class()
    monitors = issubclass(form_class, MonitorForm)
    fields = list(form.schema_fields())
    required = [field.short_name for field in fields if getattr(field, "required", False)]
    properties = {}
    for field in fields:
        schema = of_field(field, update=update)
        properties[field.short_name] = schema if field.short_name in required else nullable(schema)
    for name, schema in properties.items() if monitors else ():
        _add_kinds(schema, kinds_with(name))
    if monitors:  # a heartbeat has a default
        required = [name for name in required if name != "interval"]
    more = {"required": required} if required and not update else {}
    return json_object(properties, additionalProperties=False, **more)


def _add_kinds(schema: Schema, kinds: Sequence[str]) -> None:
    if len(kinds) < len(KINDS):
        sentence = f"Only for the kind {' or '.join(kinds)}; elsewhere empty or its default."
        schema["description"] = f"{schema.get('description', '')} {sentence}".strip()
        schema["x-kinds"] = list(kinds)


def parameters(form_class: type[SchemaForm]) -> list[Schema]:
    """The parameters of a query."""
    entries = []
    for field in form_class().schema_fields():
        schema = of_field(field)
        text = schema.pop("description", "")
        described = {"description": text} if text else {}
        if getattr(field, "required", False):
            described["required"] = True
        entries.append({"name": field.short_name, "in": "query", "schema": schema, **described})
    return entries


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
    {
        "start": MOMENT,
        **dict.fromkeys((*STATES, "degraded"), INTEGER),  # degraded is a part of up
        "response_time": nullable(NUMBER),
    }
)
FIGURES: dict[str, Schema] = {
    "uptime": nullable(NUMBER),
    **dict.fromkeys(report.COUNTS, INTEGER),
    **dict.fromkeys(report.MEASURES, nullable(INTEGER)),
}
DAY: dict[str, Schema] = {
    "start": MOMENT,
    "uptime": nullable(NUMBER),
    **dict.fromkeys(report.STATES, INTEGER),
}

UNREADABLE = array(
    STRING,
    description="Fields whose stored value cannot be read; they are shown as empty, or, where they"
    " cannot be empty, with their default.",
)
PLACES_SEEN = array(
    json_object(
        {
            "name": STRING,
            "verdict": words(records.Verdict),
            "label": nullable(STRING),
            "cause_code": nullable(STRING),
            "cause": nullable(STRING),
            "status_code": nullable(INTEGER),
            "response_time": nullable(INTEGER),
            "checked_at": nullable(MOMENT),
            "earlier": {
                "type": "boolean",
                "description": "Its newest check is from before the failure.",
            },
            "check": nullable(
                json_object(
                    {},
                    description="What the failing check there saw, where it"
                    " is not among the others.",
                )
            ),
        }
    ),
    description="What each place of the monitor saw; unknown: it has no vote.",
)
EVIDENCE = nullable(
    json_object(
        {
            name: nullable(json_object({}, description=text))
            for name, text in {
                "failing": "The first failing check, with what it saw.",
                "last_good": "A good check before it, with what it saw: the last one, unless"
                " ``usual.checked_at`` is later.",
                "usual": "``checked_at`` of the last good check, and over the good checks of"
                " the day before: the medians ``response_time`` and ``timings`` (ms), and"
                " ``addresses``.",
            }.items()
        }
        | {
            "confirming": array(json_object({}), description="The repeats of the failing check."),
            "places": PLACES_SEEN,
        },
        description="What checks saw when the incident opened.",
    )
)
CHANGES = array(
    schema_of(records.Change),
    description="What is different in the failing check from the good one in ``evidence``, most"
    " telling first.",
)
UNREADABLE_WINDOW = array(
    STRING, description="Fields whose stored value cannot be read; until then it does not apply."
)
UNREADABLE_CONTACT = array(
    STRING, description="Fields whose stored value cannot be read; until then it alerts nobody."
)

PLACE_STATE = words(records.PlaceState) | {
    "description": "`silent`: no result has come for two intervals of its monitors and at least 3"
    " minutes; it has no vote. `never_seen`: nobody has checked from it yet. Else `online`."
}
CARRIER = words(records.Carrier) | {
    "description": "How checks get to the place. `local`: a checker there works on the database."
    " `queue`: probers take them from Redis. `agent`: an agent fetches them over HTTPS."
}
PLACE: dict[str, Schema] = {
    "carrier": CARRIER,
    "state": PLACE_STATE,
    "last_seen_at": nullable(MOMENT)
    | {"description": "When one of those who make its checks was last heard from."},
    "clock_offset_ms": nullable(INTEGER)
    | {"description": "How far its clock is ahead of the server's; negative if it is behind."},
    "checks_per_minute": nullable(INTEGER)
    | {"description": "How many checks were made there lately; null if nobody has said so."},
    "monitors": INTEGER | {"description": "How many monitors are checked from it."},
    "trouble": nullable(STRING)
    | {
        "description": "Why it can make none of its checks, such as a network that it may not"
        " reach. Null if one of its newest checks has a verdict."
    },
    "token": STRING
    | {"description": "For the agent. It is there once: in the answer to the call that made it."},
}

KEY = schema_of(records.ApiKey)
# null for a URL that no kind can read; such a URL cannot be stored
KIND = nullable({"type": "string", "enum": [kind.name for kind in KINDS]})
# A string and no enum: an alert condition can be added without a new version of the API.
MONITOR = schema_of(
    records.Monitor,
    alert_condition=STRING,
    hours=array(HOUR),
    unreadable=UNREADABLE,
    status={
        "title": "StatusOfMonitor",  # generators would name it MonitorStatus, as what filters take
        "type": "string",
        "enum": [
            status.value
            for status in records.MonitorStatus
            if status != records.MonitorStatus.FAILING
        ],
    },
)
FAILING = {"type": "boolean", "description": "Its last check failed, and is being repeated."}

PLAIN_RECORDS = (
    records.Result, records.CheckedNow, records.Ping, records.CertificateChain, records.SlowAlerts,
    records.Post, records.PostUpdate, records.Subscriber,
)  # fmt: skip
RECORDS: dict[str, Schema] = {
    **{resource.schema: schema_of(resource.record) for resource in RESOURCES if resource.record},
    "Monitor": record(
        {**MONITOR["properties"], "kind": KIND, "failing": FAILING},
        where_asked_for=["hours", "notes"],
    ),
    "Incident": schema_of(
        records.Incident, unreadable=UNREADABLE, evidence=EVIDENCE, changes=CHANGES
    ),
    **{cls.__name__: schema_of(cls) for cls in PLAIN_RECORDS},
    "Statistics": record(
        {
            "range": nullable(words(records.StatisticsRange)),  # null between two times
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
    "Delivery": schema_of(records.Delivery, unreadable=UNREADABLE),
    "ChannelSetup": record({"not_set_up": array(PAIR)}),
    "DeliveryIds": record({"deliveries": array(INTEGER)}),
    "MaintenanceWindow": schema_of(records.MaintenanceWindow, unreadable=UNREADABLE_WINDOW),
    "Key": record({**KEY["properties"], "api_level": INTEGER, "features": array(STRING)}),
    "Contact": schema_of(records.Contact, unreadable=UNREADABLE_CONTACT),
    "SharedChannels": record({"channels": array(schema_of(records.SharedChannel))}),
    "Location": schema_of(records.Place, **PLACE),
    "PlacesOfMonitor": record(
        {
            "locations": array(
                schema_of(
                    records.PlaceSeen,
                    state=PLACE_STATE,
                    verdict=nullable(STRING)
                    | {"description": "Of its newest check. Null: it has no vote."},
                )
            )
        }
    ),
    "Report": record(
        {
            "from": MOMENT,
            "to": MOMENT,
            "all": record(FIGURES),
            "monitors": array(
                record(
                    {"id": INTEGER, **FIGURES, "days": array(record(DAY))}, where_asked_for=["days"]
                )
            ),
        }
    ),
    "PostDraft": record(
        {
            "title": STRING,
            "state": words(records.PostState),
            "body": STRING,
            "monitors": array(INTEGER),
        }
    ),
    "MonitorsNamed": record({"monitors": array(schema_of(records.MonitorRef))}),
    "Overview": record({status.value: INTEGER for status in records.MonitorStatus}),
}
