"""Another server that is slow, dead, rate limited or wrong: each gets a clear sentence in time."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from flask import Flask
from werkzeug.wrappers import Request, Response

from app.config import Settings
from app.errors import (
    Accepted,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Unavailable,
    Unsupported,
    WakefulError,
)
from app.records import (
    MASK,
    IncidentQuery,
    IncidentStatus,
    MonitorQuery,
    MonitorStatus,
    PageQuery,
    Pair,
)
from app.stores import current_store
from app.stores.base import Extent
from app.stores.remote import RemoteStore, RemoteStores, connection, remote_store
from tests.factories import make_key
from tests.support.bare_server import KEY, BareServer, Style
from tests.support.loopback import reached, serving

SECRET = "wk_12345678_do-not-show-this"
MONITOR = {"id": 7, "name": "Shop", "url": "http://x/", "interval": 60}
WAKEFUL = {"scope": "read", "api_level": 1}
INCIDENT = {"id": 9, "monitor_id": 7, "started_at": "2026-11-21T08:00:00Z"}


class Scripted:
    """A server that gives the same answer to everything, and remembers what it was asked."""

    def __init__(
        self, body: Any = None, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status, self.headers = status, headers or {}
        self.asked: list[tuple[str, str, str]] = []

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        self.asked.append((request.method, request.full_path.rstrip("?"), request.get_data(True)))
        response = Response(self.text, self.status, content_type="application/json")
        response.headers.update(self.headers)
        return response(environ, start_response)


@contextmanager
def asking(server: Any) -> Iterator[RemoteStore]:
    with serving(server) as url:
        yield remote_store(url, SECRET)


def test_what_changed_is_shown_of_servers_that_send_the_evidence_alone() -> None:
    checks = {
        "failing": {
            "status_code": 503,
            "response_time": 902,
            "timings": {"connect": 1, "ttfb": 900},
        },
        "last_good": {"status_code": 200, "response_time": 380, "timings": {"ttfb": 370}},
        "usual": {"response_time": 100, "timings": {"ttfb": 90}, "addresses": "odd"},
    }
    sent = INCIDENT | {"monitor": MONITOR, "evidence": checks}
    with asking(Scripted({"data": sent})) as store:
        incident = store.incidents.get(9)
    assert [change.text for change in incident.changes] == [
        "Status 503, was 200",
        "902 ms, 900 ms of it first byte; usually 100 ms",
    ]


ESCAPED = "".join(f"\\u{ord(char):04x}" for char in SECRET).encode()
# The answer of the server, and the exception of reading a monitor of it, with a word of the
# sentence.
ANSWERS: list[tuple[Any, int, dict[str, str], type[WakefulError], str]] = [
    ({"message": "x"}, 401, {}, Denied, "WAKEFUL_REMOTE_KEY"),
    ({"message": "Only readers."}, 403, {}, Denied, "Only readers."),
    (b"", 403, {}, Denied, "may not"),
    ({"message": "x"}, 404, {}, NotFound, "There is no monitor with the id 7"),
    ({"message": "Not now."}, 409, {}, Conflict, "Not now."),
    ({"message": "Bad.", "errors": {"id": ["No."]}}, 422, {}, Invalid, "Bad."),
    ({"errors": "odd"}, 422, {}, Invalid, "odd"),
    ({"errors": [7]}, 422, {}, Invalid, "did not accept"),
    ({"error": "Unknown action"}, 200, {}, Unavailable, "answers: Unknown action"),
    ({}, 429, {"Retry-After": "17"}, Unavailable, "too many requests"),
    (None, 300, {"Retry-After": "7"}, Unavailable, "redirects to another"),
    ({}, 418, {"Retry-After": "7"}, Unavailable, "418"),
    (b"<html>gone</html>", 502, {}, Unavailable, "failed with an internal error"),
    ({"message": "x"}, 500, {}, Unavailable, "failed with an internal error"),
    ({"message": "Oslo is late."}, 503, {}, Unavailable, "answers: Oslo is late."),
    ({"message": f"Your key is {SECRET}"}, 422, {}, Invalid, "Your key is ••••"),
    ({"errors": {"id": [SECRET]}, "message": "Bad."}, 422, {}, Invalid, "Bad."),
    ({"data": MONITOR}, 418, {}, Unavailable, "418"),
    (b"<html>Welcome</html>", 200, {}, Unavailable, "not JSON"),
    (b"\xff\xfe", 200, {}, Unavailable, "not JSON"),
    (b"[" * 100_000, 200, {}, Unavailable, "not JSON"),
    (b"", 200, {}, Unavailable, "not JSON"),
    ({"data": MONITOR | {"id": 8}}, 200, {}, Unavailable, "is not valid (id)"),
    (b'{"message": "%s"}' % ESCAPED, 422, {}, Invalid, MASK),
    ([], 200, {}, Unavailable, "sent an answer that is not valid"),
    ({"data": None}, 200, {}, Unavailable, "sent an answer that is not valid"),
    ({"data": {"id": 7}}, 200, {}, Unavailable, "sent an answer that is not valid (name)"),
    ({"data": MONITOR | {"id": "x"}}, 200, {}, Unavailable, "is not valid (id)"),
    ({"data": MONITOR | {"id": 2**70}}, 200, {}, Unavailable, "is not valid (id)"),
    ({"data": MONITOR | {"id": True}}, 200, {}, Unavailable, "is not valid (id)"),
    (b'{"data": "' + b"x" * connection.MAX_ANSWER_BYTES + b'"}', 200, {}, Unavailable, "too large"),
    (None, 302, {"Location": "http://127.0.0.2:1/"}, Unavailable, "redirects to another"),
    (None, 302, {"Location": "/api/v1/monitors/7"}, Unavailable, "too often"),
]


@pytest.mark.parametrize(("body", "status", "headers", "error", "words"), ANSWERS)
def test_each_kind_of_wrong_answer_has_its_own_sentence(
    body: Any, status: int, headers: dict[str, str], error: type[WakefulError], words: str
) -> None:
    with asking(Scripted(body, status, headers)) as store, pytest.raises(error) as caught:
        store.monitors.get(7)
    assert type(caught.value) is error
    assert words in str(caught.value)
    assert "do-not-show" not in repr(caught.value) + str(caught.value) + repr(vars(caught.value))
    if isinstance(caught.value, Unavailable):
        assert caught.value.retry_after == (17 if status == 429 else None)


def test_a_410_of_what_belongs_to_a_monitor_does_not_say_that_the_monitor_is_gone() -> None:
    with asking(Scripted({}, 410)) as store:
        store.me._extent = Extent.WHOLE
        store.me._asked_at = time.monotonic()
        with pytest.raises(Unavailable, match="410"):
            store.results.certificates(7)


def test_a_record_with_another_id_is_refused() -> None:
    for record, collection in ((MONITOR, "monitors"), (INCIDENT, "incidents")):
        with asking(Scripted({"data": record | {"id": 8}})) as store:
            there = getattr(store, collection)
            with pytest.raises(Unavailable, match="sent an answer that is not valid"):
                there.get(record["id"])
            with pytest.raises(Accepted):
                there.update(record["id"], {"name": "x"})


@pytest.mark.parametrize(
    "date", ["Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "nonsense"]
)
def test_a_server_clock_that_is_years_off_is_ignored(date: str) -> None:
    with asking(Scripted({"data": MONITOR}, headers={"Date": date})) as store:
        store.monitors.get(7)
        assert abs(store.now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_lone_surrogates_are_removed_from_answers() -> None:
    with asking(Scripted({"data": MONITOR | {"name": "Sh\ud800op", "tags": ["\udfff"]}})) as store:
        monitor = store.monitors.get(7)
    assert (monitor.name, monitor.tags) == ("Sh?op", ("?",))


def test_a_test_answered_with_too_few_deliveries_is_refused() -> None:
    with asking(Scripted({"data": {"deliveries": [1]}})) as store, pytest.raises(Unavailable):
        store.channels.test([Pair("webhook", "http://a/"), Pair("webhook", "http://b/")])


def test_their_sentences_are_shown_at_their_fields_and_kept_short() -> None:
    errors = {"name": ["Too\nlong." + "x" * 999], "url": "One sentence.", "odd": [1, None]}
    server = Scripted({"message": "m" * 999, "errors": errors}, 422)
    with asking(server) as store, pytest.raises(Invalid) as caught:
        store.monitors.update(7, {"name": "x"})
    assert list(caught.value.errors) == ["name", "url"]
    assert caught.value.errors["url"] == ["One sentence."]
    assert caught.value.errors["name"][0].startswith("Too long.")
    assert len(caught.value.errors["name"][0]) == len(str(caught.value)) == 300


def test_a_conflict_names_the_open_incident() -> None:
    server = Scripted({"message": "One is open.", "open_incident_id": 5}, 409)
    with asking(server) as store, pytest.raises(Conflict) as caught:
        store.incidents.create({"monitor_id": 7, "started_at": datetime.now(UTC)})
    assert caught.value.details == {"open_incident_id": 5}


def test_a_server_that_cannot_be_reached_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        store = remote_store(f"http://127.0.0.1:{taken.getsockname()[1]}", SECRET)
        with pytest.raises(Unavailable, match="cannot be reached"):
            store.monitors.list(MonitorQuery())
        with pytest.raises(Unavailable):  # what it has is unknown
            _ = store.extent


def test_a_time_to_wait_may_be_a_date() -> None:
    until = datetime.now(UTC) + timedelta(seconds=90)
    server = Scripted({}, 429, {"Retry-After": format_datetime(until, usegmt=True)})
    with asking(server) as store, pytest.raises(Unavailable) as caught:
        store.monitors.get(7)
    assert 20 < (caught.value.retry_after or 0) <= 91


@pytest.mark.parametrize(
    ("answer", "extent"),
    [
        ({}, Extent.WHOLE),
        ({"api_level": 7, "tag": None, "what comes next": 1}, Extent.WHOLE),
        ({"tag": "prod"}, Extent.TAG),
        ({"api_level": 0}, Extent.BARE),
        ({"api_level": "1"}, Extent.BARE),
        ({"api_level": True}, Extent.BARE),
        ({"scope": None}, Extent.BARE),
    ],
)
def test_the_me_of_a_server_tells_how_much_it_has(answer: Any, extent: Extent) -> None:
    """Decision 8: a Wakeful has a level and a scope; a key of a tag has a part of it."""

    def server(environ: Any, start_response: Any) -> Any:
        is_me = environ["PATH_INFO"].endswith("/me")
        return Scripted({"data": WAKEFUL | answer if is_me else []})(environ, start_response)

    with asking(server) as store:
        assert store.extent == extent


def test_a_missing_path_of_a_wakeful_is_a_proxys_answer() -> None:
    """While its server restarts; every Wakeful of a level has every path of that level."""

    def server(environ: Any, start_response: Any) -> Any:
        is_me = environ["PATH_INFO"].endswith("/me")
        return Scripted({"data": WAKEFUL}, 200 if is_me else 404)(environ, start_response)

    with asking(server) as store, pytest.raises(Unavailable, match="does not offer this just now"):
        store.contacts.names()


def test_tags_of_more_monitors_than_are_read_are_not_counted() -> None:
    def server(environ: Any, start_response: Any) -> Any:
        listed = {"data": [MONITOR | {"tags": ["shop"]}], "meta": {"total": 501}}
        is_me = environ["PATH_INFO"].endswith("/me")
        return Scripted({"data": WAKEFUL} if is_me else listed)(environ, start_response)

    with asking(server) as store:
        assert store.monitors.tag_counts() is None
        assert store.monitors.tags("shop") == ["shop"]
        assert store.monitors.count(["shop"]) == 501


@pytest.mark.parametrize(
    "lie",
    [7, {}, {"monitors": {}}, {"monitors": [], "all": 7}, {"monitors": [], "all": {"checks": 1}}],
)
def test_a_report_of_the_wrong_shape_is_refused(lie: Any) -> None:
    march = datetime(2026, 3, 1, tzinfo=UTC)
    with asking(Scripted({"data": lie})) as store:
        store.me._extent = Extent.WHOLE
        store.me._asked_at = time.monotonic()
        with pytest.raises(Unavailable, match="sent an answer that is not valid"):
            store.results.report([7], march, march + timedelta(days=31))


@pytest.mark.parametrize("lie", [7, [], [{}] * 24, [{"up": "x"}] * 24, [{"up": 1}] * 3])
def test_hours_that_are_odd_are_left_out(lie: Any) -> None:
    with asking(Scripted({"data": [MONITOR | {"hours": lie}]})) as store:
        (monitor,) = store.monitors.list(MonitorQuery()).items
    assert monitor.hours == ()


@pytest.mark.parametrize(
    "me",
    [404, 401, 403, 400, 405, 410, 422, 500, 501, "login", "html", "own", "error", "list", "empty"],
)
def test_a_server_is_a_wakeful_by_its_own_mark_alone(me: int | str) -> None:
    """Decision 8: by ``api_level`` and ``scope``."""
    server = BareServer(Style(me=me))
    server.add("monitors", name="Shop", url="http://x/", interval=60)
    with serving(server) as url:
        store = remote_store(url, KEY)
        assert store.extent == Extent.BARE
        assert [monitor.name for monitor in store.monitors.list(MonitorQuery()).items] == ["Shop"]


def test_a_server_that_answers_404_to_everything_is_unavailable() -> None:
    with asking(Scripted({}, 404)) as store, pytest.raises(Unavailable, match="no /api/v1"):
        _ = store.extent


def talk(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A listener that calls ``answer`` for each connection; its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.recv(65536)
                try:
                    answer(peer)
                except OSError:
                    continue

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def silence(peer: socket.socket) -> None:
    peer.recv(1)


def a_byte_at_a_time(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        peer.sendall(b" ")
        time.sleep(0.05)


def hang_up(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")


def nonsense(peer: socket.socket) -> None:
    peer.sendall(b"\x16\x03\x01 what?\r\n\r\n")


def lead_nowhere(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 301 Moved\r\nLocation: http://[x:1/\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (silence, "in time"),
        (a_byte_at_a_time, "in time"),
        (hang_up, "cannot be reached"),
        (nonsense, "cannot be reached"),
        (lead_nowhere, "cannot be reached"),
    ],
)
def test_a_server_that_hangs_or_breaks_off_is_given_up_in_time(
    answer: Callable[[socket.socket], None], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Short only where time is to run out: on a busy machine it would before the other side speaks.
    if words == "in time":
        monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.4)
        monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.3)
    began = time.monotonic()
    for url in talk(answer):
        with pytest.raises(Unavailable, match=words):
            remote_store(url, SECRET).monitors.get(7)
    assert time.monotonic() - began < 60


def test_a_read_is_retried_and_a_write_never_is() -> None:
    class Restarting(Scripted):
        def __call__(self, environ: Any, start_response: Any) -> Any:
            self.status = 503 if not self.asked else 200
            return super().__call__(environ, start_response)

    server = Restarting({"data": MONITOR})
    with asking(server) as store:
        assert store.monitors.get(7).name == "Shop"
    assert [asked[0] for asked in server.asked] == ["GET", "GET"]
    server = Restarting({"data": MONITOR})
    with asking(server) as store, pytest.raises(Unavailable):
        store.monitors.update(7, {"name": "x"})
    assert [asked[0] for asked in server.asked] == ["PATCH"]


def test_a_bare_server_is_asked_only_what_the_interface_has() -> None:
    server = BareServer()
    with serving(server) as url:
        store = remote_store(url, KEY)
        monitor = store.monitors.create(
            {
                "name": "Shop", "url": "http://x/", "interval": 60, "timeout": 30, "tags": (),
                "ssl_alert_days": None, "alerts": (), "confirmations": 2,
            }
        )  # fmt: skip
        for lost in ({"timeout": 5}, {"tags": ("a",)}):
            with pytest.raises(Invalid) as caught:
                store.monitors.update(monitor.id, {"name": "Store", **lost})
            assert list(caught.value.errors) == list(lost), "dropped without a word"
        assert store.monitors.get(monitor.id).name == "Shop"
        assert monitor.status == MonitorStatus.UNKNOWN
        assert store.extent == Extent.BARE
        store.monitors.list(MonitorQuery())
        store.incidents.list(IncidentQuery(status="resolved"))
        for lacking in (
            lambda: store.checks.run(monitor.id),
            lambda: store.results.statistics(monitor.id, "24h"),
            lambda: store.windows.list(PageQuery()),
            store.monitors.overview,
            lambda: store.monitors.list(MonitorQuery(tag="a")),
        ):
            with pytest.raises(Unsupported):
                lacking()
        with pytest.raises(NotFound):
            store.checks.run(999)
    assert not [asked for asked in server.requests if "&page=" in asked]


def test_what_a_server_leaves_out_or_writes_otherwise_is_read_as_well_as_can_be() -> None:
    odd = MONITOR | {
        "id": "7", "interval": "300", "status": "sleeping", "pause": 1, "request_headers": "none",
        "alerts": {"0": {"key": "email", "value": "a@b"}, "3": {"key": "sms"}, "4": "x"},
        "uptime": {"24h": "99", "7d": 99.5}, "created_at": "2026-11-21 08:00:00",
        "updated_at": "yesterday", "tags": "a,b", "cache_buster": True, "unheard_of": {},
    }  # fmt: skip
    with asking(Scripted(odd)) as store:  # without an envelope
        monitor = store.monitors.get(7)
    assert (monitor.id, monitor.interval, monitor.cache_buster) == (7, 300, 1)
    assert (monitor.status, monitor.paused) == ("paused", True)
    assert monitor.alerts == (Pair("email", "a@b"), Pair("sms", MASK))
    assert monitor.request_headers == ()
    assert monitor.misread == ("request_headers", "alerts")
    assert monitor.uptime == {"24h": None, "7d": 99.5, "30d": None, "90d": None}
    assert monitor.created_at == datetime(2026, 11, 21, 8, tzinfo=UTC)
    assert (monitor.updated_at, monitor.tags) == (None, ("a", "b"))


# Each way in which servers divide lists, and how large their pages are whatever was asked for.
PAGED = [
    *((envelope, "more", "page", 15) for envelope in
      ("named", "nested", "results", "items", "jsonapi", "success")),
    *(("data", paging, "page", size)
      for paging in ("meta", "top", "next", "count", "headers", "link", "total", "more")
      for size in (None, 15)),
    # Without an address of the next page, only the usual parameter can be meant.
    ("data", "meta", "offset", 15), ("data", "next", "page[number]", 15),
    ("data", "link", "cursor", 15), ("data", "top", "cursor", None),
    ("data", "count", "offset", None), ("data", "headers", "page[number]", 15),
]  # fmt: skip
UNPAGED = [
    ("named", "all", "page", None), ("bare", "headers", "page", 15), ("bare", "link", "cursor", 15),
    *(("bare", paging, "page", None) for paging in ("all", "none", "silent")),
    *(("bare", paging, "page", 15) for paging in ("none", "silent")),
]  # fmt: skip


@pytest.mark.parametrize(("envelope", "paging", "by", "size"), [*PAGED, *UNPAGED])
def test_every_record_is_reached_whatever_the_pages_of_a_server_are(
    envelope: str, paging: str, by: str, size: int | None
) -> None:
    server = BareServer(Style(envelope=envelope, paging=paging, by=by, page_size=size))
    for number in range(40):
        server.add("monitors", name=f"m{number:02}", url=f"http://{number}.test/", interval=60)
    with reached(server) as url:
        store = remote_store(url, KEY)
        names, pages = list[str](), list[int]()
        for number in range(1, 10):
            page = store.monitors.list(MonitorQuery(page=number, per_page=25, sort="asc"))
            names += [record.name for record in page.items]
            pages.append(len(page.items))
            if number >= page.last_number:
                break
        fresh = remote_store(url, KEY)
        second = fresh.monitors.list(MonitorQuery(page=2, per_page=25, sort="asc"))
        refs = fresh.monitors.refs()
    cut = size if paging == "none" else 40
    assert names == [f"m{number:02}" for number in range(cut or 25)]
    if cut == 40:
        assert pages == [25, 15]
        assert (page.total, page.more) == (40, False)
        assert [record.name for record in second.items] == names[25:]
        assert len(refs) == 40
    else:
        assert page.more, "it may have others, and nothing says how to ask for them"


def test_a_list_that_comes_whole_is_paged_here() -> None:
    server = BareServer(Style(envelope="bare", paging="all"))
    for number in range(3_000):
        server.add("monitors", name=f"m{number:05}", url=f"http://{number}.test/", interval=60)
    with reached(server) as url:
        store = remote_store(url, KEY)
        page = store.monitors.list(MonitorQuery(page=120, per_page=25, sort="asc"))
        assert [monitor.name for monitor in page.items][:1] == ["m02975"]
        assert (len(page.items), page.total, page.more) == (25, 3_000, False)
        assert len(store.monitors.refs(limit=20_000)) == 3_000
    assert len(server.requests) == 2


def test_a_list_that_comes_whole_is_searched_and_sorted_here() -> None:
    """An action on all that a search finds was one on all monitors, and no twin was noticed."""
    monitors = [
        {"id": id, "name": f"Site {id:03}", "url": f"http://{id}.test/", "interval": 60}
        for id in range(1, 131)
    ]
    with asking(Scripted(monitors)) as store:
        page = store.monitors.list(MonitorQuery(search="site 03"))
        assert [record.name for record in page.items] == [f"Site 03{n}" for n in range(9, -1, -1)]
        assert (page.total, page.more) == (10, False)
        assert [ref.id for ref in store.monitors.refs(search="129.test")] == [129]
        assert [ref.id for ref in store.monitors.watching("http://130.test/")] == [130]


def test_of_a_server_that_ignores_a_search_what_was_not_searched_for_is_left_out() -> None:
    entries = [{"id": id, "name": f"Site {id}", "url": "http://x/"} for id in (1, 2, 3)]
    with asking(Scripted({"data": entries, "total": 9})) as store:
        assert [
            monitor.id for monitor in store.monitors.list(MonitorQuery(search="site 2")).items
        ] == [2]
        assert [ref.id for ref in store.monitors.refs(search="site 2")] == [2]


def test_open_incidents_are_seen_in_a_list_that_comes_whole() -> None:
    resolved = [
        {"id": id, "monitor": MONITOR, "started_at": id * 10**6, "ended_at": id * 10**6 + 60}
        for id in range(1100, 1300)
    ]
    open_ = {"id": 9, "monitor": MONITOR, "started_at": 1_400_000_000, "ended_at": None}
    with asking(Scripted([*resolved, open_])) as store:
        page = store.incidents.list(IncidentQuery(status=IncidentStatus.UNRESOLVED))
        assert ([record.id for record in page.items], page.total) == ([9], 1)
        newest = store.incidents.list(IncidentQuery(status=IncidentStatus.RESOLVED))
        assert ([record.id for record in newest.items][:2], newest.total) == ([1299, 1298], 200)


def test_a_list_that_is_empty_and_left_out_is_empty() -> None:
    body = {"_links": {"self": {}}, "page": {"size": 20, "totalElements": 0, "number": 0}}
    with asking(Scripted(body)) as store:
        assert store.monitors.list(MonitorQuery()).total == 0


def test_nothing_was_sent_where_a_list_is_not_understood() -> None:
    with asking(Scripted({"odd": 1})) as store, pytest.raises(Unavailable) as caught:
        store.monitors.list(MonitorQuery())
    assert caught.value.unsent


def test_a_write_may_have_been_stored_where_its_answer_is_not_understood() -> None:
    me, odd = Scripted({"data": WAKEFUL}), Scripted({"data": 1})

    def server(environ: Any, start_response: Any) -> Any:
        return (me if environ["PATH_INFO"].endswith("/me") else odd)(environ, start_response)

    with asking(server) as store:
        for act, unsent in (
            (lambda: store.posts.get(1, 2), True),
            (lambda: store.posts.create(1, {"title": "Slow"}), False),
            (lambda: store.posts.update(1, 2, {"title": "Slow"}), False),
            (lambda: store.posts.add_update(1, 2, {"body": "Soon"}), False),
            (lambda: store.posts.correct_update(1, 2, 3, {"body": "Soon"}), False),
            (lambda: store.contacts.from_channel("Ops", 7, "x"), False),
            (lambda: store.deliveries.retry(4), False),
        ):
            with pytest.raises(Unavailable, match="not valid") as caught:
                act()
            assert caught.value.unsent is unsent
    with asking(Scripted(None, 500)) as store:
        for act, unsent in (
            (lambda: store.monitors.get(7), True),
            (lambda: store.monitors.update(7, {"name": "Shop"}), False),
        ):
            with pytest.raises(Unavailable) as caught:
                act()
            assert caught.value.unsent is unsent


FAILED = [
    {"status": "error", "message": "Taken."}, {"success": False, "error": "Taken."},
    {"ok": "false", "errors": ["Taken."]}, {"result": "fail", "error": {"id": 5, "msg": "Taken."}},
]  # fmt: skip


@pytest.mark.parametrize("body", FAILED, ids=str)
def test_a_write_that_failed_with_a_status_of_success_is_refused(body: Any) -> None:
    """The page said "saved", or that it was accepted and is not shown yet."""
    fields = {"name": "x", "url": "http://x/", "interval": 60}
    with asking(Scripted(body)) as store:
        for write in (
            lambda: store.monitors.create(fields),
            lambda: store.monitors.update(7, {"name": "y"}),
            lambda: store.monitors.delete(7),
        ):
            with pytest.raises(Invalid, match="Taken"):
                write()


def test_a_record_that_says_that_it_is_down_is_no_failed_write() -> None:
    for body in ({**MONITOR, "status": "error", "ok": False}, {"ok": False, "monitor": MONITOR}):
        with asking(Scripted(body)) as store:
            assert store.monitors.update(7, {"name": "Shop"}).id == 7


def test_names_of_monitors_are_asked_for_once_and_then_one_by_one() -> None:
    server = BareServer()
    for number in range(102):
        id = server.add("monitors", name=f"m{number:03}", url="http://x/", interval=60)
        if number in (3, 101):
            server.add("incidents", monitor_id=id, started_at="2026-11-21T08:00:00")
    with reached(server) as url:
        store = remote_store(url, KEY)
        for _again in range(2):
            incidents = store.incidents.list(IncidentQuery()).items
            assert {incident.monitor and incident.monitor.name for incident in incidents} == {
                "m003",
                "m101",
            }
    asked = [line.partition("?")[0] for line in server.requests]
    assert asked.count("GET /api/v1/monitors/102") == 0
    assert [line for line in asked if line.startswith("GET /api/v1/monitors/")] == [
        "GET /api/v1/monitors/103"
    ]


def test_the_servers_clock_is_used() -> None:
    there = datetime.now(UTC) - timedelta(hours=5)

    def behind(peer: socket.socket) -> None:
        body = json.dumps(INCIDENT | {"monitor": MONITOR}).encode()
        date = there.strftime("%a, %d %b %Y %H:%M:%S GMT")
        head = f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: {len(body)}\r\n\r\n"
        peer.sendall(head.encode() + body)

    for url in talk(behind):
        store = remote_store(url, SECRET)
        store.incidents.get(9)
        assert abs(store.now() - there) < timedelta(seconds=30)


def test_the_key_and_cookies_are_not_sent_to_other_origins() -> None:
    server = Scripted({"data": MONITOR}, headers={"Set-Cookie": "a=b"})
    calls: list[str | None] = []

    def note(environ: Any, start_response: Any) -> Any:
        calls.append(environ.get("HTTP_COOKIE"))
        calls.append(environ.get("HTTP_AUTHORIZATION"))
        return server(environ, start_response)

    with serving(note) as url:
        store = remote_store(url.replace("//", "//user:hidden@"), SECRET)
        store.monitors.get(7)
        store.monitors.get(7)
    assert calls == [None, f"Bearer {SECRET}"] * 2
    assert "hidden" not in store.name + repr(store.connection)


def test_a_password_that_only_the_server_knows_is_asked_for_again() -> None:
    server = Scripted({"data": MONITOR | {"request_auth_password_set": True}})
    fields = {"name": "x", "url": "http://x/", "interval": 60, "request_auth_username": "ada"}
    with asking(server) as store:
        for attempt in (store.monitors.create, store.checks.run_unsaved):
            with pytest.raises(Invalid) as caught:
                attempt(fields, secrets_from=7)
            assert list(caught.value.errors) == ["request_auth_password"]
        store.monitors.create(fields | {"request_auth_password": "typed"}, secrets_from=7)
    assert [asked[0] for asked in server.asked].count("POST") == 1


def test_a_request_works_on_the_server_that_it_chose(app: Flask, settings: Settings) -> None:
    bare = BareServer()
    with serving(bare) as first, serving(app) as two:
        stores = RemoteStores([(first, KEY), (two, make_key(app))])
        here = Flask("here")
        here.extensions["wakeful.store"] = stores
        assert stores.names == [first.removeprefix("http://"), two.removeprefix("http://")]
        for index, wakeful in ((0, False), (1, True), (7, False)):
            with here.app_context():
                stores.choose(index)
                assert (current_store().extent == Extent.WHOLE) is wakeful
        with here.app_context():
            assert current_store() is stores.stores[0]


WRITTEN = ("record", "id", "monitor_id", "message", "object", "null", "list", "updated", "text",
           "html", "empty", "redirect", "found")  # fmt: skip


@pytest.mark.parametrize(
    ("written", "location", "moved"),
    [
        *((written, number % 2 == 0, (None, 307, 308)[number % 3])
          for number, written in enumerate(WRITTEN)),
        ("message", True, None), ("empty", True, None), ("record", False, 308),
    ],
)  # fmt: skip
def test_any_answer_of_success_to_a_write_is_one(
    written: str, location: bool, moved: int | None
) -> None:
    """Decision 1: what was stored is read back, by the id of the body, by Location or by a
    search.
    """
    style = Style(written=written, location=location, moved=moved, slash=True)
    server = BareServer(style)
    server.add("monitors", name="Shop", url="http://old.test/", interval=60)
    with reached(server) as url:
        store = remote_store(url, KEY)
        monitor = store.monitors.create({"name": "Shop", "url": "http://x.test/a", "interval": 60})
        assert (monitor.id, monitor.url) == (2, "http://x.test/a/")
        assert store.monitors.update(monitor.id, {"name": "Other"}).name == "Other"
        started = datetime.now(UTC).replace(microsecond=0)
        incident = store.incidents.create({"monitor_id": monitor.id, "started_at": started})
        assert store.incidents.update(incident.id, {"cause": "c"}).cause == "c"
        store.incidents.delete(incident.id)
        store.monitors.delete(monitor.id)
    assert len(server.monitors) == 1


@pytest.mark.parametrize(
    ("status", "location"),
    [
        *((status, "/login") for status in (301, 302, 303, 307, 308)),
        *((status, "https://elsewhere.test/api/v1/monitors") for status in (301, 307, 308)),
    ],
)
def test_a_write_that_is_led_away_was_not_done(status: int, location: str) -> None:
    with asking(server := Scripted(None, status, {"Location": location})) as store:
        with pytest.raises(Unavailable, match="redirects") as caught:
            store.monitors.create({"name": "x", "url": "http://x/", "interval": 60})
        assert caught.value.unsent
    assert "GET" not in [method for method, _path, _body in server.asked]


SHAPES = ["laravel", "object", "error_object", "problem", "invalid_params", "drf", "fastapi",
          "jsonapi", "list"]  # fmt: skip


@pytest.mark.parametrize(
    ("errors", "status"),
    [*((shape, 422) for shape in (*SHAPES, "message", "error", "sentences", "text")),
     ("laravel", 400), ("text", 400)],
)  # fmt: skip
def test_a_sentence_of_theirs_reaches_the_person_at_its_field(errors: str, status: int) -> None:
    server = BareServer(Style(errors=errors, refused_status=status))
    with reached(server) as url, pytest.raises(Invalid) as caught:
        remote_store(url, KEY).monitors.create({"name": "", "url": "http://x.test/"})
    if errors in SHAPES:
        assert caught.value.errors == {"name": ["Is required."]}
    else:
        assert "Is required." in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        {"message": "Error count: 1", "errors": [
            {"field": "name", "objectName": "monitor", "defaultMessage": "Is required."}]},
        {"code": "rest_invalid_param", "message": "Invalid parameter(s): name",
         "data": {"status": 400, "params": {"name": "Is required."}}},
    ],
    ids=["spring", "wordpress"],
)  # fmt: skip
def test_faults_of_frameworks_that_nest_them_reach_their_field(body: Any) -> None:
    with asking(Scripted(body, 400)) as store, pytest.raises(Invalid) as caught:
        store.monitors.update(7, {"name": "x"})
    assert caught.value.errors == {"name": ["Is required."]}


def test_what_was_accepted_and_is_not_shown_is_not_called_a_failure() -> None:
    """To send it again would store it twice."""
    answer = {"error": "The queue is full.", "data": []}
    with asking(Scripted(answer)) as store, pytest.raises(Accepted, match="The queue is full"):
        store.monitors.create({"name": "x", "url": "http://x/", "interval": 60})
