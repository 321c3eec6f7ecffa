"""JSON of a stranger."""

from __future__ import annotations

import json
from typing import Any

from app.i18n import N_, _

MAX_DIGITS = 4_000  # of a whole number; Python takes quadratic time and refuses more than 4,300
NO_JSON = N_("the body is not JSON")
TOO_DEEP = N_("the JSON is nested too deeply")


class WrittenNumber(float):
    """A number of JSON with its spelling: as a float alone, ``0.10`` and 400 digits lose theirs."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:  # json.dumps writes floats with it
        return self.text


def parsed(text: str) -> Any:
    """The last of equal names in an object counts. Raises ValueError with a sentence."""
    try:
        return json.loads(
            text, parse_int=_whole, parse_float=WrittenNumber, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError(_(TOO_DEEP)) from None
    except ValueError:
        raise ValueError(_(NO_JSON)) from None


def _whole(digits: str) -> int | WrittenNumber:
    return int(digits) if len(digits) <= MAX_DIGITS else WrittenNumber(digits)


def _no_constant(_name: str) -> None:
    """NaN and Infinity are Python's, not JSON's."""
    raise ValueError
