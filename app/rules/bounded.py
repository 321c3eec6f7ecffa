"""JSON of a stranger, and regular expressions that people enter, matched against what strangers'
servers send.

RE2 matches in time that grows with the text alone, whatever the pattern. How fast it grows is the
pattern's size: one of 9,000 instructions takes half a minute for 1 MiB, so larger ones are refused,
and ``WorkBudget`` counts the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain, repeat
from operator import attrgetter
from typing import Any

from app.i18n import N_, _

MAX_PATTERN_SIZE = 1_000  # of RE2's program
_MEMORY = 1024 * 1024  # bytes of one pattern's automaton, which stays cached with it
_STEPS = 200  # instructions times characters that count as one unit of work
MAX_WORK = 500_000  # of all assertions of one check: about a second at worst
MAX_DIGITS = 4_000  # of a whole number; Python takes quadratic time and refuses more than 4,300
_plain = json.JSONEncoder(ensure_ascii=False).encode
TOO_DEEP = N_("the JSON is nested too deeply")


class TooMuchWork(ValueError):
    """The answer is too large for what is asked of it. ``str`` is a sentence."""


class WorkBudget:
    """Counts what an evaluation does, and ends it when that is too much: a path or a pattern can
    ask for more than all other checks of this process take.
    """

    __slots__ = ("left",)

    def __init__(self, most: int = MAX_WORK) -> None:
        self.left = most

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise TooMuchWork(_("the answer is too large for this path or pattern"))


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Raises ValueError with a sentence."""
    import re2  # 1 MB that few monitors need

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY
    try:
        expression = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as fault:
        reason = fault.args[0] if fault.args else ""
        words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(_("The pattern cannot be read: %(reason)s.", reason=words)) from None
    if expression.programsize > MAX_PATTERN_SIZE:
        raise ValueError(_("The pattern is too large. Use fewer or smaller repetitions."))
    return expression


def matches(pattern: str, text: str, work: WorkBudget, *, whole: bool = False) -> bool:
    """Whether the pattern is in the text, or is the ``whole`` of it."""
    expression = compiled(pattern)
    work.spend(1 + len(text) * expression.programsize // _STEPS)
    # A lone surrogate, which JSON can hold, is no UTF-8.
    plain = text.encode("utf-8", "replace").decode()
    return (expression.fullmatch if whole else expression.search)(plain) is not None


class WrittenNumber(float):
    """A number of JSON with its spelling: as a float alone, ``0.10`` and 400 digits lose theirs."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number


def parsed(text: str) -> Any:
    """The last of equal names in an object counts. Raises ValueError with a sentence."""
    try:
        return json.loads(
            text, parse_int=_whole, parse_float=WrittenNumber, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError(_(TOO_DEEP)) from None
    except ValueError:
        raise ValueError(_("the body is not JSON")) from None


_SCALARS: dict[type, Callable[[Any], str]] = {int: str, WrittenNumber: attrgetter("text")}


def spelled(document: Any) -> str:
    """What ``parsed`` returned as JSON, its numbers as they were spelled: ``json.dumps`` writes
    those within lists and objects as floats. Not recursive, as a stranger may nest deeply.
    """
    pieces: list[str] = []
    opened: list[tuple[Iterator[tuple[str, Any]], str]] = [(iter([("", document)]), "")]
    while opened:
        members, end = opened[-1]
        for before, value in members:
            pieces.append(before)
            if isinstance(value, list):
                pieces.append("[")
                opened.append((zip(_commas(), value, strict=False), "]"))
                break
            if isinstance(value, dict):
                pieces.append("{")
                commas = zip(_commas(), value, strict=False)
                names = (f"{comma}{_plain(name)}:" for comma, name in commas)
                opened.append((zip(names, value.values(), strict=True), "}"))
                break
            pieces.append(_SCALARS.get(type(value), _plain)(value))
        else:
            pieces.append(end)
            opened.pop()
    return "".join(pieces)


def _commas() -> Iterator[str]:
    return chain([""], repeat(","))


def _whole(digits: str) -> int | WrittenNumber:
    is_plain = len(digits) <= MAX_DIGITS and digits != "-0"
    return int(digits) if is_plain else WrittenNumber(digits)


def _no_constant(_name: str) -> None:
    """NaN and Infinity are Python's, not JSON's."""
    raise ValueError
