"""The addresses that jobs call: a layer in front of the application, without a key (decision 18).

A job that calls another service needs only another host name: the texts, statuses and headers are
those of healthchecks (``/ping/...``), Uptime Kuma (``/api/push/...``) and Better Stack's heartbeats
(``/api/v1/heartbeat/...``). Any method is accepted. The rules of the dashboard and of the API do
not apply.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from flask import Flask
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response
from werkzeug.wsgi import get_input_stream

from app.errors import Conflict, Denied
from app.middleware import EARLY, Environ, Layer, continued
from app.records import MAX_EXIT_STATUS, MAX_PING_BODY_BYTES, ArrivedPing, PingKind
from app.stores import log_fault, unavailable

log = logging.getLogger("wakeful.api")

FOR_SCRIPTS = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store"}
HEADERS = {"Ping-Body-Limit": str(MAX_PING_BODY_BYTES), **FOR_SCRIPTS}
KINDS = {"start": PingKind.START, "fail": PingKind.FAIL, "log": PingKind.LOG}
_PREFIXES = {"ping": "/ping/", "push": "/api/push/", "heartbeat": "/api/v1/heartbeat/"}
NO_MONITOR = "Monitor not found or not active."
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_MAX_MS = 365 * 24 * 3600 * 1000.0


@dataclass(frozen=True, slots=True)
class _PingCall:
    """A call, as its address describes it. ``token``: the secret, or the slug after a ping key."""

    token: str
    kind: PingKind | None = PingKind.SUCCESS
    exit_status: int | None = None


class PingAddresses(Layer):
    """``pings`` (``app.stores.local.heartbeats``) stores the pings."""

    def __init__(self, app: Flask, pings: Any) -> None:
        self._app, self._pings = app, pings
        self._services: dict[str, Callable[[Environ, list[str]], Response]] = {
            "ping": self._healthchecks,
            "push": self._kuma,
            "heartbeat": self._betterstack,
        }

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        name, parts = _service_of(environ.get("PATH_INFO", ""))
        if name is None:
            return self.inner(environ, start_response)
        if EARLY in environ:
            return continued(environ, start_response)
        try:
            with self._app.app_context():
                answer = self._services[name](environ, parts)
        except Exception as fault:
            log_fault(log, "A ping was not stored.", fault)
            if error := unavailable(fault):
                answer = _text(503, str(error), {"Retry-After": "5"})
            else:
                answer = _text(500, "Something went wrong.")
        return answer(environ, start_response)

    # --- the three families

    def _healthchecks(self, environ: Environ, parts: list[str]) -> Response:
        call, rid = _read_call(parts), _query(environ).get("rid")
        if call is not None:
            fault = _fault_of(call, rid)
            if fault is None:
                if self._store(environ, call, rid=_stored(rid)):
                    return _text(200, "OK", HEADERS)
            elif self._pings.find(call.token) is not None:
                return _text(400, fault, HEADERS)
        return self._by_slug(environ, parts, rid)

    def _by_slug(self, environ: Environ, parts: list[str], rid: str | None) -> Response:
        """Answer ``KEY/SLUG``, also with ``/start`` and so on: a ping key and the slug of a
        heartbeat.
        """
        call = _read_call(parts[1:]) if len(parts) > 1 else None
        if call is None:
            return self._refuse_name(environ, _text(404, "not found", HEADERS))
        fault = _fault_of(call, rid)
        create = fault is None and _query(environ).get("create") == "1"
        try:
            match = self._pings.by_slug(*parts[:2], environ.get("REMOTE_ADDR"), create=create)
        except (Conflict, Denied) as refusal:
            return _text(refusal.status, str(refusal), HEADERS)
        if match is None:
            return self._refuse_name(environ, _text(404, "not found", HEADERS))
        if fault is not None:
            return _text(400, fault, HEADERS)
        id, created = match
        self._pings.take(id, _ping(environ, call, self._pings.now(), rid=_stored(rid)))
        return _text(201, "Created", HEADERS) if created else _text(200, "OK", HEADERS)

    def _kuma(self, environ: Environ, parts: list[str]) -> Response:
        query = _query(environ)
        is_up = (query.get("status") or "up") == "up"
        call = _PingCall(parts[0], PingKind.SUCCESS if is_up else PingKind.FAIL)
        details = {"took": _ms(query.get("ping")), "text": query.get("msg", "")}
        if len(parts) == 1 and self._store(environ, call, **details):
            return _json(200, {"ok": True})
        return self._refuse_name(environ, _json(404, {"ok": False, "msg": NO_MONITOR}))

    def _betterstack(self, environ: Environ, parts: list[str]) -> Response:
        call = _read_call(parts)
        is_theirs = call is not None and call.kind in (PingKind.SUCCESS, PingKind.FAIL)
        if call is not None and is_theirs and self._store(environ, call):
            return _text(200, "OK")
        return self._refuse_name(environ, _text(404, "not found"))

    def _refuse_name(self, environ: Environ, answer: Response) -> Response:
        """Count a call with an unknown name. Return ``answer``, or 429 if its address has sent too
        many of them.
        """
        seconds = self._pings.count_wrong(environ.get("REMOTE_ADDR"))
        if seconds is None:
            return answer
        sentence = "Too many wrong names. Try again later."
        is_json = answer.mimetype == "application/json"
        refusal = _json(429, {"ok": False, "msg": sentence}) if is_json else _text(429, sentence)
        refusal.headers["Retry-After"] = str(seconds)
        return refusal

    def _store(self, environ: Environ, call: _PingCall, **details: Any) -> bool:
        """Store a ping by its secret. Return whether a heartbeat has this secret."""
        ping = _ping(environ, call, self._pings.now(), **details)
        return bool(self._pings.take_by_token(call.token, ping))


def _ping(
    environ: Environ, call: _PingCall, at: datetime, *, text: str = "", **details: Any
) -> ArrivedPing:
    return ArrivedPing(
        at,
        call.kind or PingKind.LOG,
        call.exit_status,
        method=environ["REQUEST_METHOD"][:16],
        address=(environ.get("REMOTE_ADDR") or "")[:64] or None,
        body=_body(environ) or text.encode()[:MAX_PING_BODY_BYTES].decode("utf-8", "replace"),
        **details,
    )


def _service_of(path: str) -> tuple[str | None, list[str]]:
    """The service of an address, and the parts of the path after its prefix."""
    for name, prefix in _PREFIXES.items():
        if path.startswith(prefix):
            parts = path.removeprefix(prefix).split("/")
            # All three services allow a slash after the token.
            return name, parts[:1] if len(parts) == 2 and not parts[1] else parts
    return None, []


def is_ping(path: str) -> bool:
    """Whether a request with this path is a ping, whose body may be larger than other bodies."""
    return _service_of(path)[0] is not None


def _read_call(parts: list[str]) -> _PingCall | None:
    """The call of ``TOKEN``, ``TOKEN/start`` or ``TOKEN/EXIT_STATUS``; None for another path.
    ``kind`` is None for an invalid exit status.
    """
    token = parts[0]
    if len(parts) == 1:
        return _PingCall(token)
    if len(parts) > 2:
        return None
    end = parts[1]
    if _DIGITS.fullmatch(end):
        status = int(end[:9])
        if len(end) > 9 or status > MAX_EXIT_STATUS:
            return _PingCall(token, None)
        return _PingCall(token, PingKind.FAIL if status else PingKind.SUCCESS, status)
    return _PingCall(token, KINDS[end]) if end in KINDS else None


def _query(environ: Environ) -> dict[str, str]:
    """The last value of each parameter."""
    query = environ.get("QUERY_STRING", "")[:MAX_PING_BODY_BYTES]
    return {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}


def _fault_of(call: _PingCall, rid: str | None) -> str | None:
    if call.kind is None:
        return "invalid url format"
    try:
        fits = rid is None or str(uuid.UUID(rid)) == rid.lower()
    except ValueError:
        fits = False
    return None if fits else "invalid uuid format"


def _stored(rid: str | None) -> str | None:
    return rid and str(uuid.UUID(rid))


def _ms(text: str | None) -> int | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return round(value) if 0 <= value <= _MAX_MS else None


def _body(environ: Environ) -> str:
    """The beginning of the body, as far as it arrived: a ping counts even if it breaks off."""
    try:
        stream = get_input_stream(environ, max_content_length=None)
        data: bytes = stream.read(MAX_PING_BODY_BYTES)
    except (HTTPException, OSError):
        return ""
    return data.decode("utf-8", "replace")


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(text, status, headers, mimetype="text/plain")


def _json(status: int, content: dict[str, Any]) -> Response:
    text = json.dumps(content, separators=(",", ":"))
    return Response(text, status, FOR_SCRIPTS, mimetype="application/json")
