"""The addresses of agents, ``/api/v1/agent/...``, with the token of their place (decisions.md 14).

They are no part of the API for people and are not in its OpenAPI document: server and agent are of
one project. No answer is kept waiting, because it would hold one of the web server's few threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from flask import Request, Response, current_app

from app.access import actors
from app.api.body import JSON, TooLarge, WrongType, read_body
from app.api.envelope import one, problem
from app.errors import Invalid
from app.i18n import N_, _
from app.records import Actor, ActorKind

if TYPE_CHECKING:
    from app.access.agents import AgentPlace
    from app.stores.local.agents import LocalAgents

PREFIX = "/api/v1/agent/"
UNKNOWN = N_(
    "No place has this token: it was mistyped, or has been replaced. Make a new one under Settings,"
    " Places, on the page of the place, and start the agent with it as WAKEFUL_AGENT_TOKEN."
)
ENDED = N_(
    "This token of the place %(place)s was replaced or has ended: give the agent the new one as"
    " WAKEFUL_AGENT_TOKEN. Nobody has it any more? Make a new token under Settings, Places, on the"
    " page of the place."
)
NO_PATH = N_("Nothing exists at this path.")
_LONGEST_TOKEN = 256

Handler = Callable[["LocalAgents", "AgentPlace", Mapping[str, Any]], dict[str, Any]]


def _hello(agents: LocalAgents, place: AgentPlace, data: Mapping[str, Any]) -> dict[str, Any]:
    return agents.hello(place, data)


def _assigned(agents: LocalAgents, place: AgentPlace, data: Mapping[str, Any]) -> dict[str, Any]:
    return agents.assigned(place, data)


def _results(agents: LocalAgents, place: AgentPlace, data: Mapping[str, Any]) -> dict[str, Any]:
    return agents.take(place, data)


HANDLERS: Mapping[str, Handler] = {"hello": _hello, "assigned": _assigned, "results": _results}


def is_agents(request: Request) -> bool:
    return str(request.environ.get("PATH_INFO", "")).startswith(PREFIX)


def known(request: Request) -> tuple[Handler, AgentPlace] | Response:
    """The handler and the place of a request, or the answer that does not depend on its body."""
    handler = HANDLERS.get(str(request.environ.get("PATH_INFO", "")).removeprefix(PREFIX))
    if handler is None:
        return problem(404, _(NO_PATH))
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    token = token.strip()
    asked = scheme.lower() == "bearer" and 0 < len(token) <= _LONGEST_TOKEN
    place = _agents().place_of(token) if asked else None
    if place is None:
        return _unknown(request, _agents().ended_place(token) if asked else None)
    if request.method != "POST":
        return problem(405, _("This path takes POST."), Allow="POST")
    return handler, place


def _unknown(request: Request, ended: str | None) -> Response:
    """The answer to a token that no place has. ``ended``: the place that had it."""
    if ended is None:
        return problem(401, _(UNKNOWN), WWW_Authenticate="Bearer")
    # Without an id: it may do nothing, and the log names its place.
    actors.begin(Actor(ActorKind.AGENT, ended, address=request.remote_addr))
    return problem(401, _(ENDED, place=ended), WWW_Authenticate="Bearer")


def answer(request: Request) -> Response:
    """Raises what ``dispatch`` translates."""
    found = known(request)
    if isinstance(found, Response):
        return found
    handler, place = found
    actors.begin(Actor(ActorKind.AGENT, place.name, place.id, request.remote_addr))
    _agents().budgets.request(place)
    received = datetime.now(UTC)
    try:
        body = read_body(request)
    except TooLarge:
        return problem(413, _("The body is too large."))
    except WrongType:
        return problem(415, _("Send application/json."))
    if body.kind != JSON or not body.whole:
        return problem(415, _("Send application/json."))
    _agents().budgets.body(place, len(body.raw))
    told = handler(_agents(), place, _read(body.raw))
    # Both times, so that the agent can leave out how long this took when it compares clocks.
    return one({**told, "received": _told(received), "now": _told(datetime.now(UTC))})


def _told(moment: datetime) -> str:
    return moment.isoformat()


def _read(raw: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise Invalid({"body": [_("Send a JSON object.")]})
    return data


def _agents() -> LocalAgents:
    return cast("LocalAgents", current_app.extensions["wakeful.agents"])
