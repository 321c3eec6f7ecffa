"""Read and write the bracket notation of API 3: ``alerts[0][key]``, and one level deeper
``groups[0][monitors][0]``.

A request becomes a list of pairs (name, text): a form or a query directly, a JSON object through
``flatten``. ``write`` turns a form's fields back into pairs, for a remote server and for tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.records import Assertion, ComponentName, Group, MonitorImpact, Pair

Pairs = Sequence[tuple[str, str]]

_NAME = re.compile(
    r"(?P<field>[^\[\]]+)"
    r"(?:\[(?P<index>[0-9]+)\](?:\[(?P<column>[a-z]+)\](?:\[(?P<entry>[0-9]+)\])?)?)?"
)


class Typed(str):
    """The text that a form would send for a JSON value that is not a string; ``kind`` is its JSON
    type.

    ``list`` and ``object`` stand for nesting that hardly any field accepts; their text is empty.
    ``items``: the values of a list within an object of a list, for the fields that accept it.
    """

    __slots__ = ("items", "kind")
    kind: str
    items: tuple[str, ...]

    def __new__(cls, text: str, kind: str, items: Iterable[str] = ()) -> Typed:
        typed = super().__new__(cls, text)
        typed.kind, typed.items = kind, tuple(items)
        return typed


class JsonMembers(list[tuple[str, Any]]):
    """The members of a JSON object in order, with repeated names."""


def is_list(value: Any) -> bool:
    """Whether a JSON value is a list; objects are ``JsonMembers``."""
    return isinstance(value, list) and not isinstance(value, JsonMembers)


@dataclass(frozen=True, slots=True)
class Name:
    """A field's name split into its parts. ``index`` is text, because a client may send more digits
    than a number type holds.
    """

    field: str
    index: str | None = None
    column: str | None = None
    entry: str | None = None

    @property
    def dotted(self) -> str:
        """The name in errors: ``alerts.7.value`` (decision 1)."""
        parts = (self.field, self.index, self.column, self.entry)
        return ".".join(part for part in parts if part is not None)

    @property
    def order(self) -> tuple[int, str]:
        """A sort key that orders indices as numbers without converting them."""
        return index_order(self.index or "")


def index_order(index: str) -> tuple[int, str]:
    digits = index.lstrip("0")
    return (len(digits), digits)


def parse(name: str) -> Name | None:
    """Split ``alerts[7][value]``; None for a name that is not in the notation."""
    match = _NAME.fullmatch(name)
    return None if match is None else Name(*match.group("field", "index", "column", "entry"))


def rows(pairs: Pairs, field: str) -> tuple[list[list[tuple[str, str]]], list[tuple[str, str]]]:
    """Split the pairs of a list of records. ``monitors[0][alerts][0][key]`` becomes
    ``alerts[0][key]`` in row 0. Return the rows in the order of their indices, and the pairs of no
    row.
    """
    by_index: dict[str, list[tuple[str, str]]] = {}
    other_pairs = []
    name_in_row = re.compile(rf"{re.escape(field)}\[([0-9]+)\]\[([^\[\]]+)\](.*)", re.DOTALL)
    for name, value in pairs:
        if match := name_in_row.fullmatch(name):
            index, first, brackets = match.groups()
            by_index.setdefault(index, []).append((first + brackets, value))
        else:
            other_pairs.append((name, value))
    return [by_index[index] for index in sorted(by_index, key=index_order)], other_pairs


def flatten(members: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Convert a JSON object's members to pairs; lists of values and of flat objects become
    brackets.

    Numbers must be ``Typed`` already, which keeps their spelling. ``null`` and an empty list become
    an empty value. Deeper nesting becomes a ``Typed`` of kind ``list`` or ``object``; a field that
    takes no such lists refuses it.
    """
    pairs: list[tuple[str, str]] = []
    for name, value in members:
        if not is_list(value):
            pairs.append((name, _scalar(value)))
        elif not value:
            pairs.append((name, ""))
        else:
            for index, item in enumerate(value):
                pairs.extend(_item(f"{name}[{index}]", item))
    return pairs


def _item(name: str, item: Any) -> Iterable[tuple[str, str]]:
    if isinstance(item, JsonMembers) and item:
        return [(f"{name}[{key}]", _member(value)) for key, value in item]
    return [(name, _scalar(item))]


def _member(value: Any) -> str:
    if is_list(value):
        return Typed("", "list", map(_scalar, value))
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return Typed("true" if value else "false", "boolean")
    if isinstance(value, JsonMembers):
        return Typed("", "object")
    if isinstance(value, list):
        return Typed("", "list")
    return value if isinstance(value, str) else Typed(str(value), "number")


def write(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Convert a form's fields to the pairs that set them. ``None`` and empty lists become an empty
    value, times are written in UTC.

    Reading the pairs back with the same form gives the same fields.
    """
    pairs: list[tuple[str, str]] = []
    for name, value in fields.items():
        pairs.extend(_pairs_of(name, value))
    return pairs


# Lists of texts that are sent as a value for each index; others are sent as one text with commas.
INDEXED_LISTS = frozenset({"locations", "schedule"})


def _pairs_of(name: str, value: Any) -> list[tuple[str, str]]:
    if value is None or value == ():
        return [(name, "")]
    if isinstance(value, bool):
        return [(name, "true" if value else "false")]
    if isinstance(value, datetime):
        return [(name, value.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat())]
    if isinstance(value, tuple | list):
        if isinstance(value[0], Pair | ComponentName | MonitorImpact | Assertion):
            return [
                (f"{name}[{index}][{column}]", str(content))
                for index, row in enumerate(value)
                for column in row.__match_args__
                if (content := getattr(row, column)) is not None
            ]
        if isinstance(value[0], Group):
            return [
                pair
                for index, group in enumerate(value)
                for pair in (
                    (f"{name}[{index}][name]", group.name),
                    *_pairs_of(f"{name}[{index}][monitors]", group.monitors),
                )
            ]
        if isinstance(value[0], str) and name not in INDEXED_LISTS:
            return [(name, ",".join(value))]
        return [(f"{name}[{index}]", str(item)) for index, item in enumerate(value)]
    return [(name, str(value))]
