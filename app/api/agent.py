"""The addresses of agents, ``/api/v1/agent/...``, with the token of their place (decision 14).

They are not part of the public API and not in its OpenAPI document, because only Wakeful's agent
calls them. They answer at once: a request that waits would occupy one of the few threads of the web
server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from flask import Blueprint, Response, current_app, g, request
from werkzeug.exceptions import UnsupportedMediaType

from app.access import actors
from app.api.blueprint import API, bearer, nothing
from app.api.envelope import problem, record_answer
from app.api.operations import JSON, read_body
from app.errors import Invalid
from app.i18n import N_, _
from app.middleware import EARLY
from app.records import Actor, ActorKind
from app.rules.text import OBJECT_NEEDED

if TYPE_CHECKING:
    from app.access.keys import AgentPlace
    from app.stores.local.agents import LocalAgents

UNKNOWN = N_(
    "No place has this token: it was mistyped, or has been replaced. Make a new one under Settings,"
    " Places, on the page of the place, and start the agent with it as WAKEFUL_AGENT_TOKEN."
)
ENDED = N_(
    "This token of the place %(place)s was replaced or has ended: give the agent the new one as"
    " WAKEFUL_AGENT_TOKEN. Nobody has it any more? Make a new token under Settings, Places, on the"
    " page of the place."
)

Handler = Callable[["LocalAgents", "AgentPlace", Mapping[str, Any]], dict[str, Any]]
HANDLERS: Mapping[str, Handler] = {
    "hello": lambda agents, place, data: agents.hello(place, data),
    "assigned": lambda agents, place, data: agents.assigned(place, data),
    "results": lambda agents, place, data: agents.store_results(place, data),
}
AGENT = Blueprint("agent", __name__)
API.register_blueprint(AGENT)


@AGENT.before_request
def _admit() -> Response | None:
    """Refuse a request that the handler must not get."""
    if (request.view_args or {})["name"] not in HANDLERS:
        return nothing()
    token = bearer(request)
    place = _agents().place_of(token) if token else None
    if place is None:
        return _unknown(_agents().ended_place(token) if token else None)
    if request.method != "POST":
        return problem(405, _("This path takes POST."), Allow="POST")
    if EARLY in request.environ:
        return Response(status=100)
    actors.begin(Actor(ActorKind.AGENT, place.name, place.id, request.remote_addr))
    _agents().budgets.count(place, "requests", 1)
    g.place, g.received = place, datetime.now(UTC)
    return None


def _unknown(ended: str | None) -> Response:
    """The answer to a token that no place has. ``ended``: the place that had it."""
    if ended is None:
        return problem(401, _(UNKNOWN), WWW_Authenticate="Bearer")
    # Without an id, because the agent may do nothing. The name is for the audit log.
    actors.begin(Actor(ActorKind.AGENT, ended, address=request.remote_addr))
    return problem(401, _(ENDED, place=ended), WWW_Authenticate="Bearer")


@AGENT.endpoint("api.agent.take")
def _take(name: str) -> Response:
    body = read_body(request)
    if body.media_type != JSON or not body.complete:
        raise UnsupportedMediaType(_("Send application/json."))
    _agents().budgets.count(g.place, "kib", -(-len(body.raw) // 1024))
    data = HANDLERS[name](_agents(), g.place, _read(body.raw))
    # Both times, so that the agent can subtract the duration of this request when it compares
    # clocks.
    return record_answer(
        {**data, "received": g.received.isoformat(), "now": datetime.now(UTC).isoformat()}
    )


def _read(raw: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise Invalid({"body": [_(OBJECT_NEEDED)]})
    return data


def _agents() -> LocalAgents:
    return cast("LocalAgents", current_app.extensions["wakeful.agents"])
