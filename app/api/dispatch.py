"""Answer a request below /api. Errors are checked in the order of decisions.md 1.

The order is 404 of the path, 401 (429), 405, 403, 413, 415; then the handler: 404 of the record,
422, 409. All errors are answered here, so that /api never returns an HTML page.
"""

from __future__ import annotations

import logging
import math
import secrets

from flask import Request, Response, current_app
from werkzeug.exceptions import HTTPException

from app import errors
from app.access import actors
from app.access.keys import allowed_from, require
from app.api import agent, keys
from app.api.body import TooLarge, WrongType, read_body, read_query
from app.api.call import Call
from app.api.envelope import problem
from app.api.operations import PREFIX, Path, find
from app.i18n import N_, _
from app.records import MAX_BODY_BYTES, ApiKey, Scope
from app.stores.away import unavailable

log = logging.getLogger("wakeful.api")

READING = ("GET", "HEAD", "OPTIONS")
NO_PATH = N_("Nothing exists at this path.")
REMOTE = N_(
    "This installation shows another server's monitors and has no API of its own. "
    "Send requests to that server."
)


def dispatch(request: Request) -> Response:
    """The answer to any request below /api."""
    try:
        return _answer(request)
    except HTTPException as fault:  # the framework refuses the request, such as an invalid Host
        return problem(fault.code or 400, fault.description or _("The request cannot be read."))
    except Exception as fault:
        if away := unavailable(fault):
            log.warning("%s %s: %s", request.method, request.path, away)
            return _translated(away)
        # The log has no input of the client, which may hold secrets; the trace has only our code.
        request_id = secrets.token_hex(8)
        log.exception("Request %s failed: %s %s", request_id, request.method, request.path)
        return problem(
            500,
            _(
                "Something went wrong in Wakeful, not in your request. The log has the details"
                " under this request id."
            ),
            details={"request_id": request_id},
            X_Request_Id=request_id,
        )


def refusal(request: Request) -> Response | None:
    """The answer that does not depend on the body, or None if the body is needed. Counts nothing:
    the whole request comes to ``dispatch`` later.
    """
    known = agent.known(request) if _is_agents(request) else _known(request)
    return known if isinstance(known, Response) else None


def _is_agents(request: Request) -> bool:
    local = current_app.extensions["wakeful.settings"].store == "local"
    return local and agent.is_agents(request)


def _known(request: Request) -> Response | tuple[Path, dict[str, int], ApiKey | None]:
    """The path, the ids in it and the key, which acts from now on; the answer if the path is
    unknown or the key invalid.
    """
    if current_app.extensions["wakeful.settings"].store != "local":
        return problem(404, _(REMOTE))
    # As sent: the framework's ``path`` removes a double slash at the start.
    sent_path: str = request.environ.get("PATH_INFO", "")
    found = find(sent_path.removeprefix(PREFIX)) if sent_path.startswith(PREFIX) else None
    if found is None:
        return problem(404, _(NO_PATH))
    path, ids = found
    key = None if path.public else keys.authenticate(request)
    if key is None and not path.public:
        return problem(401, _(keys.UNAUTHENTICATED), WWW_Authenticate="Bearer")
    if key is not None:
        actors.begin(actors.by_key(key, request.remote_addr))
    if key is not None and not allowed_from(key, request.remote_addr):
        return problem(403, _(keys.ELSEWHERE, address=request.remote_addr))
    return path, ids, key


def _answer(request: Request) -> Response:
    if _is_agents(request):
        try:
            return agent.answer(request)
        except errors.WakefulError as fault:
            return _translated(fault)
    known = _known(request)
    if isinstance(known, Response):
        return known
    path, ids, key = known
    if key is None:
        return _operate(request, path, ids, None)
    limit = keys.RateLimit.count(key)
    if limit.exceeded:
        response = problem(
            429,
            _(
                "More than %(limit)s requests in a minute. Try again in %(reset)s s.",
                limit=limit.limit,
                reset=limit.reset,
            ),
            Retry_After=str(limit.reset),
        )
    else:
        response = _operate(request, path, ids, key)
    response.headers.extend(limit.headers())
    return response


def _operate(request: Request, path: Path, ids: dict[str, int], key: ApiKey | None) -> Response:
    method = "GET" if request.method == "HEAD" else request.method
    allow = ", ".join(path.allow)
    if method == "OPTIONS":
        return Response(status=204, headers={"Allow": allow})
    operation = path.operations.get(method)
    if operation is None:
        return problem(405, _("This path accepts only %(allow)s.", allow=allow), Allow=allow)
    try:
        if key is not None:
            reads = method in READING
            keys.check_tag(key, path)
            require(key, operation.scope or (Scope.READ if reads else Scope.WRITE))
        body = read_body(request)
        return operation.handler(Call(key, ids, body, lambda: read_query(request)))
    except TooLarge:
        return problem(
            413,
            _(
                "The body is too large. At most %(most)s bytes are read.",
                most=f"{MAX_BODY_BYTES:,}",
            ),
        )
    except WrongType:
        return problem(
            415, _("Send the fields as application/x-www-form-urlencoded or as application/json.")
        )
    except errors.WakefulError as fault:
        return _translated(fault)


def _translated(fault: errors.WakefulError) -> Response:
    """The answer for one of our own errors."""
    message = str(fault)
    if isinstance(fault, errors.Invalid):
        return problem(422, message, errors=fault.errors)
    if isinstance(fault, errors.NotFound | errors.Unsupported):
        return problem(404, message)
    if isinstance(fault, errors.Conflict):
        return problem(409, message, details=fault.details)
    if isinstance(fault, errors.Denied):
        return problem(403, message)
    if isinstance(fault, errors.Accepted):
        return problem(202, message)
    if isinstance(fault, errors.Throttled):
        return problem(429, message, Retry_After=str(fault.retry_after))
    if isinstance(fault, errors.Unavailable) and not fault.passes:
        return problem(503, message)
    if isinstance(fault, errors.Unavailable):
        after = math.ceil(fault.retry_after) if fault.retry_after else 5
        return problem(503, message, Retry_After=str(after))
    raise fault
