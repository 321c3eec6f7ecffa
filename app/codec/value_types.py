"""The types of values in records: the schema of each, and how it is read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from app.codec import schema, values
from app.codec.schema import Schema
from app.records import CACHE_BUSTER, Assertion, Mark, Pair, Range, mask, masked_alert
from app.rules.time import iso


def spans(value: Iterable[tuple[datetime, datetime]]) -> list[dict[str, str]]:
    return [{"from": iso(since), "to": iso(until)} for since, until in value]


def pairs(value: Iterable[Pair]) -> list[dict[str, str]]:
    return [{"key": pair.key, "value": pair.value} for pair in value]


def assertions(value: Iterable[Assertion]) -> list[dict[str, str | None]]:
    return [
        {"source": row.source, "property": row.property, "op": row.op, "value": row.value}
        for row in value
    ]


def masked(write: Callable[[Any], Any], mask_row: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Like ``write``, for readers who may not see the secrets of a row: masks each row first."""
    return lambda value: write(map(mask_row, value))


def plain(value: Any) -> Any:
    """Nested data, with its times in the API's format."""
    if value is None or isinstance(value, str | int | float):  # tested first: most values are
        return value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return [plain(item) for item in value]


@dataclass(frozen=True, slots=True)
class ValueType:
    """The functions that read and write one type of value. ``read`` accepts anything and returns
    None for an invalid value.

    ``write`` is None if the value is valid JSON already. ``hide`` writes a secret for readers who
    may not see it. ``lacking`` is the value of a missing field that has no default; if it is None,
    such a field is required unless its type allows None.
    """

    schema: Schema
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] | None = None
    hide: Callable[[Any], Any] | None = None
    lacking: Any = None


TEXT = ValueType(schema.STRING, values.text, hide=mask)
WHOLE = ValueType(schema.INTEGER, values.whole)
FREE = ValueType(
    schema.json_object({}), lambda value: value if isinstance(value, Mapping) else None, plain
)

# A value's type is looked up in TYPES, or in ARRAYS by the type of its entries. A mark of the field
# (MARKED) overrides it.
TYPES: Mapping[object, ValueType] = {
    str: TEXT,
    int: WHOLE,
    bool: ValueType(schema.BOOLEAN, values.flag, lacking=False),
    datetime: ValueType(schema.MOMENT, values.moment, iso),
}
ARRAYS: Mapping[object, ValueType] = {
    str: ValueType(schema.array(schema.STRING), values.texts, list),
    Pair: ValueType(schema.array(schema.PAIR), values.pairs, pairs, masked(pairs, Pair.masked)),
    Assertion: ValueType(schema.array(schema.ASSERTION), values.assertions, assertions,
        masked(assertions, Assertion.masked)),
}  # fmt: skip
MARKED: Mapping[Mark, ValueType] = {
    Mark.ID: ValueType(schema.INTEGER, values.record_id),
    Mark.BIT: ValueType({**schema.INTEGER, "enum": list(CACHE_BUSTER)}, values.bit, int),
    Mark.ALERT_DAYS: ValueType(schema.ALERT_DAYS, values.alert_days),
    Mark.PERCENT: ValueType(schema.NUMBER, values.percent),
    Mark.CLOCK_TIME: ValueType(schema.CLOCK_TIME, values.text),
    Mark.TIME_TEXT: ValueType(schema.MOMENT, values.time_text),
    Mark.SPANS: ValueType(
        schema.array(schema.record({"from": schema.MOMENT, "to": schema.MOMENT})),
        values.spans,
        spans,
    ),
    Mark.ALERTS: ValueType(
        schema.array(schema.PAIR), values.pairs, pairs, masked(pairs, masked_alert)
    ),
    Mark.DEFAULT_IF_NULL: ValueType(
        schema.STRING, lambda value: values.text(value) or None, lacking=""
    ),
}


def word(words: type[StrEnum]) -> ValueType:
    return ValueType(schema.words(words), partial(values.word, words))


def ranged(range_: Range) -> ValueType:
    """A whole number within ``range_``."""

    def read(value: Any) -> int | None:
        number = values.whole(value)
        return number if number is not None and range_.minimum <= number <= range_.maximum else None

    bounds = {"minimum": range_.minimum, "maximum": range_.maximum}
    return ValueType(schema.INTEGER | bounds, read)


def array(entry: ValueType) -> ValueType:
    write = entry.write
    return ValueType(
        schema.array(entry.schema),
        lambda value: values.each(value, entry.read),
        list if write is None else lambda value: [write(item) for item in value],
    )


def keyed(names: tuple[str, ...], entry: ValueType) -> ValueType:
    """A mapping that always has these keys; the value of a missing key is None."""

    def read(value: Any) -> dict[str, Any]:
        figures = values.mapping(value)
        return {name: entry.read(figures.get(name)) for name in names}

    return ValueType(
        schema.record(dict.fromkeys(names, schema.nullable(entry.schema))),
        read,
        lambda value: {name: value.get(name) for name in names},
    )
