"""/api/v1/status-pages (decisions.md 12)."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.queries import PageForm
from app.forms.status_page import StatusPageForm

PAGES = "/status-pages"
PAGE = "/status-pages/{id}"
ANSWER = "StatusPage"


@operation("GET", PAGES, "List status pages", ANSWER, paged=True, query=PageForm)
def list_(call: Call) -> Response:
    page = call.store.status_pages.list(binding.page_query(call.query))
    return paged(page, json_of, call.query)


@operation("POST", PAGES, "Create a status page", ANSWER, status=201, form=StatusPageForm)
def store(call: Call) -> Response:
    return created(json_of(call.store.status_pages.create(call.new(StatusPageForm))))


@operation("GET", PAGE, "Show a status page", ANSWER)
def show(call: Call) -> Response:
    record = call.store.status_pages.get(call.id)
    call.without_input()
    return one(json_of(record))


@operation("PUT PATCH", PAGE, "Update a status page", ANSWER, form=StatusPageForm, update=True)
def update(call: Call) -> Response:
    fields = call.changes(StatusPageForm, call.store.status_pages.get(call.id))
    return one(json_of(call.store.status_pages.update(call.id, fields)))


@operation("DELETE", PAGE, "Delete a status page", "Deleted")
def delete(call: Call) -> Response:
    call.store.status_pages.get(call.id)
    call.without_input()
    call.store.status_pages.delete(call.id)
    return deleted("status-page", call.id)
