"""Marks in the annotations of a record's fields, beyond their types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated

MAX_ID = 2**63 - 1  # what the database can hold; a larger id names no record


class Mark(Enum):
    """How a field is written as JSON and read from it, if its type alone does not decide that.

    ``app/codec`` reads the records' annotations: types, these marks, ``FixedKeys``, and the
    ``StrEnum`` whose words a text is one of.
    """

    # of a value
    ID = auto()  # from 1 to MAX_ID
    BIT = auto()  # 0 or 1; read from anything that says yes or no
    PERCENT = auto()
    CLOCK_TIME = auto()  # HH:MM
    TIME_TEXT = auto()  # a time that is text here too
    MAY_LACK = auto()  # text that other servers may not have: then the default, or the empty text
    SPANS = auto()  # pairs of times, from and to
    ALERT_DAYS = auto()  # a whole number, or ``auto``
    ALERTS = auto()  # pairs of channel and value, or of ``contact`` and its name
    # of a field
    PROMISED = auto()  # None only if another server did not send it: this one always does
    SECRET = auto()  # masked for a key that may only read
    WHERE_ASKED_FOR = auto()  # left out of the JSON if it is empty
    INTERNAL = auto()  # not in the JSON
    OPTION = auto()  # of one kind of check: stored with the others in one column


@dataclass(frozen=True, slots=True)
class FixedKeys:
    """The keys that a mapping always has."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the most of a whole number."""

    least: int
    most: int


Id = Annotated[int, Mark.ID]
Bit = Annotated[int, Mark.BIT]
AlertDays = Annotated[int | str, Mark.ALERT_DAYS]
Percent = Annotated[float, Mark.PERCENT]
ClockTime = Annotated[str, Mark.CLOCK_TIME]
TimeText = Annotated[str, Mark.TIME_TEXT]
TextOrNone = Annotated[str, Mark.MAY_LACK]
