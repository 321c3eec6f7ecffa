"""One request on the wire, by a curl handle that is set up once and reused.

Each request has a fresh connection (a kept one would hide that new clients cannot connect) with a
full TLS handshake (a resumed session shows no certificate) to pinned addresses (curl never
resolves). It uses no proxy, no netrc, no cookies of curl's own, and http and https only.
"""

from __future__ import annotations

import _socket
import errno
import os
import re
from collections.abc import Sequence
from typing import Any

import pycurl

from app.checks.curl.exchange import Exchange, Request, allow_old_servers, read_headers
from app.net.codings import ACCEPT_ENCODING, Decoder, Undecodable, codings
from app.net.policy import Refusal
from app.records import BODY_CAP_BYTES, HEADERS_CAP_BYTES
from app.rules.url import Target

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Types that a radio, a camera or a server of events sends as long as somebody listens.
_STREAM = re.compile(
    rb"\ncontent-type:[ \t]*+(?:audio/|video/|text/event-stream\b|multipart/x-mixed-replace\b)"
)
_ABORT = 0  # a wrong count from a callback makes curl end the transfer
_HTTP_VERSIONS = {
    pycurl.CURL_HTTP_VERSION_1_0: "1.0",
    pycurl.CURL_HTTP_VERSION_1_1: "1.1",
    pycurl.CURL_HTTP_VERSION_2: "2",
    pycurl.CURL_HTTP_VERSION_3: "3",
}


class _CurlSocket(_socket.socket):
    """A socket for pycurl, which copies it and drops this object unclosed: a plain socket would
    give a ResourceWarning in each check.
    """

    __slots__ = ()
    __del__ = _socket.socket.close


class Wire:
    """One curl handle. ``send`` prepares it for curl's multi interface; ``exchange`` reads the
    result, after which the handle is free again.
    """

    def __init__(self, ca_bundle: str, user_agent: str) -> None:
        self.curl = pycurl.Curl()
        self.owner: Any = None  # ``on_done`` and ``on_error`` of the request in flight
        self._ca_bundle = ca_bundle
        self._user_agent = user_agent
        self._special = False  # the handle has options beside the standing ones
        self._request: Request | None = None
        self._standing_options()
        self._clear()

    def close(self) -> None:
        self.curl.close()

    def _clear(self) -> None:
        self._lines: list[bytes] = []
        self._block = 0  # where the headers of the last answer begin, after 1xx answers
        self._header_bytes = 0
        self._complete = False
        self._overflow = False
        self._redirect = False
        self._endless = False  # the headers are those of a stream
        self._stream = False
        # Not a list of chunks: a target that sends a million chunks of one byte would fill memory.
        self._body = bytearray()
        self._cut = False
        self._decoder: Decoder | None = None
        self._undecodable: str | None = None
        self._refused: Refusal | None = None
        self._fault: Exception | None = None

    def _standing_options(self) -> None:
        set_, c = self.curl.setopt, pycurl
        set_(c.NOSIGNAL, 1)
        set_(c.PROTOCOLS, c.PROTO_HTTP | c.PROTO_HTTPS)
        set_(c.FOLLOWLOCATION, 0)
        set_(c.PROXY, "")
        set_(c.NOPROXY, "*")
        set_(c.FRESH_CONNECT, 1)
        set_(c.FORBID_REUSE, 1)
        set_(c.SSL_SESSIONID_CACHE, 0)
        # Pinned entries do not expire; pruning would walk all of them in each check.
        set_(c.DNS_CACHE_TIMEOUT, -1)
        set_(c.HTTP_VERSION, c.CURL_HTTP_VERSION_2TLS)
        set_(c.HTTP200ALIASES, ["ICY "])  # how SHOUTcast, a radio server, begins its status line
        set_(c.CAINFO, self._ca_bundle)
        # No post-quantum key share: it costs a tenth of the handshake and a second packet, which
        # some middleboxes drop, and checks send nothing that must stay secret for decades.
        set_(c.SSL_EC_CURVES, "X25519:P-256:P-384:P-521:X448")
        set_(c.SSL_VERIFYPEER, 1)
        set_(c.SSL_VERIFYHOST, 2)
        set_(c.OPT_CERTINFO, 1)
        set_(c.USERAGENT, self._user_agent)
        set_(c.HTTPHEADER, [b"Accept-Encoding: " + ACCEPT_ENCODING.encode()])
        set_(c.HEADERFUNCTION, self._on_header)
        set_(c.WRITEFUNCTION, self._on_body)
        set_(c.OPENSOCKETFUNCTION, self._open_socket)

    def release(self) -> None:
        """Drop what was read: an idle handle must not hold a body of 1 MiB."""
        self._request = None
        self._clear()

    def send(self, request: Request, dropped_pins: Sequence[str] = ()) -> None:
        """Set the handle up for this request. ``dropped_pins``: the pins that curl is to drop, as
        ``-host:port``.
        """
        self._clear()
        self._request = request
        target = request.target
        set_, c = self.curl.setopt, pycurl
        if self._special:
            self.curl.reset()
            self._standing_options()
        self._special = not request.plain
        set_(c.URL, request.url.encode("ascii"))
        set_(c.TIMEOUT_MS, request.timeout_ms)
        set_(c.CONNECTTIMEOUT_MS, request.timeout_ms)
        if target.address is None:
            set_(c.RESOLVE, [*dropped_pins, _pin(target, request.addresses)])
        else:
            # Otherwise curl would pin the handle's last host again, to outdated addresses.
            set_(c.RESOLVE, [])
        set_(c.HTTPHEADER, request.headers)
        if self._special:
            self._special_options(request)

    def _special_options(self, request: Request) -> None:
        set_, c = self.curl.setopt, pycurl
        if not request.verify_tls:
            set_(c.SSL_VERIFYPEER, 0)
            set_(c.SSL_VERIFYHOST, 0)
            allow_old_servers(self.curl)
        if request.connected is not None:
            set_(c.CONNECT_ONLY, 1)
            set_(c.SSL_ENABLE_ALPN, 0)  # it names the protocols of the web
            set_(c.SOCKOPTFUNCTION, lambda _socket, _purpose: c.SOCKOPT_ALREADY_CONNECTED)
        if request.method == "HEAD":
            set_(c.NOBODY, 1)
            return
        if request.body is not None:
            set_(c.POSTFIELDS, request.body)
        if request.method != "GET" or request.body is not None:
            set_(c.CUSTOMREQUEST, request.method)

    @property
    def _current(self) -> Request:
        if self._request is None:
            raise RuntimeError("The handle is not in use.")
        return self._request

    # --- callbacks of curl. pycurl would only print an exception, so each is stored in ``_fault``.

    def _open_socket(self, purpose: int, address: Any) -> Any:
        """Ask the policy a second time: no socket is made for an address that it refuses."""
        family, kind, protocol, socket_address = address
        try:
            if self._current.connected is not None:
                return _CurlSocket(fileno=os.dup(self._current.connected.fileno()))
            self._refused = self._current.refusal(socket_address[0])
            if self._refused is not None:
                return pycurl.SOCKET_BAD
            return _CurlSocket(family, kind, protocol)
        except OSError as error:
            # A machine without IPv6 is no fault.
            if error.errno not in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
                self._fault = error
        except Exception as error:
            self._fault = error
        return pycurl.SOCKET_BAD

    def _on_header(self, line: bytes) -> int | None:
        self._header_bytes += len(line)
        if self._header_bytes > HEADERS_CAP_BYTES:
            self._overflow = True
            return _ABORT
        if self._complete:
            return None
        self._lines.append(line)
        if line == b"\r\n" or line == b"\n":
            return self._end_of_headers()
        return None

    def _end_of_headers(self) -> int | None:
        try:
            status = _status(self._lines[self._block])
            if 100 <= status < 200 and status != 101:
                self._block = len(self._lines)
                return None
            self._complete = True
            block = b"".join(self._lines[self._block :]).lower()
            if status in REDIRECTS and self._current.follow_redirects and b"\nlocation:" in block:
                self._redirect = True  # the Location is known; the body may never arrive
                return _ABORT
            if b"\ncontent-length:" not in block and not self._current.asks_body:
                self._endless = _STREAM.search(block) is not None
            if b"\ncontent-encoding:" in block and self._current.method != "HEAD":
                headers = read_headers(self._lines[self._block :])
                names = codings(
                    [value for key, value in headers if key.lower() == "content-encoding"]
                )
                self._decoder = Decoder(names, BODY_CAP_BYTES) if names else None
        except Exception as error:
            return self._failed(error)
        return None

    def _on_body(self, data: bytes) -> int | None:
        self._stream = self._endless
        decoder = self._decoder
        if decoder is None:
            room = BODY_CAP_BYTES - len(self._body)
            if len(data) > room:
                self._body += data[:room]
                self._cut = True
                return _ABORT
            self._body += data
            return _ABORT if self._stream else None
        try:
            decoder.feed(data)
        except Exception as error:
            return self._failed(error)
        self._cut = decoder.cut
        return _ABORT if self._cut or self._stream else None

    def _failed(self, error: Exception) -> int:
        if isinstance(error, Undecodable):
            self._undecodable = str(error)
        else:
            self._fault = error
        return _ABORT

    # --- reading

    def exchange(self, code: int, words: str) -> Exchange:
        """The result of the request. ``code`` and ``words`` are curl's (0 and empty on success)."""
        get, c = self.curl.getinfo, pycurl
        first = self._lines[self._block] if self._block < len(self._lines) else b""
        secure = self._current.target.scheme == "https"
        version = _HTTP_VERSIONS.get(get(c.INFO_HTTP_VERSION)) if first else None
        decoder = self._decoder
        return Exchange(
            request=self._current,
            code=code,
            words=words,
            os_errno=get(c.OS_ERRNO) if code else 0,
            status=_status(first),
            lines=self._lines[self._block :],
            has_headers=self._complete,
            overflow=self._overflow,
            body=bytes(self._body if decoder is None else decoder.out),
            cut=self._cut,
            undecodable=self._undecodable,
            coding_whole=decoder is None or decoder.whole,
            redirect=self._redirect,
            stream=self._stream,
            ip=get(c.PRIMARY_IP) or None,
            http_version=version,
            connect=get(c.CONNECT_TIME),
            tls=get(c.APPCONNECT_TIME) if secure else 0.0,
            first_byte=get(c.STARTTRANSFER_TIME),
            total=get(c.TOTAL_TIME),
            certificates=_certificates(get(c.INFO_CERTINFO)) if secure else (),
            verify_result=get(c.SSL_VERIFYRESULT) if secure else 0,
            refused=self._refused,
            fault=self._fault,
        )


def _pin(target: Target, addresses: Sequence[str]) -> str:
    # curl removes a pin that begins with "-", so a host that begins with "-" needs a "+" before it.
    sign = "+" if target.ascii_host.startswith("-") else ""
    joined = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    return f"{sign}{target.ascii_host}:{target.port}:{joined}"


def _status(line: bytes) -> int:
    """The code in ``HTTP/1.1 200 OK``; 0 if there is none."""
    parts = line.split(None, 2)
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() and len(parts[1]) == 3 else 0


def _certificates(chain: list[list[tuple[str, str]]]) -> tuple[str, ...]:
    certificates = []
    for fields in chain:
        for name, value in reversed(fields):  # "Cert" comes last
            if name == "Cert":
                certificates.append(value)
                break
    return tuple(certificates)
