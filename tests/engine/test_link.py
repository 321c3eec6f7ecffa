"""An agent's link to its server: a turn, a backlog, a file of results that fails, and the end."""

import base64
import gzip
import json
import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial

import pytest

from app.codec import MalformedData
from app.codec.sealing import ABOUT_ASSIGNED, new_private_key, public_key_of, seal_to
from app.engine.agent import assigned_file
from app.engine.agent import link as links
from app.engine.agent.buffer import Buffer, MadeResult
from app.engine.agent.faults import Foreign
from app.engine.agent.link import AssignedNews, Clock, Greeted, ServerLink, StandingsNews
from app.net.client import Network
from app.net.hosts import SystemNames
from app.net.policy import Policy
from tests.support.loopback import serving
from tests.support.service import eventually

NETWORK = Network(Policy(), SystemNames())

KEY = new_private_key()
LONG = 60.0  # no test waits for it


class Player:
    """A server that takes all results. ``on`` has what it does when it is asked, by path."""

    def __init__(self):
        self.asked, self.sent, self.on = [], [], {}
        self.change, self.standings, self.key = 1, {}, KEY
        self.limit = 10**9  # bytes of a request

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"].rpartition("/")[2]
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        if len(body) > self.limit:
            start_response("413 Content Too Large", [("Content-Length", "0")])
            return []
        document = json.loads(body)
        self.asked.append(path)
        if path == "results":
            self.sent.append(document["results"])
        if path in self.on:
            self.on[path]()
        now = datetime.now(UTC).isoformat()
        data = getattr(self, path)() | {"received": now, "now": now}
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"data": data}).encode()]

    def hello(self):
        return {"location": "oslo", "confirm_seconds": 5}

    def results(self):
        return {"refused": 0, "change": self.change, "standings": self.standings}

    def assigned(self):
        answer = {"whole": True, "assigned": [], "gone": []}
        sealed = seal_to(public_key_of(self.key), answer, ABOUT_ASSIGNED.format("oslo"))
        return {"change": self.change, "sealed": base64.b64encode(sealed).decode()}

    @property
    def taken(self):
        return [result for batch in self.sent for result in batch]


@pytest.fixture
def player():
    return Player()


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Ten results in a request, and no pause that a test could outlast."""
    monkeypatch.setattr(links, "MAX_RESULTS", 10)
    for name in ("POST_SECONDS", "IDLE_SECONDS", "FIRST_PAUSE", "MAX_PAUSE"):
        monkeypatch.setattr(links, name, LONG)


def made(*numbers):
    now = datetime.now(UTC)
    return [MadeResult(number + 1, 1, now, number) for number in numbers]


@contextmanager
def linked(player, folder, backlog=0):
    """A link that has not started, and its buffer with results 0, 1 and so on."""
    (folder / "agent_key").write_text(base64.b64encode(KEY).decode())
    more = {"network": NETWORK, "wake": int, "figures": dict}
    with serving(player) as url, closing(Buffer(folder)) as buffer:
        buffer.add(made(*range(backlog)))
        link = ServerLink(url, "wa_token", folder, buffer, Clock(), **more)
        yield link, buffer


def heard(link):
    news = []
    while not link.news.empty():
        news.append(link.news.get_nowait())
    return news


# --- A turn


def test_changes_are_heard_between_the_requests_that_send_a_backlog(player, tmp_path):
    """An agent with a day's backlog heard of no change until all of it was sent: 76 minutes."""

    def change():
        if len(player.sent) == 3:
            player.change += 1

    player.on["results"] = change
    with linked(player, tmp_path, 35) as (link, _buffer):
        link.start()
        eventually(lambda: len(player.taken) >= 35, "all results")
        link.close(10)
    assert player.asked[:7] == [
        *("hello", "results", "assigned", "results"),
        *("results", "assigned", "results"),
    ]
    assert player.taken == list(reversed(range(35))), "the newest first, each once"


def test_a_backlog_of_large_results_is_sent_without_a_pause(player, tmp_path, monkeypatch):
    """A request had as many as fit into it, and the next came a second later."""
    monkeypatch.setattr(links, "MAX_REQUEST", 3)
    with linked(player, tmp_path, 9) as (link, _buffer):
        link.start()
        eventually(lambda: len(player.taken) >= 9, "all results")
        link.close(10)
    assert [len(batch) for batch in player.sent[:3]] == [3, 3, 3]


def test_a_server_that_cannot_say_what_has_changed_gets_all_results_without_a_pause(
    player, tmp_path, caplog
):
    """If it paused after each ten, an agent with many monitors would never deliver the rest."""
    player.on["assigned"] = partial(int, "a fault")
    with linked(player, tmp_path, 35) as (link, _buffer):
        link.start()
        eventually(lambda: len(player.taken) >= 35, "all results")
        link.close(10)
    assert player.taken == list(reversed(range(35)))
    assert player.asked.count("assigned") == 1, "the pause is between these"
    messages = [record.message for record in caplog.records if record.name.startswith("app.")]
    assert ["is not Wakeful's API (status 500)" in message for message in messages] == [True], (
        messages
    )


def test_a_proxy_that_takes_no_large_request_gets_smaller_ones(
    player, tmp_path, caplog, monkeypatch
):
    """The agent sent the same large request until its results were a day old."""
    monkeypatch.setattr(links, "FIRST_PAUSE", 0.01)
    player.limit = 21_000
    with linked(player, tmp_path) as (link, buffer):
        buffer.add([MadeResult(number, 1, datetime.now(UTC), "x" * 5_000) for number in range(9)])
        link.start()
        eventually(lambda: len(player.taken) >= 9, "all results")
        link.close(10)
    assert [len(batch) for batch in player.sent[:3]] == [4, 4, 1]
    assert ["status 413" in message for message in caplog.messages] == [True, False]


def test_what_is_asked_for_anew_while_an_answer_is_on_its_way_is_not_forgotten(player, tmp_path):
    with linked(player, tmp_path) as (link, _buffer):
        link._turn()
        player.change += 1
        player.on["assigned"] = link.reload
        link._turn()
        del player.on["assigned"]
        link._turn()
    assert player.asked.count("assigned") == 3


# --- A server that lies


@pytest.mark.parametrize("path", ["hello", "results", "assigned"])
def test_an_answer_that_is_larger_than_any_of_the_server_is_not_read(
    player, tmp_path, monkeypatch, path
):
    monkeypatch.setattr(links, "MAX_LIST", 2 * links.MAX_ANSWER)
    most = links.MAX_LIST if path == "assigned" else links.MAX_ANSWER
    whole = getattr(player, path)
    with linked(player, tmp_path) as (link, _buffer):
        setattr(player, path, lambda: whole() | {"more": "x" * (most - 1_000)})
        link._turn()
        link._location, link._change = "", 0  # as after the start
        setattr(player, path, lambda: whole() | {"more": "x" * most})
        with pytest.raises(Foreign, match="its answer is too large"):
            link._turn()


def test_a_compressed_answer_is_refused_before_it_takes_memory(player, tmp_path):
    """The agent asks for none. A MiB of zeros takes 1 KB on the wire."""
    asked = []

    def server(environ, start_response):
        asked.append(environ["HTTP_ACCEPT_ENCODING"])
        body = gzip.compress(b"".join(player(environ, lambda *_answer: None)))
        headers = [("Content-Encoding", "gzip"), ("Content-Length", str(len(body)))]
        start_response("200 OK", headers)
        return [body]

    with linked(server, tmp_path) as (link, _buffer), pytest.raises(Foreign, match="compressed"):
        link._turn()
    assert asked == ["identity"]


def test_a_list_of_too_many_values_takes_no_memory(player, tmp_path, monkeypatch):
    """40 MB of empty lists took 1.1 GB. Anybody who knows the agent's public key can seal them."""
    news = {"whole": True, "assigned": [{}] * 1_000, "gone": []}
    sealed = seal_to(public_key_of(KEY), news, ABOUT_ASSIGNED.format("oslo"))
    answer = {"change": 1, "sealed": base64.b64encode(sealed).decode()}
    monkeypatch.setattr(links, "MAX_VALUES", 1_000)
    player.assigned = lambda: answer
    with linked(player, tmp_path) as (link, _buffer):
        with pytest.raises(MalformedData, match="too many values"):
            link._turn()
        monkeypatch.setattr(links, "MAX_VALUES", 2_010)
        link._turn()


@pytest.mark.parametrize(
    "location", ["", "a\r\nb", "oslo\n2026-11-25 ERROR forged", "\x1b[2J", "x" * 65, " oslo"]
)
def test_a_place_that_would_forge_lines_of_the_log_is_odd(player, tmp_path, location):
    player.hello = lambda: {"location": location, "confirm_seconds": 5}
    with linked(player, tmp_path) as (link, _buffer):
        with pytest.raises(MalformedData, match="location"):
            link._turn()
        assert heard(link) == []


def test_a_servers_sentence_is_one_short_line_in_the_log(tmp_path, caplog):
    def server(_environ, start_response):
        start_response("403 Forbidden", [("Content-Type", "application/json")])
        forged = "No.\r\n2026-11-25 12:00:00 ERROR forged\x1b[2J\u2028"
        return [json.dumps({"message": forged + "x" * 3_000_00}).encode()]

    with linked(server, tmp_path) as (link, _buffer):
        link.start()
        eventually(lambda: caplog.messages, "the log says it")
        link.close(10)
    (message,) = caplog.messages
    assert message.isprintable()
    assert "No. 2026-11-25 12:00:00 ERROR forged" in message
    assert len(message) < links.MAX_SENTENCE + 100


# --- A file of results that fails


def test_standings_are_heard_and_results_sent_once_while_the_file_cannot_be_written(
    player, tmp_path
):
    """The same results were sent for ever, and the answer's standings dropped."""
    player.standings = {"7": {"unconfirmed_at": None}}
    with linked(player, tmp_path, 25) as (link, buffer):
        buffer._file.execute("PRAGMA query_only = ON")
        for _ in range(4):
            link._turn()
        news = heard(link)
        assert [type(item) for item in news] == [
            Greeted,
            StandingsNews,
            AssignedNews,
            StandingsNews,
            StandingsNews,
            StandingsNews,
        ]
        assert player.taken == list(reversed(range(25)))
        buffer.add(made(25))
        link._turn()
        assert player.sent[-1] == [25]
        buffer._file.execute("PRAGMA query_only = OFF")
        buffer.add(made(26))
        link._turn()
        assert player.sent[-1] == [26]
    with closing(sqlite3.connect(tmp_path / "agent.db")) as file:
        assert file.execute("SELECT count(*) FROM results").fetchone() == (0,)


def test_what_to_check_is_heard_on_a_full_disk_and_written_when_there_is_room(
    player, tmp_path, caplog, monkeypatch
):
    """The turn failed, and a restart without the server checked what had been taken away."""
    monkeypatch.setattr(assigned_file, "RETRY_SECONDS", 0.0)
    (tmp_path / "assigned").mkdir()  # what cannot be replaced by a file
    with linked(player, tmp_path) as (link, _buffer):
        link._turn()
        assert [type(item) for item in heard(link)] == [Greeted, AssignedNews]
        link._turn()
        assert ["cannot be written to" in message for message in caplog.messages] == [True]
        (tmp_path / "assigned").rmdir()
        link._turn()
    assert player.asked.count("assigned") == 1
    assert (tmp_path / "assigned").read_text().startswith("oslo\n")
    assert not (tmp_path / "assigned.new").exists()
    assert caplog.messages[1:] == [f"What to check is written to {tmp_path / 'assigned'} again."]


def test_an_agent_whose_key_the_server_does_not_use_says_so_and_sends_its_results(
    player, tmp_path, caplog
):
    """This happens after a restore of an older backup of the server. The log said "Forged"."""
    player.key = new_private_key()
    with linked(player, tmp_path, 35) as (link, _buffer):
        link.start()
        eventually(lambda: len(player.taken) >= 35, "all results")
        link.close(10)
    (message,) = caplog.messages
    assert "has the key of another agent for this place" in message
    assert player.asked.count("hello") == 1, "it could be refused, and the results would wait"


# --- The end


def test_what_waits_is_sent_at_the_end(player, tmp_path):
    with linked(player, tmp_path) as (link, buffer):
        link.start()
        eventually(lambda: player.asked.count("assigned"), "a turn")
        buffer.add(made(*range(35)))
        link.close(10)
    assert player.taken == list(reversed(range(35)))


def test_a_link_that_is_closed_in_a_request_ends_in_order_after_its_answer(
    player, tmp_path, caplog
):
    """The owner closed the file of results, and the answer was a fault in the log."""
    asked, answer = threading.Event(), threading.Event()

    def wait():
        asked.set()
        assert answer.wait(30)

    with linked(player, tmp_path, 35) as (link, _buffer):
        player.on["results"] = wait
        link.start()
        assert asked.wait(30)
        began = time.monotonic()
        link.close(0.2)
        assert time.monotonic() - began < 5
        assert link._thread.is_alive()
        answer.set()
        link._thread.join(30)
        assert not link._thread.is_alive()
    assert player.asked == ["hello", "results"], "no request begins after that"
    assert not caplog.messages
    with closing(Buffer(tmp_path)) as buffer:
        assert len(buffer.newest(100, 10**6).bodies) == 25
