"""/api/v1/openapi.json, generated from the table of operations, the forms and the records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from apispec import APISpec
from flask import Response, request

from app.api import schemas
from app.api.envelope import answer
from app.api.operations import JSON, PATHS, PREFIX, Call, Operation, Path, operation
from app.codec.schema import INTEGER, NAME, STRING, Schema, array, json_object, nullable, record
from app.records import MAX_IN_BATCH
from app.records.resources import RESOURCES
from app.version import __version__

INTRODUCTION = """\
Monitors watch URLs; incidents are periods of trouble. Send an API key with every request:
`Authorization: Bearer <API_KEY>`.

Bodies are JSON, as described here, or the same fields as `application/x-www-form-urlencoded`.
There, a list of pairs is `alerts[0][key]=email&alerts[0][value]=ops@example.com`, a list of values
is `monitors[0]=1`, a list of groups is `groups[0][name]=Shop&groups[0][monitors][0]=1`. Indices
order the list and may have gaps. A boolean is `true`, `false`, `1` or `0`. An empty value is what
null is in JSON: it clears an optional field, or restores its default.

PUT and PATCH both change only what is sent. Unknown fields and parameters are refused. Times are
UTC. `X-RateLimit-Reset` counts the seconds until `X-RateLimit-Remaining` is full again. A key that
is bound to a tag sees the monitors with the tag and what belongs to them; all else is 403, and so
is a key outside its networks.
"""
TAGS = {
    **{resource.path.removeprefix("/"): resource.tag for resource in RESOURCES if resource.record},
    "alerts": "Channels, and messages to try them.",
    "checks": "Checks of what is not stored.",
    "me": "The key that asks.",
    "openapi.json": "This document.",
    "overview": "Monitors, counted.",
    "report": "Figures of many monitors between two times.",
}
DELETIONS = ("Deleted", "Cleared")
META = ("current_page", "from", "last_page", "path", "per_page", "to", "total")
STATUS_TEXTS = {
    200: "Success.",
    201: "Created. The Location header has the URL of a single record.",
    207: "Some are refused. Each has its own answer.",
    401: "No valid API key came with the request.",
    403: "The key may not do this, or is bound to a tag or to networks.",
    404: "Nothing has this id.",
    409: "The current state does not allow it.",
    413: "The body is too large.",
    415: "The body is neither a form nor JSON.",
    422: "The input is not valid. errors has a sentence for each field.",
    429: "Too many requests. Retry-After says how many seconds to wait.",
    500: "A fault of the server. Its log has the details under request_id.",
    503: "The database or a place does not answer. Retry-After says how many seconds to wait.",
}


@operation("GET", "/openapi.json", "Show this document", "Document", public=True)
def show(call: Call) -> Response:
    """Describes every operation, in OpenAPI 3.1. Needs no key."""
    # The URL that the client used, so that the document works behind any proxy path.
    server = request.root_url.rstrip("/") + PREFIX
    return answer({**document(), "servers": [{"url": server}]})


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document without its servers."""
    spec = APISpec(
        title="Wakeful",
        version=__version__,
        openapi_version="3.1.0",
        info={"description": INTRODUCTION},
        security=[{"key": []}],
        tags=[{"name": name, "description": text} for name, text in sorted(TAGS.items())],
    )
    spec.components.security_scheme("key", {"type": "http", "scheme": "bearer"})
    components = _Components({**schemas.RECORDS, **_envelopes()})
    paths = {
        path.template: {
            method.lower(): components.with_references(_operation_object(method, path, operation))
            for method, operation in path.operations.items()
        }
        for path in PATHS.values()
    }
    for name, schema in sorted(components.schemas.items()):
        spec.components.schema(name, schema)
    for template, operations in paths.items():
        spec.path(path=template, operations=operations)
    openapi: dict[str, Any] = spec.to_dict()
    return openapi


class _Components:
    """The schemas that have a name. Each is once among the components of the document, so that
    generated clients have one class for it.
    """

    def __init__(self, top: Mapping[str, Schema]) -> None:
        self.schemas: dict[str, Schema] = {}
        for name, schema in top.items():
            self.schemas[name] = self.with_references({**schema, NAME: None})

    def with_references(self, schema: Any) -> Any:
        """``schema`` with references in place of the schemas with names, which are added to
        ``schemas``.
        """
        if isinstance(schema, list):
            return [self.with_references(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        name = schema.get(NAME)
        plain = {key: self.with_references(part) for key, part in schema.items() if key != NAME}
        if name is None:
            return plain
        annotations = {key: plain.pop(key) for key in ("description", "default") if key in plain}
        if self.schemas.setdefault(name, plain) != plain:
            raise ValueError(f"two schemas have the name {name}")
        return _ref(name) | annotations


def _operation_object(method: str, path: Path, operation: Operation) -> Schema:
    described: Schema = {
        "operationId": operation.name if method != "PUT" else f"{operation.name}_put",
        "summary": operation.summary,
        "description": operation.description,
        "tags": [path.template.split("/")[1]],
        "parameters": schemas.parameters(operation.query),
        "responses": _responses(method, path, operation),
    }
    if path.public:
        described["security"] = []
    described["parameters"] += [
        {"name": id[1:-1], "in": "path", "required": True, "schema": INTEGER | {"minimum": 1}}
        for id in path.ids
    ]
    if operation.form is not None:
        schema = schemas.of_form(operation.form, update=operation.update) | {
            NAME: _body_name(operation)
        }
        if operation.rows:
            several = {operation.rows: array(schema, minItems=1, maxItems=MAX_IN_BATCH)}
            more = {"required": [operation.rows], NAME: f"{operation.answer}Batch"}
            schema = json_object(several, additionalProperties=False, **more)
        described["requestBody"] = {
            "required": not operation.update,
            "content": {JSON: {"schema": schema}},
        }
    return described


def _body_name(operation: Operation) -> str:
    if operation.update:
        return f"{operation.answer}Changes"
    form = getattr(operation.form, "__name__", "")
    return f"New{form.removesuffix('Form').removesuffix('Store')}"


def _responses(method: str, path: Path, operation: Operation) -> Schema:
    body = _body(operation)
    responses: Schema = {str(operation.status): _response(operation.status, body)}
    if operation.several:
        responses["207"] = _response(207, body)
    wrong = {422, *operation.refusals}
    if not path.public:
        wrong |= {401, 403, 413, 415, 429, 500, 503}
    if path.ids:
        wrong.add(404)
    for status in sorted(wrong):
        schema = _ref("Invalid" if status == 422 else "Error")
        responses[str(status)] = _response(status, schema)
    return responses


def _response(status: int, schema: Schema) -> Schema:
    return {"description": STATUS_TEXTS[status], "content": {JSON: {"schema": schema}}}


def _body(operation: Operation) -> Schema:
    """The schema of the answer."""
    if operation.answer in DELETIONS:
        return _ref(operation.answer)
    if operation.answer == "Document":
        return json_object({})
    data = _ref(operation.answer)
    if operation.several:
        refused = _ref("Invalid" if operation.rows else "Error")
        each = array({"oneOf": [_record_body(operation.answer), refused]})
        return record({"data": each, "status": INTEGER}, name=f"{operation.answer}BatchAnswer")
    if operation.paged:
        return record(
            {"data": array(data), "links": _ref("Links"), "meta": _ref("Meta"), "status": INTEGER},
            name=f"{operation.answer}Page",
        )
    return _record_body(operation.answer)


def _record_body(answer: str) -> Schema:
    return record({"data": _ref(answer), "status": INTEGER}, name=f"{answer}Answer")


def _envelopes() -> dict[str, Schema]:
    error = {"message": STRING, "status": INTEGER}
    number, address = nullable(INTEGER), nullable(STRING)
    done: Schema = {"type": "boolean", "const": True}
    deleted = {"id": INTEGER, "object": STRING, "deleted": done, "status": INTEGER}
    return {
        "Links": record({"first": STRING, "last": STRING, "prev": address, "next": address}),
        "Meta": record(
            {name: number if name in ("from", "to") else INTEGER for name in META}
            | {"path": STRING}
        ),
        "Deleted": record(deleted),
        "Cleared": record({**deleted, "count": INTEGER}),
        "Error": json_object(
            error
            | {
                "open_incident_id": INTEGER | {"description": "The incident in the way (409)."},
                "monitors": array(INTEGER, description="Ids of the monitors that use it (409)."),
            },
            required=list(error),
        ),
        "Invalid": record(
            error | {"errors": json_object({}, additionalProperties=array(STRING, minItems=1))}
        ),
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
