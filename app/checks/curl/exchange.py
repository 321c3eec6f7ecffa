"""One request and its result, as curl reports them."""

from __future__ import annotations

import ctypes
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import pycurl

from app.net.policy import Refusal
from app.rules.url import Target

Judge = Callable[[str], Refusal | None]


@dataclass(slots=True)
class Request:
    """The request to send. ``headers`` are curl's header lines; ``addresses`` are allowed by
    policy, in the order to try.
    """

    target: Target
    url: str
    method: str
    headers: tuple[bytes, ...]
    body: bytes | None
    addresses: tuple[str, ...]
    timeout_ms: int  # the rest of the check's time
    limit: float  # the whole time limit of the check, in seconds
    verify_tls: bool
    follow_redirects: bool
    asks_body: bool  # a text condition or an assertion reads the body
    refusal: Judge
    connected: socket.socket | None = None  # only the handshake is made, on this connection

    @property
    def plain(self) -> bool:
        """Whether the standing options of a handle are enough for this request. A handle is reset
        after a request with other options.
        """
        return (
            self.method == "GET"
            and self.body is None
            and self.verify_tls
            and self.connected is None
        )


@dataclass(slots=True)
class Exchange:
    """The result of one request. Times are in seconds from the start of the transfer, 0 for a phase
    that was not reached.
    """

    request: Request
    code: int  # curl's error code
    words: str  # curl's error message
    os_errno: int
    status: int
    lines: list[bytes]  # the status line and headers of the last answer, as sent
    has_headers: bool  # the headers are complete
    overflow: bool  # the headers were larger than the cap
    body: bytes
    cut: bool  # the body was larger than the cap
    undecodable: str | None
    coding_whole: bool
    redirect: bool
    stream: bool  # the body has no end, and its first bytes have arrived
    ip: str | None
    http_version: str | None
    connect: float
    tls: float
    first_byte: float
    total: float
    certificates: tuple[str, ...]  # PEM, the leaf first
    verify_result: int
    refused: Refusal | None  # by policy, when curl opened the socket
    fault: Exception | None  # raised by our own code

    @property
    def stopped(self) -> bool:
        """Whether we ended the transfer because enough had arrived."""
        return self.redirect or self.cut or self.stream

    @property
    def status_line(self) -> str:
        return self.lines[0].decode("latin-1").strip() if self.lines else ""

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Names and values in the order in which they arrived."""
        return read_headers(self.lines)

    def all_headers(self, name: str) -> list[str]:
        """The values of every header of this lower-case name."""
        return [value for key, value in self.headers if key.lower() == name]

    def header(self, name: str) -> str | None:
        """The first header of this lower-case name."""
        return next(iter(self.all_headers(name)), None)

    @property
    def delimited(self) -> bool:
        """Whether Content-Length, chunks or HTTP/2 mark the end of the body; otherwise the end of
        the connection does.
        """
        block = b"".join(self.lines).lower()
        return (
            self.http_version == "2"
            or b"\ncontent-length:" in block
            or b"\ntransfer-encoding:" in block
        )


def read_headers(lines: Sequence[bytes]) -> list[tuple[str, str]]:
    """Names and values after the status line. Bytes are read as Latin-1, which loses nothing."""
    headers: list[tuple[str, list[str]]] = []
    for line in lines[1:]:
        text = line.decode("latin-1").rstrip("\r\n")
        if text[:1] in (" ", "\t") and headers:  # obsolete folding
            headers[-1][1].append(text.strip())
        elif text:
            name, _, value = text.partition(":")
            headers.append((name.strip(), [value.strip()]))
    return [(name, " ".join(values)) for name, values in headers]


# --- Old TLS --------------------------------------------------------------------------------------
#
# For a monitor that does not verify the certificate, a curl handle may speak with old servers.
#
# Versions and weak keys are options of pycurl. Servers without secure renegotiation (RFC 5746) are
# an option of OpenSSL alone, which curl leaves to a callback (CURLOPT_SSL_CTX_FUNCTION) that pycurl
# does not offer, and pycurl's wheels read no OPENSSL_CONF. So the callback is set by curl's own
# function, on the handle within pycurl's object. If pycurl or curl are built otherwise, such
# servers cannot be checked, and nothing else changes.

log = logging.getLogger(__name__)

# SHA-1, and keys of 512 bits and more; but no cipher without a certificate or without encryption.
CIPHERS = "DEFAULT:!aNULL:!eNULL:@SECLEVEL=0"

_SSL_CTX_FUNCTION = 20_108  # CURLOPT_SSL_CTX_FUNCTION
_LEGACY_SERVER_CONNECT = 0x4  # SSL_OP_LEGACY_SERVER_CONNECT
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_MAGIC = (0xC0DEDBAD).to_bytes(4, sys.byteorder)  # a handle of curl begins with this

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def allow_old_servers(curl: pycurl.Curl) -> None:
    """Accept old servers on this handle, until it is reset."""
    curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_0)
    curl.setopt(pycurl.SSL_CIPHER_LIST, CIPHERS)
    if (setter := _setter()) is not None:
        setter(curl)


@cache
def _setter() -> Callable[[pycurl.Curl], None] | None:
    """The function that sets the callback on a handle; None if that cannot be done."""
    try:
        # Names are looked up in the libraries that pycurl itself is linked to.
        library = ctypes.CDLL(getattr(pycurl, "_pycurl", pycurl).__file__)
        set_option, set_options = library.curl_easy_setopt, library.SSL_CTX_set_options
        # Another TLS library would pass the callback an object that is not OpenSSL's.
        is_openssl = str(pycurl.version_info()[5]).startswith("OpenSSL/")
        offset = _handle_offset(pycurl.Curl()) if is_openssl else None
    except (OSError, AttributeError):
        offset = None
    if offset is None:
        log.warning("Servers without secure renegotiation cannot be checked with this pycurl.")
        return None
    set_option.argtypes = [ctypes.c_void_p, ctypes.c_int]  # the third argument is variadic
    set_options.argtypes, set_options.restype = [ctypes.c_void_p, ctypes.c_uint64], ctypes.c_uint64

    def allow_legacy(_curl: int, context: int, _data: int) -> int:
        set_options(context, _LEGACY_SERVER_CONNECT)
        return 0

    callback = _Callback(allow_legacy)

    def setter(curl: pycurl.Curl) -> None:
        handle = ctypes.c_void_p.from_address(id(curl) + offset).value
        set_option(handle, _SSL_CTX_FUNCTION, callback)

    return setter


def _handle_offset(curl: object) -> int | None:
    """The offset of curl's handle in pycurl's object: behind its __dict__ and its weak references.
    None if something else is in memory there.
    """
    kind = type(curl)
    offset = max(kind.__dictoffset__, kind.__weakrefoffset__) + _POINTER
    if offset < object.__basicsize__ + _POINTER or offset + _POINTER > kind.__basicsize__:
        return None
    handle = ctypes.c_void_p.from_address(id(curl) + offset).value
    return offset if handle and _bytes_at(handle, len(_MAGIC)) == _MAGIC else None


def _bytes_at(address: int, size: int) -> bytes:
    """The bytes at this address; none if it is not mapped. The kernel refuses to read such an
    address, but Python would crash.
    """
    reader, writer = os.pipe()
    try:
        write = ctypes.CDLL(None).write
        write.argtypes, write.restype = (
            [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t],
            ctypes.c_ssize_t,
        )
        return os.read(reader, size) if write(writer, address, size) == size else b""
    finally:
        os.close(reader)
        os.close(writer)
