"""The strict reading of a request's body and query.

Flask would replace invalid bytes, merge duplicate names and silently drop unexpected parts. Here,
input that is not UTF-8 is refused, and every name is read as often as it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NoReturn
from urllib.parse import parse_qsl

from flask import Request, request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app.errors import Invalid
from app.i18n import _
from app.records import DRAINED_BYTES, MAX_BATCH_FIELDS, MAX_BODY_BYTES, MAX_FIELDS
from app.rules.brackets import JsonMembers, Pairs, Typed, flatten, is_list, rows
from app.rules.text import NESTED, NOT_JSON, OBJECT_NEEDED, TOO_LARGE, too_many

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
_CHUNK = 64 * 1024
_MAX_NUMBER = 30  # digits; no field takes more


@dataclass(frozen=True, slots=True)
class Body:
    """A body with an accepted type, not parsed yet. ``complete``: it arrived as a whole."""

    raw: bytes
    media_type: str
    complete: bool = True

    def pairs(self) -> Pairs:
        """The fields. Raises Invalid with ``errors.body`` if they cannot be read."""
        text = self._text()
        if not text or self.media_type == FORM:
            return _form(text, "body")
        return _limited(flatten(_json(text)), MAX_FIELDS)

    def rows(self, field: str) -> tuple[Sequence[Pairs], Pairs]:
        """The fields of each record in the list ``field``, and the fields outside of the list.
        Raises Invalid as ``pairs`` does.
        """
        text = self._text()
        if not text or self.media_type == FORM:
            return rows(_form(text, "body", MAX_BATCH_FIELDS), field)
        members = _json(text)
        items = next((value for name, value in members if name == field and is_list(value)), None)
        sent_rows = [flatten(item) for item in items or () if isinstance(item, JsonMembers)]
        others = [member for member in members if member[1] is not items]
        if len(sent_rows) < len(items or ()):
            others.append((field, ""))
        _limited([pair for pairs in sent_rows for pair in pairs], MAX_BATCH_FIELDS)
        return sent_rows, _limited(flatten(others), MAX_FIELDS)

    def _text(self) -> str:
        if not self.complete:
            raise Invalid({"body": [_("The body is incomplete. Send it again.")]})
        return _decoded(self.raw, "body")


def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> Body:
    """The body, or its beginning if the client broke off. Raises RequestEntityTooLarge above
    ``limit`` bytes, and UnsupportedMediaType.
    """
    request.max_content_length = DRAINED_BYTES  # in place of the dashboard's limit
    size = request.content_length or 0
    received, raw, complete = 0, bytearray(), True
    try:
        while size <= DRAINED_BYTES and (chunk := request.stream.read(_CHUNK)):
            received += len(chunk)
            size = max(size, received)
            if size <= limit:
                raw += chunk
    except Exception:
        # The client has closed the connection, or sent invalid chunks: the exception depends on the
        # WSGI server.
        complete = False
    if size > limit:
        raise RequestEntityTooLarge(_(TOO_LARGE, most=limit // 1024**2))
    if raw and request.mimetype not in (FORM, JSON):
        raise UnsupportedMediaType(
            _("Send the fields as application/x-www-form-urlencoded or as application/json.")
        )
    return Body(bytes(raw), request.mimetype, complete)


def sent_query() -> Pairs:
    """The parameters of the query in order, also empty ones. Raises Invalid with
    ``errors.query``.
    """
    return _form(_decoded(request.query_string, "query"), "query")


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Invalid({where: [_("This is not UTF-8. Send text in UTF-8.")]}) from None


def _form(text: str, where: str, limit: int = MAX_FIELDS) -> Pairs:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=limit)
    except UnicodeDecodeError:
        sentence = _("A percent-encoded value is not UTF-8. Send text in UTF-8.")
    except ValueError:
        sentence = too_many(limit)
    raise Invalid({where: [sentence]})


def _json(text: str) -> JsonMembers:
    try:
        document = json.loads(
            text,
            object_pairs_hook=JsonMembers,
            # Numbers keep their spelling: Python refuses to parse thousands of digits.
            parse_int=lambda digits: Typed(digits, "number"),
            parse_float=lambda digits: Typed(_whole_number(digits) or digits, "number"),
            parse_constant=_refuse_constant,
        )
    except ValueError as fault:
        raise Invalid({"body": [_not_json(fault)]}) from None
    except RecursionError:
        raise Invalid({"body": [_(NESTED)]}) from None
    if not isinstance(document, JsonMembers):
        raise Invalid({"body": [_(OBJECT_NEEDED)]})
    return document


def _limited(pairs: Pairs, limit: int) -> Pairs:
    if len(pairs) > limit:
        raise Invalid({"body": [too_many(limit)]})
    return pairs


def _whole_number(digits: str) -> str | None:
    """A whole number that is written with a fraction or an exponent, as ``44.0`` or ``1e2``."""
    if len(digits) > _MAX_NUMBER:
        return None
    try:
        number = Decimal(digits)
    except InvalidOperation:  # an exponent of twenty digits
        return None
    if number.adjusted() > _MAX_NUMBER or number != number.to_integral_value():
        return None
    return str(int(number))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _not_json(fault: ValueError) -> str:
    if isinstance(fault, json.JSONDecodeError):
        position = _("The first error is at character %(position)s.", position=fault.pos + 1)
        return f"{_(NOT_JSON)} {position}"
    return _(NOT_JSON)
