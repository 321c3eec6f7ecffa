"""Assertions about an answer (decision 19): which are valid, and whether they hold. Pure.

``faults`` validates an assertion for the form. ``evaluate`` takes the parts of an answer and
returns each assertion with its value in the answer, and the sentence of the first that does not
hold.

A source gives a list of values: a path matches any number of them, a header or a DNS record may
occur twice, other sources have one. An assertion holds if it holds for one of the values. ``!=``
and the ops with ``not_`` hold if their opposite does not: for all values, or if there is no value.
An exception is ``not_empty``, which needs a value.
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
from app.rules.bounded import TOO_DEEP, WorkBudget, compiled, matches, parse_exact_json, spelled

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
# If the body was cut, its missing part could still make these hold.
_SEARCHES = frozenset({AssertionOp.CONTAINS, AssertionOp.MATCHES})
# Possessive (``++``): with backtracking, a million digits before a letter take quadratic time.
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?", re.ASCII)
_SECRET_MEMBER = re.compile(rf'("[^"]*(?:{SECRET_NAME.pattern})[^"]*"\s*:\s*"?)([^",}}\]]+)', re.I)
_MAX_QUOTED = 80  # characters of a value in a sentence
# Characters of text that count as one unit of work: when they are compared, and when they are
# written as JSON.
_COMPARED_CHARACTERS, _WRITTEN_CHARACTERS = 200, 10
INFINITE_SIZE = "1e999"


# --- Which assertions are valid


def faults(assertion: Assertion) -> dict[str, str]:
    """The faults of an assertion, by its parts."""
    wrong = {
        "source": None
        if assertion.source in list(AssertionSource)
        else text.one_of(AssertionSource),
        "op": None if assertion.op in list(AssertionOp) else text.one_of(AssertionOp),
    }
    if not any(wrong.values()):
        wrong["property"] = text.fault_of(lambda: _check_property(assertion))
        wrong["value"] = text.fault_of(lambda: _check_value(assertion))
    return {part: sentence for part, sentence in wrong.items() if sentence}


def _check_property(assertion: Assertion) -> None:
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


def _check_value(assertion: Assertion) -> None:
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

    ``single``: the values of all sources but headers, body and JSON; a tuple for several texts.
    ``decode(is_json)`` returns the body, and is called only if an assertion needs it. ``hide``
    masks the monitor's secrets.
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
        return parse_exact_json(self.decode(True) if self.decode else "")

    def values(self, assertion: Assertion) -> Sequence[Any]:
        """The values of the assertion's source in the answer: text, or parts of JSON. Raises
        ValueError with a sentence.
        """
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
    """A value of JSON. It tells a list or an object from the text of other sources."""

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
            error = None
        except (ValueError, RecursionError) as fault:
            reason = fault if isinstance(fault, ValueError) else _(TOO_DEEP)
            ok, error = False, f"{_name(assertion)}: {reason}"
        values_text = _shown(assertion, values, answer)
        masked = assertion.masked()
        checked.append(
            CheckedAssertion(
                masked.source, masked.property, masked.op, masked.value, values_text, ok
            )
        )
        if ok is False and sentence is None:
            sentence = error or _sentence(masked, values_text)
    return tuple(checked), sentence


def unevaluated(assertions: Sequence[Assertion]) -> tuple[CheckedAssertion, ...]:
    """The assertions of a check that failed before they could be evaluated."""
    return tuple(
        CheckedAssertion(masked.source, masked.property, masked.op, masked.value)
        for masked in (assertion.masked() for assertion in assertions)
    )


def _evaluated(assertion: Assertion, values: Sequence[Any], answer: AnswerParts) -> bool | None:
    """Whether it holds; None if the missing part of a body that was cut could change that."""
    op, expected, work = AssertionOp(assertion.op), assertion.value or "", answer.work
    positive = OPPOSITES.get(op, op)
    holds = _holds(positive, values, expected, work)
    if answer.cut and assertion.source == AssertionSource.BODY:
        if positive in _SEARCHES and not holds:
            return None
    elif answer.cut and assertion.source == AssertionSource.SIZE:
        smallest = [str(BODY_CAP_BYTES + 1)]
        holds = _holds(positive, smallest, expected, work)
        if holds != _holds(positive, [INFINITE_SIZE], expected, work):
            return None
    return holds if positive == op else not holds


def _holds(op: str, values: Sequence[Any], expected: str, work: WorkBudget) -> bool:
    if op == AssertionOp.EXISTS:
        return bool(values)
    if op == AssertionOp.EMPTY:
        return not values or any(map(_is_empty, values))
    return any(_value_holds(op, value, expected, work) for value in values)


def _is_empty(value: Any) -> bool:
    return (value.value if isinstance(value, _Json) else value) in (None, "", [], {})


def _value_holds(op: str, value: Any, expected: str, work: WorkBudget) -> bool:
    value_text = _text(value)
    is_written = isinstance(value, _Json) and isinstance(value.value, list | dict)
    work.spend(1 + len(value_text) // (_WRITTEN_CHARACTERS if is_written else _COMPARED_CHARACTERS))
    if op == AssertionOp.CONTAINS:
        return expected in value_text
    if op == AssertionOp.MATCHES:
        return matches(expected, value_text, work)
    limit = number_of(expected)
    if op == AssertionOp.EQ:
        number = None if limit is None else _number(value, value_text, strings=False)
        return value_text == expected or (number is not None and number == limit)
    number = _number(value, value_text, strings=True)
    if number is not None and limit is not None:
        return _ORDERS[op](number, limit)
    # A number is neither more nor less than a text: "error" is not above 100.
    return number is None and limit is None and _ORDERS[op](value_text, expected)


def _text(value: Any) -> str:
    """The text of a value that is compared: a text itself, any other value of JSON as the answer
    spells it.
    """
    content = value.value if isinstance(value, _Json) else value
    return content if isinstance(content, str) else spelled(content)


def _number(value: Any, value_text: str, *, strings: bool) -> Decimal | None:
    """A value as a number; None if it is none. ``strings``: whether a string of JSON may be a
    number. For ``=`` it may not: the version "1.10" is not 1.1.
    """
    content = value.value if isinstance(value, _Json) else None
    if isinstance(content, bool | list | dict) or (isinstance(content, str) and not strings):
        return None
    return number_of(value_text)


def number_of(text: str) -> Decimal | None:
    if not _NUMBER.fullmatch(text.strip()):
        return None
    try:
        return Decimal(text.strip())
    except InvalidOperation:  # the exponent is too large
        return None


# --- Sentences for people


def _shown(assertion: Assertion, values: Sequence[Any], answer: AnswerParts) -> str | None:
    """The first values, masked if they look secret; None if there are none."""
    if not values:
        return None
    pieces, length = [], 0
    for value in values:
        if length > MAX_FOUND:
            break
        value_text = _text(value)
        answer.work.remaining -= len(value_text) // _COMPARED_CHARACTERS
        pieces.append(mask(value_text) if value_text and assertion.looks_secret() else value_text)
        length += len(value_text)
    values_text = ", ".join(pieces)
    # Cut to twice the limit, mask, and cut to the limit: a secret that the first cut has halved is
    # not recognized, but the second cut removes it.
    values_text = _SECRET_MEMBER.sub(rf"\1{MASK}", answer.hide(values_text[: 2 * MAX_FOUND]))
    return text.shortened(text.printable(values_text), MAX_FOUND)


_MISSING = N_("%(what)s is missing")
# The words for each op, and the sentence of an assertion that does not hold.
_OPS = {
    AssertionOp.EQ: ("=", N_('%(what)s is "%(actual)s", expected "%(value)s"')),
    AssertionOp.NE: ("≠", N_('%(what)s is "%(actual)s", expected anything else')),
    AssertionOp.LT: ("<", N_('%(what)s is "%(actual)s", expected less than "%(value)s"')),
    AssertionOp.LE: ("≤", N_('%(what)s is "%(actual)s", expected at most "%(value)s"')),
    AssertionOp.GT: (">", N_('%(what)s is "%(actual)s", expected more than "%(value)s"')),
    AssertionOp.GE: ("≥", N_('%(what)s is "%(actual)s", expected at least "%(value)s"')),
    AssertionOp.CONTAINS: (
        N_("contains"), N_('%(what)s is "%(actual)s", expected to contain "%(value)s"')),
    AssertionOp.NOT_CONTAINS: (
        N_("does not contain"),
        N_('%(what)s is "%(actual)s", expected not to contain "%(value)s"')),
    AssertionOp.MATCHES: (
        N_("matches"), N_('%(what)s is "%(actual)s", expected to match "%(value)s"')),
    AssertionOp.NOT_MATCHES: (
        N_("does not match"), N_('%(what)s is "%(actual)s", expected not to match "%(value)s"')),
    AssertionOp.EXISTS: (N_("exists"), _MISSING),
    AssertionOp.NOT_EXISTS: (
        N_("does not exist"), N_('%(what)s is "%(actual)s", expected not to exist')),
    AssertionOp.EMPTY: (N_("is empty"), N_('%(what)s is "%(actual)s", expected to be empty')),
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
    """An assertion in words, with its secret masked."""
    masked = assertion.masked()
    op = OP_LABELS.get(masked.op)  # type: ignore[call-overload] # another server may have more
    parts = (_name(masked), _(op) if op else masked.op, masked.value)
    return " ".join(part for part in parts if part)


def _name(assertion: Assertion) -> str:
    """``status`` of ``$.status``; ``Header X-Version``."""
    name = assertion.property or ""
    if assertion.source == AssertionSource.JSON:
        simple = _SIMPLE_PATH.fullmatch(name)
        return simple[1][1:] if simple else name
    label = LABELS.get(assertion.source)  # type: ignore[call-overload]
    return f"{_(label) if label else assertion.source} {name}".rstrip()


def _sentence(assertion: Assertion, values_text: str | None) -> str:
    sentence = _OPS[AssertionOp(assertion.op)][1]
    if values_text is None:
        sentence = _MISSING_OF if assertion.value else _MISSING
    return _(
        sentence,
        what=_name(assertion),
        actual=text.shortened(values_text or "", _MAX_QUOTED),
        value=text.shortened(assertion.value or "", _MAX_QUOTED),
    )
