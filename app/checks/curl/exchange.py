"""One request and its result, as curl reports them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    timeout_ms: int  # what is left of the check's time
    limit: float  # the whole time limit of the check, in seconds
    verify_tls: bool
    follow_redirects: bool
    asks_body: bool  # something is looked up in the body
    refusal: Judge
    connected: socket.socket | None = None  # only the handshake is made, on this connection

    @property
    def plain(self) -> bool:
        """Whether the standing options of a handle are enough for this request. All other options
        are reset after it.
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
    complete: bool  # the headers were received to their end
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
        """Whether we ended the transfer because all that is needed had arrived."""
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
