"""Assertions about an answer (decision 19): what one may say, and whether it holds. Pure.

``faults`` is what the form refuses. ``evaluate`` takes the parts of an answer and returns each
assertion with what the answer has there, and the sentence of the first that does not hold.

A source gives a list of values: a path finds any number of them, a header may come twice, other
sources have one. A value holds its own; ``!=`` and the ops with ``not_`` hold if their opposite
does not: for all values, and if there are none.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from app.i18n import N_, _
from app.records import (
    BODY_CAP_BYTES,
    MASK,
    MAX_ASSERTION_PROPERTY,
    MAX_ASSERTION_VALUE,
    MAX_FOUND,
    NUMERIC_SOURCES,
    OPS_WITHOUT_VALUE,
    SECRET_NAME,
    SOURCES_WITH_PROPERTY,
    Assertion,
    AssertionOp,
    AssertionSource,
    CheckedAssertion,
    mask,
)
from app.rules import text
from app.rules.bounded import TOO_DEEP, WorkBudget, compiled, matches, parsed, spelled

OPPOSITES = {
    AssertionOp.NE: AssertionOp.EQ,
    AssertionOp.NOT_CONTAINS: AssertionOp.CONTAINS,
    AssertionOp.NOT_MATCHES: AssertionOp.MATCHES,
    AssertionOp.NOT_EXISTS: AssertionOp.EXISTS,
    AssertionOp.NOT_EMPTY: AssertionOp.EMPTY,
}
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    AssertionOp.LT: operator.lt,
    AssertionOp.LE: operator.le,
    AssertionOp.GT: operator.gt,
    AssertionOp.GE: operator.ge,
}
_COMPARED = frozenset({AssertionOp.EQ, AssertionOp.NE, *_ORDERS})
_PATTERNS = frozenset({AssertionOp.MATCHES, AssertionOp.NOT_MATCHES})
# These are not evaluated if the body was cut and more of it could change whether they hold.
_SEARCHES = frozenset({AssertionOp.CONTAINS, AssertionOp.MATCHES})
# Possessive (``++``): with backtracking, a million digits before a letter take quadratic time.
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?", re.ASCII)
_SECRET_MEMBER = re.compile(rf'("[^"]*(?:{SECRET_NAME.pattern})[^"]*"\s*:\s*"?)([^",}}\]]+)', re.I)
_MAX_QUOTED = 80  # characters of a value in a sentence
# Characters of text that count as one unit of work: that are compared, that are written as JSON.
_CHARACTERS, _WRITTEN = 200, 10
UNENDING = "1e999"  # a size that is larger than any


# --- What an assertion may say


def faults(assertion: Assertion) -> dict[str, str]:
    """The faults of an assertion, by its parts."""
    wrong = {
        "source": None
        if assertion.source in list(AssertionSource)
        else text.one_of(AssertionSource),
        "op": None if assertion.op in list(AssertionOp) else text.one_of(AssertionOp),
    }
    if not any(wrong.values()):
        wrong["property"] = text.fault_of(lambda: _property(assertion))
        wrong["value"] = text.fault_of(lambda: _value(assertion))
    return {part: sentence for part, sentence in wrong.items() if sentence}


def _property(assertion: Assertion) -> None:
    name = assertion.property or ""
    if assertion.source not in SOURCES_WITH_PROPERTY:
        if name:
            raise ValueError(_("This source has no property. Leave it empty."))
        return
    if not name:
        raise ValueError(_(text.REQUIRED))
    text.characters(text.length(name, MAX_ASSERTION_PROPERTY))
    if assertion.source == AssertionSource.HEADER:
        text.header_name(name)
    else:
        from app.rules.json_path import query

        query(name)


def _value(assertion: Assertion) -> None:
    value = assertion.value or ""
    if assertion.op in OPS_WITHOUT_VALUE:
        if value:
            raise ValueError(_("%(op)s takes no value. Leave it empty.", op=assertion.op))
        return
    if not value:
        raise ValueError(_("%(op)s needs a value.", op=assertion.op))
    text.characters(text.length(value, MAX_ASSERTION_VALUE))
    if assertion.op in _PATTERNS:
        compiled(value)
    is_number = assertion.op in _COMPARED and assertion.source in NUMERIC_SOURCES
    if is_number and number_of(value) is None:
        raise ValueError(_("Enter a number."))


# --- Whether it holds


@dataclass
class AnswerParts:
    """The parts of an answer that assertions are about.

    ``single``: the value of each other source, or a tuple of texts. ``decode`` is called once, if a
    body is asked for, with whether it is JSON. ``hide`` masks the monitor's own secrets.
    """

    single: Mapping[Any, object]
    headers: Sequence[tuple[str, str]] = ()
    decode: Callable[[bool], str] | None = None
    cut: bool = False  # the body was longer than the cap
    hide: Callable[[str], str] = str
    work: WorkBudget = field(default_factory=WorkBudget)

    @cached_property
    def body(self) -> str:
        return self.decode(False) if self.decode else ""

    @cached_property
    def json(self) -> Any:
        """Raises ValueError with a sentence."""
        self.work.spend(1)
        return parsed(self.decode(True) if self.decode else "")

    def values(self, assertion: Assertion) -> Sequence[Any]:
        """The values in the answer: text, or parts of JSON. Raises ValueError with a sentence."""
        name = assertion.property or ""
        if assertion.source == AssertionSource.JSON:
            from app.rules.json_path import values_at

            return [_Json(value) for value in values_at(name, self.json, self.work)]
        if assertion.source == AssertionSource.HEADER:
            lowered = name.lower()
            return [value for key, value in self.headers if key.lower() == lowered]
        if assertion.source == AssertionSource.BODY:
            return [self.body]
        value = self.single.get(assertion.source)
        if isinstance(value, tuple):
            return value
        return [] if value is None else [str(value)]


class _Json:
    """A value of JSON, which may be a list or an object; other sources have texts."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def evaluate(
    assertions: Sequence[Assertion], answer: AnswerParts
) -> tuple[tuple[CheckedAssertion, ...], str | None]:
    """Each assertion as it was evaluated, and the sentence of the first that does not hold."""
    checked: list[CheckedAssertion] = []
    sentence = None
    for assertion in assertions:
        values: Sequence[Any] = ()
        try:
            ok = None
            if not (answer.cut and assertion.source == AssertionSource.JSON):
                values = answer.values(assertion)
                ok = _evaluated(assertion, values, answer)
            why = None
        except (ValueError, RecursionError) as fault:
            reason = fault if isinstance(fault, ValueError) else _(TOO_DEEP)
            ok, why = False, f"{_name(assertion)}: {reason}"
        shown = _shown(assertion, values, answer)
        plain = assertion.masked()
        checked.append(
            CheckedAssertion(plain.source, plain.property, plain.op, plain.value, shown, ok)
        )
        if ok is False and sentence is None:
            sentence = why or _sentence(plain, shown)
    return tuple(checked), sentence


def unevaluated(assertions: Sequence[Assertion]) -> tuple[CheckedAssertion, ...]:
    """The assertions about an answer that failed before."""
    return tuple(
        CheckedAssertion(plain.source, plain.property, plain.op, plain.value)
        for plain in (assertion.masked() for assertion in assertions)
    )


def _evaluated(assertion: Assertion, values: Sequence[Any], answer: AnswerParts) -> bool | None:
    """Whether it holds; None if more of a body that was cut could change that."""
    op, expected, work = AssertionOp(assertion.op), assertion.value or "", answer.work
    plain = OPPOSITES.get(op, op)
    holds = _holds(plain, values, expected, work)
    if answer.cut and assertion.source == AssertionSource.BODY:
        if plain in _SEARCHES and not holds:
            return None
    elif answer.cut and assertion.source == AssertionSource.SIZE:
        least = [str(BODY_CAP_BYTES + 1)]
        holds = _holds(plain, least, expected, work)
        if holds != _holds(plain, [UNENDING], expected, work):
            return None
    return holds if plain == op else not holds


def _holds(op: str, values: Sequence[Any], expected: str, work: WorkBudget) -> bool:
    if op == AssertionOp.EXISTS:
        return bool(values)
    if op == AssertionOp.EMPTY:
        return not values or any(map(_is_empty, values))
    return any(_value_holds(op, value, expected, work) for value in values)


def _is_empty(value: Any) -> bool:
    return (value.value if isinstance(value, _Json) else value) in (None, "", [], {})


def _value_holds(op: str, value: Any, expected: str, work: WorkBudget) -> bool:
    written = _text(value)
    is_written = isinstance(value, _Json) and isinstance(value.value, list | dict)
    work.spend(1 + len(written) // (_WRITTEN if is_written else _CHARACTERS))
    if op == AssertionOp.CONTAINS:
        return expected in written
    if op == AssertionOp.MATCHES:
        return matches(expected, written, work)
    limit = number_of(expected)
    if op == AssertionOp.EQ:
        number = None if limit is None else _number(value, written, strings=False)
        return written == expected or (number is not None and number == limit)
    number = _number(value, written, strings=True)
    if number is not None and limit is not None:
        return _ORDERS[op](number, limit)
    # A number is neither more nor less than a text: "error" is not above 100.
    return (number is limit is None) and _ORDERS[op](written, expected)


def _text(value: Any) -> str:
    """A value as it is compared: of JSON, texts as they are, all else as JSON writes it."""
    content = value.value if isinstance(value, _Json) else value
    return content if isinstance(content, str) else spelled(content)


def _number(value: Any, written: str, *, strings: bool) -> Decimal | None:
    """``strings``: whether a text of JSON may be a number; as a version, 1.10 is not 1.1."""
    content = value.value if isinstance(value, _Json) else None
    if isinstance(content, bool | list | dict) or (isinstance(content, str) and not strings):
        return None
    return number_of(written)


def number_of(written: str) -> Decimal | None:
    plain = written.strip()
    if not _NUMBER.fullmatch(plain):
        return None
    try:
        return Decimal(plain)
    except InvalidOperation:  # an exponent beyond all
        return None


# --- What people read


def _shown(assertion: Assertion, values: Sequence[Any], answer: AnswerParts) -> str | None:
    """The first values, masked if they look secret; None for none."""
    if not values:
        return None
    pieces, length = [], 0
    for value in values:
        if length > MAX_FOUND:
            break
        written = _text(value)
        answer.work.left -= len(written) // _CHARACTERS
        pieces.append(mask(written) if written and assertion.looks_secret() else written)
        length += len(written)
    shown = ", ".join(pieces)
    # Twice as much is looked at: what is left of a secret that is cut in half would not be masked.
    shown = _SECRET_MEMBER.sub(rf"\1{MASK}", answer.hide(shown[: 2 * MAX_FOUND]))
    return text.shortened(text.printable(shown), MAX_FOUND)


_MISSING = N_("%(what)s is missing")
# The words for each op, and the sentence of an assertion that does not hold.
_OPS = {
    AssertionOp.EQ: ("=", N_('%(what)s is "%(found)s", expected "%(value)s"')),
    AssertionOp.NE: ("≠", N_('%(what)s is "%(found)s", expected anything else')),
    AssertionOp.LT: ("<", N_('%(what)s is "%(found)s", expected less than "%(value)s"')),
    AssertionOp.LE: ("≤", N_('%(what)s is "%(found)s", expected at most "%(value)s"')),
    AssertionOp.GT: (">", N_('%(what)s is "%(found)s", expected more than "%(value)s"')),
    AssertionOp.GE: ("≥", N_('%(what)s is "%(found)s", expected at least "%(value)s"')),
    AssertionOp.CONTAINS: (
        N_("contains"), N_('%(what)s is "%(found)s", expected to contain "%(value)s"')),
    AssertionOp.NOT_CONTAINS: (
        N_("does not contain"), N_('%(what)s is "%(found)s", expected not to contain "%(value)s"')),
    AssertionOp.MATCHES: (
        N_("matches"), N_('%(what)s is "%(found)s", expected to match "%(value)s"')),
    AssertionOp.NOT_MATCHES: (
        N_("does not match"), N_('%(what)s is "%(found)s", expected not to match "%(value)s"')),
    AssertionOp.EXISTS: (N_("exists"), _MISSING),
    AssertionOp.NOT_EXISTS: (
        N_("does not exist"), N_('%(what)s is "%(found)s", expected not to exist')),
    AssertionOp.EMPTY: (N_("is empty"), N_('%(what)s is "%(found)s", expected to be empty')),
    AssertionOp.NOT_EMPTY: (N_("is not empty"), N_("%(what)s is empty")),
}  # fmt: skip
OP_LABELS = {op: label for op, (label, _sentence) in _OPS.items()}
_MISSING_OF = N_('%(what)s is missing, expected "%(value)s"')
LABELS = {
    AssertionSource.STATUS: N_("Status code"),
    AssertionSource.HEADER: N_("Header"),
    AssertionSource.BODY: N_("Body"),
    AssertionSource.JSON: N_("JSON"),
    AssertionSource.SIZE: N_("Size in bytes"),
    AssertionSource.RESPONSE_TIME: N_("Response time in ms"),
    AssertionSource.CERTIFICATE_DAYS: N_("Days of the certificate"),
    AssertionSource.URL: N_("Final URL"),
    AssertionSource.BANNER: N_("Banner"),
    AssertionSource.LOSS: N_("Lost pings in percent"),
    AssertionSource.ANSWER: N_("DNS record"),
}
_SIMPLE_PATH = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z0-9_]*)+)", re.ASCII)


def words(assertion: Assertion) -> str:
    """An assertion in a list, without its secret."""
    plain = assertion.masked()
    op = OP_LABELS.get(plain.op)  # type: ignore[call-overload] # another server may have more
    parts = (_name(plain), _(op) if op else plain.op, plain.value)
    return " ".join(part for part in parts if part)


def _name(assertion: Assertion) -> str:
    """``status`` of ``$.status``; ``Header X-Version``."""
    name = assertion.property or ""
    if assertion.source == AssertionSource.JSON:
        simple = _SIMPLE_PATH.fullmatch(name)
        return simple[1][1:] if simple else name
    label = LABELS.get(assertion.source)  # type: ignore[call-overload]
    return f"{_(label) if label else assertion.source} {name}".rstrip()


def _sentence(assertion: Assertion, found_text: str | None) -> str:
    sentence = _OPS[AssertionOp(assertion.op)][1]
    if found_text is None:
        sentence = _MISSING_OF if assertion.value else _MISSING
    return _(
        sentence,
        what=_name(assertion),
        found=text.shortened(found_text or "", _MAX_QUOTED),
        value=text.shortened(assertion.value or "", _MAX_QUOTED),
    )
