"""Assertions that the monitor form offers after a check, made from the answer. A click adds
the row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.records import MASK, Assertion, AssertionOp, AssertionSource, Outcome
from app.rules.assertions import faults
from app.rules.bounded import parsed, spelled

_MAX_MEMBERS = 8  # of the JSON
_MAX_VALUE = 80  # characters
# The headers that are offered: others differ with each answer, or are not worth an assertion.
_HEADERS = ("content-type", "cache-control", "x-cache", "server", "location")


def offered(outcome: Outcome) -> Sequence[Assertion]:
    """Assertions on the status, the members of the JSON, and the headers of the answer."""
    evidence = outcome.evidence or {}
    rows = [
        *_status(outcome),
        *(row for name, value in _members(evidence) for row in _member(name, value)),
        *(
            Assertion(AssertionSource.HEADER, name, AssertionOp.EQ, value)
            for name, value in evidence.get("headers") or ()
            if name.lower() in _HEADERS
        ),
    ]
    return [row for row in rows if _fits(row)]


def _status(outcome: Outcome) -> Sequence[Assertion]:
    status = outcome.result.status_code
    if status is None:
        return ()
    return [Assertion(AssertionSource.STATUS, None, AssertionOp.EQ, str(status))]


def _members(evidence: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
    if evidence.get("body_cut"):
        return ()
    try:
        document = parsed(evidence.get("body") or "")
    except ValueError:
        return ()
    return list(document.items())[:_MAX_MEMBERS] if isinstance(document, dict) else ()


def _member(name: str, value: Any) -> Sequence[Assertion]:
    path = f"$.{name}" if name.isidentifier() else f"$[{json.dumps(name)}]"
    if isinstance(value, list | dict):
        return [Assertion(AssertionSource.JSON, path, AssertionOp.NOT_EMPTY)]
    plain = value if isinstance(value, str) else spelled(value)
    return [Assertion(AssertionSource.JSON, path, AssertionOp.EQ, plain)]


def _fits(row: Assertion) -> bool:
    value = row.value or ""
    is_shown = not row.looks_secret() and MASK not in value and len(value) <= _MAX_VALUE
    return is_shown and not faults(row)


def button_value(row: Assertion) -> str:
    return json.dumps([row.source, row.property, row.op, row.value])
