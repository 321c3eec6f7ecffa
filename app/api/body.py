"""Read bodies and queries ourselves: strictly as UTF-8, with every name as often as it was sent.

Flask would replace invalid bytes, merge duplicate names and silently drop unexpected parts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NoReturn
from urllib.parse import parse_qsl

from flask import Request

from app.errors import Invalid
from app.i18n import _
from app.records import MAX_BODY_BYTES, MOST_FIELDS
from app.rules.brackets import Members, Pairs, Typed, flatten

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
# How much of a too large body is read, so that its sender can finish and receive the answer.
_DRAINED_BYTES = 8 * MAX_BODY_BYTES
_CHUNK = 64 * 1024
_LONGEST_NUMBER = 30  # digits; no field takes more


class TooLarge(Exception):
    """The body is over the limit."""


class WrongType(Exception):
    """The body is neither a form nor JSON."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body that was read and whose type is known, but that is not parsed yet."""

    raw: bytes
    kind: str
    whole: bool = True

    def pairs(self) -> Pairs:
        """The fields. Raises Invalid with ``errors.body`` if they cannot be read."""
        if not self.whole:
            raise Invalid({"body": [_("The body is incomplete. Send it again.")]})
        if not self.raw:
            return []
        text = _decoded(self.raw, "body")
        return _form(text, "body") if self.kind == FORM else _json(text)


def read_body(request: Request) -> Body:
    """Raises TooLarge before WrongType."""
    raw, whole = _read(request)
    kind = request.mimetype
    if raw and kind not in (FORM, JSON):
        raise WrongType
    return Body(raw, kind, whole)


def read_query(request: Request) -> Pairs:
    """The query's parameters in order, with empty ones. Raises Invalid with ``errors.query``."""
    return _form(_decoded(request.query_string, "query"), "query")


def _read(request: Request) -> tuple[bytes, bool]:
    """The body as far as it was received, and whether that is all of it."""
    request.max_content_length = _DRAINED_BYTES  # replaces the dashboard's; counted again below
    announced = request.content_length or 0
    if announced > _DRAINED_BYTES:
        raise TooLarge
    kept = bytearray()
    seen = 0
    whole = True
    try:
        while chunk := request.stream.read(_CHUNK):
            seen += len(chunk)
            if seen <= MAX_BODY_BYTES:
                kept += chunk
            elif seen > _DRAINED_BYTES:
                break
    except Exception:
        # The client left, or its chunks are invalid: each server raises errors of its own.
        whole = False
    if max(seen, announced) > MAX_BODY_BYTES:
        raise TooLarge
    return bytes(kept), whole


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Invalid({where: [_("This is not UTF-8. Send text in UTF-8.")]}) from None


def _form(text: str, where: str) -> Pairs:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError:
        sentence = _("A percent-encoded value is not UTF-8. Send text in UTF-8.")
    except ValueError:
        sentence = _too_many()
    raise Invalid({where: [sentence]})


def _json(text: str) -> Pairs:
    try:
        document = json.loads(
            text,
            object_pairs_hook=Members,
            # Numbers keep their spelling: Python refuses to parse thousands of digits.
            parse_int=lambda digits: Typed(digits, "number"),
            parse_float=lambda digits: Typed(_whole(digits) or digits, "number"),
            parse_constant=_refuse_constant,
        )
    except ValueError as fault:
        raise Invalid({"body": [_not_json(fault)]}) from None
    except RecursionError:
        raise Invalid({"body": [_("This JSON is nested too deeply.")]}) from None
    if not isinstance(document, Members):
        raise Invalid({"body": [_('Send a JSON object, such as {"name": "value"}.')]})
    pairs = flatten(document)
    if len(pairs) > MOST_FIELDS:
        raise Invalid({"body": [_too_many()]})
    return pairs


def _whole(digits: str) -> str | None:
    """A whole number that is written with a fraction or an exponent, as ``44.0`` or ``1e2``."""
    if len(digits) > _LONGEST_NUMBER:
        return None
    try:
        number = Decimal(digits)
    except InvalidOperation:  # an exponent of twenty digits
        return None
    if number.adjusted() > _LONGEST_NUMBER or number != number.to_integral_value():
        return None
    return str(int(number))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _not_json(fault: ValueError) -> str:
    if isinstance(fault, json.JSONDecodeError):
        return _("This is not valid JSON (character %(place)s).", place=fault.pos + 1)
    return _("This is not valid JSON.")


def _too_many() -> str:
    return _("There are too many fields. Send %(most)s at most.", most=f"{MOST_FIELDS:,}")


__all__ = ["FORM", "JSON", "Body", "TooLarge", "WrongType", "read_body", "read_query"]
