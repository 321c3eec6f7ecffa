"""STARTTLS: what is said on a connection before its TLS handshake, for each protocol.

A dialogue has steps: we send something (nothing, if the server greets first), and the whole
reply must contain what the step expects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.records import StartTls

MAX_BYTES = 16 * 1024  # of one reply: a greeting has some hundred


@dataclass(frozen=True, slots=True)
class TalkStep:
    """``%HOST%`` in ``send`` stands for the name of the server. ``expected``: None if TLS begins
    without a reply.
    """

    send: bytes
    expected: re.Pattern[bytes] | None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """``is_whole``: whether these bytes are a whole reply."""

    is_whole: Callable[[bytes], object]
    steps: Sequence[TalkStep]


def _dialogue(is_whole: Callable[[bytes], object], *steps: tuple[bytes, bytes | None]) -> Dialogue:
    flags = re.IGNORECASE | re.MULTILINE | re.DOTALL
    return Dialogue(
        is_whole,
        [
            TalkStep(send, None if reply is None else re.compile(reply, flags))
            for send, reply in steps
        ],
    )


def _is_message(data: bytes) -> bool:
    """Whether an LDAP message (BER) is there to its end."""
    if len(data) < 2:
        return False
    count = data[1] & 0x7F if data[1] & 0x80 else 0
    length = int.from_bytes(data[2 : 2 + count], "big") if count else data[1]
    return len(data) >= 2 + count + length


def _is_packet(data: bytes) -> bool:
    """Whether a packet of MySQL is there to its end."""
    return len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:3], "little")


# The last line of a reply, behind whose code there is no hyphen; or a line without a code.
_CODED = re.compile(rb"^\d{3}(?: [^\n]*+|\r)?\n|\A(?!\d{3})[^\n]*+\n", re.MULTILINE)
# Any line but those that IMAP sends beside its answers.
_TAGGED = re.compile(rb"^(?!\* (?!OK|PREAUTH|BYE))[^\n]*\n", re.MULTILINE | re.IGNORECASE)
_LINE = re.compile(rb"\n")
_STANZA = re.compile(
    rb"</(?:\w++:)?features\s*+>|<(?:\w++:)?features\s*+/>|<proceed\b[^<>]*+>|<failure\b[^<>]*+>"
    rb"|<(?:\w++:)?error\b|</(?:\w++:)?stream\s*+>"
)
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..|\x83...|\x84....)"
_LDAP_REQUEST = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037"
_POSTGRES_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
# A byte of capabilities with that of TLS.
_WITH_SSL = b"[" + re.escape(bytes(byte for byte in range(256) if byte & 0x08)) + b"]"
# Capabilities (protocol 4.1, TLS, secure connection), longest packet, character set, 23 zeros.
_MYSQL_REQUEST = b"\x20\x00\x00\x01\x00\x8a\x00\x00\x00\x00\x00\x01\x21" + bytes(23)

DIALOGUES: Mapping[str, Dialogue] = {
    StartTls.SMTP: _dialogue(
        _CODED.search,
        (b"", rb"\A220"),
        (b"EHLO localhost\r\n", rb"^250[ -]STARTTLS\b"),
        (b"STARTTLS\r\n", rb"\A220"),
    ),
    StartTls.IMAP: _dialogue(_TAGGED.search, (b"", rb"^\* OK\b"), (b"a STARTTLS\r\n", rb"^a OK\b")),
    StartTls.POP3: _dialogue(_LINE.search, (b"", rb"\A\+OK"), (b"STLS\r\n", rb"\A\+OK")),
    StartTls.FTP: _dialogue(_CODED.search, (b"", rb"\A220"), (b"AUTH TLS\r\n", rb"\A234")),
    StartTls.LDAP: _dialogue(
        _is_message,
        (_LDAP_REQUEST, rb"\A\x30" + _LENGTH + rb"\x02\x01\x01\x78" + _LENGTH + rb"\x0a\x01\x00"),
    ),
    StartTls.XMPP: _dialogue(
        _STANZA.search,
        (
            b"<?xml version='1.0'?><stream:stream xmlns='jabber:client' to='%HOST%' version='1.0'"
            b" xmlns:stream='http://etherx.jabber.org/streams'>",
            rb"<(?:\w+:)?starttls\b",
        ),
        (b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", rb"<(?:\w+:)?proceed\b"),
    ),
    StartTls.POSTGRES: _dialogue(len, (_POSTGRES_REQUEST, rb"\AS")),
    # The greeting of protocol 10: version, NUL, 13 bytes, and the capabilities.
    StartTls.MYSQL: _dialogue(
        _is_packet, (b"", rb"\A...\x00\x0a[^\x00]*\x00.{13}." + _WITH_SSL), (_MYSQL_REQUEST, None)
    ),
}
