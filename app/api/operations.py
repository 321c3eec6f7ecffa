"""The table of operations: every path and method of /api/v1, with its input and its answer.

The blueprint has its routes from here, and the OpenAPI document is generated from it, so both have
the same operations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flask import Response

from app.forms.queries import NoQueryForm
from app.forms.schema import SchemaForm
from app.records import Scope

if TYPE_CHECKING:
    from app.api.call import Call

PREFIX = "/api/v1"
METHOD_ORDER = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

Handler = Callable[["Call"], Response]


@dataclass(frozen=True, slots=True)
class Operation:
    """``answer`` names the schema of ``data`` in the OpenAPI document; ``form`` is the body.
    ``scope``: what the key needs, if it is not read for reading and write for writing.
    ``refusals``: statuses that other operations do not answer.
    """

    name: str
    summary: str
    description: str
    handler: Handler
    answer: str
    status: int = 200
    paged: bool = False
    form: type[SchemaForm] | None = None
    update: bool = False
    query: type[SchemaForm] = NoQueryForm
    scope: Scope | None = None
    refusals: tuple[int, ...] = ()


@dataclass
class Path:
    """One path with its operations; ids are in braces, by name. ``public``: served without a
    key.
    """

    template: str
    public: bool = False
    operations: dict[str, Operation] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The parts of the template that stand for ids, in braces."""
        return [part for part in self.template.split("/") if part.startswith("{")]

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
                description=description or inspect.getdoc(handler) or "",
                handler=handler,
                answer=answer,
                **more,
            )
        return handler

    return register
