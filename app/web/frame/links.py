"""URLs of lists. They contain every filter, order and page number, so that people can bookmark
them.
"""

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
# Arguments of ``url_for``, which would fail with a parameter of the same name in a query.
RESERVED = frozenset({"endpoint", "_anchor", "_method", "_scheme", "_external"})


def pairs(*without: str, args: Args | None = None) -> list[tuple[str, str]]:
    """The query as pairs, as the forms read it, without the names in ``without``."""
    query = request.args if args is None else args
    return [(name, value) for name, value in query.items(multi=True) if name not in without]


def path() -> str:
    """This page's path, with its prefix: a proxy's folder, or a remote server."""
    return request.root_path.rstrip("/") + request.path


def full_path() -> str:
    """This page's path with its query."""
    return request.root_path.rstrip("/") + request.full_path.rstrip("?")


def absolute(path: str) -> str:
    """The absolute URL of a path of this installation, for a link that a person gives to others."""
    return f"{base_here(current_app.extensions['wakeful.settings'])}{path}"


def query_of(address: str) -> Args:
    """The query of a URL of this installation."""
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
    args = {name: value for name, value in args.items() if value not in (None, "")}
    values: dict[str, Any] = {**args, **(request.view_args or {})}
    return _url(request.root_path, request.blueprint, request.endpoint or "home.show", **values)


@lru_cache(maxsize=512)
def _url(_root: str, _blueprint: str | None, endpoint: str, /, **values: Any) -> str:
    # A query may have a parameter of any name, also ``_root``.
    return url_for(endpoint, **values)


def url(endpoint: str, **values: Any) -> str:
    """``url_for`` for templates. URLs without variables but an id are cached, because each page has
    a menu of thirty, and scripts load the same page again and again.
    """
    if values.keys() <= {"id"}:
        return _url(request.root_path, request.blueprint, endpoint, **values)
    return url_for(endpoint, **values)


def order(
    query: MonitorQuery | IncidentQuery, first: Mapping[Any, str]
) -> Callable[[str], tuple[str | None, str | None]]:
    """A function for the head of a column. It returns the URL of this page in the column's order,
    and ``aria-sort`` if the page is in this order already; the URL then has the other direction.
    ``first``: the direction of the first click, by column; other columns have no order.
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
    """An id that a record can have. A larger number is not found, because the database could not
    compare it.
    """

    regex = rf"\d{{1,{len(str(MAX_ID))}}}"

    def __init__(self, map: Map) -> None:
        super().__init__(map, max=MAX_ID)


def init_app(app: Flask) -> None:
    """Call it before the routes are added."""
    app.url_map.converters["int"] = Id
