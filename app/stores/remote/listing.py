"""A window of another server's list, independent of the server's pages.

A server may page by a number, by an offset or by cursors, choose the size of its pages, say how
many records there are or not, or send all records at once. The base API has no parameter for pages,
so the first page shows how to request the others. This is cached for each path.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.codec.values import whole
from app.rules.brackets import Pairs
from app.stores.remote.envelope import OFFSETS, ServerPage

SIZES = ("per_page", "perPage", "limit", "page_size", "pageSize", "size", "page[size]", "count")
# Lists of these lengths may be the first page of a server that does not say so.
USUAL_SIZES = (10, 15, 20, 25, 30, 50, 100)
CURSOR = re.compile(r"cursor|token|after|before|since|last", re.IGNORECASE)
MARKS_SECONDS = 60.0  # servers forget cursors
Fetch = Callable[[Pairs], ServerPage]
Peek = Callable[[Pairs], ServerPage | None]  # None: the server refuses this query


@dataclass(frozen=True, slots=True)
class Paging:
    """The parameters that request pages of ``size`` records from a server: ``name`` is ``first`` on
    the first page and ``step`` more on each further one. ``sizes``: parameters that choose the
    size.
    """

    size: int
    name: str = "page"
    first: int = 1
    step: int = 1
    sizes: Pairs = ()

    def query_at(self, query: Pairs, start: int) -> Pairs:
        number = self.first + start // self.size * self.step
        return replaced(query, [*self.sizes, (self.name, str(number))])


@dataclass(frozen=True, slots=True)
class Window:
    """``total``: the number of all records, if it is known. ``more``: whether there are, or may be,
    records after this window. ``reachable``: whether they can be requested.
    """

    items: Sequence[Any]
    total: int | None
    more: bool
    reachable: bool


class Listing:
    """The list at one path. Safe to use from several threads."""

    def __init__(self) -> None:
        # By the requested size; None if pages have no number.
        self.pagings: dict[int, Paging | None] = {}
        # For servers whose pages only link to the next page: by query and position, the parameters
        # that lead to the page.
        self.marks: dict[tuple[tuple[str, str], ...], dict[int, Pairs]] = {}
        self.marked_at = time.monotonic()

    def window(
        self, fetch: Fetch, peek: Peek, query: Pairs, begin: int, end: int, size: int, max_more: int
    ) -> Window:
        """The records from ``begin`` up to ``end``, or fewer. ``size``: the number that ``query``
        asks for. ``max_more``: the number of pages that may be read after the first one.
        """
        position, paging = 0, self.pagings.get(size)
        if paging is not None and begin:
            position = begin // paging.size * paging.size
            page = fetch(paging.query_at(query, position))
        elif (marked_page := self._marked_page(peek, query, begin)) is not None:
            position, page = marked_page
        else:
            page = fetch(query)
            if size not in self.pagings and page.items:
                paging = self._learn(peek, query, size, page)
            if paging is not None and paging.size <= begin:
                start = begin // paging.size * paging.size
                jumped = _another_page(peek, paging.query_at(query, start), page)
                paging = self.pagings[size] = None if jumped is None else paging
                page, position = (page, 0) if jumped is None else (jumped, start)
        items: list[Any] = []
        total, more = page.total, False
        for request in range(max_more + 1):
            items += page.items[max(0, begin - position) : max(0, end - position)]
            position += len(page.items)
            total = total if page.total is None else page.total
            more = _has_more(page, position, size, paging)
            if paging is None and page.next is not None:
                self.marks.setdefault(tuple(query), {})[position] = page.next
            if position >= end or not more or not page.items or request == max_more:
                break
            changes = page.next
            if changes is None and paging is not None:
                changes = paging.query_at(query, position)
            following = _another_page(peek, replaced(query, changes), page) if changes else None
            if following is None:
                paging = None
                break
            page = following
        if total is None and not more:
            total = position
        reachable = paging is not None or page.next is not None or position > end
        return Window(items, total, more or position > end, reachable)

    def _marked_page(self, peek: Peek, query: Pairs, begin: int) -> tuple[int, ServerPage] | None:
        """The last page at or before ``begin`` to which an earlier window has led."""
        if time.monotonic() - self.marked_at > MARKS_SECONDS:
            self.marks, self.marked_at = {}, time.monotonic()
        marks = self.marks.get(tuple(query), {})
        marked = max((position for position in marks if position <= begin), default=None)
        page = None if marked is None else peek(replaced(query, marks[marked]))
        return None if marked is None or page is None else (marked, page)

    def _learn(self, peek: Peek, query: Pairs, size: int, page: ServerPage) -> Paging | None:
        """The parameters for further pages, derived from the first page. If the first page does not
        show whether there is a second one, the second page is requested.
        """
        paging, length = paging_of(page, query), len(page.items)
        if page.more is False or (page.total is not None and length >= page.total):
            return None  # this is the whole list, so its length is not the size of a page
        if page.next is None and page.more is None:
            if page.total is None:
                if length not in (size, *USUAL_SIZES):
                    return None
                second = None if paging is None else paging.query_at(query, length)
                if second is not None and _another_page(peek, second, page) is None:
                    paging = None
            elif page.number is None:
                return paging  # cached once it has led somewhere
        self.pagings[size] = paging
        return paging


def is_all(page: ServerPage, size: int) -> bool:
    """Whether the first page, of which ``size`` records were asked for, is the whole list."""
    length = len(page.items)
    if page.next is not None or page.more:
        return False
    return page.total == length if page.total is not None else length not in (size, *USUAL_SIZES)


def _another_page(peek: Peek, query: Pairs, previous: ServerPage) -> ServerPage | None:
    """Another page; None if the server has none, or sends the previous page again."""
    page = peek(query)
    return None if page and page.items and page.items[0] == previous.items[0] else page


def paging_of(page: ServerPage, query: Pairs) -> Paging | None:
    """The parameters for further pages that the first page names; None if each page has the link to
    the next.
    """
    size = len(page.items)
    if page.next is None:
        if page.by_offset is not None:
            return Paging(size, page.by_offset, 0, size)
        return Paging(size, first=page.number if page.number in (0, 1) else 1)
    sent_values = dict(query)
    changed = [pair for pair in page.next if sent_values.get(pair[0]) != pair[1]]
    sizes = [pair for pair in changed if pair[0] in SIZES]
    for name, value in changed:
        number = None if name in SIZES or CURSOR.search(name) else whole(value)
        if number == size and (name in OFFSETS or size > 2):
            return Paging(size, name, 0, size, sizes)
        if number in (1, 2):
            return Paging(size, name, number - 1, 1, sizes)
    return None


def replaced(query: Pairs, changes: Pairs) -> Pairs:
    """The query with these values instead of those of the same names."""
    names = {name for name, _value in changes}
    return [*(pair for pair in query if pair[0] not in names), *changes]


def _has_more(page: ServerPage, position: int, size: int, paging: Paging | None) -> bool:
    """Whether records follow the first ``position`` ones."""
    if page.more is not None:
        return page.more
    if page.total is not None:
        return position < page.total
    length = len(page.items)
    if paging is not None:
        return length >= paging.size
    # Records may follow a first page that has a usual size.
    return length == position and length <= size and length in (size, *USUAL_SIZES)
