"""Whether the content of a column has the expected shape. The functions are pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from types import UnionType
from typing import Any

from app.proxies import read_networks
from app.rules.quiet_hours import parse_clock
from app.rules.text import parse_statuses

_INTEGER = frozenset({int})


def is_pairs(data: Any) -> bool:
    """``[[key, value], ...]``, all of it text."""
    return _is_rows(data, str, str)


def is_assertions(data: Any) -> bool:
    """``[[source, property, op, value], ...]``: text, or null for no property and no value."""
    return _is_rows(data, str, str | None, str, str | None)


def is_runs(data: Any) -> bool:
    """``[[run id, start, end], ...]`` of a heartbeat, in ms."""
    return _is_rows(data, str | None, int, int | None)


def is_facts(data: Any) -> bool:
    """The parts of a message that the outbox needs. ``app.alerts.messages`` checks whether it is
    complete.
    """
    if not isinstance(data, dict):
        return False
    by_hand = data.get("by_hand")
    return (
        (by_hand is None or _is_moment(by_hand))
        and isinstance(data.get("earlier_attempts", 0), int)
        and isinstance(data.get("extra") or {}, dict)
    )


def is_check(data: Any) -> bool:
    """One check of an incident's evidence. The values that ``app/rules/what_changed.py`` compares
    have the right types, or are missing.
    """
    if not _is_figures(data):
        return False
    hops, elsewhere = data.get("redirects") or [], data.get("elsewhere") or {}
    return (
        _are(str, data, "url", "ip", "location")
        and _are(int, data, "status_code", "body_bytes")
        and is_texts(data.get("resolved") or [])
        and _is_objects(data.get("tls") or [])
        and _is_rows(data.get("headers") or [], str, str)
        and isinstance(hops, list)
        and all(_are(str, hop if isinstance(hop, dict) else {"url": hop}, "url") for hop in hops)
        and isinstance(elsewhere, dict)
        and is_checks(list(elsewhere.values()))
    )


def _is_figures(data: Any) -> bool:
    """The time and durations of a check, or the usual durations."""
    if not isinstance(data, dict):
        return False
    at, timings = data.get("checked_at"), data.get("timings") or {}
    return (
        (at is None or _is_moment(at))
        and _are(int, data, "response_time")
        and isinstance(timings, dict)
        and _are(int, timings, *timings)
        and is_texts(data.get("addresses") or [])
    )


def is_checks(data: Any) -> bool:
    return isinstance(data, list) and all(is_check(check) for check in data)


def is_asked(data: Any) -> bool:
    """``{place: [time in ms, assertions as checked]}``"""
    return isinstance(data, dict) and all(
        _is_rows([entry], int, list) and _is_objects(entry[1]) for entry in data.values()
    )


def is_evidence(data: Any) -> bool:
    """The evidence of an incident."""
    if not isinstance(data, dict) or not is_checks(data.get("confirming") or []):
        return False
    alone = [check for name in ("failing", "last_good") if (check := data.get(name)) is not None]
    return (
        is_checks(alone)
        and _is_figures(data.get("usual") or {})
        and _is_objects(data.get("places") or [])
    )


def is_attempts(data: Any) -> bool:
    """``[{"at": time, ...}, ...]``"""
    return _is_objects(data) and all(_is_moment(attempt.get("at")) for attempt in data)


def is_gaps(data: Any) -> bool:
    """``[{"from": time, "to": time}, ...]``"""
    return _is_objects(data) and all(
        _is_moment(gap.get("from")) and _is_moment(gap.get("to")) for gap in data
    )


def is_context(data: Any) -> bool:
    """The values that many results share: address, HTTP version, redirects, warnings."""
    return (
        isinstance(data, dict)
        and all(isinstance(data.get(name, ""), str) for name in ("ip", "http_version"))
        and all(is_texts(data.get(name, [])) for name in ("redirects", "warnings"))
    )


def is_histogram(data: Any) -> bool:
    """Counts by bucket number, which JSON stores as text."""
    # Without a loop of Python: the statistics of 90 days read some 5,000 of these counts.
    return (
        isinstance(data, dict)
        and all(map(str.isdecimal, data))
        and max(map(len, data), default=0) < 6
        and _INTEGER.issuperset(map(type, data.values()))
    )


def is_phases(data: Any) -> bool:
    """The five sums of the parts of a response time."""
    return isinstance(data, list) and len(data) == 5 and _INTEGER.issuperset(map(type, data))


def is_statuses(data: str) -> bool:
    try:
        return bool(parse_statuses(data))
    except ValueError:
        return False


def is_texts(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(text, str) for text in data)


def _is_rows(data: Any, *types: type | UnionType) -> bool:
    """A list of lists, each with a value of each of these types."""
    return isinstance(data, list) and all(
        isinstance(row, list) and len(row) == len(types) and all(map(isinstance, row, types))
        for row in data
    )


def _are(type_: type, data: Mapping[str, Any], *names: str) -> bool:
    """Whether these values are of this type, or missing."""
    return all(isinstance(data.get(name), type_ | None) for name in names)


def _is_objects(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(item, dict) for item in data)


def _is_moment(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def is_clock(data: Any) -> bool:
    """A time of day, ``HH:MM``."""
    try:
        parse_clock(data)
    except (TypeError, ValueError):
        return False
    return True


def is_networks(data: str) -> bool:
    """Addresses and networks, by comma."""
    try:
        read_networks(data)
    except ValueError:
        return False
    return True


def is_ids(data: str) -> bool:
    """``,7,12,``"""
    return re.fullmatch(r",([0-9]{1,18},)+", data) is not None
