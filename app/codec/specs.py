"""Read a check that came from another machine: the server of an agent, or the checker behind a
queue.

It must satisfy the rules of a stored monitor. Otherwise an attacker who controls that machine could
make this one send other requests: a method with line breaks is a request of another protocol to any
host that this machine may reach. ``checks.kinds`` decides which URLs can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from app.codec import values
from app.codec.record import fields_of
from app.codec.values import MalformedData, must, object_
from app.records import (
    ALERT_DAYS,
    AUTO,
    CHECK_OPTIONS,
    MAX_ACCEPTED_STATUSES,
    MAX_ASSERTIONS,
    MAX_CREDENTIAL,
    MAX_HEADERS,
    MAX_ID,
    MAX_REQUEST_BODY_BYTES,
    MAX_TEXT_LOOKUP,
    MAX_URL,
    SLOW_AFTER_MS,
    TIMEOUT_SECONDS,
    AlertCondition,
    Assertion,
    CheckSpec,
    Monitor,
    Pair,
    RequestMethod,
)
from app.rules import text
from app.rules.assertions import faults
from app.rules.text import parse_statuses

MAX_FAULT = 500  # characters of a sentence; Wakeful's own have fewer


def read_spec(data: Any) -> CheckSpec:
    """Read a check that ``packing.pack`` wrote. Raises MalformedData with the name of a field whose
    value no stored monitor can have.
    """
    sent = object_(data, "check")
    fields: dict[str, Any] = {}
    for name, read in _READ.items():
        if name in sent:
            try:
                fields[name] = read(sent[name])
            except (TypeError, ValueError, AttributeError):
                raise MalformedData(name) from None
    try:
        return CheckSpec(**fields)
    except TypeError:
        raise MalformedData("url") from None  # the only field without a default


def _line(value: Any, limit: int) -> str:
    if not isinstance(value, str):
        raise TypeError
    return text.characters(text.length(value, limit))


def _body(value: Any) -> str:
    return text.characters(text.size(value, MAX_REQUEST_BODY_BYTES), lines=True)


def _statuses(value: Any) -> str:
    parse_statuses(_line(value, MAX_ACCEPTED_STATUSES))
    return str(value)


def _headers(value: Any) -> tuple[Pair, ...]:
    if not isinstance(value, list) or len(value) > MAX_HEADERS:
        raise TypeError
    return tuple(_header(*header) for header in value)


def _header(name: Any, value: Any) -> Pair:
    return Pair(text.header_name(name), text.header_value(name, value))


def _assertions(value: Any) -> tuple[Assertion, ...]:
    if not isinstance(value, list) or len(value) > MAX_ASSERTIONS:
        raise TypeError
    rows = values.assertions(value)
    if len(rows) < len(value) or any(map(faults, rows)):
        raise ValueError
    return rows


def _auth(value: Any) -> tuple[str, str]:
    user, password = value
    return _line(user, MAX_CREDENTIAL), _line(password, MAX_CREDENTIAL)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError
    return value


def _timeout(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    if not 0 < value <= TIMEOUT_SECONDS[1]:
        raise ValueError
    return value


def _days(value: Any) -> int | str:
    return AUTO if value == AUTO else _number(value, 0, max(ALERT_DAYS))


def _option(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return _optional(lambda value: must(read(value), "option"))


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "url": partial(_line, limit=MAX_URL),
    "monitor_id": _optional(partial(_number, low=1, high=MAX_ID)),
    "request_method": RequestMethod,
    "request_headers": _headers,
    "auth": _optional(_auth),
    "request_body": _optional(_body),
    "alert_condition": AlertCondition,
    "alert_text_lookup": _optional(partial(_line, limit=MAX_TEXT_LOOKUP)),
    "assertions": _assertions,
    "timeout": _timeout,
    "accepted_statuses": _statuses,
    "follow_redirects": _flag,
    "verify_tls": _flag,
    "cache_buster": _flag,
    "slow_after": _optional(partial(_number, low=SLOW_AFTER_MS[0], high=SLOW_AFTER_MS[1])),
    "ssl_alert_days": _optional(_days),
    "fault": _optional(partial(_line, limit=MAX_FAULT)),
    **{
        field.name: _option(field.value_type.read)
        for field in fields_of(Monitor)
        if field.name in CHECK_OPTIONS
    },
}
