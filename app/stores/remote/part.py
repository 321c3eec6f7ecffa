"""The base class of the remote store's collections: send requests and read answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, ClassVar, TypeVar

from app.codec import MalformedData
from app.errors import Invalid, Unavailable, Unsupported, WakefulError
from app.i18n import N_, _
from app.records import Page
from app.rules import brackets
from app.stores.base import Extent, Fields, Store
from app.stores.remote import envelope
from app.stores.remote.connection import ANSWER_SECONDS, REPEATED, RemoteConnection, ServerAnswer
from app.stores.remote.listing import Listing, Paging, Window, is_all
from app.stores.remote.meaning import (
    ANSWERS,
    NOT_ACCEPTED,
    RecordId,
    explanation_of,
    raise_if_refused,
    says_failure,
)

ASKED_AGAIN_SECONDS = 300.0


class Me:
    """What a server supports, from its answer to ``/me``. ``ask_for_records``: a request that every
    server supports; it raises if the server does not answer at all. Safe to use from several
    threads.
    """

    def __init__(self, connection: RemoteConnection, ask_for_records: Callable[[], object]) -> None:
        self.connection, self.ask_for_records = connection, ask_for_records
        self._extent: Extent | None = None
        self._asked_at = 0.0

    @property
    def extent(self) -> Extent:
        """The extent in the server's last answer.

        Before the first answer, this raises the errors of a read: if a Wakeful that does not answer
        counted as a bare server, it would be sent a form without Wakeful's own fields.
        """
        if self._extent is None or time.monotonic() - self._asked_at > ASKED_AGAIN_SECONDS:
            try:
                self._extent = self.ask()
            except WakefulError:
                if self._extent is None:
                    raise
            self._asked_at = time.monotonic()
        return self._extent

    @property
    def is_wakeful(self) -> bool:
        """Whether the last answer was that of a Wakeful. Sends no request."""
        return self._extent is not None and self._extent > Extent.BARE

    def ask(self) -> Extent:
        """Request ``/me`` now, and return the extent."""
        answer = self.connection.read("/me")
        if answer.status == 429 or answer.status in REPEATED:
            raise_if_refused(self.connection, answer)
        data = envelope.record(answer.body, "key")
        if 200 <= answer.status < 300 and _is_wakeful(data):
            return Extent.TAG if data.get("tag") else Extent.WHOLE
        # This is not the ``me`` of a Wakeful. But while a server restarts, its proxy may answer
        # every request with 404, and that says nothing about the server.
        if self._extent != Extent.BARE:
            self.ask_for_records()
        if self.is_wakeful:
            raise self.connection.unavailable(
                N_("The server %(server)s does not say what it offers just now.")
            )
        return Extent.BARE


def _is_wakeful(data: Any) -> bool:
    """Whether a ``me`` has the two fields by which a Wakeful is recognized."""
    level = data.get("api_level") if isinstance(data, Mapping) else None
    is_level = isinstance(level, int) and not isinstance(level, bool) and level >= 1
    return is_level and isinstance(data.get("scope"), str)


T = TypeVar("T")
MAX_REQUESTS = 200  # for one page of a list
NO_SUCH_PAGE = (400, 404, 405, 406, 410, 416, 422)
NO_WAKEFUL = N_("The server %(server)s does not offer this: it is not a Wakeful.")


class RemotePart:
    """``store``: the store that the collection belongs to, with the other collections.

    ``of``, a parameter of requests: the noun and the id of a record. A 404 means that this record
    does not exist.
    """

    in_base_api: ClassVar[bool] = False  # whether bare servers have the resource
    in_path: ClassVar[tuple[str, ...]] = ()  # the fields of a query that are in the path

    def __init__(self, store: Store, connection: RemoteConnection, me: Me) -> None:
        self.store, self.connection, self.me = store, connection, me
        self.listings: dict[str, Listing] = {}

    def _read(
        self, path: str, query: brackets.Pairs = (), *, of: RecordId | None = None
    ) -> ServerAnswer:
        try:
            if not self.in_base_api:
                self._refuse_bare(of)
            answer = self.connection.read(path, query)
            self._refuse(answer, of)
        except Unavailable as fault:
            fault.unsent = True
            raise
        return answer

    def _write(
        self,
        method: str,
        path: str,
        fields: Fields | None = None,
        *,
        of: RecordId | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> ServerAnswer:
        if not self.in_base_api:
            self._refuse_bare(of)
        answer = self.connection.write(method, path, brackets.write(fields or {}), seconds=seconds)
        self._refuse(answer, of)
        if answer.is_success and not self.me.is_wakeful and says_failure(answer.body):
            refused = explanation_of(answer)
            raise Invalid(refused.by_field, refused.message or _(NOT_ACCEPTED))
        return answer

    def _refuse(self, answer: ServerAnswer, of: RecordId | None) -> None:
        """Raise the error of an answer that is no success.

        Outside of the base API, a 404 below a monitor may mean that the monitor does not exist, or
        that the server is bare. Otherwise the 404 comes from the proxy of a Wakeful that restarts.
        """
        if self.in_base_api or (of is not None and of[0] != "monitor"):
            raise_if_refused(self.connection, answer, of)
        elif answer.status in (404, 405):
            self._refuse_unsupported(of, self.me.ask())
        else:
            raise_if_refused(self.connection, answer)

    def _refuse_bare(self, of: RecordId | None = None) -> None:
        """Raise for a bare server, instead of sending a request that it does not support."""
        if self.me.extent == Extent.BARE:
            self._refuse_unsupported(of, Extent.BARE)

    def _refuse_unsupported(self, of: RecordId | None, extent: Extent) -> None:
        if of is not None and of[0] == "monitor":
            self.store.monitors.get(of[1])
        if extent > Extent.BARE:
            raise self.connection.unavailable(
                N_("The server %(server)s does not offer this just now.")
            )
        raise Unsupported(_(NO_WAKEFUL, server=self.connection.name))

    def parameters(self, query: Any) -> brackets.Pairs:
        """The query in the form that the server expects."""
        return parameters(query, leave=self.in_path)

    def _page(
        self,
        path: str,
        query: Any,
        read: Callable[[Any], T],
        *,
        of: RecordId | None = None,
    ) -> Page[T]:
        """A page of a list."""
        begin, size = (query.page - 1) * query.per_page, query.per_page
        window = self._window(path, self.parameters(query), begin, size, size, of=of)
        more = window.total is None and window.more
        count = begin + len(window.items) + (more and window.reachable)
        total = count if window.total is None else window.total
        return Page(envelope.each(window.items, read), query.page, size, total, more=more)

    def _window(
        self,
        path: str,
        query: brackets.Pairs,
        begin: int,
        count: int,
        size: int,
        *,
        max_more: int = MAX_REQUESTS,
        of: RecordId | None = None,
    ) -> Window:
        """``count`` records from ``begin`` on. ``size``: the number that ``query`` asks for.
        ``max_more``: the number of requests after the first page.
        """

        def fetch(asked: brackets.Pairs) -> envelope.ServerPage:
            page = self._server_page(path, self._read(path, asked, of=of))
            if asked == query and not self.me.is_wakeful and is_all(page, size):
                items = self.select_items(page.items, dict(query))
                return replace(page, items=items, total=len(items))
            return page

        def peek(asked: brackets.Pairs) -> envelope.ServerPage | None:
            answer = self.connection.read(path, asked)
            if answer.status in NO_SUCH_PAGE:
                return None
            raise_if_refused(self.connection, answer)
            return self._server_page(path, answer)

        listing = self.listings.setdefault(path.rpartition("/")[2], Listing())
        if self.me.is_wakeful:
            listing.pagings.setdefault(size, Paging(size))
        return listing.window(fetch, peek, query, begin, begin + count, size, max_more)

    def select_items(self, items: Sequence[Any], asked: Mapping[str, str]) -> Sequence[Any]:
        """Filter and sort ``items`` by the parameters ``asked``. This is for servers that ignore
        the parameters and send all records at once.
        """
        return items

    def _server_page(self, path: str, answer: ServerAnswer) -> envelope.ServerPage:
        name = path.rpartition("/")[2]
        try:
            return envelope.page_of(answer.body, answer.headers, name.removesuffix("s"), name)
        except MalformedData as fault:
            if answer.status == 204 or (answer.body is None and answer.is_json):
                return envelope.EMPTY_PAGE
            raise self._not_understood(fault, answer) from None

    def _get_content(
        self,
        path: str,
        read: Callable[[Any], T],
        query: brackets.Pairs = (),
        *,
        of: RecordId | None = None,
    ) -> T:
        return self._content(self._read(path, query, of=of), read)

    def _of_monitor(
        self, id: int, name: str, read: Callable[[Any], T], query: brackets.Pairs = ()
    ) -> T:
        return self._get_content(f"/monitors/{id}/{name}", read, query, of=("monitor", id))

    def _content(self, answer: ServerAnswer, read: Callable[[Any], T]) -> T:
        """The content of an answer of a Wakeful, if it is no record."""
        try:
            return envelope.content(answer.body, read)
        except MalformedData as fault:
            raise self._not_understood(fault, answer) from None

    def _not_understood(self, fault: MalformedData, answer: ServerAnswer) -> Unavailable:
        """The error of an answer that is not understood. It says that nothing was changed; reads
        after a write correct that with ``after_write``.
        """
        if not answer.is_json and answer.status != 204:
            return self.connection.unavailable(
                N_("The server %(server)s sent something that is not JSON."), unsent=True
            )
        # A server may report a fault with a status of success.
        if (message := explanation_of(answer).message) is not None:
            return self.connection.unavailable(ANSWERS, unsent=True, message=message)
        sentence = N_("The server %(server)s sent an answer that is not valid (%(part)s).")
        return self.connection.unavailable(sentence, unsent=True, part=fault)


@contextmanager
def after_write() -> Iterator[None]:
    """Wrap reads after a write: an error of them says that the write may have been stored."""
    try:
        yield
    except Unavailable as fault:
        fault.unsent = False
        raise


def parameters(query: Any, *, leave: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """The parameters of a query, without the page: the base API has no parameter for it
    (``listing``). ``leave``: the fields to leave out.
    """
    fields = {name.rstrip("_"): value for name, value in asdict(query).items() if name not in leave}
    fields.pop("page", None)
    if not fields.get("search"):
        fields.pop("search_by", None)
    return brackets.write({name: value for name, value in fields.items() if value is not None})
