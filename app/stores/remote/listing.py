"""Any window of another server's list, whatever its pages are.

A server may page by a number, by an offset or by cursors, in pages of its own size, say how many
records there are or not, or send all of them at once. The base API has no parameter for pages, so
the first page shows how to ask for the others; that is cached for each path.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.codec.values import whole
from app.rules.brackets import Pairs
from app.stores.remote.envelope import OFFSETS, ListPart

SIZES = ("per_page", "perPage", "limit", "page_size", "pageSize", "size", "page[size]", "count")
# Lists of these lengths may be the first page of a server that does not say so.
USUAL_SIZES = (10, 15, 20, 25, 30, 50, 100)
CURSOR = re.compile(r"cursor|token|after|before|since|last", re.IGNORECASE)
MARKS_SECONDS = 60.0  # cursors do not live for ever
Fetch = Callable[[Pairs], ListPart]
Peek = Callable[[Pairs], ListPart | None]  # None: the server refuses this query


@dataclass(frozen=True, slots=True)
class Way:
    """How a server is asked for its records from some position on: with the parameter ``name``,
    which is ``first`` on the first page and ``step`` more on each further one.
    """

    size: int
    name: str = "page"
    first: int = 1
    step: int = 1
    sizes: Pairs = ()

    def to(self, sent: Pairs, start: int) -> Pairs:
        number = self.first + start // self.size * self.step
        return over(sent, [*self.sizes, (self.name, str(number))])


@dataclass(frozen=True, slots=True)
class Window:
    """``total``: of all records, if that is known. ``more``: whether there are, or may be, records
    behind this window; ``reachable``: whether they can be asked for.
    """

    items: Sequence[Any]
    total: int | None
    more: bool
    reachable: bool


class Listing:
    """The list at one path. Safe to use from several threads."""

    def __init__(self) -> None:
        self.ways: dict[int, Way | None] = {}  # by the size that was asked for; None: no numbers
        # Where pages only lead from one to the next: what leads to a position, for each query.
        self.marks: dict[tuple[tuple[str, str], ...], dict[int, Pairs]] = {}
        self.marked_at = time.monotonic()

    def window(
        self, fetch: Fetch, peek: Peek, sent: Pairs, begin: int, end: int, size: int, most: int
    ) -> Window:
        """The records from ``begin`` up to ``end``, or fewer. ``size``: as ``sent`` asks for;
        ``most``: how many further pages are read.
        """
        read, way = 0, self.ways.get(size)
        if way is not None and begin:
            read = begin // way.size * way.size
            part = fetch(way.to(sent, read))
        elif (marked := self._marked(peek, sent, begin)) is not None:
            read, part = marked
        else:
            part = fetch(sent)
            if size not in self.ways and part.items:
                way = self._learnt(peek, sent, size, part)
            if way is not None and way.size <= begin:
                there = begin // way.size * way.size
                jumped = _other(peek, way.to(sent, there), part)
                way = self.ways[size] = None if jumped is None else way
                part, read = (part, 0) if jumped is None else (jumped, there)
        items: list[Any] = []
        total, more = part.total, False
        for request in range(most + 1):
            items += part.items[max(0, begin - read) : max(0, end - read)]
            read += len(part.items)
            total = total if part.total is None else part.total
            more = _more(part, read, size, way)
            if way is None and part.next is not None:
                self.marks.setdefault(tuple(sent), {})[read] = part.next
            if read >= end or not more or not part.items or request == most:
                break
            after = part.next if part.next is not None else way and way.to(sent, read)
            following = _other(peek, over(sent, after), part) if after else None
            if following is None:
                way = None
                break
            part = following
        if total is None and not more:
            total = read
        reachable = way is not None or part.next is not None or read > end
        return Window(items, total, more or read > end, reachable)

    def _marked(self, peek: Peek, sent: Pairs, begin: int) -> tuple[int, ListPart] | None:
        """The page that an earlier window has led to, at or before ``begin``."""
        if time.monotonic() - self.marked_at > MARKS_SECONDS:
            self.marks, self.marked_at = {}, time.monotonic()
        marks = self.marks.get(tuple(sent), {})
        before = max((read for read in marks if read <= begin), default=None)
        part = None if before is None else peek(over(sent, marks[before]))
        return None if before is None or part is None else (before, part)

    def _learnt(self, peek: Peek, sent: Pairs, size: int, part: ListPart) -> Way | None:
        """How further pages are asked for, from the first one. Of a server that says nothing, only
        a second page shows that there are some.
        """
        way, here = way_of(part, sent), len(part.items)
        if part.more is False or (part.total is not None and here >= part.total):
            return None  # it is not cut, so its length is no size of pages
        if part.next is None and part.more is None:
            if part.total is None:
                if here not in (size, *USUAL_SIZES):
                    return None
                if way is not None and _other(peek, way.to(sent, here), part) is None:
                    way = None
            elif part.number is None:
                return way  # cached once it has led somewhere
        self.ways[size] = way
        return way


def is_all(part: ListPart, size: int) -> bool:
    """Whether the first page, of which ``size`` records were asked for, is the whole list."""
    here = len(part.items)
    if part.next is not None or part.more:
        return False
    return part.total == here if part.total is not None else here not in (size, *USUAL_SIZES)


def _other(peek: Peek, query: Pairs, before: ListPart) -> ListPart | None:
    """Another page; None from a server that has none, or sends the same one again."""
    part = peek(query)
    return None if part and part.items and part.items[0] == before.items[0] else part


def way_of(part: ListPart, sent: Pairs) -> Way | None:
    """How the first page says that others are asked for; None if it leads from one to the next."""
    size = len(part.items)
    if part.next is None:
        if part.by_offset is not None:
            return Way(size, part.by_offset, 0, size)
        return Way(size, first=part.number if part.number in (0, 1) else 1)
    asked = dict(sent)
    changed = [pair for pair in part.next if asked.get(pair[0]) != pair[1]]
    sizes = [pair for pair in changed if pair[0] in SIZES]
    for name, value in changed:
        number = None if name in SIZES or CURSOR.search(name) else whole(value)
        if number == size and (name in OFFSETS or size > 2):
            return Way(size, name, 0, size, sizes)
        if number in (1, 2):
            return Way(size, name, number - 1, 1, sizes)
    return None


def over(sent: Pairs, changes: Pairs) -> Pairs:
    """The query with these values instead of those of the same names."""
    names = {name for name, _value in changes}
    return [*(pair for pair in sent if pair[0] not in names), *changes]


def _more(part: ListPart, read: int, size: int, way: Way | None) -> bool:
    """Whether records follow the ``read`` first ones."""
    if part.more is not None:
        return part.more
    if part.total is not None:
        return read < part.total
    here = len(part.items)
    if way is not None:
        return here >= way.size
    return here == read and here <= size and here in (size, *USUAL_SIZES)  # there may be others
