"""A server that greets sees an end, not a reset: MySQL blocks a host that resets (decision 17).

Closing a socket with unread data sends a reset, so every way to connect and leave is tried.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from app.checks.prober import Prober
from app.net.canary import ask, network_works
from app.net.loop import Loop
from app.net.policy import Policy
from app.net.race import Race, RaceResult
from app.records import CheckSpec
from tests.checks.servers import NameServer, Web, host, http
from tests.lab.net import Connection, Listener
from tests.support.loopback import IPV6

LOOPBACK = Policy.parse("loopback")
GREETING = b"220 greeting\r\n"


class Greeter:
    """Accepts, greets ``after`` so many seconds, and notes how the connection ends."""

    def __init__(self, after: float = 0.0, address: str = "127.0.0.1", port: int = 0) -> None:
        self.ends: list[str] = []
        self._after = after
        self._one_more = threading.Condition()
        self._listener = Listener(self._greet, address, port)
        self.port = self._listener.port

    def _greet(self, connection: Connection) -> None:
        try:
            connection.stopping.wait(self._after)
            connection.send(GREETING)
            while connection.receive():
                continue
            # A reset that answers the greeting comes behind the end, and shows only here.
            error = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            end = "reset" if error else "end"
        except OSError:
            end = "reset"
        with self._one_more:
            self.ends.append(end)
            self._one_more.notify_all()

    def saw(self, count: int = 1) -> list[str]:
        with self._one_more:
            assert self._one_more.wait_for(lambda: len(self.ends) >= count, 60)
        return self.ends

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(params=[0.0, 0.3], ids=["at once", "late"])
def greeter(request: pytest.FixtureRequest) -> Iterator[Greeter]:
    with closing(Greeter(request.param)) as greeter:
        yield greeter


def check(spec: CheckSpec, names: NameServer | None = None) -> None:
    """Check once, and close the prober, as `wakeful check` does."""
    servers = [] if names is None else [names.server]
    with closing(Prober(policy=lambda: LOOPBACK, dns_servers=servers)) as prober:
        prober.check(spec)


def tcp_check(port: int) -> None:
    check(CheckSpec(url=f"tcp://127.0.0.1:{port}"))


def tcp_check_for_a_text(port: int) -> None:
    text = {"alert_condition": "url_no_text", "alert_text_lookup": "greeting"}
    check(CheckSpec(url=f"tcp://127.0.0.1:{port}", **text))


def tcp_check_that_waits_in_vain(port: int) -> None:
    text = {"alert_condition": "url_no_text", "alert_text_lookup": "elsewhere"}
    check(CheckSpec(url=f"tcp://127.0.0.1:{port}", timeout=1, **text))


def handshake_that_is_greeted(port: int) -> None:
    check(CheckSpec(url=f"tls://127.0.0.1:{port}", timeout=1))


def starttls_that_is_refused(port: int) -> None:
    check(CheckSpec(url=f"tls://127.0.0.1:{port}", timeout=1, starttls="imap"))


def canary(port: int) -> None:
    assert network_works([("127.0.0.1", port)])
    ask([("127.0.0.1", port)])


@pytest.mark.parametrize(
    "connect", [tcp_check, tcp_check_for_a_text, tcp_check_that_waits_in_vain,
     handshake_that_is_greeted, starttls_that_is_refused, canary],
)  # fmt: skip
def test_a_connection_ends_without_a_reset(
    greeter: Greeter, connect: Callable[[int], None]
) -> None:
    connect(greeter.port)
    assert set(greeter.saw(2 if connect is canary else 1)) == {"end"}


@IPV6
def test_the_family_that_a_check_did_not_use_ends_without_a_reset() -> None:
    with ExitStack() as stack:
        web = stack.enter_context(closing(Web(lambda *_: http(), "::1")))
        other = stack.enter_context(closing(Greeter(port=web.port)))
        zone = {"dual.test": host("dual.test", "::1", "127.0.0.1")}
        names = stack.enter_context(closing(NameServer(zone)))
        check(CheckSpec(url=f"http://dual.test:{web.port}/"), names)
        assert other.saw() == ["end"]


def test_those_who_lose_a_race_see_an_end() -> None:
    addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    with ExitStack() as stack:
        first = stack.enter_context(closing(Greeter()))
        greeters = [first, *(stack.enter_context(closing(Greeter(address=a, port=first.port)))
                             for a in addresses[1:])]  # fmt: skip
        loop = stack.enter_context(closing(Loop()))
        raced: list[RaceResult] = []
        Race(loop, addresses, first.port, time.monotonic() + 60).start(raced.append)
        while not raced:
            loop.run_once(60)
        assert raced[0].tcp is not None
        loop.hang_up(raced[0].tcp)
        loop.settle(60)
        assert [greeter.saw() for greeter in greeters] == [["end"]] * 3


def connected(port: int, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port), 60) for _ in range(count)]


def test_a_server_that_never_ends_or_never_stops_sending_holds_no_connection_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hold(connection: Connection) -> None:
        connection.stopping.wait(60)

    def pour(connection: Connection) -> None:
        while True:
            connection.send(b"x" * 1000)

    with (
        closing(Listener(hold)) as silent,
        closing(Listener(pour)) as endless,
        closing(Loop()) as loop,
    ):
        monkeypatch.setattr("app.net.loop.MAX_ENDING", 2)
        first, second, third = connected(silent.port, 3)
        for tcp in (first, second, third):
            loop.hang_up(tcp)
        assert (first.fileno(), second.fileno() > 0, third.fileno() > 0) == (-1, True, True)
        (poured,) = connected(endless.port, 1)
        loop.hang_up(poured)
        while poured.fileno() > 0:
            loop.run_once(60)
        monkeypatch.setattr("app.net.loop.HANG_UP_SECONDS", 0.0)
        (late,) = connected(silent.port, 1)
        loop.hang_up(late)
        while late.fileno() > 0:
            loop.run_once(60)
    assert third.fileno() == -1, "the loop closes the rest at its end"
