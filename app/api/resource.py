"""The five operations that most resources have: list, create, show, update, delete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.queries import PageForm
from app.forms.schema import SchemaForm
from app.rules.brackets import Pairs
from app.stores import Store, base

Records = base.Collection[Any, Any]


def shape(call: Call, record: Any) -> dict[str, Any]:
    """A record in JSON, its secrets masked for a key that may only read."""
    return json_of(record, masked=call.masked)


@dataclass(frozen=True, slots=True)
class Resource:
    """``one`` and ``many`` name its records in sentences. ``object`` is what the answer to a
    deletion calls it, ``answer`` the schema of a record. ``about`` has a description for each
    operation, ``refusals`` the statuses that only some of them answer. ``check`` raises Denied
    where the key may not store or change what it sends; it gets the present record or None.
    """

    name: str
    path: str
    one: str
    many: str
    answer: str
    form: type[SchemaForm]
    records: Callable[[Store], Records]
    about: Mapping[str, str]
    update_form: type[SchemaForm] | None = None
    query: type[SchemaForm] = PageForm
    read_query: Callable[[Pairs], Any] = binding.page_query
    shape: Callable[[Call, Any], Mapping[str, Any]] = shape
    check: Callable[[Call, Any], None] | None = None
    refusals: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def object(self) -> str:
        return self.path.removeprefix("/").removesuffix("s")

    def list(self, call: Call) -> Response:
        page = self.records(call.store).list(self.read_query(call.query))
        return paged(page, lambda record: self.shape(call, record), call.query)

    def store(self, call: Call) -> Response:
        if self.check:
            self.check(call, None)
        return created(self.shape(call, self.records(call.store).create(call.new(self.form))))

    def show(self, call: Call) -> Response:
        record = self.records(call.store).get(call.id)
        call.without_input()
        return one(self.shape(call, record))

    def update(self, call: Call) -> Response:
        record = self.records(call.store).get(call.id)
        if self.check:
            self.check(call, record)
        fields = call.changes(self.update_form or self.form, record)
        return one(self.shape(call, self.records(call.store).update(call.id, fields)))

    def delete(self, call: Call) -> Response:
        self.records(call.store).get(call.id)
        call.without_input()
        self.records(call.store).delete(call.id)
        return deleted(self.object, call.id)


def register(resource: Resource, *, but: Collection[str] = ()) -> None:
    """Add the operations of a resource to the table, but for those that it does in its own way."""
    path, record = resource.path, resource.path + "/{id}"
    change = {"form": resource.update_form or resource.form, "update": True}
    operations: Mapping[str, tuple[str, str, str, Mapping[str, Any]]] = {
        "list": ("GET", path, f"List {resource.many}", {"paged": True, "query": resource.query}),
        "store": ("POST", path, f"Create {resource.one}", {"status": 201, "form": resource.form}),
        "show": ("GET", record, f"Show {resource.one}", {}),
        "update": ("PUT PATCH", record, f"Update {resource.one}", change),
        "delete": ("DELETE", record, f"Delete {resource.one}", {}),
    }
    for verb, (methods, at, summary, more) in operations.items():
        if verb in but:
            continue
        operation(
            methods,
            at,
            summary,
            "Deleted" if verb == "delete" else resource.answer,
            name=f"{resource.name}_{'list_' if verb == 'list' else verb}",
            description=resource.about[verb],
            refusals=resource.refusals.get(verb, ()),
            **more,
        )(getattr(resource, verb))
