"""/api/v1/maintenance-windows (decisions.md 11)."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.queries import PageForm
from app.forms.window import WindowForm

WINDOWS = "/maintenance-windows"
WINDOW = "/maintenance-windows/{id}"
ANSWER = "MaintenanceWindow"


@operation("GET", WINDOWS, "List maintenance windows", ANSWER, paged=True, query=PageForm)
def list_(call: Call) -> Response:
    page = call.store.windows.list(binding.page_query(call.query))
    return paged(page, json_of, call.query)


@operation("POST", WINDOWS, "Create a maintenance window", ANSWER, status=201, form=WindowForm)
def store(call: Call) -> Response:
    return created(json_of(call.store.windows.create(call.new(WindowForm))))


@operation("GET", WINDOW, "Show a maintenance window", ANSWER)
def show(call: Call) -> Response:
    record = call.store.windows.get(call.id)
    call.without_input()
    return one(json_of(record))


@operation("PUT PATCH", WINDOW, "Update a maintenance window", ANSWER, form=WindowForm, update=True)
def update(call: Call) -> Response:
    fields = call.changes(WindowForm, call.store.windows.get(call.id))
    return one(json_of(call.store.windows.update(call.id, fields)))


@operation("DELETE", WINDOW, "Delete a maintenance window", "Deleted")
def delete(call: Call) -> Response:
    call.store.windows.get(call.id)
    call.without_input()
    call.store.windows.delete(call.id)
    return deleted("maintenance-window", call.id)
