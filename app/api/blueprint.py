"""The blueprint of the API: every path below /api, in any method, except those of pings
(``pings``).

The routes are made from the table of operations. Errors have the order of decision 1: first 404 of
the path, 401 (429), 405, 403, 413 and 415, then, from the view, 404 of the record, 422 and 409. The
403 of a network that the key may not be used from precedes 429. All exceptions become JSON here.
"""

from __future__ import annotations

import logging
import secrets

from flask import Blueprint, Flask, Request, Response, current_app, g, request
from werkzeug.exceptions import HTTPException, default_exceptions
from werkzeug.routing import BaseConverter, Rule

from app import errors
from app.access import actors
from app.access.keys import BOUND, allowed_from, require
from app.api.envelope import problem
from app.api.operations import PATHS, PREFIX, Call, Path, read_body
from app.errors import Denied, Throttled
from app.i18n import N_, _
from app.middleware import EARLY
from app.records import ApiKey, Scope
from app.records.resources import MONITORS
from app.stores import current_access, unavailable

log = logging.getLogger("wakeful.api")

API = Blueprint("api", __name__)
V1 = Blueprint("v1", __name__)  # the operations; agents have a blueprint of their own
API.register_blueprint(V1)

NO_PATH = N_("Nothing exists at this address.")
REMOTE = N_(
    "This installation shows another server's monitors and has no API of its own. "
    "Send requests to that server."
)
UNAUTHENTICATED = N_(
    "A valid API key is required. Send it in the header Authorization: Bearer <API_KEY>."
)
TOO_MANY = N_("More than %(limit)s requests in a minute. Try again in %(reset)s s.")
CRASHED = N_(
    "Something went wrong in Wakeful, not in your request. The log has the details under this"
    " request id."
)
ELSEWHERE = N_(
    "This key may only be used from certain networks, and %(address)s is in none of them. Its owner"
    " can change them on the page API keys."
)
# The prefixes of the paths that a key bound to a tag may use. Its store decides what it sees there
# (app/stores/local/bound.py).
TAG_PATHS = ("/me", "/overview", "/monitors", "/incidents", "/deliveries")
WINDOW_SECONDS = 60
# A process counts requests in batches: one write reserves a hundredth of the limit, at most
# MAX_BATCH, because a process may not use all that it has reserved.
BATCHES, MAX_BATCH = 100, 20
_MAX_SECRET = 256
_ROUTES: dict[str, Path] = {}  # by the rule of Flask


class _Id(BaseConverter):
    """An id in its one valid spelling."""

    regex = "0|[1-9][0-9]*"

    def to_python(self, value: str) -> int:
        # More digits match no record, and Python refuses to parse thousands.
        return int(value[:30])


class _Rest(BaseConverter):
    """Anything, with slashes and line ends."""

    regex, part_isolating, weight = "(?s:.*)", False, 1000


def init_app(app: Flask) -> None:
    app.url_map.converters |= {"id": _Id, "rest": _Rest}
    _ROUTES.update(
        (PREFIX + path.template.replace("{", "<id:").replace("}", ">"), path)
        for path in PATHS.values()
    )
    # The rules have no methods, so that Flask accepts all: this blueprint answers 405, after 401.
    for rule in _ROUTES:
        app.url_map.add(Rule(rule, endpoint="api.v1.operate", merge_slashes=False))
    app.url_map.add(Rule(f"{PREFIX}/agent/<name>", endpoint="api.agent.take", merge_slashes=False))
    for rule in ("/api", "/api/<rest:path>"):
        app.url_map.add(Rule(rule, endpoint="api.nothing", merge_slashes=False))
    app.register_blueprint(API)


@API.before_request
def _refuse_path() -> Response | None:
    if current_app.extensions["wakeful.settings"].store != "local":
        return problem(404, _(REMOTE))
    # Flask reads several slashes at the start as one.
    return nothing() if request.environ["PATH_INFO"].startswith("//") else None


@API.endpoint("api.nothing")
def nothing(path: str = "") -> Response:
    return problem(404, _(NO_PATH))


@V1.before_request
def _admit() -> Response | None:
    """Refuse a request that the handler must not get; otherwise read its body."""
    path, key = _ROUTES[str(request.url_rule)], None
    if not path.public:
        key = current_access().keys.authenticate(bearer(request) or "")
        if key is None:
            return problem(401, _(UNAUTHENTICATED), WWW_Authenticate="Bearer")
        actors.begin(actors.by_key(key, request.remote_addr))
    is_network_allowed = key is None or allowed_from(key, request.remote_addr)
    operation = path.operations.get("GET" if request.method == "HEAD" else request.method)
    if operation is not None and not is_network_allowed:  # 405 precedes 403 (decision 1)
        return problem(403, _(ELSEWHERE, address=request.remote_addr))
    if EARLY in request.environ:
        return Response(status=100)  # its header refuses nothing: it comes again with its body
    if key is not None and is_network_allowed:
        _count(key)
    allow = ", ".join(path.allow)
    if request.method == "OPTIONS":
        return Response(status=204, headers={"Allow": allow})
    if operation is None:
        return problem(405, _("This path accepts only %(allow)s.", allow=allow), Allow=allow)
    if key is not None:
        if key.tag is not None and not path.template.startswith(TAG_PATHS):
            raise Denied(_(BOUND, tag=key.tag))
        reads = operation is path.operations.get("GET")
        require(key, operation.scope or (Scope.READ if reads else Scope.WRITE))
    g.operation = operation
    g.call = Call(key, request.view_args or {}, read_body(request, operation.max_bytes))
    return None


@V1.endpoint("api.v1.operate")
def _operate(**_ids: int) -> Response:
    call, operation, path = g.call, g.operation, _ROUTES[str(request.url_rule)]
    # The 404 of a record precedes the 422 of the input (decision 1).
    if path.owner == MONITORS.name:
        call.store.monitors.require(call.id)
    elif path.owner:
        getattr(call.store, path.owner).get(call.id)
    if not operation.takes_input and (path.owner or not path.ids):
        call.refuse_input()
    answer: Response = operation.handler(call)
    return answer


def bearer(request: Request) -> str | None:
    """The key or token in the Authorization header. Cookies are ignored."""
    scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()
    return secret if scheme.lower() == "bearer" and 0 < len(secret) <= _MAX_SECRET else None


def _count(key: ApiKey) -> None:
    """Count this request of a key. Raises Throttled."""
    limit: int = current_app.extensions["wakeful.settings"].rate_limit
    if not limit:
        return
    counters = current_access().counters
    batch = min(MAX_BATCH, max(1, limit // BATCHES))
    used = counters.count(f"api:{key.prefix}", WINDOW_SECONDS, share=batch)
    reset = counters.seconds_left(WINDOW_SECONDS)
    g.rate_limit = {
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(max(0, limit - used)),
        "X-RateLimit-Reset": str(reset),
    }
    if used > limit:
        raise Throttled(_(TOO_MANY, limit=limit, reset=reset), reset)


@V1.after_request
def _add_rate_limit(response: Response) -> Response:
    response.headers.extend(g.get("rate_limit", {}))
    return response


@API.errorhandler(errors.WakefulError)
def _error_answer(fault: errors.WakefulError) -> Response:
    """The answer for an error of ``app.errors``."""
    seconds = fault.retry_seconds
    return problem(
        fault.status,
        str(fault),
        fault.errors if isinstance(fault, errors.Invalid) else None,
        fault.details if isinstance(fault, errors.Conflict) else None,
        **({} if seconds is None else {"Retry_After": str(seconds)}),
    )


def _http_error_answer(fault: HTTPException) -> Response:
    """The answer for an exception of werkzeug, which Flask or ``read_body`` has raised."""
    return problem(fault.code or 400, fault.description or _("The request cannot be read."))


for _code in default_exceptions:  # by code: otherwise the dashboard's page for the code comes first
    API.register_error_handler(_code, _http_error_answer)


@API.errorhandler(Exception)
def _crash_answer(fault: Exception) -> Response:
    if error := unavailable(fault):
        log.warning("%s %s: %s", request.method, request.path, error)
        return _error_answer(error)
    # The log has no input of the client, which may contain secrets.
    request_id = secrets.token_hex(8)
    log.exception("Request %s failed: %s %s", request_id, request.method, request.path)
    details = {"request_id": request_id}
    return problem(500, _(CRASHED), details=details, X_Request_Id=request_id)
