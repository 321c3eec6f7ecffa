"""A small server that speaks only interface.md, to test what the remote store asks of others.

It keeps records in memory, sends ``{"data": ...}`` without more, has no pages, knows no field and
no parameter that interface.md does not name, and refuses what it does not know with 422.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from werkzeug.wrappers import Request, Response

KEY = "bare-key"
MONITOR_FIELDS = {
    "name", "url", "interval", "alert_condition", "alert_text_lookup", "request_method",
    "request_headers", "request_auth_username", "request_auth_password", "cache_buster",
    "ssl_alert_days", "domain_alert_days", "maintenance_start_at", "maintenance_end_at", "alerts",
}  # fmt: skip
INCIDENT_FIELDS = {"monitor_id", "started_at", "acknowledged_at", "ended_at", "cause", "comment"}
NUMBERS = {"interval", "cache_buster", "ssl_alert_days", "domain_alert_days", "monitor_id"}
MONITOR_QUERY = {"search", "search_by", "status_page_id", "sort_by", "sort", "per_page"}
INCIDENT_QUERY = {"search", "search_by", "monitor_id", "status", "sort_by", "sort", "per_page"}
# The values that interface.md lists; its default of an incident's search_by, url, is none of them.
VALUES = {
    "monitors": {"search_by": {"name", "url"}, "sort_by": {"id", "name", "url"}},
    "incidents": {
        "search_by": {"monitor", "cause"},
        "sort_by": {"started_at", "ended_at"},
        "status": {"unresolved", "acknowledged", "resolved"},
    },
}
PAGING = {"sort": {"asc", "desc"}, "per_page": {"10", "25", "50", "100"}}
FORM = "application/x-www-form-urlencoded"
NAME = re.compile(r"(\w+)(?:\[(\d+)\]\[(key|value)\])?")

Record = dict[str, Any]


class Refused(Exception):
    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        self.status, self.body = status, body


class BareServer:
    def __init__(self) -> None:
        self.monitors: dict[int, Record] = {}
        self.incidents: dict[int, Record] = {}
        self.last_id = 0
        self.lock = Lock()
        self.seen: list[str] = []

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        self.seen.append(f"{request.method} {request.full_path}")
        try:
            with self.lock:
                response = self.answer(request)
        except Refused as refused:
            response = _json(refused.body, refused.status)
        return response(environ, start_response)

    def answer(self, request: Request) -> Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, {"error": "no such key"})
        found = re.fullmatch(r"/api/v1/(monitors|incidents)(?:/(\d+))?", request.path)
        if found is None:
            raise Refused(404, {"error": "no such path"})
        kind, id = found[1], found[2]
        if id is None:
            return (
                self.list(kind, request) if request.method == "GET" else self.store(kind, request)
            )
        records = getattr(self, kind)
        if int(id) not in records:
            raise Refused(404, {"error": "no such record"})
        if request.method == "DELETE":
            del records[int(id)]
            if kind == "monitors":
                gone = [k for k, one in self.incidents.items() if one["monitor_id"] == int(id)]
                for other in gone:
                    del self.incidents[other]
            return Response(status=204)
        if request.method in ("PUT", "PATCH"):
            known = MONITOR_FIELDS | {"pause"} if kind == "monitors" else INCIDENT_FIELDS
            records[int(id)].update(_fields(request, known - {"monitor_id", "started_at"}))
        return _json({"data": _shown(records[int(id)])})

    def store(self, kind: str, request: Request) -> Response:
        monitor = kind == "monitors"
        fields = _fields(request, MONITOR_FIELDS if monitor else INCIDENT_FIELDS)
        needed = ("name", "url", "interval") if monitor else ("monitor_id", "started_at")
        missing = [name for name in needed if not fields.get(name)]
        if missing:
            raise Refused(422, {"message": "Invalid.", "errors": {missing[0]: ["Is required."]}})
        if not monitor and fields["monitor_id"] not in self.monitors:
            raise Refused(422, {"errors": {"monitor_id": "There is no such monitor."}})
        self.last_id += 1
        record = {"id": self.last_id, **fields}
        getattr(self, kind)[self.last_id] = record
        return _json({"data": _shown(record)}, 201)

    def list(self, kind: str, request: Request) -> Response:
        query = request.args.to_dict()
        unknown = query.keys() - (MONITOR_QUERY if kind == "monitors" else INCIDENT_QUERY)
        if unknown:
            raise Refused(422, {"errors": {sorted(unknown)[0]: ["Is not known."]}})
        for name, allowed in {**VALUES[kind], **PAGING}.items():
            if query.get(name, min(allowed)) not in allowed:
                raise Refused(422, {"errors": {name: ["Is not allowed."]}})
        records = list(getattr(self, kind).values())
        found = [one for one in records if self.matches(kind, one, query)]
        order = _order(query.get("sort_by", "id" if kind == "monitors" else "ended_at"))
        found.sort(key=order, reverse=query.get("sort", "desc") == "desc")
        return _json({"data": [_shown(one) for one in found[: int(query.get("per_page", 10))]]})

    def matches(self, kind: str, one: Record, query: Mapping[str, str]) -> bool:
        wanted = query.get("search", "").casefold()
        by = query.get("search_by", "name" if kind == "monitors" else "url")
        if "status_page_id" in query:
            return False  # it has no status pages
        if kind == "monitors":
            return wanted in str(one[by]).casefold()
        about = self.monitors[one["monitor_id"]]
        where = {"cause": one.get("cause") or "", "monitor": about["name"]}
        text = where.get(by, f"{about['name']}\n{about['url']}")
        return (
            wanted in text.casefold()
            and query.get("monitor_id", str(one["monitor_id"])) == str(one["monitor_id"])
            and query.get("status", _status(one)) == _status(one)
        )


def _fields(request: Request, known: set[str]) -> Record:
    fields: Record = {}
    if request.mimetype != FORM:
        raise Refused(415, {"error": "writes are forms"})
    for raw, text in request.form.items(multi=True):
        name = NAME.fullmatch(raw)
        if name is None or name[1] not in known:
            raise Refused(422, {"errors": {raw: ["Is not known."]}})
        if name[2] is not None:
            fields.setdefault(name[1], {}).setdefault(int(name[2]), {})[name[3]] = text
        elif name[1] in ("alerts", "request_headers"):
            fields[name[1]] = {}
        else:
            fields[name[1]] = _value(name[1], text)
    return fields


def _value(name: str, text: str) -> Any:
    if text == "":
        return None
    if name == "pause":
        return text == "true"
    if name.endswith("_at"):
        datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
        return text
    return int(text) if name in NUMBERS else text


def _shown(record: Record) -> Record:
    shown = {name: value for name, value in record.items() if name != "request_auth_password"}
    for name in ("alerts", "request_headers"):
        if name in shown:
            shown[name] = [shown[name][index] for index in sorted(shown[name])]
    return shown


def _order(sort_by: str) -> Callable[[Record], Any]:
    if sort_by == "id":
        return lambda one: one["id"]
    # An incident without an end ends after all others.
    return lambda one: ((one.get(sort_by) or "~").casefold(), one["id"])


def _status(one: Record) -> str:
    if one.get("ended_at"):
        return "resolved"
    return "acknowledged" if one.get("acknowledged_at") else "unresolved"


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")
