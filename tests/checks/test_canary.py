"""Canaries show whether our own network works (decisions 9 and 10)."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from app.net.canary import (
    DEFAULT_CANARIES,
    CanaryAnswer,
    ask,
    have_accepted,
    name_of,
    network_works,
    only_refuse,
    parse_canaries,
    read_memory,
    write_memory,
)
from app.net.race import Race
from tests.checks.servers import NameServer, host
from tests.lab.net import BlackHole, ClosedPort, Listener

UNREACHABLE = ("127.255.255.255", 9)  # a broadcast address: the kernel refuses it at once


@pytest.fixture(scope="module")
def accepting() -> Iterator[tuple[str, int]]:
    listener = Listener(lambda connection: None)
    yield "127.0.0.1", listener.port
    listener.close()


@pytest.fixture(scope="module")
def refusing() -> Iterator[tuple[str, int]]:
    port = ClosedPort()
    yield "127.0.0.1", port.port
    port.close()


@pytest.fixture(scope="module")
def dropping() -> Iterator[tuple[str, int]]:
    hole = BlackHole()
    yield "127.0.0.1", hole.port
    hole.close()


def test_a_canary_that_accepts_shows_that_our_network_works(accepting: tuple[str, int]) -> None:
    assert network_works([accepting])
    assert network_works([accepting], [name_of(accepting)])


def test_a_refusal_counts_only_from_a_canary_that_never_accepted(
    accepting: tuple[str, int], refusing: tuple[str, int]
) -> None:
    """A firewall or a captive portal refuses in the place of every host behind it."""
    assert network_works([refusing])
    assert not network_works([refusing], [name_of(refusing)])
    assert network_works([refusing, accepting], [name_of(refusing), name_of(accepting)])


def test_the_response_of_each_canary_is_returned(
    accepting: tuple[str, int], refusing: tuple[str, int], dropping: tuple[str, int]
) -> None:
    answers = ask([accepting, refusing, dropping, UNREACHABLE], 2.0)
    assert list(answers.values()) == [
        CanaryAnswer.ACCEPTED,
        CanaryAnswer.REFUSED,
        CanaryAnswer.NOTHING,
        CanaryAnswer.NOTHING,
    ]
    assert answers[name_of(accepting)] is CanaryAnswer.ACCEPTED


def test_a_canary_that_accepted_once_is_remembered() -> None:
    kept = write_memory(None, "here", {"a:1": CanaryAnswer.ACCEPTED, "b:1": CanaryAnswer.REFUSED})
    kept = write_memory(kept, "there", {"a:1": CanaryAnswer.REFUSED})
    kept = write_memory(
        kept,
        "here",
        {"a:1": CanaryAnswer.REFUSED, "b:1": CanaryAnswer.NOTHING, "c:1": CanaryAnswer.REFUSED},
    )
    here = read_memory(kept, "here")
    assert have_accepted(here) == {"a:1"}
    assert only_refuse([("a", 1), ("b", 1), ("c", 1), ("d", 1)], here) == ["c:1"]
    assert have_accepted(read_memory(kept, "there")) == set(), "each place has its own network"


@pytest.mark.parametrize(
    "odd", [None, "", "no JSON", "[]", "1", '{"here": 1}', '{"here": {"a": 1}}']
)
def test_an_unreadable_memory_is_replaced(odd: str | None) -> None:
    assert read_memory(odd, "here") == {}
    kept = write_memory(odd, "here", {"a:1": CanaryAnswer.ACCEPTED})
    assert have_accepted(read_memory(kept, "here")) == {"a:1"}


def test_an_ipv6_canary_has_the_name_that_the_setting_writes() -> None:
    assert [name_of(canary) for canary in parse_canaries("[::1]:443,a.example:53")] == [
        "[::1]:443",
        "a.example:53",
    ]


def test_one_dead_canary_neither_hides_a_working_network_nor_delays_the_answer(
    accepting: tuple[str, int], dropping: tuple[str, int]
) -> None:
    began = time.monotonic()
    assert network_works([dropping, UNREACHABLE, ("no..name", 443), accepting], timeout=60)
    assert time.monotonic() - began < 30


def test_the_network_is_down_if_no_canary_answers_or_has_a_route(dropping: tuple[str, int]) -> None:
    began = time.monotonic()
    assert not network_works([dropping, dropping, UNREACHABLE], timeout=0.3)
    assert time.monotonic() - began >= 0.3
    assert not network_works([UNREACHABLE], timeout=60), (
        "nothing to wait for, so it says so at once"
    )
    assert time.monotonic() - began < 30


def test_a_fault_of_ours_in_asking_counts_as_a_working_network_and_is_logged(
    accepting: tuple[str, int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left(*arguments: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    def broken_when_ready(race: Race, *arguments: object) -> None:
        race.cancel()  # otherwise it is called again and again, until the time is over
        raise ZeroDivisionError

    for place, fault in (
        ("app.net.race.socket.socket", none_left),
        ("app.net.race.Race._try", broken),
        ("app.net.race.Race._ready", broken_when_ready),
        ("app.net.canary.Loop", broken),
    ):
        caplog.clear()
        with monkeypatch.context() as patch:
            patch.setattr(place, fault)
            assert network_works([accepting], [name_of(accepting)], 60)
        assert "The canaries cannot be asked" in caplog.text
        assert "Traceback" in caplog.text


def test_the_name_of_a_canary_is_asked_of_dns_servers(accepting: tuple[str, int]) -> None:
    with closing(NameServer({"canary.test": host("canary.test", "127.0.0.1")})) as names:
        canaries = [("Canary.test", accepting[1]), ("gone.test", accepting[1])]
        answers = ask(canaries, 60, dns_servers=[names.server])
    assert list(answers.values()) == [CanaryAnswer.ACCEPTED, CanaryAnswer.NOTHING]


def test_without_canaries_the_network_counts_as_working() -> None:
    assert network_works([])


@pytest.mark.parametrize(
    ("text", "canaries"),
    [
        (None, DEFAULT_CANARIES),
        ("", ()),
        (" , ", ()),
        ("192.0.2.1:443", (("192.0.2.1", 443),)),
        ("dns.example.:53", (("dns.example.", 53),)),  # absolute: no search domain is tried
        ("a.example:53, [2001:db8::1]:443", (("a.example", 53), ("2001:db8::1", 443))),
    ],
)
def test_the_canaries_setting_is_read(
    text: str | None, canaries: tuple[tuple[str, int], ...]
) -> None:
    assert parse_canaries(text) == canaries


@pytest.mark.parametrize(
    "text", ["example", "example:", ":443", "example:0", "example:70000", "a:٣", "2001:db8::1:443"]
)
def test_an_invalid_canary_is_named_in_the_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"host:port|port from 1"):
        parse_canaries(text)
