"""Write checks and outcomes as compact JSON data for another machine, and read outcomes. Pure.

Fields with their default value are left out. ``specs`` reads checks. Outcomes are not trusted: a
prober or an agent runs where others can reach it, and a value that the database cannot store would
lose its whole batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from operator import attrgetter
from typing import Any

from app.codec.evidence import MAX_EVIDENCE, fitted, read_evidence
from app.codec.record import reader
from app.codec.value_types import plain
from app.codec.values import MalformedData
from app.records import (
    MAX_ASSERTION_PROPERTY,
    MAX_ASSERTION_VALUE,
    MAX_ASSERTIONS,
    MAX_FOUND,
    MAX_RESULT_CAUSE,
    MAX_URL,
    PHASES,
    Cause,
    Outcome,
    Pair,
    Result,
)
from app.rules.time import FIRST_YEAR, LAST_YEAR

MAX_WORD = 64  # a warning
MAX_TEXTS = 10  # ten redirects are followed, and there are fewer warnings
MAX_IP = 100  # an IPv6 address with its zone
_ASSERTION_PARTS = (
    ("source", MAX_WORD),
    ("op", MAX_WORD),
    ("property", MAX_ASSERTION_PROPERTY),
    ("value", MAX_ASSERTION_VALUE),
    ("found", MAX_FOUND),
)
_NOT_STORED = re.compile("[\0\ud800-\udfff]")
MAX_NUMBER = 2**31 - 1  # of an INTEGER column

# --- Writing


def pack(record: Any) -> dict[str, Any]:
    """A ``CheckSpec``, an ``Outcome``, or a record inside one."""
    take, names = _values(record.__class__)
    return {
        name: _packed(value)
        for (name, default), value in zip(names, take(record), strict=True)
        if value is not default and value != default
    }


@cache
def _values(record_type: Any) -> tuple[Callable[[Any], tuple[Any, ...]], list[tuple[str, Any]]]:
    columns = fields(record_type)
    return attrgetter(*(field.name for field in columns)), [
        (field.name, field.default) for field in columns
    ]


def _packed(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Pair):
        return [value.key, value.value]
    if isinstance(value, Mapping):
        return plain(value)
    if is_dataclass(value):
        return pack(value)
    return [_packed(entry) for entry in value]


# --- Reading


def read_outcome(data: Any) -> Outcome:
    """Read an outcome that ``pack`` wrote. Raises MalformedData for values that no check brings."""
    outcome = _outcome(data)
    result = outcome.result
    for name, number, largest in (
        ("status_code", result.status_code, 999),
        ("response_time", result.response_time, MAX_NUMBER),
        *((name, getattr(result.timings, name), MAX_NUMBER) for name in PHASES),
    ):
        if number is not None and not 0 <= number <= largest:
            raise MalformedData(name)
    for name, texts, longest, max_count in (
        ("cause", (result.cause,), MAX_RESULT_CAUSE, 1),
        ("http_version", (result.http_version,), 8, 1),
        ("ip", (result.ip,), MAX_IP, 1),
        ("ssl_fingerprint", (outcome.ssl_fingerprint,), 64, 1),
        ("ssl_host", (outcome.ssl_host,), 255, 1),
        ("redirects", result.redirects, MAX_URL, MAX_TEXTS),
        ("warnings", result.warnings, MAX_WORD, MAX_TEXTS),
    ):
        if len(texts) > max_count:
            raise MalformedData(name)
        for text in texts:
            _text(text, name, longest)
    if len(result.assertions) > MAX_ASSERTIONS:
        raise MalformedData("assertions")
    for row in result.assertions:
        for part, longest in _ASSERTION_PARTS:
            _text(getattr(row, part), "assertions", longest)
    if result.cause_code is not None and not _is_cause(result.cause_code):
        raise MalformedData("cause_code")
    if result.ip is not None:
        try:
            ip_address(result.ip.partition("%")[0])
        except ValueError:
            raise MalformedData("ip") from None
    if outcome.evidence is None:
        return outcome
    evidence = fitted(read_evidence(outcome.evidence))
    _texts(evidence, "evidence")
    return replace(outcome, evidence=evidence)


def _texts(value: Any, name: str) -> None:
    """Check each text in nested data. A single text may be as long as all evidence."""
    if isinstance(value, str):
        _text(value, name, MAX_EVIDENCE)
    elif isinstance(value, Mapping):
        for entry in value.values():
            _texts(entry, name)
    elif isinstance(value, list | tuple):
        for entry in value:
            _texts(entry, name)


_CAUSES = frozenset(Cause)


def _is_cause(code: str) -> bool:
    name, colon, status = code.partition(":")
    if name == Cause.HTTP_STATUS and colon:
        return status.isascii() and status.isdigit() and len(status) == 3
    return code in _CAUSES


def _text(value: str | None, name: str, longest: int) -> None:
    # PostgreSQL stores no NUL, and no half of a surrogate pair can be written as UTF-8.
    if value is not None and (len(value) > longest or _NOT_STORED.search(value)):
        raise MalformedData(name)


def moment(value: Any) -> datetime | None:
    """Read a time with its fraction of a second. None for any other value, for a time without a
    zone, and for a year outside of FIRST_YEAR to LAST_YEAR.
    """
    try:
        zoned = datetime.fromisoformat(value)
        read = zoned.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return read if zoned.tzinfo is not None and FIRST_YEAR <= read.year <= LAST_YEAR else None


_outcome = reader(Outcome, "outcome", result=reader(Result, "result", checked_at=moment))
