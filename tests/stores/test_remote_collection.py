"""A resource of the remote store is its description: path, name and record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from werkzeug.wrappers import Request, Response

from app.errors import Accepted, NotFound, Unavailable, Unsupported
from app.records import ObjectKind, PageQuery, Resource
from app.stores.remote import remote_store
from app.stores.remote.collection import RemoteCollection
from tests.support.loopback import serving


@dataclass(frozen=True)
class Note:
    id: int
    text: str


NOTES = Resource(
    kind=ObjectKind.MARKER, title="Note", singular="note", table="notes", record=Note, named_by=None
)


class Notes(RemoteCollection[Note, PageQuery]):
    in_base_api = True


class Server:
    """Keeps notes. ``terse``: it answers what was written with 204 and no body. ``endless``: each
    page is the first.
    """

    def __init__(self) -> None:
        self.notes: dict[int, Any] = {}
        self.asked: list[tuple[str, str]] = []
        self.terse = self.bare = self.endless = False
        self.total: int | None = None

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        self.asked.append((request.method, request.full_path.removeprefix("/api/v1").rstrip("?")))
        return self.answer(request)(environ, start_response)

    def answer(self, request: Request) -> Response:
        _, _, _, resource, *rest = request.path.split("/")
        if resource != "notes":
            return shown([], 404 if resource == "me" else 200)
        if self.bare:
            return shown(None, 404)
        if not rest:
            return self.stored(request) if request.method == "POST" else self.listed(request)
        id = int(rest[0])
        if id not in self.notes:
            return shown(None, 404)
        if request.method == "DELETE":
            del self.notes[id]
            return Response(status=204)
        self.notes[id] |= request.form.to_dict()
        return shown(self.notes[id], 204 if self.terse and request.method == "PATCH" else 200)

    def stored(self, request: Request) -> Response:
        id = len(self.notes) + 1
        self.notes[id] = {"id": id} | request.form.to_dict()
        return shown(self.notes[id], 204 if self.terse else 201)

    def listed(self, request: Request) -> Response:
        number = 1 if self.endless else int(request.args.get("page", 1))
        items = list(self.notes.values())[10 * (number - 1) : 10 * number]
        total = self.total or len(self.notes)
        body = {"data": items, "meta": {"current_page": number, "total": total}}
        return Response(json.dumps(body), content_type="application/json")


def shown(data: Any, status: int = 200) -> Response:
    text = "" if status == 204 else json.dumps({"data": data})
    return Response(text, status, content_type="application/json")


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def notes(server: Server) -> Iterator[Notes]:
    with noting(server) as notes:
        yield notes


@contextmanager
def noting(server: Server) -> Iterator[Notes]:
    with serving(server) as url:
        store = remote_store(url, "key")
        yield Notes(NOTES, store, store.connection, store.me)


def test_a_record_is_stored_shown_changed_and_deleted(notes: Notes) -> None:
    note = notes.create({"text": "one", "colour": None})
    assert note == notes.get(1) == Note(1, "one")
    assert notes.update(1, {"text": "two"}) == notes.get(1) == Note(1, "two")
    notes.delete(1)
    for attempt in (lambda: notes.get(1), lambda: notes.update(1, {"text": "x"})):
        with pytest.raises(NotFound, match="There is no note with the id 1"):
            attempt()


def test_a_list_has_pages_and_the_first_number_is_not_sent(server: Server, notes: Notes) -> None:
    for number in range(12):
        notes.create({"text": str(number)})
    server.asked.clear()
    pages = [notes.list(PageQuery(page=number)) for number in (1, 2)]
    assert [len(page.items) for page in pages] == [10, 2]
    assert [page.total for page in pages] == [12, 12]
    assert server.asked == [("GET", "/notes?per_page=10"), ("GET", "/notes?per_page=10&page=2")]


@pytest.mark.parametrize("endless", [False, True])
def test_a_server_that_counts_wrongly_ends_a_walk_over_all_pages(
    server: Server, notes: Notes, endless: bool
) -> None:
    for number in range(12):
        notes.create({"text": str(number)})
    server.total, server.endless = 10**9, endless
    server.asked.clear()
    records = list(notes.every(PageQuery(), 5))
    assert (len(records), len(server.asked)) == ((50, 5) if endless else (12, 4))


def test_an_update_without_fields_only_reads(server: Server, notes: Notes) -> None:
    notes.create({"text": "one"})
    server.asked.clear()
    assert notes.update(1, {}) == Note(1, "one")
    assert server.asked == [("GET", "/notes/1")]


def test_a_change_that_is_not_sent_back_is_read_again(server: Server, notes: Notes) -> None:
    notes.create({"text": "one"})
    server.terse = True
    assert notes.update(1, {"text": "two"}) == Note(1, "two")
    with pytest.raises(Accepted, match="accepted it"):
        notes.create({"text": "where is it?"})


def test_a_record_of_another_id_or_without_what_it_needs_is_refused(
    server: Server, notes: Notes
) -> None:
    server.notes = {1: {"id": 2, "text": "other"}, 3: {"id": 3}}
    with pytest.raises(Unavailable, match=r"sent an answer that is not valid \(id\)"):
        notes.get(1)
    with pytest.raises(Unavailable, match=r"sent an answer that is not valid \(text\)"):
        notes.get(3)


def test_a_server_that_lacks_the_resource_is_unsupported(server: Server, notes: Notes) -> None:
    server.bare = True
    notes.in_base_api = False  # type: ignore[misc] # of this object alone
    for attempt in (
        lambda: notes.list(PageQuery()),
        lambda: notes.get(1),
        lambda: notes.create({"text": "x"}),
        lambda: notes.delete(1),
    ):
        with pytest.raises(Unsupported, match="does not offer this: it is not a Wakeful"):
            attempt()
    assert not [line for line in server.asked if "notes" in line[1]], "it is not even asked"
