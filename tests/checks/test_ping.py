"""Checks by ping. Sockets for ICMP are played here: not every user may open one, and a router is
needed that reports errors. tests/lab/table.py has rows with real ones.
"""

from __future__ import annotations

import errno
import json
import socket
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest

from app.checks.prober import Prober
from app.codec.packing import pack, read_outcome
from app.net import icmp
from app.net.policy import Policy
from app.records import CheckSpec, Outcome
from tests.checks.servers import NameServer, host
from tests.lab.ping import ROUTER, PlayedSocket, Script, answer, silence
from tests.support.loopback import IPV6

LOOPBACK = Policy.parse("loopback")


def unreachable(_packet: bytes) -> int:
    return errno.EHOSTUNREACH


def answer_of_another(packet: bytes) -> bytes:
    """An answer to a ping of another process, as raw sockets see it."""
    return answer(packet)[:8] + bytes(56)


def own_request(packet: bytes) -> bytes:
    """The packets that a raw socket sees on the loopback."""
    return packet


def cut(packet: bytes) -> bytes:
    return answer(packet)[:9]


def only(sequence: int) -> Script:
    return lambda packet: answer(packet) if packet[7] == sequence else None


@pytest.fixture(scope="module")
def names() -> Iterator[NameServer]:
    zone = {
        "dual.test": host("dual.test", "::1", "127.0.0.1"),
        "two.test": host("two.test", "127.0.0.2", "127.0.0.1"),
    }
    server = NameServer(zone)
    yield server
    server.close()


@pytest.fixture
def ping(names: NameServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Outcome]]:
    """Ping a host whose addresses follow these scripts."""
    monkeypatch.setattr("app.checks.ping.checks.LAST_WAIT", 0.05)
    monkeypatch.setattr("app.checks.ping.checks.DEAD_WAIT", 0.05)
    monkeypatch.setattr("app.checks.ping.checks.PAUSE_SECONDS", 0.01)
    prober = Prober(policy=lambda: LOOPBACK, dns_servers=[names.server])

    def check(
        name: str, scripts: dict[str, Script], timeout: float = 60, count: int = 3
    ) -> Outcome:
        opened = lambda address: (PlayedSocket(scripts[address]), False)  # noqa: E731
        monkeypatch.setattr(icmp, "open_socket", opened)
        return prober.check(CheckSpec(url=f"ping://{name}", timeout=timeout, ping_count=count))

    yield check
    prober.close()


def test_section_17_a_ping_that_is_answered_is_up_with_evidence_of_each(ping):
    outcome = ping("127.0.0.1", {"127.0.0.1": answer}, count=10)
    result, evidence = outcome.result, outcome.evidence
    assert (result.verdict, result.ip, outcome.answered) == ("up", "127.0.0.1", True)
    assert result.response_time == result.timings.ttfb is not None
    assert len(evidence["echoes"]) == 10
    assert {echo["address"] for echo in evidence["echoes"]} == {"127.0.0.1"}
    assert all(echo["ms"] >= 0 and echo["error"] is None for echo in evidence["echoes"])
    assert result.response_time == pytest.approx(median(e["ms"] for e in evidence["echoes"]), abs=1)
    brought = read_outcome(json.loads(json.dumps(pack(outcome))))  # by an agent or a queue
    assert brought.evidence["echoes"] == evidence["echoes"]


@pytest.mark.parametrize("sequence", [0, 1, 2])
def test_section_17_one_answer_is_enough(ping, sequence):
    outcome = ping("127.0.0.1", {"127.0.0.1": only(sequence)})
    assert outcome.result.verdict == "up"
    answered = [echo["ms"] is not None for echo in outcome.evidence["echoes"]]
    assert answered == [place == sequence for place in range(3)]


@pytest.mark.parametrize("script", [silence, answer_of_another, own_request, cut])
def test_a_ping_that_nobody_answers_is_ping_timeout(ping, script):
    outcome = ping("127.0.0.1", {"127.0.0.1": script}, timeout=0.3)
    assert (outcome.result.verdict, outcome.result.cause_code) == ("down", "ping_timeout")
    assert outcome.result.cause == "No answer from 127.0.0.1 to 3 pings within the limit of 0.3 s."
    assert not outcome.answered


def test_section_17_a_routers_unreachable_is_host_unreachable_and_needs_no_time_limit(ping):
    outcome = ping("127.0.0.1", {"127.0.0.1": unreachable})
    assert outcome.result.cause_code == "host_unreachable"
    assert f"the router {ROUTER} reports “No route to host”" in outcome.result.cause
    assert [echo["error"] for echo in outcome.evidence["echoes"]] == [
        f"No route to host ({ROUTER})"
    ] * 3


def test_the_next_address_is_tried_where_the_first_is_silent(ping):
    outcome = ping("two.test", {"127.0.0.2": silence, "127.0.0.1": answer})
    assert (outcome.result.verdict, outcome.result.ip) == ("up", "127.0.0.1")
    assert outcome.result.warnings == ()


@IPV6
@pytest.mark.parametrize(
    ("six", "four", "ip", "warnings"),
    [
        (answer, answer, None, ()),
        (silence, answer, "127.0.0.1", ("ipv6_unreachable",)),
        (unreachable, answer, "127.0.0.1", ("ipv6_unreachable",)),
        (answer, silence, "::1", ("ipv4_unreachable",)),
    ],
)
def test_a_dead_family_is_a_warning(ping, six, four, ip, warnings):
    result = ping("dual.test", {"::1": six, "127.0.0.1": four}).result
    assert (result.verdict, result.warnings) == ("up", warnings)
    assert ip in (None, result.ip)


class NoIcmp:
    """The module ``socket`` of a machine that lets nobody ping."""

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)

    def socket(self, *_arguments: object) -> None:
        raise PermissionError


class SomeIcmp(NoIcmp):
    """The module ``socket`` of a machine that does not open sockets of these kinds."""

    def __init__(self, *refused: int) -> None:
        self.refused, self.asked = refused, []

    def socket(self, _family: int, kind: int, _protocol: int) -> PlayedSocket:
        self.asked.append(kind & 15)
        if self.asked[-1] in self.refused:
            raise PermissionError
        opened = PlayedSocket(silence)
        opened.connect = opened.setsockopt = lambda *_arguments: None
        return opened


@pytest.mark.parametrize("refused", [(), (socket.SOCK_DGRAM,)])
def test_section_17_a_datagram_socket_is_used_else_a_raw_one(monkeypatch, refused):
    machine = SomeIcmp(*refused)
    monkeypatch.setattr(icmp, "socket", machine)
    opened, is_raw = icmp.open_socket("127.0.0.1")
    opened.close()
    assert is_raw == bool(refused)
    assert machine.asked == [*refused, socket.SOCK_RAW if refused else socket.SOCK_DGRAM]


def test_section_17_a_machine_that_may_not_ping_says_what_to_allow(monkeypatch):
    monkeypatch.setattr(icmp, "socket", NoIcmp())
    prober = Prober(policy=lambda: LOOPBACK)
    result = prober.check(CheckSpec(url="ping://127.0.0.1")).result
    prober.close()
    assert (result.verdict, result.cause_code) == ("unknown", "check_error")
    assert result.cause == icmp.why_not()
    assert "net.ipv4.ping_group_range" in icmp.why_not()
    assert "CAP_NET_RAW" in icmp.why_not()
