"""From the bytes of a request to the call of its handler (``Body``, ``Call``), and the table of
operations: every path and method of /api/v1 but those of agents and of pings over HTTP, with its
input and its answer.

The routes of the blueprint and the OpenAPI document are made from this table, so both have the same
operations. Most resources have five, which their description names: list, create, show, update,
delete (``Handlers``).
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cache, cached_property, partial
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from flask import Request, Response, current_app, request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app.access.keys import require
from app.api.envelope import created, deleted, paged, record_answer
from app.codec import json_of
from app.errors import Invalid
from app.forms.lists import indexed_names
from app.forms.queries import ListForm, MarkerQueryForm, NoQueryForm, PageForm, list_query
from app.forms.resources import FORMS
from app.forms.schema import FormContext, SchemaForm, bind, overlay, query_values
from app.i18n import N_, _
from app.records import (
    DRAINED_BYTES,
    MAX_BATCH_BYTES,
    MAX_BATCH_FIELDS,
    MAX_BODY_BYTES,
    MAX_FIELDS,
    MAX_IN_BATCH,
    ApiKey,
    ObjectKind,
    Page,
    Resource,
    Scope,
)
from app.records.resources import RESOURCES
from app.rules.brackets import JsonMembers, Pairs, Typed, flatten, is_list, rows
from app.rules.text import NESTED, NOT_JSON, OBJECT_NEEDED, TOO_LARGE, too_many
from app.stores import Store, base, store_of_key

PREFIX = "/api/v1"
METHOD_ORDER = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ROWS = N_("Send the records as %(field)s[0][name] and so on, or in JSON as a list of objects.")
ROW_COUNT = N_("Send between 1 and %(most)s at once.")
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
CHUNK = 64 * 1024
MAX_NUMBER = 30  # digits; no field takes more


# --- The bytes of a request -----------------------------------------------------------------------
#
# Flask would replace invalid bytes, merge duplicate names and silently drop unexpected parts. Here,
# input that is not UTF-8 is refused, and every name is read as often as it was sent. A form and
# JSON lead to the same pairs: {"tags": ["web"]} is the pair ("tags[0]", "web").


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
        while size <= DRAINED_BYTES and (chunk := request.stream.read(CHUNK)):
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
    if len(digits) > MAX_NUMBER:
        return None
    try:
        number = Decimal(digits)
    except InvalidOperation:  # an exponent of twenty digits
        return None
    if number.adjusted() > MAX_NUMBER or number != number.to_integral_value():
        return None
    return str(int(number))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _not_json(fault: ValueError) -> str:
    if isinstance(fault, json.JSONDecodeError):
        position = _("The first error is at character %(position)s.", position=fault.pos + 1)
        return f"{_(NOT_JSON)} {position}"
    return _(NOT_JSON)


# --- A request -----------------------------------------------------------------------------------


@dataclass
class Call:
    """One request. ``ids``: the ids in the path, by name."""

    key: ApiKey | None
    ids: Mapping[str, int]
    body: Body

    @cached_property
    def store(self) -> Store:
        """The store, limited to the rights of the key."""
        return store_of_key(self.key)

    @property
    def id(self) -> int:
        return self.ids["id"]

    def require(self, scope: Scope) -> None:
        """Raises Denied for a key with a narrower scope."""
        if self.key is not None:
            require(self.key, scope)

    @cached_property
    def masked(self) -> bool:
        """Whether to mask secrets: a key that may only read gets masks (decision 3)."""
        return self.key is None or not self.key.may(Scope.WRITE)

    @cached_property
    def query(self) -> Pairs:
        """The parameters of the request; body fields are refused. Handlers read them after the
        record, because the 404 of an unknown record precedes the 422 of a bad query.
        """
        _refuse_values(self.body.pairs())
        return sent_query()

    def parameters(self, form_class: type[SchemaForm]) -> dict[str, Any]:
        """The validated parameters. Raises Invalid."""
        return query_values(form_class, self.query)

    def page(
        self,
        form_class: type[ListForm],
        read: Callable[[Any], Page[Any]],
        shape: Callable[[Any], Any] = json_of,
        **ids: int,
    ) -> Response:
        """The answer with the page that ``read`` returns for the parameters. ``ids``: the ids of
        the records that the list belongs to.
        """
        return paged(read(list_query(form_class, self.query, **ids)), shape, self.query)

    def refuse_input(self) -> None:
        """Refuse body fields and parameters."""
        _refuse_values(self.body.pairs())
        _refuse_values(sent_query())

    def new(self, form_class: type[SchemaForm]) -> dict[str, Any]:
        """The validated fields of a new record. Raises Invalid."""
        _refuse_values(sent_query())
        return bind(form_class, self.body.pairs(), self._context())

    def new_rows(self, form_class: type[SchemaForm], field: str) -> list[dict[str, Any] | Invalid]:
        """The validated fields of each new record in the list ``field``, or why it is refused.
        Raises Invalid if the list itself is refused.
        """
        _refuse_values(sent_query())
        sent_rows, others = self.body.rows(field)
        if any(name.partition("[")[0] == field for name, _value in others):
            raise Invalid({field: [_(ROWS, field=field)]})
        _refuse_values(others)
        if not 1 <= len(sent_rows) <= MAX_IN_BATCH:
            raise Invalid({field: [_(ROW_COUNT, most=MAX_IN_BATCH)]})
        context = self._context()
        # Cached: many of the records may name the same contact.
        context = replace(context, contact_exists=cache(self.store.contacts.exists))
        return [_bind_or_fault(form_class, pairs, context) for pairs in sent_rows]

    @contextmanager
    def names_as_sent(self) -> Iterator[None]:
        """Give the store's errors about a list of ids the indices as sent (decision 1): the store
        has only the indices of the validated list.
        """
        try:
            yield
        except Invalid as fault:
            pairs = self.body.pairs()
            raise Invalid(
                {_as_sent(pairs, name): sentences for name, sentences in fault.errors.items()}
            ) from None

    def changes(self, form_class: type[SchemaForm], record: object) -> dict[str, Any]:
        """The validated fields that were sent for ``record``. Raises Invalid."""
        _refuse_values(sent_query())
        return overlay(form_class, record, self.body.pairs(), self._context())

    def _context(self) -> FormContext:
        settings = current_app.extensions["wakeful.settings"]
        return FormContext(
            now=self.store.now(),
            telegram_token_set=settings.telegram_token is not None,
            places=self.store.monitors.locations(),
            contact_exists=self.store.contacts.exists,
        )


def _bind_or_fault(
    form_class: type[SchemaForm], pairs: Pairs, context: FormContext
) -> dict[str, Any] | Invalid:
    try:
        return bind(form_class, pairs, context)
    except Invalid as fault:
        return fault


def _as_sent(pairs: Pairs, error: str) -> str:
    field, _dot, position = error.partition(".")
    if not position.isdecimal():
        return error
    values = dict(pairs)
    firsts: dict[str, str] = {}  # the index of each value: a list has no value twice
    for name in indexed_names(field, values):
        firsts.setdefault(values[f"{field}[{name.index}]"], name.dotted)
    names = list(firsts.values())
    return names[int(position)] if int(position) < len(names) else error


def _refuse_values(pairs: Pairs) -> None:
    """Raise Invalid if any field or parameter has a value."""
    query_values(NoQueryForm, pairs)


# --- The table -----------------------------------------------------------------------------------

Handler = Callable[[Call], Response]


@cache
def _docstring(handler: Handler) -> str:
    """The docstring, from the source: processes run without docstrings (app/commands/entry.py)."""
    function = ast.parse(textwrap.dedent(inspect.getsource(handler))).body[0]
    return (ast.get_docstring(function) or "") if isinstance(function, ast.FunctionDef) else ""


@dataclass(frozen=True, slots=True)
class Operation:
    """``answer``: the name of the schema of ``data`` in the OpenAPI document. ``form`` reads the
    body; ``update``: the body may leave out any field. ``scope``: the scope that a key needs; by
    default read for GET and write for other methods. ``refusals``: statuses besides those of all
    operations. ``several``: the answer has an entry for each of several records. ``rows``: the name
    of the list of records in the body, of which ``form`` reads each. ``level``: the first level of
    the API that has the operation; 0 for the base API.
    """

    name: str
    summary: str
    described: str | None  # None: by the docstring of the handler
    handler: Handler
    answer: str
    status: int = 200
    paged: bool = False
    form: type[SchemaForm] | None = None
    update: bool = False
    query: type[SchemaForm] = NoQueryForm
    scope: Scope | None = None
    refusals: tuple[int, ...] = ()
    several: bool = False
    rows: str = ""
    level: int = 1

    @property
    def description(self) -> str:
        return _docstring(self.handler) if self.described is None else self.described

    @property
    def takes_input(self) -> bool:
        return self.form is not None or self.query is not NoQueryForm

    @property
    def max_bytes(self) -> int:
        """The largest body that is read."""
        return MAX_BATCH_BYTES if self.rows else MAX_BODY_BYTES


@dataclass
class Path:
    """One path with its operations. ``template``: the path, with the names of ids in braces.
    ``public``: it needs no key.
    """

    template: str
    public: bool = False
    operations: dict[str, Operation] = field(default_factory=dict)

    @cached_property
    def ids(self) -> list[str]:
        """The parts of the template that stand for ids, in braces."""
        return [part for part in self.template.split("/") if part.startswith("{")]

    @cached_property
    def owner(self) -> str:
        """The collection of a path below a record, such as ``/monitors/{id}/results``; empty for
        other paths.
        """
        name, *parts = self.template.strip("/").split("/")
        return name.replace("-", "_") if self.ids == parts[:1] and len(parts) > 1 else ""

    @property
    def allow(self) -> list[str]:
        allowed = {*self.operations, "OPTIONS"} | ({"HEAD"} if "GET" in self.operations else set())
        return [method for method in METHOD_ORDER if method in allowed]


PATHS: dict[str, Path] = {}


def operation(
    methods: str,
    path: str,
    summary: str,
    answer: str,
    *,
    public: bool = False,
    name: str | None = None,
    description: str | None = None,
    **more: Any,
) -> Callable[[Handler], Handler]:
    """Add a handler to the table. ``methods`` are separated by spaces. The document describes the
    operation with ``description``, or with the docstring of the handler.
    """

    def register(handler: Handler) -> Handler:
        entry = PATHS.setdefault(path, Path(path, public))
        module = handler.__module__.rpartition(".")[2]
        for method in methods.split():
            entry.operations[method] = Operation(
                name=name or f"{module}_{handler.__name__}",
                summary=summary,
                described=description,
                handler=handler,
                answer=answer,
                **more,
            )
        return handler

    return register


# --- The operations of a resource ----------------------------------------------------------------

Records = base.Collection[Any, Any]
_BASE = {ObjectKind.MONITOR, ObjectKind.INCIDENT}  # the resources of the base API
# Other names of operations in the OpenAPI document, which generated clients use.
_OPERATION_IDS = {"list": "list_", "create": "store"}


def shape(call: Call, record: Any) -> dict[str, Any]:
    """A record in JSON, with secrets masked for a key that may only read."""
    return json_of(record, masked=call.masked)


@dataclass(frozen=True, slots=True)
class Handlers:
    """The five operations of a resource, named as in ``Resource.about``.

    ``refusals``: by operation, ``Operation.refusals``. ``check(call, record)`` raises Denied if the
    key may not store the sent fields; ``record`` is None for a new one.
    """

    resource: Resource
    form: type[SchemaForm]
    update_form: type[SchemaForm]
    query: type[ListForm] = PageForm
    shape: Callable[[Call, Any], Mapping[str, Any]] = shape
    check: Callable[[Call, Any], None] | None = None
    refusals: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def records(self, store: Store) -> Records:
        """The collection of the resource: for monitors, the class in stores/local/monitors.py."""
        collection: Records = getattr(store, self.resource.name)
        return collection

    def list(self, call: Call) -> Response:
        return call.page(self.query, self.records(call.store).list, partial(self.shape, call))

    def create(self, call: Call) -> Response:
        if self.check:
            self.check(call, None)
        fields = call.new(self.form)
        with call.names_as_sent():
            record = self.records(call.store).create(fields)
        return created(self.shape(call, record))

    def show(self, call: Call) -> Response:
        record = self.records(call.store).get(call.id)
        call.refuse_input()
        return record_answer(self.shape(call, record))

    def update(self, call: Call) -> Response:
        record = self.records(call.store).get(call.id)
        if self.check:
            self.check(call, record)
        fields = call.changes(self.update_form, record)
        with call.names_as_sent():
            record = self.records(call.store).update(call.id, fields)
        return record_answer(self.shape(call, record))

    def delete(self, call: Call) -> Response:
        self.records(call.store).get(call.id)
        call.refuse_input()
        self.records(call.store).delete(call.id)
        return deleted(self.resource.path.removeprefix("/").removesuffix("s"), call.id)


def register(
    resource: Resource, *, update_form: type[SchemaForm] | None = None, **options: Any
) -> None:
    """Add the operations in the description of a resource to the table."""
    path, record, form = resource.path, resource.path + "/{id}", FORMS[resource.kind]
    update_form = update_form or form
    handlers = Handlers(resource, form, update_form, **options)
    a_record = f"{'an' if resource.singular[0] in 'aeiou' else 'a'} {resource.singular}"
    operations: Mapping[str, tuple[str, str, str, Mapping[str, Any]]] = {
        "list": ("GET", path, f"List {resource.plural}", {"paged": True, "query": handlers.query}),
        "create": ("POST", path, f"Create {a_record}", {"status": 201, "form": form}),
        "show": ("GET", record, f"Show {a_record}", {}),
        # PUT is as partial as PATCH: both change only what is sent.
        "update": (
            "PUT PATCH", record, f"Update {a_record}",
            {"form": update_form, "update": True},
        ),
        "delete": ("DELETE", record, f"Delete {a_record}", {})
    }  # fmt: skip
    for verb, description in resource.about.items():
        methods, template, summary, more = operations[verb]
        operation(
            methods,
            template,
            summary,
            "Deleted" if verb == "delete" else resource.schema,
            name=f"{resource.name}_{_OPERATION_IDS.get(verb, verb)}",
            description=description,
            refusals=handlers.refusals.get(verb, ()),
            level=0 if resource.kind in _BASE else 1,
            **more,
        )(getattr(handlers, verb))


_OPTIONS: Mapping[ObjectKind, Mapping[str, Any]] = {
    ObjectKind.MARKER: {"query": MarkerQueryForm},
    ObjectKind.STATUS_PAGE: {"refusals": {"create": (409,), "update": (409,)}},
}
# Resources that a module of this package registers, with further operations.
_IN_MODULES = {ObjectKind.MONITOR, ObjectKind.INCIDENT, ObjectKind.CONTACT, ObjectKind.LOCATION}

for _resource in RESOURCES:
    if _resource.about and _resource.kind not in _IN_MODULES:
        register(_resource, **_OPTIONS.get(_resource.kind, {}))
