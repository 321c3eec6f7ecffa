"""Building blocks of JSON schemas."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
MOMENT: Schema = {"type": "string", "format": "date-time", "example": "2026-11-21T08:00:00Z"}
CLOCK_TIME: Schema = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}


ALERT_DAYS: Schema = {"type": ["integer", "string"]}  # a number of days, or "auto"


def array(of: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": of, **more}


def thing(properties: dict[str, Schema], **more: Any) -> Schema:
    return {"type": "object", "properties": properties, **more}


def record(properties: dict[str, Schema], *, where_asked_for: Collection[str] = ()) -> Schema:
    """The schema of an object in an answer. All ``properties`` are always present except those in
    ``where_asked_for``; /api/v1 may add more (decisions.md 8)."""
    return thing(properties, required=[name for name in properties if name not in where_asked_for])


def nullable(schema: Schema) -> Schema:
    plain = dict(schema)
    kind = plain.pop("type", None)
    if kind is None:
        return {"anyOf": [schema, {"type": "null"}]}
    if "enum" in plain:
        plain["enum"] = [*plain["enum"], None]
    kinds = kind if isinstance(kind, list) else [kind]
    return {"type": [*kinds, "null"], **plain}


def words(of: type[StrEnum]) -> Schema:
    return {"type": "string", "enum": [word.value for word in of]}


PAIR = record({"key": STRING, "value": STRING})
