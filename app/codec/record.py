"""Records as JSON and as schemas, and read back from JSON, by the annotations of their fields.

Readers and writers are built once for each class: a list writes a hundred monitors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from app.codec import value_types
from app.codec.schema import Schema, nullable, record
from app.codec.value_types import ValueType, plain
from app.codec.values import Json, MalformedData, object_
from app.records import FixedKeys, Mark, Range

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Field:
    """A field by its annotation. ``optional``: its value may be None."""

    name: str
    value_type: ValueType
    marks: frozenset[Any]
    optional: bool
    has_default: bool

    @property
    def schema(self) -> Schema:
        is_nullable = self.optional and Mark.PROMISED not in self.marks
        return nullable(self.value_type.schema) if is_nullable else self.value_type.schema

    @property
    def is_required(self) -> bool:
        return not (self.optional or self.has_default) and self.value_type.lacking is None


# --- What the rest of app/ uses -------------------------------------------------------------------


def json_of(instance: Any, *, masked: bool = False) -> dict[str, Any]:
    """Convert a record to JSON. ``masked`` hides secrets, for a key that may only read."""
    return _writer(instance.__class__, masked)(instance)


def schema_of(record_type: type, **overrides: Schema) -> Schema:
    """``overrides``: schemas for single fields that say more than the annotations."""
    record_fields = fields_of(record_type)
    _refuse_unknown(record_type, overrides)
    asked_for = [field.name for field in record_fields if Mark.OMIT_EMPTY in field.marks]
    return record(
        {field.name: overrides.get(field.name, field.schema) for field in record_fields},
        where_asked_for=asked_for,
        name=record_type.__name__,
    )


def reader(
    record_type: type[R], called: str, **overrides: Callable[[Any], Any]
) -> Callable[[Any], R]:
    """Return a function that reads a record from JSON. Raises MalformedData with the name of a
    required part that is missing or invalid.

    ``called`` is the name of the whole record; ``overrides`` are readers for single fields.
    """
    values = _values_reader(record_type, overrides)

    def read(data: Any) -> R:
        return record_type(**values(object_(data, called)))

    return read


@cache
def fields_of(record_type: type) -> tuple[Field, ...]:
    """The fields that are in the JSON of a record, or of a mapping with fixed keys."""
    defaults = {
        field.name
        for field in (
            dataclasses.fields(record_type) if dataclasses.is_dataclass(record_type) else ()
        )
        if field.default is not dataclasses.MISSING
        or field.default_factory is not dataclasses.MISSING
    }
    hints = get_type_hints(record_type, include_extras=True)
    all_fields = (_field(name, hint, name in defaults) for name, hint in hints.items())
    return tuple(field for field in all_fields if Mark.INTERNAL not in field.marks)


# --- From annotations to types of values ----------------------------------------------------------


def _field(name: str, hint: Any, default: bool) -> Field:
    _, marks, optional = _unwrapped(hint)
    return Field(name, value_type_of(hint), marks, optional, default)


@cache
def value_type_of(hint: Any) -> ValueType:
    """The type of the values of an annotation. Raises TypeError if ``value_types`` has none."""
    base, marks, _ = _unwrapped(hint)
    for mark in (*marks, base):
        if mark in value_types.MARKED:
            return value_types.MARKED[mark]
        if isinstance(mark, type) and issubclass(mark, StrEnum):
            return value_types.word(mark)
        if isinstance(mark, Range):
            return value_types.ranged(mark)
        if isinstance(mark, FixedKeys):
            return value_types.keyed(mark.names, value_type_of(get_args(base)[1]))
    if base in value_types.TYPES:
        return value_types.TYPES[base]
    if dataclasses.is_dataclass(base) and isinstance(base, type):
        return ValueType(schema_of(base), _lenient(base), _writer(base, False), _writer(base, True))
    if is_typeddict(base):
        return ValueType(schema_of(base), _lenient(base), plain)
    if get_origin(base) in (tuple, Sequence):
        entry = get_args(base)[0]
        return value_types.ARRAYS.get(entry) or value_types.array(value_type_of(entry))
    if get_origin(base) is Mapping:
        return value_types.FREE
    raise TypeError(f"the codec cannot read and write {hint}")


def _unwrapped(hint: Any) -> tuple[Any, frozenset[Any], bool]:
    """A hint's type, its marks, and whether it may be None."""
    if get_origin(hint) is Annotated:
        base, marks, optional = _unwrapped(hint.__origin__)
        return base, marks | set(hint.__metadata__), optional
    some = [arm for arm in get_args(hint) if arm is not NoneType]
    if len(some) == 1 and NoneType in get_args(hint):
        base, marks, _ = _unwrapped(some[0])
        return base, marks, True
    return hint, frozenset(), False


# --- Compiled for each class ----------------------------------------------------------------------


@cache
def _writer(record_type: type, masked: bool) -> Callable[[Any], dict[str, Any]]:
    record_fields = fields_of(record_type)
    names = [field.name for field in record_fields]
    take = attrgetter(*names)
    changed = [
        (field.name, write)
        for field in record_fields
        if (write := _writer_of(field, masked)) is not None
    ]
    asked_for = [field.name for field in record_fields if Mark.OMIT_EMPTY in field.marks]
    has_gaps = hasattr(record_type, "missing") and hasattr(record_type, "misread")

    def write_all(instance: Any) -> dict[str, Any]:
        written = dict(zip(names, take(instance), strict=True))
        for name, write in changed:
            value = written[name]
            if value is not None:
                written[name] = write(value)
        for name in asked_for:
            if not written[name] and written[name] != "":
                del written[name]
        # A field that another server did not send, or whose value was not understood, has no
        # value: its default would look like what the server sent.
        for name in (*instance.missing, *instance.misread) if has_gaps else ():
            if name in written:
                written[name] = None
        return written

    return write_all


def _writer_of(field: Field, masked: bool) -> Callable[[Any], Any] | None:
    if masked and Mark.SECRET in field.marks:
        if field.value_type.hide is None:
            raise TypeError(f"{field.name}: nothing says how to mask this type")
        return field.value_type.hide
    return field.value_type.write


def _values_reader(
    record_type: type, overrides: Mapping[str, Callable[[Any], Any]]
) -> Callable[[Json], dict[str, Any]]:
    """Return a function that reads the fields' values; it omits missing ones with a default."""
    _refuse_unknown(record_type, overrides)
    readers = [
        (field, overrides.get(field.name, field.value_type.read))
        for field in fields_of(record_type)
    ]

    def read(data: Json) -> dict[str, Any]:
        values = {}
        for field, read_value in readers:
            value = read_value(data.get(field.name))
            if value is not None:
                values[field.name] = value
            elif field.is_required:
                raise MalformedData(field.name)
            elif not field.has_default:
                values[field.name] = None if field.optional else field.value_type.lacking
        return values

    return read


def _lenient(record_type: type) -> Callable[[Any], Any]:
    """Return a reader of a record within another one: None stands for an invalid record."""
    values = _values_reader(record_type, {})

    def read(data: Any) -> Any:
        try:
            return record_type(**values(data)) if isinstance(data, Mapping) else None
        except MalformedData:
            return None

    return read


def _refuse_unknown(record_type: type, named: Mapping[str, object]) -> None:
    unknown = named.keys() - {field.name for field in fields_of(record_type)}
    if unknown:
        raise TypeError(f"{record_type.__name__} has no field {', '.join(sorted(unknown))}")
