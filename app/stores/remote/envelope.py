"""The records of an answer and its data about further pages, in the forms that servers use.

{"data": [...], "meta": {"total": 40}}     [...]                        {"monitors": [...]}
{"count": 40, "next": "...", "results": [...]}                          {"data": {"items": [...]}}
{"data": [{"id": "7", "type": "monitors", "attributes": {...}}]}        {"monitor": {...}}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from flask import g, has_request_context

from app.codec import MalformedData, foreign
from app.codec.values import flag, text, whole
from app.rules.brackets import Pairs
from app.rules.text import one_line

T = TypeVar("T")

MAX_LABEL = 100
# The keys that may hold the records, besides the name of the resource. The first one that an answer
# has counts.
WRAPPERS = ("data", "results", "result", "items", "item", "records", "record", "rows", "entries",
            "list", "content", "objects", "payload", "response", "value", "_embedded")  # fmt: skip
ABOUT_PAGES = ("meta", "_meta", "pagination", "paging", "paginator", "page", "page_info",
               "pageInfo", "pages", "links", "_links")  # fmt: skip
TOTALS = ("total", "total_count", "totalCount", "total_items", "totalItems", "total_records",
          "totalRecords", "total_results", "totalResults", "totalElements",
          "@odata.count")  # fmt: skip
NEXT = ("next", "next_page_url", "nextPageUrl", "next_url", "nextUrl", "nextLink",
        "@odata.nextLink", "next_page", "nextPage")  # fmt: skip
CURSORS = {"next_cursor": "cursor", "nextCursor": "cursor", "next_page_token": "page_token",
           "nextPageToken": "pageToken"}  # fmt: skip
MORE = ("has_more", "hasMore", "has_next", "hasNext", "has_next_page", "hasNextPage",
        "has_more_pages")  # fmt: skip
CURRENT = ("current_page", "currentPage", "page", "page_number", "pageNumber", "number")
LAST = ("last_page", "lastPage", "total_pages", "totalPages", "page_count", "pageCount", "pages")
OFFSETS = ("offset", "skip", "start")
NO_RECORDS = ("errors", "error", "warnings", *ABOUT_PAGES)
MAX_DEEP = 4


@dataclass(frozen=True, slots=True)
class ServerPage:
    """A page of a list, as a server sends it. ``total``: the number of all records. ``more``:
    whether records follow these. Both are None if the server does not say. ``next``: the query of
    the next page. ``number``: the number of this page in the answer. ``by_offset``: the parameter
    that counts records, if the server pages by an offset.
    """

    items: Sequence[Any]
    total: int | None
    more: bool | None
    next: Pairs | None
    number: int | None
    by_offset: str | None


EMPTY_PAGE = ServerPage((), 0, False, None, None, None)


def content(body: Any, read: Callable[[Any], T]) -> T:
    """The content in the envelope of an answer of Wakeful."""
    return read(body["data"] if isinstance(body, Mapping) and "data" in body else body)


def record(body: Any, noun: str) -> Any:
    """The record in the envelope of an answer; other answers stay as they are."""
    for _depth in range(MAX_DEEP):
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
        if not isinstance(body, Mapping) or "attributes" in body:  # ``attributes``: JSON:API
            return body
        names = (noun, "data") if "id" in body else (noun, *WRAPPERS)
        records = (body[name] for name in names if _is_record(body.get(name), "id" in body))
        inner = next(records, None)
        if inner is None and "id" not in body:
            nested = [value for value in body.values() if isinstance(value, Mapping)]
            inner = nested[0] if len(nested) == 1 else None
        if inner is None:
            return body
        body = inner
    return body


def page_of(body: Any, headers: Mapping[str, str], noun: str, many: str) -> ServerPage:
    """The records in the answer for a list, and its data about pages. Raises MalformedData."""
    scopes: list[Mapping[str, Any]] = []
    entries = _list(body, many, scopes)
    if entries is None:
        raise MalformedData("list")
    items = [record(entry, noun) for entry in entries]
    about = [inner for scope in scopes for inner in _about(scope)]
    link, says_next = _next(about, headers)
    total = _total(about, headers, len(items), says_next)
    number = _first_whole(about, CURRENT)
    last = _first_whole(about, LAST)
    flags = [flag(scope[name]) for scope in about for name in MORE if name in scope]
    more: bool | None = None
    if link is not None or True in flags:
        more = True
    elif says_next or False in flags:
        more = False
    elif number is not None and last is not None and number >= 1:
        more = number < last
    offsets = [name for name in OFFSETS for scope in about if whole(scope.get(name)) is not None]
    return ServerPage(
        items, total, more, link, number, offsets[0] if offsets and number is None else None
    )


def each(data: Sequence[Any], read: Callable[[Any], T]) -> list[T]:
    """The records of a list. A malformed record is set aside, and the page names it: one record
    must not hide the others.
    """
    understood, malformed = read_entries(data, read)
    if has_request_context():
        for entry, fault in malformed:
            g.setdefault("set_aside", {})[_label_of(entry, fault)] = True
    return [record for record, _entry in understood]


def read_entries(
    data: Sequence[Any], read: Callable[[Any], T]
) -> tuple[list[tuple[T, Any]], list[tuple[Any, MalformedData]]]:
    """The records that can be read, each with its JSON, and the malformed entries, each with what
    is wrong.
    """
    understood, malformed = [], []
    for entry in data:
        try:
            understood.append((read(entry), entry))
        except MalformedData as fault:
            malformed.append((entry, fault))
    return understood, malformed


def _label_of(entry: Any, fault: MalformedData) -> str:
    """A label for a record that cannot be read: ``7 Shop (started_at)``."""
    fields = foreign.record_fields(entry, "record") if isinstance(entry, Mapping) else {}
    names = [text(fields.get(name)) for name in ("id", "name", "cause")]
    return one_line(" ".join(filter(None, [*names, f"({fault})"])), MAX_LABEL)


def _is_record(value: Any, has_id: bool) -> bool:
    """Whether this may be a record in an envelope. ``has_id``: the envelope has an id, which may be
    that of the request; a record has an id too in this case.
    """
    inner = value[0] if isinstance(value, list) and len(value) == 1 else value
    return isinstance(inner, Mapping) and bool(inner) and (not has_id or "id" in inner)


def _list(body: Any, many: str, scopes: list[Mapping[str, Any]]) -> list[Any] | None:
    if isinstance(body, list):
        return body
    if body is None or not isinstance(body, Mapping) or len(scopes) > MAX_DEEP:
        return None
    scopes.append(body)
    names = [name for name in (many, *WRAPPERS) if name in body]
    for name in names:
        value = body[name]
        if value is None or value == {}:  # an empty list from Go, and from PHP
            return []
        if (inner := _list(value, many, scopes)) is not None:
            return inner
    others = [value for name, value in body.items() if name not in NO_RECORDS]
    lists = [value for value in others if isinstance(value, list) and value]
    lists = [value for value in lists if all(isinstance(entry, Mapping) for entry in value)]
    if len(lists) == 1:
        return lists[0]
    if _first_whole(list(_about(body)), TOTALS) == 0:  # HAL leaves out an empty list
        return []
    if body and all(name.isdigit() and isinstance(entry, Mapping) for name, entry in body.items()):
        return [{"id": name, **entry} for name, entry in body.items()]
    return None


def _about(scope: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """This object, and the objects in it that are about pages."""
    yield scope
    for name in ABOUT_PAGES:
        inner = scope.get(name)
        if isinstance(inner, Mapping) and depth < MAX_DEEP:
            yield from _about(inner, depth + 1)


def _total(
    about: Sequence[Mapping[str, Any]], headers: Mapping[str, str], here: int, says_next: bool
) -> int | None:
    total = _first_whole(about, TOTALS)
    if total is None and says_next:  # otherwise ``count`` may be the number on this page
        total = _first_whole(about, ("count",))
    for name in ("X-Total-Count", "X-Total", "X-WP-Total", "Content-Range"):
        if total is None and name in headers:
            total = whole(headers[name].rpartition("/")[2])
    return None if total is None or total < here else total


def _next(
    about: Sequence[Mapping[str, Any]], headers: Mapping[str, str]
) -> tuple[Pairs | None, bool]:
    """The query of the next page, and whether the answer says whether there is a next page."""
    says_next = False
    for scope in about:
        for name in NEXT:
            if name not in scope:
                continue
            says_next = True
            value = scope[name]
            if isinstance(value, Mapping):
                value = value.get("href", value.get("url"))
            if isinstance(value, str) and ("?" in value or "/" in value):
                return parse_qsl(urlsplit(value).query, keep_blank_values=True), True
            if value and not isinstance(value, bool):
                return [("page" if whole(value) is not None else "cursor", str(value))], True
        for name, parameter in CURSORS.items():
            if name in scope:
                says_next = True
                if scope[name]:
                    return [(parameter, str(scope[name]))], True
    for link in headers.get("Link", "").split(","):
        address, _semicolon, parameters = link.partition(";")
        if "next" in parameters.replace('"', " ").replace("=", " ").split():
            return parse_qsl(urlsplit(address.strip(" <>")).query, keep_blank_values=True), True
    return None, says_next or "Link" in headers


def _first_whole(about: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int | None:
    numbers = (whole(scope.get(name)) for scope in about for name in names)
    return next((value for value in numbers if value is not None), None)
