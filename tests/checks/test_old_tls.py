"""Old servers are accepted by a way around pycurl, which reads its objects in memory. A pycurl that
is built otherwise than today's is left alone; nothing may die of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pycurl
import pytest

from app.checks.curl import exchange


class Plain:
    pass


class HandleMissing:
    __slots__ = ("__weakref__",)


class AnotherObject:
    __slots__ = ("__weakref__", "handle")

    def __init__(self) -> None:
        self.handle = "no handle of curl"


@pytest.mark.parametrize(
    "thing",
    [object(), Plain(), HandleMissing(), AnotherObject(), pycurl.CurlMulti(), pycurl.CurlShare()],
    ids=lambda thing: type(thing).__name__,
)
def test_an_object_without_a_handle_of_curl_is_left_alone(thing: object) -> None:
    assert exchange._handle_offset(thing) is None


@pytest.mark.parametrize("address", [1, 0x1000, 2**47 - 1, 2**63, 2**64 - 8])
def test_an_address_of_nobody_is_not_read(address: int) -> None:
    assert exchange._bytes_at(address, 4) == b""


@pytest.fixture
def anew() -> Iterator[None]:
    exchange._setter.cache_clear()
    yield
    exchange._setter.cache_clear()


@pytest.mark.parametrize(
    ("library", "offered"),
    [("OpenSSL/3.6.5", True), ("GnuTLS/3.8.3", False), ("mbedTLS/3.6.0", False)],
)
@pytest.mark.usefixtures("anew")
def test_a_curl_with_another_tls_library_is_left_alone(
    library: str, offered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = list(pycurl.version_info())
    info[5] = library
    monkeypatch.setattr(pycurl, "version_info", lambda: tuple(info))
    assert (exchange._setter() is not None) is offered
    exchange.allow_old_servers(pycurl.Curl())
