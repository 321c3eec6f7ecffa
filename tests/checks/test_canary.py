"""Canaries tell whether our own network works (decisions.md 9 and 10)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from app.net.canary import DEFAULT_CANARIES, network_works, parse_canaries
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


def test_a_canary_that_accepts_or_refuses_shows_that_our_network_works(
    accepting: tuple[str, int], refusing: tuple[str, int]
) -> None:
    assert network_works([accepting])
    assert network_works([refusing])


def test_one_dead_canary_does_not_blind_us_and_costs_no_wait(
    accepting: tuple[str, int], dropping: tuple[str, int]
) -> None:
    began = time.monotonic()
    assert network_works([dropping, UNREACHABLE, ("no..name", 443), accepting], 5)
    assert time.monotonic() - began < 2.5


def test_silence_and_no_route_mean_that_our_network_is_down(dropping: tuple[str, int]) -> None:
    began = time.monotonic()
    assert not network_works([dropping, dropping, UNREACHABLE], 0.3)
    assert 0.3 <= time.monotonic() - began < 1.5
    assert not network_works([UNREACHABLE], 5), "nothing to wait for, so it says so at once"
    assert time.monotonic() - began < 2.5


def test_without_canaries_there_is_nothing_to_blame_the_network_by() -> None:
    assert network_works([])


@pytest.mark.parametrize(
    ("text", "canaries"),
    [
        (None, DEFAULT_CANARIES),
        ("", ()),
        (" , ", ()),
        ("192.0.2.1:443", (("192.0.2.1", 443),)),
        ("a.example:53, [2001:db8::1]:443", (("a.example", 53), ("2001:db8::1", 443))),
    ],
)
def test_the_setting_is_read(text: str | None, canaries: tuple[tuple[str, int], ...]) -> None:
    assert parse_canaries(text) == canaries


@pytest.mark.parametrize(
    "text", ["example", "example:", ":443", "example:0", "example:70000", "a:٣", "2001:db8::1:443"]
)
def test_a_wrong_setting_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"host:port|port from 1"):
        parse_canaries(text)
