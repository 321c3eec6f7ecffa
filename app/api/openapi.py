"""/api/v1/openapi.json, generated from the table of operations, the forms and the records."""

from __future__ import annotations

from functools import cache
from typing import Any

from apispec import APISpec
from flask import Response, request

from app.api import schemas
from app.api.body import FORM, JSON
from app.api.call import Call
from app.api.envelope import answer
from app.api.operations import PATHS, PREFIX, Operation, Path, operation
from app.codec.schema import INTEGER, STRING, Schema, array, nullable, record, thing
from app.version import __version__

INTRODUCTION = """\
Monitors watch URLs; incidents are periods of trouble. Send an API key with every request:
`Authorization: Bearer <API_KEY>`. Writes are form-encoded (`alerts[0][key]=email`,
`alerts[0][value]=ops@example.com`) or JSON (`"alerts": [{"key": "email", "value": "..."}]`).
PUT and PATCH both change only what is sent. An empty value clears a field or restores its
default. Unknown fields and parameters are refused. Times are UTC. X-RateLimit-Reset counts the
seconds until X-RateLimit-Remaining is full again. A key that is bound to a tag sees the monitors
with the tag and what belongs to them; all else is 403, and so is a key outside its networks.
"""
# What the document says of operations besides their summaries, by name.
DETAILS = {
    "monitors_check": """\
The check is made in all places of the monitor, and counts like those of the schedule: by the
server for its own place, and by each other place that was heard of in the last 30 s. The answer
waits for all of them, at most for the monitor's timeout and 10 s, and not for one of which nothing
is heard for 7 s; `places` has the result of each, or a message that says why there is none. The
other fields are those of the worst result; `location` says whose. If all places are silent, nothing
is checked, and the answer is 409. If no result comes, it is 503; one that comes later is among the
monitor's results. Who asks while a place still has to bring its result gets that one too, and a new
one of each place that has brought it already, unless that was asked within the last second. If two
wait for other places of this monitor already, it is 429. The server checks a paused monitor itself;
that does not count.
""",
    "monitors_check_unsaved": "The server makes the check, in its own place.",
    "locations_list_": "`default`, the place of the server itself, is always there, and first.",
    "locations_show": """\
Its `state`, and what the checkers, the probers or the agent there said of themselves last.
""",
    "locations_store": """\
With the carrier `agent`, the answer has the agent's `token`, this once. A checker that starts under
a new name adds its place itself.
""",
    "locations_update": """\
The name cannot be changed. Another carrier than `agent` ends the token; a place that becomes an
agent's gets one by `POST /locations/{id}/token`. `default` cannot be an agent's.
""",
    "locations_delete": """\
If monitors are checked from it, the answer is 409, with their ids in `monitors`; also if a checker
runs there. `default` is never deleted.
""",
    "locations_token": """\
The token before ends at once. A place with another carrier than `agent` has none: 409.
""",
    "locations_of_monitor": """\
The newest result of each place, as long as it counts, and its response times of 24 hours, in ms.
""",
}
DELETIONS = ("Deleted", "Cleared")
STATUS_TEXTS = {
    200: "Success.",
    201: "Created. The Location header has its URL.",
    401: "No valid API key came with the request.",
    403: "The key may only read, or is bound to a tag or to networks.",
    404: "Nothing has this id.",
    409: "The current state does not allow it.",
    413: "The body is too large.",
    415: "The body is neither a form nor JSON.",
    422: "The input is not valid. errors has a sentence for each field.",
    429: "Too many requests. Retry-After says how many seconds to wait.",
    503: "No answer in time. Retry-After says how many seconds to wait.",
}


@operation("GET", "/openapi.json", "Show this document", "Document", public=True)
def show(call: Call) -> Response:
    call.without_input()
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
    )
    spec.components.security_scheme("key", {"type": "http", "scheme": "bearer"})
    for name, schema in {**schemas.RECORDS, **_envelopes()}.items():
        spec.components.schema(name, schema)
    for path in PATHS.values():
        spec.path(
            path=path.template,
            operations={
                method.lower(): _described(method, path, found)
                for method, found in path.operations.items()
            },
        )
    written: dict[str, Any] = spec.to_dict()
    return written


def _described(method: str, path: Path, found: Operation) -> Schema:
    described: Schema = {
        "operationId": found.name if method != "PUT" else f"{found.name}_put",
        "summary": found.summary,
        "tags": [path.template.split("/")[1]],
        "parameters": schemas.parameters(found.query),
        "responses": _responses(method, path, found),
    }
    if found.name in DETAILS:
        described["description"] = DETAILS[found.name]
    if path.public:
        described["security"] = []
    described["parameters"] += [
        {"name": id[1:-1], "in": "path", "required": True, "schema": INTEGER | {"minimum": 1}}
        for id in path.ids
    ]
    if found.form is not None:
        body = {"schema": schemas.of_form(found.form, update=found.update)}
        described["requestBody"] = {
            "required": not found.update,
            "content": {FORM: body, JSON: body},
        }
    return described


def _responses(method: str, path: Path, found: Operation) -> Schema:
    good = {"description": STATUS_TEXTS[found.status], "content": {JSON: {"schema": _body(found)}}}
    responses: Schema = {str(found.status): good}
    wrong = [422]
    if not path.public:
        wrong += [401, 429, 413, 415] + ([] if method == "GET" and found.scope is None else [403])
    if path.ids:
        wrong.append(404)
    if ("incidents" in path.template and found.form is not None) or "retry" in path.template:
        wrong.append(409)
    wrong += found.refusals
    for status in sorted(wrong):
        name = "Invalid" if status == 422 else "Error"
        responses[str(status)] = {
            "description": STATUS_TEXTS[status],
            "content": {JSON: {"schema": _ref(name)}},
        }
    return responses


def _body(found: Operation) -> Schema:
    if found.answer in DELETIONS:
        return _ref(found.answer)
    if found.answer == "Document":
        return thing({})
    data = _ref(found.answer)
    if found.paged:
        return record(
            {"data": array(data), "links": _ref("Links"), "meta": _ref("Meta"), "status": INTEGER}
        )
    return record({"data": data, "status": INTEGER})


def _envelopes() -> dict[str, Schema]:
    error = {"message": STRING, "status": INTEGER}
    number, address = nullable(INTEGER), nullable(STRING)
    return {
        "Links": record({"first": STRING, "last": STRING, "prev": address, "next": address}),
        "Meta": record(
            {
                "current_page": INTEGER,
                "from": number,
                "last_page": INTEGER,
                "path": STRING,
                "per_page": INTEGER,
                "to": number,
                "total": INTEGER,
            }
        ),
        "Deleted": record(
            {
                "id": INTEGER,
                "object": STRING,
                "deleted": {"type": "boolean", "const": True},
                "status": INTEGER,
            }
        ),
        "Cleared": record(
            {
                "id": INTEGER,
                "object": STRING,
                "deleted": {"type": "boolean", "const": True},
                "count": INTEGER,
                "status": INTEGER,
            }
        ),
        "Error": record(error),
        "Invalid": record(
            error | {"errors": thing({}, additionalProperties=array(STRING, minItems=1))}
        ),
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
