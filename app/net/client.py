"""HTTP for alert senders and the heartbeat: judged by policy, pinned to the judged address, without
redirects, bounded in time.

A name is resolved once, and the connection goes to an address that policy has judged. So a name
that resolves differently the second time (DNS rebinding) reaches no other address.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPResponse
from time import monotonic
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError
from urllib3.util.ssl_ import create_urllib3_context

from app.i18n import _
from app.net.charset import decode
from app.net.codings import Decoder, codings
from app.net.hosts import SystemNames
from app.net.html_text import page_text
from app.net.policy import Policy
from app.net.resolver import Cache, resolve
from app.rules.url import Target, parse_url

TOTAL_SECONDS = 20.0  # below the lease of 30 s, so that no other worker claims the row meanwhile
CONNECT_SECONDS = 8.0
READ_SECONDS = 15.0
RESOLVE_SECONDS = 5.0
MAX_BODY = 16 * 1024
USER_AGENT = "Wakeful"
_PAGE = re.compile(r"\s*<(!--|(!doctype|html|head|body|h\d|p|div|center)\b)", re.IGNORECASE)


class Blocked(Exception):
    """Policy closes every address of the host. The text says what to allow and where."""


class Unreachable(Exception):
    """No answer arrived. The text says why, and names of the URL only the host."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def words(self) -> str:
        """The readable text of the body: proxies and gateways answer with HTML pages."""
        said_so = self.headers.get("Content-Type", "").lower().startswith("text/html")
        return page_text(self.text) if said_so or _PAGE.match(self.text) else self.text

    @property
    def body(self) -> Any:
        """The body parsed as JSON; None if it is not JSON."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Network:
    """Network access for one delivery. ``ca_bundle`` is a file that is added to the trust store."""

    policy: Policy
    names: SystemNames
    ca_bundle: str | None = None
    total_seconds: float = TOTAL_SECONDS
    cache: Cache = field(default_factory=Cache, repr=False)

    def __post_init__(self) -> None:
        # Read the machine's files now: of two threads that read first, one would see them empty.
        self.names.local("localhost")
        self.names.config()

    def post(
        self,
        url: str,
        *,
        body: bytes | Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        own_setting: bool = False,
    ) -> Response:
        """POST once. ``own_setting``: the URL is this instance's own setting, which policy trusts.

        The status line decides the result. An error after it, in headers or body, is ignored: the
        service has taken the message, and retries would repeat it for a day. Raises Blocked and
        Unreachable.
        """
        target = parse_url(url)
        # As bytes: requests would encode text as Latin-1, and raise for other letters.
        login = None if auth is None else (auth[0].encode(), auth[1].encode())
        request = requests.Request("POST", target.url, _headers(headers), data=body, auth=login)
        return self._send(request, target, own_setting=own_setting)

    def get(self, url: str) -> Response:
        """GET once, with the same rules as ``post``."""
        target = parse_url(url)
        return self._send(requests.Request("GET", target.url, _headers(None)), target)

    def _send(
        self, unprepared: requests.Request, target: Target, *, own_setting: bool = False
    ) -> Response:
        deadline = monotonic() + self.total_seconds
        addresses = self.addresses(target.dns_name, own_setting=own_setting)
        request = unprepared.prepare()
        adapter = _PinnedAdapter(addresses, self.ca_bundle)
        # The adapter alone: a session would connect through a proxy from the environment, past the
        # policy, and would read the whole body of a redirect, however large.
        with closing(adapter), _watchdog(adapter.sockets, deadline) as expired:
            try:
                answer = adapter.send(
                    request, stream=True, timeout=(CONNECT_SECONDS, READ_SECONDS), proxies={}
                )
            except Exception as fault:
                if adapter.status is not None:
                    return Response(adapter.status, {}, "")
                if isinstance(fault, requests.RequestException):
                    raise Unreachable(_say(fault, target, expired.is_set())) from None
                raise
            with answer:
                return Response(answer.status_code, answer.headers, _read(answer))

    def addresses(self, host: str, *, own_setting: bool = False) -> list[str]:
        """The open addresses of a host. Raises Blocked and Unreachable."""
        resolved = resolve(host, RESOLVE_SECONDS, names=self.names, cache=self.cache)
        if not resolved.addresses:
            raise Unreachable(resolved.sentence)
        if own_setting:
            return list(resolved.addresses)
        refusals = [self.policy.refusal(address) for address in resolved.addresses]
        pairs = zip(resolved.addresses, refusals, strict=True)
        found = [address for address, refusal in pairs if refusal is None]
        if not found:
            raise Blocked(next(str(refusal) for refusal in refusals if refusal is not None))
        return found


def _headers(own: Mapping[str, str] | None) -> dict[str, str]:
    return {"User-Agent": USER_AGENT, "Accept": "*/*", **(own or {})}


def _read(answer: requests.Response) -> str:
    """The start of the body as text, or what arrived of it if it is broken or too slow.

    Decoded here, within limits: an endless stream or a compression bomb must not fill the memory.
    """
    raw = bytearray()
    with suppress(Exception):  # the status has already decided the result
        decoder = Decoder(codings([answer.headers.get("Content-Encoding", "")]), MAX_BODY)
        raw = decoder.out
        while not decoder.cut and (piece := answer.raw.read1(4096, decode_content=False)):
            decoder.feed(piece)
    return decode(bytes(raw), answer.headers.get("Content-Type"))


def _say(fault: requests.RequestException, target: Target, expired: bool) -> str:
    """A sentence of our own: the library's message contains the whole URL."""
    host = target.host
    if expired or isinstance(fault, requests.ReadTimeout):
        return _("%(host)s accepted the connection but did not answer in time.", host=host)
    if isinstance(fault, requests.exceptions.SSLError):
        return _(
            "The TLS certificate of %(host)s could not be verified, or the handshake failed.",
            host=host,
        )
    words = repr(fault)
    if "timed out" in words:
        return _("%(host)s did not accept the connection in time.", host=host)
    if "refused" in words:
        return _("%(host)s refused the connection.", host=host)
    if "reset" in words or "aborted" in words or "Aborted" in words:
        return _("%(host)s closed the connection without an answer.", host=host)
    return _("The request to %(host)s failed (%(fault)s).", host=host, fault=type(fault).__name__)


@contextmanager
def _watchdog(sockets: list[socket.socket], deadline: float) -> Iterator[threading.Event]:
    """Close the connection at ``deadline``: a time limit on each read does not stop a server that
    sends one byte at a time.
    """
    expired = threading.Event()

    def cut() -> None:
        expired.set()
        for connection in sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    timer = threading.Timer(max(0.1, deadline - monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()
        for connection in sockets:
            connection.close()


class _Head(HTTPResponse):
    """Reads the status line and headers of an answer. ``on_status`` gets the status as soon as it
    is read: headers that are too many, too long or cut off raise after that.
    """

    def __init__(self, on_status: Callable[[int], None], *args: Any, **kwargs: Any) -> None:
        self._on_status = on_status
        super().__init__(*args, **kwargs)

    def begin(self) -> None:
        try:
            super().begin()
            while self.status < 200:  # a 1xx answer precedes the real one
                self.headers = None  # type: ignore[assignment]  # as before the first line
                super().begin()
        finally:
            # Both are text until they are parsed.
            if isinstance(self.version, int) and isinstance(self.status, int) and self.status > 199:
                self._on_status(self.status)


class _PinnedAdapter(HTTPAdapter):
    """Connects to these addresses whatever the URL's host is; the Host header and the certificate
    check use the host. ``sockets`` are duplicate handles of its connections, for the watchdog;
    ``status`` is the answer's status once its first line is read.
    """

    def __init__(self, addresses: Sequence[str], ca_bundle: str | None) -> None:
        self._addresses = addresses
        self._ca_bundle = ca_bundle
        self.sockets: list[socket.socket] = []
        self.status: int | None = None
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        addresses, sockets = self._addresses, self.sockets
        head = partial(_Head, partial(setattr, self, "status"))

        class PinnedHTTP(HTTPConnection):
            # A partial in a class is a method from Python 3.14 on.
            response_class = staticmethod(head)  # type: ignore[assignment]  # called, never subclassed

            def _new_conn(self) -> socket.socket:
                return _connect(self, addresses, sockets)

        class PinnedHTTPS(HTTPSConnection):
            # A partial in a class is a method from Python 3.14 on.
            response_class = staticmethod(head)  # type: ignore[assignment]  # called, never subclassed

            def _new_conn(self) -> socket.socket:
                return _connect(self, addresses, sockets)

        class HTTPPool(HTTPConnectionPool):
            ConnectionCls = PinnedHTTP

        class HTTPSPool(HTTPSConnectionPool):
            ConnectionCls = PinnedHTTPS

        trust = create_urllib3_context()
        if self._ca_bundle:
            trust.load_verify_locations(self._ca_bundle)  # requests adds the public authorities
        self.poolmanager = PoolManager(num_pools=1, maxsize=1, ssl_context=trust)
        self.poolmanager.pool_classes_by_scheme = {"http": HTTPPool, "https": HTTPSPool}


def _connect(
    connection: HTTPConnection, addresses: Sequence[str], sockets: list[socket.socket]
) -> socket.socket:
    fault: OSError | None = None
    for address in addresses:
        try:
            made = socket.create_connection(
                (address, connection.port), CONNECT_SECONDS / len(addresses)
            )
        except OSError as error:
            fault = error
            continue
        made.settimeout(READ_SECONDS)
        # A duplicate handle: TLS takes over the first one, and closes it when it likes.
        sockets.append(socket.socket(fileno=os.dup(made.fileno())))
        return made
    raise NewConnectionError(connection, str(fault)) from fault
