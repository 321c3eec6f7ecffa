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
    page, per_page = binding.page_query(call.query)
    return paged(call.store.windows(page=page, per_page=per_page), json_of, call.query)


@operation("POST", WINDOWS, "Store a maintenance window", ANSWER, status=201, form=WindowForm)
def store(call: Call) -> Response:
    return created(json_of(call.store.create_window(call.new(WindowForm))))


@operation("GET", WINDOW, "Show a maintenance window", ANSWER)
def show(call: Call) -> Response:
    record = call.store.window(call.id)
    call.without_input()
    return one(json_of(record))


@operation("PUT PATCH", WINDOW, "Update a maintenance window", ANSWER, form=WindowForm, update=True)
def update(call: Call) -> Response:
    fields = call.changes(WindowForm, call.store.window(call.id))
    return one(json_of(call.store.update_window(call.id, fields)))


@operation("DELETE", WINDOW, "Delete a maintenance window", "Deleted")
def delete(call: Call) -> Response:
    call.store.window(call.id)
    call.without_input()
    call.store.delete_window(call.id)
    return deleted("maintenance-window", call.id)
