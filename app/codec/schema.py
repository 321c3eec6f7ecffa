"""Building blocks of JSON schemas."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Any

from app import records

Schema = dict[str, Any]

# Under this key a schema has the name that it gets among the document's components.
NAME = "x-name"
STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
MOMENT: Schema = {"type": "string", "format": "date-time", "example": "2026-11-21T08:00:00Z"}
CLOCK_TIME: Schema = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}


# A number of days, or "auto".
ALERT_DAYS: Schema = {
    "oneOf": [
        {"type": "integer", "enum": list(records.ALERT_DAYS), NAME: "AlertDays"},
        {"type": "string", "enum": [records.AUTO], NAME: "Automatic"},
    ]
}


def array(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def json_object(properties: dict[str, Schema], **more: Any) -> Schema:
    return {"type": "object", "properties": properties, **more}


def record(
    properties: dict[str, Schema], *, where_asked_for: Collection[str] = (), name: str | None = None
) -> Schema:
    """The schema of an object in an answer. All ``properties`` are always present except those in
    ``where_asked_for``; /api/v1 may add more (decision 8)."""
    schema = json_object(
        properties, required=[key for key in properties if key not in where_asked_for]
    )
    return schema | {NAME: name} if name else schema


def nullable(schema: Schema) -> Schema:
    """``schema`` or null. A schema with a name, an enum or choices stays one schema, beside null:
    generated clients have no type for words and null in one enum."""
    if isinstance(schema.get("type"), str) and not schema.keys() & {NAME, "enum"}:
        return {**schema, "type": [schema["type"], "null"]}
    annotations: Schema = {key: schema[key] for key in ("description", "default") if key in schema}
    plain = {key: value for key, value in schema.items() if key not in annotations}
    choices = plain["oneOf"] if plain.keys() == {"oneOf"} else [plain]
    return {"oneOf": [*choices, {"type": "null"}], **annotations}


def words(enum: type[StrEnum]) -> Schema:
    return {"type": "string", "enum": [word.value for word in enum], NAME: enum.__name__}


PAIR = record({"key": STRING, "value": STRING}, name="Pair")
# Sources and operators are plain strings, not enums: a later version may have more of them.
ASSERTION = record(
    {"source": STRING, "property": nullable(STRING), "op": STRING, "value": nullable(STRING)},
    name="Assertion",
)
