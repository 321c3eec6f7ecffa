"""The envelope around records in an answer, which some servers leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from flask import g, has_request_context

from app.codec import Odd
from app.codec.values import text, whole
from app.records import Page
from app.rules.text import one_line

T = TypeVar("T")
MAX_CALLED = 100


def record(body: Any, read: Callable[[Any], T]) -> T:
    """The record of an answer, in an envelope or without one."""
    return read(_data(body))


def page(body: Any, read: Callable[[Any], T], number: int, per_page: int) -> Page[T]:
    """The page of a list with this number, of which ``per_page`` records were asked for."""
    data = _data(body)
    if not isinstance(data, list):
        raise Odd("list")
    items = each(data, read)
    total = _total(body, number, per_page, len(items))
    if total is None:
        # It has no pages: it sent everything, or as many as were requested.
        full = len(items) >= per_page
        return Page([] if number > 1 else items, number, per_page, len(items), more=full)
    return Page(items[:per_page], number, per_page, total)


def each(data: Sequence[Any], read: Callable[[Any], T]) -> list[T]:
    """The records of a list. One that is not understood is set aside, and the page names it: it
    must not hide the others.
    """
    items = []
    for entry in data:
        try:
            items.append(read(entry))
        except Odd as odd:
            if has_request_context():
                g.setdefault("set_aside", {})[_called(entry, odd)] = True
    return items


def _called(entry: Any, odd: Odd) -> str:
    """What a record that cannot be read is called: ``7 Shop (started_at)``."""
    fields = entry if isinstance(entry, Mapping) else {}
    inner = fields.get("attributes")
    fields = {**inner, **fields} if isinstance(inner, Mapping) else fields
    names = [text(fields.get(name)) for name in ("id", "name", "cause")]
    return one_line(" ".join(filter(None, [*names, f"({odd})"])), MAX_CALLED)


def _data(body: Any) -> Any:
    return body["data"] if isinstance(body, Mapping) and "data" in body else body


def _total(body: Any, number: int, per_page: int, found: int) -> int | None:
    """How many records there are in all; None if the answer has no paging data."""
    meta = body.get("meta") if isinstance(body, Mapping) else None
    told = whole(meta.get("total")) if isinstance(meta, Mapping) else None
    if told is not None:
        return max(told, 0)
    links = body.get("links") if isinstance(body, Mapping) else None
    if isinstance(links, Mapping) and "next" in links:
        so_far = (number - 1) * per_page + found
        return so_far + 1 if links["next"] else so_far
    return None
