"""One request to the API, as its handler sees it, and the strict reading of its body and query.

Flask would replace invalid bytes, merge duplicate names and silently drop unexpected parts. Here
all is UTF-8, with every name as often as it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from flask import Request, current_app, request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app.access.keys import require
from app.errors import Invalid
from app.forms import binding
from app.forms.queries import NoQueryForm
from app.forms.schema import FormContext, SchemaForm
from app.i18n import _
from app.records import MAX_BODY_BYTES, MOST_FIELDS, ApiKey, Scope
from app.rules.brackets import JsonMembers, Pairs, Typed, flatten
from app.rules.text import NESTED, NOT_JSON, OBJECT_NEEDED, TOO_LARGE, too_many
from app.stores import Store, store_of_key

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
# How much of a too large body is read, so that its sender can finish and receive the answer.
_DRAINED_BYTES = 8 * MAX_BODY_BYTES
_CHUNK = 64 * 1024
_LONGEST_NUMBER = 30  # digits; no field takes more


@dataclass
class Call:
    """``ids`` are those in the path, by name."""

    key: ApiKey | None
    ids: Mapping[str, int]
    body: Body

    @cached_property
    def store(self) -> Store:
        """The store as the key may see it."""
        return store_of_key(self.key)

    @property
    def id(self) -> int:
        return self.ids["id"]

    def require(self, scope: Scope) -> None:
        """Raises Denied for a key that may do less."""
        if self.key is not None:
            require(self.key, scope)

    @property
    def masked(self) -> bool:
        """A key that may only read sees secrets masked (decision 3)."""
        return self.key is None or not self.key.may(Scope.WRITE)

    @cached_property
    def query(self) -> Pairs:
        """The parameters of a request; body fields are refused. Read late: the 404 of an unknown
        record precedes a bad query.
        """
        _refuse(self.body.pairs())
        return _query()

    def without_input(self) -> None:
        """Refuse body fields and parameters: this operation has none."""
        _refuse(self.body.pairs())
        _refuse(_query())

    def new(self, form_class: type[SchemaForm]) -> dict[str, Any]:
        """The validated fields of a new record. Raises Invalid."""
        _refuse(_query())
        return binding.bind(form_class, self.body.pairs(), self._context())

    def changes(self, form_class: type[SchemaForm], record: object) -> dict[str, Any]:
        """The validated fields that were sent for ``record``. Raises Invalid."""
        _refuse(_query())
        return binding.overlay(form_class, record, self.body.pairs(), self._context())

    def _context(self) -> FormContext:
        settings = current_app.extensions["wakeful.settings"]
        return FormContext(
            now=self.store.now(),
            telegram_token_set=settings.telegram_token is not None,
            places=self.store.monitors.locations(),
            contact_known=self.store.contacts.is_known,
        )


def _refuse(pairs: Pairs) -> None:
    """Refuse input that no form of this operation reads."""
    binding.query_values(NoQueryForm, pairs)


@dataclass(frozen=True, slots=True)
class Body:
    """A body that was read and whose type is accepted, but that is not parsed yet."""

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
    """The body as far as it was received. Raises the exceptions of 413 and 415."""
    request.max_content_length = _DRAINED_BYTES  # replaces the dashboard's; counted again below
    size = request.content_length or 0
    received, raw, whole = 0, bytearray(), True
    try:
        while size <= _DRAINED_BYTES and (chunk := request.stream.read(_CHUNK)):
            received += len(chunk)
            size = max(size, received)
            if size <= MAX_BODY_BYTES:
                raw += chunk
    except Exception:
        # The client left, or its chunks are invalid: each server raises errors of its own.
        whole = False
    if size > MAX_BODY_BYTES:
        raise RequestEntityTooLarge(_(TOO_LARGE, most=MAX_BODY_BYTES // 1024**2))
    if raw and request.mimetype not in (FORM, JSON):
        raise UnsupportedMediaType(
            _("Send the fields as application/x-www-form-urlencoded or as application/json.")
        )
    return Body(bytes(raw), request.mimetype, whole)


def _query() -> Pairs:
    """The query's parameters in order, with empty ones. Raises Invalid with ``errors.query``."""
    return _form(_decoded(request.query_string, "query"), "query")


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
        sentence = too_many(MOST_FIELDS)
    raise Invalid({where: [sentence]})


def _json(text: str) -> Pairs:
    try:
        document = json.loads(
            text,
            object_pairs_hook=JsonMembers,
            # Numbers keep their spelling: Python refuses to parse thousands of digits.
            parse_int=lambda digits: Typed(digits, "number"),
            parse_float=lambda digits: Typed(_whole(digits) or digits, "number"),
            parse_constant=_refuse_constant,
        )
    except ValueError as fault:
        raise Invalid({"body": [_not_json(fault)]}) from None
    except RecursionError:
        raise Invalid({"body": [_(NESTED)]}) from None
    if not isinstance(document, JsonMembers):
        raise Invalid({"body": [_(OBJECT_NEEDED)]})
    pairs = flatten(document)
    if len(pairs) > MOST_FIELDS:
        raise Invalid({"body": [too_many(MOST_FIELDS)]})
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
        position = _("The first error is at character %(position)s.", position=fault.pos + 1)
        return f"{_(NOT_JSON)} {position}"
    return _(NOT_JSON)
