"""Connections and HTTP requests that are not checks, within a time limit. Names are resolved by
DNS_SERVERS, the policy judges the addresses, the first that accepts wins, and CA_BUNDLE is trusted.

A name is resolved once, and the connection goes to an address that the policy has judged. So a name
that resolves differently the second time (DNS rebinding) reaches no other address. The policy does
not judge servers that are settings of this installation (``own_setting``).
"""

from __future__ import annotations

import html
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
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.ssl_ import create_urllib3_context

from app.i18n import _
from app.net.codings import Decoder, codings, decode
from app.net.hosts import SystemNames
from app.net.loop import Loop
from app.net.policy import Policy
from app.net.race import STAGGER_SECONDS, Race, RaceResult, interleaved, routed
from app.net.resolver import Cache, resolve
from app.rules.url import Target, parse_url

TOTAL_SECONDS = 20.0  # below the lease of a delivery (alerts/claims), or two workers would send it
CONNECT_SECONDS = 8.0
READ_SECONDS = 15.0
RESOLVE_SECONDS = 5.0
MAX_BODY = 16 * 1024
USER_AGENT = "Wakeful"
_PAGE = re.compile(r"\s*<(!--|(!doctype|html|head|body|h\d|p|div|center)\b)", re.IGNORECASE)


class Blocked(Exception):
    """The policy refuses every address of the host. The text says what to allow and where."""


class ConnectionFailed(Exception):
    """No answer arrived. The text says why. It contains no part of the URL but the host."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    text: str
    cut: bool = False  # whether the body is longer than ``text``

    @property
    def words(self) -> str:
        """The body as text to read, without the markup of an HTML page."""
        declared_html = self.headers.get("Content-Type", "").lower().startswith("text/html")
        return page_text(self.text) if declared_html or _PAGE.match(self.text) else self.text

    @property
    def body(self) -> Any:
        """The body parsed as JSON; None if it is not JSON."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Network:
    """Network access. ``ca_bundle``: a file whose authorities are trusted too. ``total_seconds``:
    the time limit of one request.
    """

    policy: Policy
    names: SystemNames
    ca_bundle: str | None = None
    total_seconds: float = TOTAL_SECONDS
    cache: Cache = field(default_factory=Cache, repr=False)

    def __post_init__(self) -> None:
        # Read the machine's files now: if two threads read them for the first time at the same
        # time, one of them would take them for empty.
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
        """POST once. ``own_setting``: the URL is a setting of this installation, which the policy
        does not judge.

        The status line decides the result. An error after it, in headers or body, is ignored: the
        service has taken the message, and retries would repeat it for a day. Raises Blocked,
        ConnectionFailed, and ValueError for a text that is not a URL.
        """
        target = parse_url(url)
        # As bytes: requests would encode text as Latin-1, and raise for other letters.
        login = None if auth is None else (auth[0].encode(), auth[1].encode())
        request = requests.Request("POST", target.url, _headers(headers), data=body, auth=login)
        return self._send(request, target, own_setting=own_setting)

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        own_setting: bool = False,
        max_bytes: int = MAX_BODY,
    ) -> Response:
        """GET once, as ``post`` does. ``max_bytes``: the limit on the body."""
        target = parse_url(url)
        request = requests.Request("GET", target.url, _headers(headers))
        return self._send(request, target, own_setting=own_setting, max_bytes=max_bytes)

    def _send(
        self,
        unprepared: requests.Request,
        target: Target,
        *,
        own_setting: bool = False,
        max_bytes: int = MAX_BODY,
    ) -> Response:
        deadline = monotonic() + self.total_seconds
        addresses = self.addresses(
            target.dns_name, min(RESOLVE_SECONDS, self.total_seconds), own_setting=own_setting
        )
        request = unprepared.prepare()
        adapter = _PinnedAdapter(addresses, self.ca_bundle)
        # The adapter alone: a session would connect through a proxy from the environment, past the
        # policy, and would read the whole body of a redirect, however large.
        with closing(adapter), _watchdog(adapter.sockets, deadline) as expired:
            seconds = max(0.1, min(CONNECT_SECONDS, deadline - monotonic()))
            try:
                answer = adapter.send(
                    request, stream=True, timeout=(seconds, READ_SECONDS), proxies={}
                )
            except Exception as fault:
                if adapter.status is not None:
                    return Response(adapter.status, {}, "")
                if isinstance(fault, requests.RequestException):
                    raise ConnectionFailed(_sentence(fault, target, expired.is_set())) from None
                raise
            with answer:
                text, cut = _read(answer, max_bytes)
                return Response(answer.status_code, answer.headers, text, cut)

    def session(self) -> requests.Session:
        """A session with a server that is a setting of this installation: the policy does not judge
        it. Proxies and .netrc of the environment are ignored, so none sees or replaces a key.
        """
        session = requests.Session()
        session.trust_env = False
        adapter = Adapter(partial(self.connect, own_setting=True), self.ca_bundle)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        return session

    def addresses(
        self, host: str, seconds: float = RESOLVE_SECONDS, *, own_setting: bool = False
    ) -> list[str]:
        """The addresses of a host that the policy allows; all of them for an ``own_setting``.
        Raises Blocked and ConnectionFailed.
        """
        resolved = resolve(host.lower(), seconds, names=self.names, cache=self.cache)
        if not resolved.addresses:
            raise ConnectionFailed(resolved.sentence)
        if own_setting:
            return list(resolved.addresses)
        refusals = [self.policy.refusal(address) for address in resolved.addresses]
        pairs = zip(resolved.addresses, refusals, strict=True)
        open_addresses = [address for address, refusal in pairs if refusal is None]
        if not open_addresses:
            raise Blocked(next(str(refusal) for refusal in refusals if refusal is not None))
        return open_addresses

    def connect(
        self, host: str, port: int, seconds: float, *, own_setting: bool = False
    ) -> socket.socket:
        """A TCP connection to a host within ``seconds``, which is the socket's time limit too.
        Raises Blocked, ConnectionFailed if the name has no address, and OSError.
        """
        deadline = monotonic() + seconds
        addresses = self.addresses(host, min(RESOLVE_SECONDS, seconds), own_setting=own_setting)
        tcp, _address = connect(addresses, port, deadline - monotonic())
        tcp.settimeout(seconds)
        return tcp


def connect(addresses: Sequence[str], port: int, seconds: float) -> tuple[socket.socket, str]:
    """Connect to the first address that accepts, as checks do (RFC 8305): after a quarter of a
    second, the next one is tried too. Returns the socket and the address. Raises OSError with the
    most specific fault.
    """
    raced: list[RaceResult] = []
    failed: list[Exception] = []
    with closing(Loop(failed.append)) as loop:
        deadline = monotonic() + seconds
        tried = interleaved(routed(tuple(addresses)))
        race = Race(loop, tried, port, deadline, STAGGER_SECONDS)
        race.start(raced.append)
        while not raced and not failed:
            loop.run_once(None)
        race.cancel()
    if failed:
        raise failed[0]
    tcp, address = raced[0].tcp, raced[0].address
    if tcp is None or address is None:
        raise OSError(raced[0].error, os.strerror(raced[0].error))
    return tcp, address


def _headers(own: Mapping[str, str] | None) -> dict[str, str]:
    return {"User-Agent": USER_AGENT, "Accept": "*/*", **(own or {})}


def _read(answer: requests.Response, max_bytes: int) -> tuple[str, bool]:
    """The first ``max_bytes`` bytes of the body as text, and whether there is more. Of a body that
    is broken or too slow, the part that arrived.

    It is decoded here, within limits: an endless stream or a compression bomb must not fill the
    memory.
    """
    raw, cut = bytearray(), False
    with suppress(Exception):  # the status has already decided the result
        decoder = Decoder(codings([answer.headers.get("Content-Encoding", "")]), max_bytes)
        raw = decoder.out
        while not decoder.cut and (piece := answer.raw.read1(4096, decode_content=False)):
            decoder.feed(piece)
            cut = decoder.cut
    return decode(bytes(raw), answer.headers.get("Content-Type")), cut


def _sentence(fault: requests.RequestException, target: Target, expired: bool) -> str:
    """Why a request failed. The library's own message contains the whole URL."""
    host = target.host
    if isinstance(fault, requests.ConnectTimeout):
        return _("%(host)s did not accept the connection in time.", host=host)
    if expired or isinstance(fault, requests.ReadTimeout):
        return _("%(host)s accepted the connection but did not answer in time.", host=host)
    if isinstance(fault, requests.exceptions.SSLError):
        return _(
            "The TLS certificate of %(host)s could not be verified, or the handshake failed.",
            host=host,
        )
    words = repr(fault)
    if "refused" in words:
        return _("%(host)s refused the connection.", host=host)
    if "reset" in words or "aborted" in words or "Aborted" in words:
        return _("%(server)s closed the connection without an answer.", server=host)
    return _("The request to %(host)s failed (%(fault)s).", host=host, fault=type(fault).__name__)


@contextmanager
def _watchdog(sockets: list[socket.socket], deadline: float) -> Iterator[threading.Event]:
    """Close the connection at ``deadline``: a time limit on each read does not stop a server that
    sends one byte at a time.
    """
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        for connection in sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    timer = threading.Timer(max(0.1, deadline - monotonic()), expire)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()
        for connection in sockets:
            connection.close()


class _HeadReader(HTTPResponse):
    """Reads the status line and headers of an answer. ``on_status`` gets the status even
    if the headers after it cannot be read: if they are too many, too long or cut off.
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
            # Until the status line is parsed, both are strings.
            if isinstance(self.version, int) and isinstance(self.status, int) and self.status > 199:
                self._on_status(self.status)


Connect = Callable[[str, int, float], socket.socket]  # host, port, seconds


class Adapter(HTTPAdapter):
    """Sends requests over connections that ``connect`` makes, also to a proxy. The authorities of
    ``ca_bundle`` are trusted besides those of requests.
    """

    def __init__(
        self,
        connect: Connect,
        ca_bundle: str | None,
        response_class: Callable[..., HTTPResponse] | None = None,
    ) -> None:
        class HTTP(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return _connect_for(self, connect)

        class HTTPS(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return _connect_for(self, connect)

        if response_class is not None:
            # A partial in a class is a method from Python 3.14 on.
            HTTP.response_class = HTTPS.response_class = staticmethod(response_class)  # type: ignore[assignment]

        class HTTPPool(HTTPConnectionPool):
            ConnectionCls = HTTP

        class HTTPSPool(HTTPSConnectionPool):
            ConnectionCls = HTTPS

        self._pools = {"http": HTTPPool, "https": HTTPSPool}
        self._trust: dict[str, Any] = {}
        if ca_bundle:
            trust = create_urllib3_context()
            trust.load_verify_locations(ca_bundle)
            self._trust["ssl_context"] = trust
        super().__init__()

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **kwargs: Any
    ) -> None:
        super().init_poolmanager(connections, maxsize, block, **kwargs, **self._trust)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs, **self._trust)
        manager.pool_classes_by_scheme = self._pools
        return manager


def _connect_for(connection: HTTPConnection, connect: Connect) -> socket.socket:
    """Make the connection of an urllib3 object. Raises urllib3's exceptions, by which requests
    tells faults apart.
    """
    host, port = connection._dns_host, connection.port  # ``host`` has lost its final dot
    timeout = connection.timeout
    seconds = float(timeout) if isinstance(timeout, int | float) else CONNECT_SECONDS
    try:
        tcp = connect(host, port, seconds)
    except ConnectionFailed as fault:
        unresolved = socket.gaierror(socket.EAI_NONAME, str(fault))
        raise NameResolutionError(host, connection, unresolved) from unresolved
    except TimeoutError as fault:
        raise ConnectTimeoutError(connection, "timed out") from fault
    except OSError as fault:
        raise NewConnectionError(connection, str(fault)) from fault
    for option in connection.socket_options or ():
        tcp.setsockopt(*option)
    return tcp


class _PinnedAdapter(Adapter):
    """Connects to these addresses, whatever the URL's host is. The host is used for the Host header
    and to verify the certificate. ``sockets``: duplicate handles of its connections, for the
    watchdog. ``status``: of the answer, even if the headers after it cannot be read.
    """

    def __init__(self, addresses: Sequence[str], ca_bundle: str | None) -> None:
        self._addresses = addresses
        self.sockets: list[socket.socket] = []
        self.status: int | None = None
        super().__init__(
            self._connect_pinned, ca_bundle, partial(_HeadReader, partial(setattr, self, "status"))
        )

    def _connect_pinned(self, _host: str, port: int, seconds: float) -> socket.socket:
        tcp, _address = connect(self._addresses, port, seconds)
        tcp.settimeout(READ_SECONDS)
        # A duplicate handle, because TLS takes over the first one and may close it at any time.
        self.sockets.append(socket.socket(fileno=os.dup(tcp.fileno())))
        return tcp


# Elements whose content a browser does not show.
_NOT_SHOWN = frozenset({"script", "style", "template", "noscript"})
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"/?[a-z][a-z0-9]*|[!?/]", re.IGNORECASE)


def page_text(markup: str) -> str:
    """The text of an HTML page on one line. Repeated text, such as a title that is also a heading,
    appears once.

    ``html.parser`` is not used: with tags that never end it takes quadratic time, 16 s for the
    16 KiB that are read of an answer, and it raises on some marks.
    """
    begin, *pieces = _COMMENT.sub("", markup).split("<")
    texts, hidden_by = [begin], ""
    for piece in pieces:
        tag = _TAG.match(piece)
        name = tag[0].lower() if tag else ""
        if hidden_by and name != f"/{hidden_by}":
            continue
        hidden_by = name if name in _NOT_SHOWN else ""
        if not hidden_by:
            texts.append(piece.partition(">")[2] if tag else f"<{piece}")
    return " ".join(dict.fromkeys(filter(None, map(_line, texts))))


def _line(text: str) -> str:
    try:
        return " ".join(html.unescape(text).split())
    except ValueError:  # a character reference with thousands of digits
        return " ".join(text.split())
