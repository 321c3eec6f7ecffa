"""Columns as the driver gives them, and what their types make of those values later.

A list reads the same thirty columns of a hundred monitors again and again. What their types make of
them follows from the stored values alone, so it may be kept as long as these are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Dialect, type_coerce
from sqlalchemy.types import NullType

Values = tuple[Any, ...]


def stored(columns: Sequence[Column[Any]]) -> tuple[ColumnElement[Any], ...]:
    """The columns, to be selected as the driver gives them, under names of their own."""
    return tuple(
        type_coerce(column, NullType()).label(f"stored_{column.name}") for column in columns
    )


@lru_cache(maxsize=8)
def reading(columns: tuple[Column[Any], ...], dialect: Dialect) -> Callable[[Values], Values]:
    """A function that makes of stored values what a statement gives for the columns."""
    types = [column.type.dialect_impl(dialect) for column in columns]
    readers = [type_.result_processor(dialect, None) for type_ in types]

    def read(values: Values) -> Values:
        return tuple(
            value if read_one is None else read_one(value)
            for read_one, value in zip(readers, values, strict=True)
        )

    return read
