"""Marks in the annotations of a record's fields, beyond their types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated

MAX_ID = 2**63 - 1  # what the database can hold; a larger id names no record


class Mark(Enum):
    """How a field is written as JSON and read from it, if its type alone does not decide that.

    ``app/codec`` reads the annotations of records: types, these marks, ``FixedKeys``, and for a
    text the ``StrEnum`` with its values.
    """

    # of a value
    ID = auto()  # from 1 to MAX_ID
    BIT = auto()  # 0 or 1; true and false are read as well
    PERCENT = auto()
    CLOCK_TIME = auto()  # HH:MM
    TIME_TEXT = auto()  # a time that is text in the record too
    DEFAULT_IF_NULL = auto()  # text; null of another server becomes the default, or empty
    SPANS = auto()  # pairs of times, from and to
    ALERT_DAYS = auto()  # a whole number, or ``auto``
    ALERTS = auto()  # pairs of channel and value, or of ``contact`` and its name
    # of a field
    PROMISED = auto()  # always in this server's JSON; None only if another server lacks it
    SECRET = auto()  # masked for a key that may only read
    OMIT_EMPTY = auto()  # left out of the JSON if it is empty
    INTERNAL = auto()  # not in the JSON
    OPTION = auto()  # an option of one kind of check; one column holds all options


@dataclass(frozen=True, slots=True)
class FixedKeys:
    """The keys that a mapping always has."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The bounds of a whole number, both included."""

    minimum: int
    maximum: int


Id = Annotated[int, Mark.ID]
Bit = Annotated[int, Mark.BIT]
AlertDays = Annotated[int | str, Mark.ALERT_DAYS]
Percent = Annotated[float, Mark.PERCENT]
ClockTime = Annotated[str, Mark.CLOCK_TIME]
TimeText = Annotated[str, Mark.TIME_TEXT]
TextOrDefault = Annotated[str, Mark.DEFAULT_IF_NULL]
