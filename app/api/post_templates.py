"""/api/v1/post-templates: posts to start from."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.post_template import PostTemplateForm
from app.forms.queries import PageForm

TEMPLATES = "/post-templates"
TEMPLATE = "/post-templates/{id}"
ANSWER = "PostTemplate"


@operation("GET", TEMPLATES, "List post templates", ANSWER, paged=True, query=PageForm)
def list_(call: Call) -> Response:
    page = call.store.post_templates.list(binding.page_query(call.query))
    return paged(page, json_of, call.query)


@operation("POST", TEMPLATES, "Create a post template", ANSWER, status=201, form=PostTemplateForm)
def store(call: Call) -> Response:
    return created(json_of(call.store.post_templates.create(call.new(PostTemplateForm))))


@operation("GET", TEMPLATE, "Show a post template", ANSWER)
def show(call: Call) -> Response:
    record = call.store.post_templates.get(call.id)
    call.without_input()
    return one(json_of(record))


@operation(
    "PUT PATCH", TEMPLATE, "Update a post template", ANSWER, form=PostTemplateForm, update=True
)
def update(call: Call) -> Response:
    fields = call.changes(PostTemplateForm, call.store.post_templates.get(call.id))
    return one(json_of(call.store.post_templates.update(call.id, fields)))


@operation("DELETE", TEMPLATE, "Delete a post template", "Deleted")
def delete(call: Call) -> Response:
    call.store.post_templates.get(call.id)
    call.without_input()
    call.store.post_templates.delete(call.id)
    return deleted("post-template", call.id)
