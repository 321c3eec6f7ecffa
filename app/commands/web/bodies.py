"""Decode request bodies as they arrive, and find their ends (RFC 9112).

Every byte is read once. gunicorn's reader of chunks copies the rest of the body for each chunk: a
megabyte in chunks of one byte kept a thread busy for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from app.records import MAX_PING_BODY_BYTES

# Extensions and trailers are ignored; a control character in one could be a line end to a proxy.
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,16})(?:[ \t]*;[\t -~\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*")
_LINE_END = b"\r\n"
_MAX_LINE = 8190  # gunicorn's own limit
BEGINNING_BYTES = MAX_PING_BODY_BYTES  # of a body that is too large
# The bytes of sizes, extensions, line ends and trailers that a body may always have, and the bytes
# of content that allow one such byte more.
_FRAMES_FREE = 64 * 1024
_FRAMES_SHARE = 8


class Malformed(Exception):
    """The end of this body cannot be found."""


class Length:
    """A body of known length. If it is too large, ``content`` has only its beginning. If it has at
    most ``max_drained`` bytes, it is nevertheless read to its end (``is_drained``, ``webworker``).
    """

    def __init__(self, length: int, max_bytes: int) -> None:
        self.content = bytearray()
        self.length = length
        self.max_drained = 2 * max_bytes
        self.too_large = length > max_bytes
        self._missing = length
        self._max_content = BEGINNING_BYTES if self.too_large else length

    @property
    def complete(self) -> bool:
        return not self._missing

    @property
    def is_drained(self) -> bool:
        return self.too_large and self.length <= self.max_drained

    @property
    def has_beginning(self) -> bool:
        """Whether the stored beginning of a body that is too large is complete."""
        return len(self.content) >= self._max_content

    def take(self, received: bytearray) -> None:
        """Move the bytes of the body out of ``received``."""
        size = min(self._missing, len(received))
        self.content += received[: min(size, self._max_content - len(self.content))]
        del received[:size]
        self._missing -= size


class Chunks:
    """A body in chunks, of at most ``max_bytes`` bytes without their frames; like ``Length``, but
    the length of a body that is too large is unknown, so it is drained only for a ping.
    """

    max_drained = 0

    def __init__(self, max_bytes: int) -> None:
        self.content = bytearray()
        self.complete = False
        self._max_bytes = max_bytes
        self._frames = 0
        self._promised = 0
        self._remaining = 0  # bytes of the chunk that is arriving
        self._read_line: Callable[[bytes], None] = self._read_size

    @property
    def length(self) -> int:
        """The Content-Length for the application. If the body is too large or incomplete, it is too
        large or too long for the content, by which the application sees the fault.
        """
        if self.complete:
            return self._promised
        return self._max_bytes + 1 if self.too_large else len(self.content) + 1

    @property
    def too_large(self) -> bool:
        """Frames (sizes, line ends) count too: in a body of tiny chunks, each takes time."""
        return self._promised > self._max_bytes or self._is_framed

    @property
    def is_drained(self) -> bool:
        return self.too_large and self._promised <= self.max_drained and not self._is_framed

    @property
    def has_beginning(self) -> bool:
        return len(self.content) >= BEGINNING_BYTES or self._is_framed

    @property
    def _is_framed(self) -> bool:
        arrived = self._promised - self._remaining
        return self._frames > _FRAMES_FREE + arrived // _FRAMES_SHARE

    def take(self, received: bytearray) -> None:
        """Decode the bytes of the body and remove them from ``received``. Raises Malformed."""
        offset, last_offset = 0, -1
        while offset != last_offset and not self.complete:
            if self.too_large and self.has_beginning and not self.is_drained:
                break
            last_offset = offset
            offset = (
                self._data(received, offset) if self._remaining else self._line(received, offset)
            )
        del received[:offset]

    def _data(self, received: bytearray, offset: int) -> int:
        data = received[offset : offset + self._remaining]
        self.content += data
        if self.too_large:
            del self.content[BEGINNING_BYTES:]
        self._remaining -= len(data)
        return offset + len(data)

    def _line(self, received: bytearray, offset: int) -> int:
        """Read the line that begins at ``offset``; returns the offset of the next line."""
        stop = received.find(_LINE_END, offset, offset + _MAX_LINE)
        if stop < 0:
            self._check_beginning(received[offset : offset + _MAX_LINE])
            return offset
        self._frames += stop + len(_LINE_END) - offset
        self._read_line(bytes(received[offset:stop]))
        return stop + len(_LINE_END)

    def _check_beginning(self, line: bytearray) -> None:
        """Raise Malformed if this beginning cannot become a valid line."""
        no_end = self._read_line == self._read_chunk_end and not _LINE_END.startswith(line)
        if no_end or b"\n" in line or len(line) == _MAX_LINE:
            raise Malformed

    def _read_size(self, line: bytes) -> None:
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise Malformed
        self._remaining = int(match[1], 16)
        self._promised += self._remaining
        self._read_line = self._read_chunk_end if self._remaining else self._read_trailer

    def _read_chunk_end(self, line: bytes) -> None:
        if line:
            raise Malformed
        self._read_line = self._read_size

    def _read_trailer(self, line: bytes) -> None:
        if line and not _TRAILER.fullmatch(line):
            raise Malformed
        self.complete = not line
