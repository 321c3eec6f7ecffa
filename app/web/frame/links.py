"""URLs of lists: every filter, order and page number is in the URL, so that it can be kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from flask import Flask, current_app, request, url_for
from werkzeug.datastructures import MultiDict
from werkzeug.routing import IntegerConverter, Map

from app.records import MAX_ID, IncidentQuery, MonitorQuery, Sort
from app.stores.mail import base_here

Args = MultiDict[str, str]
# What ``url_for`` takes for itself: in somebody's query it would fail.
RESERVED = frozenset({"endpoint", "_anchor", "_method", "_scheme", "_external"})


def pairs(*without: str, args: Args | None = None) -> list[tuple[str, str]]:
    """The query as pairs, as the forms read it, without the names in ``without``."""
    asked = request.args if args is None else args
    return [(name, value) for name, value in asked.items(multi=True) if name not in without]


def path() -> str:
    """This page's path, with its prefix: a proxy's folder, or a remote server."""
    return request.root_path.rstrip("/") + request.path


def full_path() -> str:
    """This page's path with its query."""
    return request.root_path.rstrip("/") + request.full_path.rstrip("?")


def own(path: str) -> str:
    """The address of one of our paths for a link that the person who asks hands over."""
    return f"{base_here(current_app.extensions['wakeful.settings'])}{path}"


def query_of(address: str) -> Args:
    """The query of one of our own URLs."""
    return MultiDict(parse_qsl(urlsplit(address).query, keep_blank_values=True))


def here(**changes: Any) -> str:
    """This page's URL with some parameters changed; None or an empty value removes one. A changed
    filter goes back to the first page.
    """
    args: dict[str, Any] = {
        name: value for name, value in request.args.items() if value != "" and name not in RESERVED
    }
    if "page" not in changes:
        args.pop("page", None)
    args |= changes
    if args.get("page") == 1:
        del args["page"]
    given = {name: value for name, value in args.items() if value not in (None, "")}
    values: dict[str, Any] = {**given, **(request.view_args or {})}
    return url_for(request.endpoint or "home.show", **values)


@lru_cache(maxsize=256)
def _url(_root: str, _blueprint: str | None, endpoint: str) -> str:
    return url_for(endpoint)


def url(endpoint: str, **values: Any) -> str:
    """``url_for`` of templates. A page names thirty pages in its menu: those without values are
    built once. ``_root``: what the URL begins with.
    """
    if values:
        return url_for(endpoint, **values)
    return _url(request.root_path, request.blueprint, endpoint)


def order(
    query: MonitorQuery | IncidentQuery, first: Mapping[Any, str]
) -> Callable[[str], tuple[str | None, str | None]]:
    """For the head of a column: this page's URL in its order, and the present direction as
    ``aria-sort`` says it, if it is in this order. Another click turns it round. ``first``: the
    direction that each column begins with; others have no order.
    """

    def link(column: str) -> tuple[str | None, str | None]:
        if column not in first:
            return None, None
        if query.sort_by != column:
            return here(sort_by=column, sort=first[column]), None
        descends = query.sort == Sort.DESC
        other = Sort.ASC if descends else Sort.DESC
        return here(sort_by=column, sort=other), "descending" if descends else "ascending"

    return link


class Id(IntegerConverter):
    """An id that a record can have. A larger number names no page: the database could not even be
    asked for it, and the answer would be a fault of ours.
    """

    regex = rf"\d{{1,{len(str(MAX_ID))}}}"

    def __init__(self, map: Map) -> None:
        super().__init__(map, max=MAX_ID)


def init_app(app: Flask) -> None:
    """Called before the addresses are added."""
    app.url_map.converters["int"] = Id
