"""A server that speaks only the base API, in one of the styles that such servers use.

It keeps records in memory, knows no field and no parameter that the base API does not name, refuses
what it does not know with 422, and notes what it was asked. What the base API leaves open
(envelopes, pages, codes, records) is a ``Style``; without one it sends ``{"data": ...}`` and has no
pages. Each word of a style is one that a public server or framework uses.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlencode

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
# The values that the base API lists; its default of an incident's search_by, url, is none of them.
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


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a server answers where the base API does not say."""

    # data {"data": x}; bare x; named {"monitors": [..]} and {"monitor": {..}};
    # nested {"data": {"monitors": [..]}}; success {"success": true, "data": x};
    # results, items, records: a list under that name, a record bare;
    # jsonapi {"data": {"type", "id", "attributes"}}
    envelope: str = "data"
    # none: as many as were asked for, and no way to more; all: everything at once; silent: it takes
    # a page's number and says nothing; more {"has_more"};
    # meta and links; top {"total", "last_page", "next_page_url"} beside the list; next {"next"};
    # count {"count", "next", "previous"}; headers X-Total-Count and Link; link: Link alone;
    # total: {"total"} alone
    paging: str = "none"
    by: str = "page"  # the parameter of the next page: page, page[number], offset, or cursor
    page_size: int | None = None  # whatever was asked for
    # laravel, message, object, error, error_object, problem, invalid_params, drf, fastapi, jsonapi,
    # list, sentences, text, html
    errors: str = "laravel"
    refused_status: int = 422
    # record; list [record]; id {"id"}; monitor_id {"monitor_id"}; message; object {};
    # null {"data": null}; updated {"updated": 1}; text "OK"; html; empty; redirect: 303 to the
    # record; found: 302
    written: str = "record"
    written_status: int | None = None
    location: bool = False  # a store's answer has the header
    moved: int | None = None  # writes are first sent to another path, with 307 or 308
    # What /me answers: a status, login (a redirect), html, own (their account), error (with 200),
    # list, empty
    me: int | str = 404
    seconds: float = 0.0  # that each answer takes
    drops: frozenset[str] = frozenset()  # fields that it takes and does not keep
    hides: frozenset[str] = frozenset()  # fields that it keeps and does not return
    slash: bool = False  # URLs are normalised
    strings: bool = False  # every number is sent as text
    times: str = "iso"  # iso, zulu, space, fraction, seconds, milliseconds
    # pairs; map {"email": ["a@b"]}; channels [{"channel", "target"}]; json: text of pairs
    alerts: str = "pairs"
    headers: str = "pairs"  # pairs; map {"X-One": "1"}; json
    mask: str | None = None  # in the place of header values and passwords
    # pause, paused, is_paused, paused_at, active, status, none
    pause: str = "pause"
    pause_values: frozenset[str] = frozenset({"true", "false", "1", "0"})
    monitor: str = "id"  # of an incident: id, both (id and record), nested
    extra: Mapping[str, Any] = field(default_factory=dict)  # in every record


# The worst of everything: what each word costs alone is in the tables of the tests.
WORST = Style(
    envelope="nested",
    paging="next",
    by="cursor",
    page_size=15,
    errors="fastapi",
    written="text",
    moved=307,
    me="own",
    slash=False,
    strings=True,
    times="seconds",
    alerts="map",
    headers="json",
    pause="paused_at",
    monitor="nested",
)


class Refused(Exception):
    """``faults``: sentences at fields."""

    def __init__(self, status: int, message: str, faults: Mapping[str, str] | None = None) -> None:
        self.status, self.message, self.faults = status, message, faults or {}


class BareServer:
    def __init__(self, style: Style | None = None) -> None:
        self.style = style or Style()
        self.monitors: dict[int, Record] = {}
        self.incidents: dict[int, Record] = {}
        self.last_id = 0
        self.lock = Lock()
        self.requests: list[str] = []  # method and path with query
        self.sent: list[dict[str, str]] = []  # the forms of the writes, as they came
        self.refused: list[str] = []  # what was asked and not answered, with the status
        self.raw: dict[str, list[Any]] = {"monitors": [], "incidents": []}  # records as they are

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        time.sleep(self.style.seconds)
        self.requests.append(f"{request.method} {request.full_path}")
        if request.method not in ("GET", "DELETE"):
            self.sent.append(request.form.to_dict())
        try:
            with self.lock:
                response = self.answer(request)
        except Refused as refused:
            self.refused.append(f"{refused.status} {self.requests[-1]}")
            response = self.refusal(refused)
        return response(environ, start_response)

    def answer(self, request: Request) -> Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "no such key")
        if request.path == "/api/v1/me":
            return self.me()
        path, style = request.path, self.style
        if style.moved and request.method != "GET" and not path.startswith("/api/v1/at/"):
            there = path.replace("/api/v1/", "/api/v1/at/")
            return Response("", style.moved, {"Location": there})
        path = path.replace("/api/v1/at/", "/api/v1/")
        match = re.fullmatch(r"/api/v1/(monitors|incidents)(?:/(\d+))?", path)
        if match is None:
            raise Refused(404, "no such path")
        kind, id = match[1], int(match[2]) if match[2] else None
        if id is None and request.method == "GET":
            return self.list(kind, request)
        if id is None:
            return self.store(kind, request)
        records = getattr(self, kind)
        if id not in records:
            raise Refused(404, "no such record")
        if request.method == "DELETE":
            del records[id]
            if kind == "monitors":
                gone = [k for k, incident in self.incidents.items() if incident["monitor_id"] == id]
                for other in gone:
                    del self.incidents[other]
            return Response(status=204)
        if request.method in ("PUT", "PATCH"):
            taken = MONITOR_FIELDS | {"pause"} if kind == "monitors" else INCIDENT_FIELDS
            records[id].update(self.fields(request, taken - {"monitor_id", "started_at"}))
            return self.written(kind, id, 200)
        return _json(self.wrapped(kind, self.shown(kind, id)))

    def store(self, kind: str, request: Request) -> Response:
        monitor = kind == "monitors"
        fields = self.fields(request, MONITOR_FIELDS if monitor else INCIDENT_FIELDS)
        needed = ("name", "url", "interval") if monitor else ("monitor_id", "started_at")
        missing = [name for name in needed if not fields.get(name)]
        if missing:
            raise Refused(422, "Invalid.", {missing[0]: "Is required."})
        if not monitor and fields["monitor_id"] not in self.monitors:
            raise Refused(422, "Invalid.", {"monitor_id": "There is no such monitor."})
        self.last_id += 1
        getattr(self, kind)[self.last_id] = {"id": self.last_id, **fields}
        return self.written(kind, self.last_id, 201)

    def add(self, kind: str, **fields: Any) -> int:
        """Store a record without a request, as somebody else did; its id."""
        self.last_id += 1
        getattr(self, kind)[self.last_id] = {"id": self.last_id, **fields}
        return self.last_id

    def fields(self, request: Request, taken: set[str]) -> Record:
        fields = _fields(request, taken)
        if fields.get("pause") is not None and fields["pause"] not in self.style.pause_values:
            raise Refused(422, "Invalid.", {"pause": "The value is not allowed."})
        if "pause" in fields:
            fields["pause"] = fields["pause"] in ("true", "1")
        if self.style.slash and fields.get("url"):
            fields["url"] = fields["url"].rstrip("/") + "/"
        return {name: value for name, value in fields.items() if name not in self.style.drops}

    # --- What the base API leaves open --------------------------------------------------------

    def me(self) -> Response:
        answers: dict[int | str, Callable[[], Response]] = {
            "login": lambda: Response("", 302, {"Location": "/login"}),
            "html": lambda: Response("<h1>Welcome</h1>", content_type="text/html"),
            "own": lambda: _json({"data": {"id": 3, "name": "Ada", "scope": "write"}}),
            "error": lambda: _json({"error": "Unknown action"}),
            "list": lambda: _json([]),
            "empty": lambda: Response(""),
        }
        if isinstance(self.style.me, int):
            raise Refused(self.style.me, "not here")
        return answers[self.style.me]()

    def written(self, kind: str, id: int, status: int) -> Response:
        style, there = self.style, f"/api/v1/{kind}/{id}"
        status = style.written_status or status
        answers: dict[str, Callable[[], Response]] = {
            "record": lambda: _json(self.wrapped(kind, self.shown(kind, id)), status),
            "id": lambda: _json({"id": id}, status),
            "monitor_id": lambda: _json({f"{kind[:-1]}_id": id}, status),
            "message": lambda: _json({"message": "Saved."}, status),
            "object": lambda: _json({}, status),
            "null": lambda: _json({"data": None}, status),
            "list": lambda: _json([self.shown(kind, id)], status),
            "updated": lambda: _json({"updated": 1}, status),
            "text": lambda: Response("OK", status, content_type="text/plain"),
            "empty": lambda: Response("", style.written_status or 204),
            "html": lambda: Response("<h1>Saved</h1>", status, content_type="text/html"),
            "redirect": lambda: Response("", 303, {"Location": there}),
            "found": lambda: Response("", 302, {"Location": there}),
        }
        response = answers[style.written]()
        if style.location:
            response.headers["Location"] = there
        return response

    def refusal(self, refused: Refused) -> Response:
        status, message, faults = refused.status, refused.message, refused.faults
        status = self.style.refused_status if status == 422 else status
        errors = {name: [fault] for name, fault in faults.items()}
        listed = list(faults.items())
        bodies: dict[str, Any] = {
            "laravel": {"message": message, "errors": errors},
            "message": {"message": "; ".join([message, *faults.values()])},
            "object": {"message": errors or message},
            "error": {"error": "; ".join([message, *faults.values()])},
            "error_object": {"error": {"code": status, "message": message, "fields": faults}},
            "problem": {"type": "about:blank", "title": message, "status": status,
                        "detail": message, "errors": errors},
            "invalid_params": {"title": message, "status": status, "invalid-params": [
                {"name": name, "reason": fault} for name, fault in listed]},
            "drf": errors or {"detail": message},
            "fastapi": {"detail": [
                {"loc": ["body", name], "msg": fault, "type": "x"} for name, fault in listed
            ] or message},
            "jsonapi": {"errors": [
                {"detail": fault, "source": {"pointer": f"/data/attributes/{name}"}}
                for name, fault in listed] or [{"title": message}]},
            "list": {"errors": [{"field": name, "message": fault} for name, fault in listed]
                     or [{"message": message}]},
            "sentences": {"errors": [message, *faults.values()]},
        }  # fmt: skip
        if self.style.errors == "text":
            return Response(" ".join([message, *faults.values()]), status, mimetype="text/plain")
        if self.style.errors == "html":
            return Response(f"<h1>{message}</h1>", status, mimetype="text/html")
        return _json(bodies[self.style.errors], status)

    def wrapped(self, kind: str, shown: Any) -> Any:
        envelope, many = self.style.envelope, isinstance(shown, list)
        name = kind if many else kind[:-1]
        if envelope == "jsonapi":
            listed = [
                {"type": kind, "id": str(record.get("id")), "attributes": record}
                if isinstance(record, dict)
                else record
                for record in (shown if many else [shown])
            ]
            return {"data": listed if many else listed[0]}
        bodies: dict[str, Any] = {
            "data": {"data": shown},
            "named": {name: shown},
            "nested": {"data": {name: shown}},
            "success": {"success": True, "data": shown},
        }
        if envelope in bodies:
            return bodies[envelope]
        return {envelope: shown} if many and envelope != "bare" else shown

    def shown(self, kind: str, id: int) -> Record:
        """The record as this server returns it."""
        style = self.style
        record = dict(getattr(self, kind)[id])
        record.pop("request_auth_password", None)
        for name in ("alerts", "request_headers"):
            if name in record:
                listed = [record[name][index] for index in sorted(record[name])]
                how = style.alerts if name == "alerts" else style.headers
                mask = style.mask if name == "request_headers" else None
                record[name] = _pairs(listed, how, mask, many=name == "alerts")
        if kind == "monitors":
            paused = bool(record.pop("pause", False))
            record |= _paused(paused, style.pause)
        if kind == "incidents" and style.monitor != "id":
            about = record["monitor_id"]
            record["monitor"] = self.shown("monitors", about)
            if style.monitor == "nested":
                del record["monitor_id"]
        record = {name: value for name, value in record.items() if name not in style.hides}
        for name, value in record.items():
            if name.endswith("_at") and isinstance(value, str):
                record[name] = _time(value, style.times)
            elif style.strings and type(value) is int:
                record[name] = str(value)
        return record | style.extra

    def list(self, kind: str, request: Request) -> Response:
        style = self.style
        query = request.args.to_dict()
        begin = int(query.pop(style.by, "0" if style.by in ("offset", "cursor") else "1"))
        query.pop("limit", None)
        unknown = query.keys() - (MONITOR_QUERY if kind == "monitors" else INCIDENT_QUERY)
        if unknown or (style.paging in ("none", "all") and style.by in request.args):
            raise Refused(422, "Invalid.", {sorted(unknown or {style.by})[0]: "Is not known."})
        for name, allowed in {**VALUES[kind], **PAGING}.items():
            if query.get(name, min(allowed)) not in allowed:
                raise Refused(422, "Invalid.", {name: "Is not allowed."})
        records = list(getattr(self, kind).values())
        matching = [record for record in records if self.matches(kind, record, query)]
        order = _order(query.get("sort_by", "id" if kind == "monitors" else "ended_at"))
        matching.sort(key=order, reverse=query.get("sort", "desc") == "desc")
        ids = [record["id"] for record in matching]
        odd = self.raw[kind] if not query.get("search") else []
        total = len(ids) + len(odd)
        size = style.page_size or int(query.get("per_page", 10))
        if style.paging == "all":
            size = total
        start = begin if style.by in ("offset", "cursor") else (begin - 1) * size
        every = [*odd, *ids][start : start + size]
        shown = [
            record if isinstance(record, (dict, str)) else self.shown(kind, record)
            for record in every
        ]
        body = self.wrapped(kind, shown)
        return self.paged(body, request, start, size, total)

    def paged(self, body: Any, request: Request, start: int, size: int, total: int) -> Response:
        """The list with what this server says of its pages."""
        style, number = self.style, start // size + 1 if size else 1

        def there(at: int | None) -> str | None:
            if at is None or not 0 <= at < total:
                return None
            query = {k: v[0] for k, v in parse_qs(request.query_string.decode()).items()}
            by_record = style.by in ("offset", "cursor")
            query[style.by] = str(at if by_record else at // size + 1)
            return f"{request.base_url}?{urlencode(query)}"

        after, before = there(start + size), there(start - size if start else None)
        last = max(1, -(-total // size)) if size else 1
        headers = {}
        if style.paging == "meta":
            body["links"] = {"first": there(0), "prev": before, "next": after}
            body["meta"] = {"current_page": number, "last_page": last, "per_page": size,
                            "total": total}  # fmt: skip
        elif style.paging == "top":
            body |= {"total": total, "per_page": size, "current_page": number, "last_page": last,
                     "next_page_url": after, "prev_page_url": before}  # fmt: skip
        elif style.paging == "next":
            body["next"] = after
        elif style.paging == "count":
            body |= {"count": total, "next": after, "previous": before}
        elif style.paging == "total":
            body["total"] = total
        elif style.paging == "more":
            body["has_more"] = after is not None
        elif style.paging in ("headers", "link"):
            if style.paging == "headers":
                headers["X-Total-Count"] = str(total)
            if after:
                headers["Link"] = f'<{after}>; rel="next"'
        return _json(body, headers=headers)

    def matches(self, kind: str, record: Record, query: Mapping[str, str]) -> bool:
        wanted = query.get("search", "").casefold()
        by = query.get("search_by", "name" if kind == "monitors" else "url")
        if "status_page_id" in query:
            return False  # it has no status pages
        if kind == "monitors":
            return wanted in str(record[by]).casefold()
        about = self.monitors[record["monitor_id"]]
        where = {"cause": record.get("cause") or "", "monitor": about["name"]}
        text = where.get(by, f"{about['name']}\n{about['url']}")
        return (
            wanted in text.casefold()
            and query.get("monitor_id", str(record["monitor_id"])) == str(record["monitor_id"])
            and query.get("status", _status(record)) == _status(record)
        )


def _fields(request: Request, taken: set[str]) -> Record:
    fields: Record = {}
    if request.mimetype != FORM:
        raise Refused(415, "writes are forms")
    for raw, text in request.form.items(multi=True):
        name = NAME.fullmatch(raw)
        if name is None or name[1] not in taken:
            raise Refused(422, "Invalid.", {raw: "Is not known."})
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
    if name.endswith("_at"):
        datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
        return text
    return int(text) if name in NUMBERS else text


def _pairs(listed: list[dict[str, str]], how: str, mask: str | None, *, many: bool) -> Any:
    if mask:
        listed = [pair | {"value": mask} for pair in listed]
    if how == "channels":
        return [{"channel": pair["key"], "target": pair["value"]} for pair in listed]
    if how == "json":
        return json.dumps(listed)
    if how == "map":
        by_key: dict[str, Any] = {}
        for pair in listed:
            if many:
                by_key.setdefault(pair["key"], []).append(pair["value"])
            else:
                by_key[pair["key"]] = pair["value"]
        return by_key
    return listed


def _paused(paused: bool, how: str) -> Record:
    shown: dict[str, Record] = {
        "pause": {"pause": paused} if paused else {},
        "paused_at": {"paused_at": "2026-11-21T08:00:00" if paused else None},
        "active": {"active": not paused},
        "status": {"status": "paused" if paused else "up"},
        "none": {},
    }
    return shown.get(how, {how: paused})


def _time(text: str, how: str) -> Any:
    at = datetime.fromisoformat(text).replace(tzinfo=UTC)
    seconds = int(at.timestamp())
    ways: dict[str, Any] = {
        "iso": text,
        "zulu": f"{text}Z",
        "space": text.replace("T", " "),
        "fraction": f"{text}.000000Z",
        "seconds": seconds,
        "milliseconds": seconds * 1000,
    }
    return ways[how]


def _order(sort_by: str) -> Callable[[Record], Any]:
    if sort_by == "id":
        return lambda record: record["id"]
    # An incident without an end ends after all others.
    return lambda record: ((record.get(sort_by) or "~").casefold(), record["id"])


def _status(incident: Record) -> str:
    if incident.get("ended_at"):
        return "resolved"
    return "acknowledged" if incident.get("acknowledged_at") else "unresolved"


def _json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    response = Response(json.dumps(body), status, content_type="application/json")
    response.headers.update(headers or {})
    return response
