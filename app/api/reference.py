"""The content of the dashboard's reference of the API, from the table of operations and the OpenAPI
document; and the requests that a person sends from it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from flask import Flask, request
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

from app.access import actors
from app.api import schemas
from app.api.openapi import STATUS_TEXTS, TAGS, document
from app.api.operations import JSON, PATHS, PREFIX, Operation, Path
from app.codec.schema import Schema
from app.i18n import speaking
from app.records import Scope

# The values of fields in examples. An example may use any of them together.
EXAMPLES: Mapping[str, Any] = {
    "name": "Shop",
    "url": "https://shop.example",
    "interval": 60,
    "comment": "The disk was full.",
    "title": "Slow answers",
    "state": "investigating",
    "body": "We are looking into it.",
    "label": "Oslo",
    "contact": "Shop",
    "channels": [{"key": "email", "value": "ops@example.com"}],
    "alerts": [{"key": "email", "value": "ops@example.com"}],
    "monitor_id": 1,
    "incident_id": 1,
    "ids": [1],
    "started_at": "2026-11-21T08:00:00Z",
    "start_at": "2027-01-10T22:00:00Z",
    "end_at": "2027-01-10T23:00:00Z",
    "from": "2026-11-01T00:00:00Z",
    "to": "2026-12-01T00:00:00Z",
    "slow_after": 800,
    "slow_alert_after": 10,
    "mark": "email:9f86d081884c7d65",
}
# Further or other values for the examples of these operations.
EXAMPLES_OF: Mapping[str, Mapping[str, Any]] = {
    "deliveries_test": {"alerts": EXAMPLES["alerts"]},
    "monitors_store": {"interval": 60},
    "locations_store": {"name": "oslo"},
    "locations_update": {"label": "Oslo"},
    "posts_add_update": {"state": "monitoring"},
    "contacts_delete": {},
}
MAX_SHOWN = 20_000  # characters of an answer


@dataclass(frozen=True, slots=True)
class ReferenceField:
    """A parameter, or a field of a body. ``values``: its type and limits in words."""

    name: str
    values: str
    required: bool
    default: str
    description: str


@dataclass(frozen=True, slots=True)
class Reference:
    """One operation. ``methods``: the methods that do the same, such as PUT and PATCH."""

    name: str
    methods: Sequence[str]
    path: str
    summary: str
    description: str
    tag: str
    level: int
    scope: str
    parameters: Sequence[ReferenceField]
    body: Sequence[ReferenceField]
    answer: str
    answer_fields: Sequence[ReferenceField]
    statuses: Sequence[tuple[int, str]]
    target: str
    example: Mapping[str, Any] | None

    @property
    def method(self) -> str:
        return self.methods[-1]

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    def curl(self, root: str) -> str:
        """The command that sends the example; the shell has the key in ``KEY``."""
        lines = ['curl -H "Authorization: Bearer $KEY"']
        if self.method != "GET":
            lines[0] = lines[0].replace("curl", f"curl -X {self.method}", 1)
        lines.append(shlex.quote(f"{root}{PREFIX}{self.target}"))
        if self.example is not None:
            lines += [f'-H "Content-Type: {JSON}"', f"-d {shlex.quote(json.dumps(self.example))}"]
        return " \\\n    ".join(lines)

    def python(self, root: str) -> str:
        """The same as a program, with requests."""
        lines = [
            "import os",
            "",
            "import requests",
            "",
            f"answer = requests.{self.method.lower()}(",
            f'    "{root}{PREFIX}{self.target}",',
            """    headers={"Authorization": f"Bearer {os.environ['KEY']}"},""",
        ]
        if self.example is not None:
            # JSON without true, false and null is valid Python.
            body = json.dumps(self.example, indent=4)
            lines.append(f"    json={body},".replace("\n", "\n    "))
        return "\n".join([*lines, "    timeout=60,", ")", "print(answer.status_code, answer.text)"])


@dataclass(frozen=True, slots=True)
class TriedAnswer:
    status: int
    reason: str
    headers: Sequence[tuple[str, str]]
    text: str
    cut: bool


def groups() -> Mapping[str, tuple[str, list[Reference]]]:
    """All operations by the first part of their paths, each group with its description."""
    by_tag: dict[str, tuple[str, list[Reference]]] = {
        tag: (TAGS[tag], []) for tag in ("monitors", "incidents")
    }
    for reference in references().values():
        by_tag.setdefault(reference.tag, (TAGS[reference.tag], []))[1].append(reference)
    return by_tag


@cache
def references() -> Mapping[str, Reference]:
    """The entries by the name of the operation, in the order of the table."""
    described = {}
    for path in PATHS.values():
        methods: dict[str, list[str]] = {}
        for method, operation in path.operations.items():
            methods.setdefault(operation.name, []).append(method)
        for names in methods.values():
            operation = path.operations[names[-1]]
            described[operation.name] = _reference_of(path, names, operation)
    return described


def _reference_of(path: Path, methods: Sequence[str], operation: Operation) -> Reference:
    written = document()["paths"][path.template][methods[-1].lower()]
    body_schema = written.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema")
    body = _fields(body_schema) if body_schema else []
    parameters = _fields(_as_object(schemas.parameters(operation.query)))
    reads = methods[-1] == "GET"
    return Reference(
        name=operation.name,
        methods=methods,
        path=path.template,
        summary=operation.summary,
        description=operation.description,
        tag=path.template.split("/")[1],
        level=operation.level,
        scope="" if path.public else operation.scope or (Scope.READ if reads else Scope.WRITE),
        parameters=parameters,
        body=body,
        answer=operation.answer,
        answer_fields=_fields({"$ref": f"#/components/schemas/{operation.answer}"})
        if operation.answer in document()["components"]["schemas"]
        else [],
        statuses=[(int(status), STATUS_TEXTS[int(status)]) for status in written["responses"]],
        target=_target(path, parameters),
        example=_example(operation, body) if body_schema else None,
    )


def _as_object(parameters: Sequence[Schema]) -> Schema:
    return {
        "properties": {
            entry["name"]: {**entry["schema"], "description": entry.get("description", "")}
            for entry in parameters
        },
        "required": [entry["name"] for entry in parameters if entry.get("required")],
    }


def _resolve(schema: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    named: Schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return {**named, **schema}


def _fields(schema: Schema) -> list[ReferenceField]:
    schema = _resolve(schema)
    return [
        ReferenceField(
            name,
            _type_in_words(part),
            name in schema.get("required", ()),
            _default(part),
            part.get("description", ""),
        )
        for name, part in schema["properties"].items()
    ]


def _default(schema: Schema) -> str:
    value = schema.get("default", "")
    return str(value) if isinstance(value, str) else json.dumps(value)


def _type_in_words(schema: Schema) -> str:
    """Type and limits of a field, in words."""
    schema = _resolve(schema)
    if choices := schema.get("oneOf"):
        return ", or ".join(map(_type_in_words, choices))
    type_: Any = schema.get("type", "")
    if isinstance(type_, list):
        return ", or ".join(_type_in_words({**schema, "type": each}) for each in type_)
    if words := schema.get("enum"):
        return " | ".join(map(str, words))
    match type_:
        case "string" if "format" in schema:
            return "time"
        case "string" if "pattern" in schema:
            return "time of day, as 08:30"
        case "string":
            return "text" + _limits(schema, "Length", " characters")
        case "array":
            return f"list{_limits(schema, 'Items', '')} of: {_type_in_words(schema['items'])}"
        case "object" if names := list(schema.get("properties", ())):
            return "{" + ", ".join(names) + "}"
        case "integer" | "number":
            return f"{type_}{_limits(schema, 'imum', '')}"
    return str(type_)


def _limits(schema: Schema, suffix: str, unit: str) -> str:
    """The limits in words. ``suffix``: the end of their keywords in the schema, such as ``Length``
    for ``minLength`` and ``maxLength``.
    """
    low, high = (schema.get(f"{prefix}{suffix}") for prefix in ("min", "max"))
    match low, high:
        case None, None:
            return ""
        case None, _:
            return f", up to {high:,}{unit}"
        case _, None:
            return f", {low:,}{unit} or more"
    return f", {low:,} to {high:,}{unit}"


# --- Examples, and requests to try ----------------------------------------------------------------


def _target(path: Path, parameters: Sequence[ReferenceField]) -> str:
    """The path with example ids, and its required parameters."""
    target = "/".join("1" if part in path.ids else part for part in path.template.split("/"))
    required = [(field.name, EXAMPLES[field.name]) for field in parameters if field.required]
    return f"{target}?{urlencode(required)}" if required else target


def _example(operation: Operation, body: Sequence[ReferenceField]) -> Mapping[str, Any]:
    """The body of an example: the required fields, or in an update the first field with an
    example.
    """
    further = EXAMPLES_OF.get(operation.name, {})
    if operation.rows:
        return {operation.rows: [{name: EXAMPLES[name] for name in ("name", "url", "interval")}]}
    names = [field.name for field in body if field.required]
    if operation.update:
        names = [] if further else [field.name for field in body if field.name in EXAMPLES][:1]
    return {**{name: EXAMPLES[name] for name in names}, **further}


def send(app: Flask, reference: Reference, target: str, secret: str, body: str) -> TriedAnswer:
    """Send a request to this API as a program with this key would: without a cookie, and from the
    network address of the person. The key is not stored.
    """
    path, _sign, query = target.partition("?")
    environ = EnvironBuilder(
        path=PREFIX + path,
        query_string=query,
        base_url=request.root_url,
        method=reference.method,
        headers=[("Authorization", f"Bearer {secret}")],
        environ_base={"REMOTE_ADDR": request.remote_addr or ""},
        content_type=JSON if body else None,
        data=body or None,
    ).get_environ()
    # In another context, because the API must see neither the person nor their language.
    with speaking(None), actors.acting_as(actors.actor()), app.app_context():
        answer = Response.from_app(partial(Flask.wsgi_app, app), environ, buffered=True)
    text = answer.get_data(as_text=True)
    if answer.mimetype == JSON:
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    headers = [
        (name, value)
        for name, value in answer.headers
        if name in ("Location", "Retry-After", "Allow") or name.startswith("X-RateLimit")
    ]
    status = HTTPStatus(answer.status_code)
    return TriedAnswer(status, status.phrase, headers, text[:MAX_SHOWN], len(text) > MAX_SHOWN)
