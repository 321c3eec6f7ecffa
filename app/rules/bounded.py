"""JSON and regular expressions with bounded work: they read the answers of servers that may be
hostile.

RE2 takes time proportional to the text, and to the size of the pattern: with 9,000 instructions it
takes half a minute for 1 MiB. So large patterns are refused, and ``WorkBudget`` limits the total.
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
_MEMORY = 1024 * 1024  # bytes of the automaton of one pattern, which is cached with the pattern
_STEPS = 200  # instructions times characters that count as one unit of work
MAX_WORK = 500_000  # units for all assertions of one check: about a second at worst
MAX_DIGITS = 4_000  # of a whole number: Python refuses to read more than 4,300
_plain = json.JSONEncoder(ensure_ascii=False).encode
TOO_DEEP = N_("the JSON is nested too deeply")


class TooMuchWork(ValueError):
    """The answer is too large for a path or a pattern. ``str`` is a sentence."""


class WorkBudget:
    """Limits the work of an evaluation: a path or a pattern could take more time than all other
    checks of this process.
    """

    __slots__ = ("remaining",)

    def __init__(self, limit: int = MAX_WORK) -> None:
        self.remaining = limit

    def spend(self, units: int) -> None:
        self.remaining -= units
        if self.remaining < 0:
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
    """Whether the pattern matches a part of the text, or the ``whole`` text."""
    expression = compiled(pattern)
    work.spend(1 + len(text) * expression.programsize // _STEPS)
    # JSON can contain a lone surrogate, which UTF-8 cannot.
    utf8_text = text.encode("utf-8", "replace").decode()
    return (expression.fullmatch if whole else expression.search)(utf8_text) is not None


class WrittenNumber(float):
    """A number of JSON with its spelling, which a float alone would lose: ``0.10``, 400 digits."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number


def parse_exact_json(text: str) -> Any:
    """Parse a JSON text, and keep the spelling of its numbers. If an object has a name twice, the
    last one counts. Raises ValueError with a sentence.
    """
    try:
        return json.loads(
            text, parse_int=_whole_number, parse_float=WrittenNumber, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError(_(TOO_DEEP)) from None
    except ValueError:
        raise ValueError(_("the body is not JSON")) from None


_SCALARS: dict[type, Callable[[Any], str]] = {int: str, WrittenNumber: attrgetter("text")}


def spelled(document: Any) -> str:
    """The JSON of a value of ``parse_exact_json``, with its numbers as they were spelled.
    ``json.dumps`` would write numbers within lists and objects as floats. A loop, because deep
    nesting would exceed Python's limit of recursion.
    """
    pieces: list[str] = []
    opened: list[tuple[Iterator[tuple[str, Any]], str]] = [(iter([("", document)]), "")]
    while opened:
        members, end = opened[-1]
        for prefix, value in members:
            pieces.append(prefix)
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


def _whole_number(digits: str) -> int | WrittenNumber:
    is_plain = len(digits) <= MAX_DIGITS and digits != "-0"
    return int(digits) if is_plain else WrittenNumber(digits)


def _no_constant(_name: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError
