"""One check of a TLS server: connect as TCP does, STARTTLS if the monitor has it, and a handshake.

curl makes the handshake, as for https, on the connection that was made here: certificates, versions
and old servers are judged as there.

``judge`` says why it is down. The evidence has ``tls``, the certificates as for https, and
``banner``, the reply that did not start TLS.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.checks.certificate import TrustStore, describe, read_certificate
from app.checks.connection import Connection, ConnectionCheck
from app.checks.curl.exchange import Exchange, Request
from app.checks.curl.failures import handshake
from app.checks.outcome import Failure, strip_controls, whole_ms
from app.checks.running import RunningCheck
from app.i18n import N_, _
from app.records import AssertionSource, Cause, Outcome, StartTls, Timings, Warn
from app.rules.text import shortened
from app.rules.time import warns


@dataclass(slots=True)
class TlsTrace(Connection):
    """``refusal``: a reply that does not start TLS. ``tls``: seconds from the connection to the end
    of the handshake, STARTTLS included.
    """

    refusal: bytes | None = None
    exchange: Exchange | None = None
    tls: float | None = None

    @property
    def certificates(self) -> tuple[str, ...]:
        return self.exchange.certificates if self.exchange else ()


class TlsCheck(ConnectionCheck):
    trace: TlsTrace

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.trace = TlsTrace(self.spec, self.target)
        self._reply = b""
        self._dialogue = None if self.spec.starttls is None else DIALOGUES[self.spec.starttls]
        self._step = 0  # the index of the dialogue's present step

    def talk(self) -> None:
        if self._dialogue is None:
            self._shake_hands()
        else:
            self.read_until_deadline(self._ready)
            self._send_step()

    def _send_step(self) -> None:
        if self._dialogue is None or self.tcp is None:
            return
        step = self._dialogue.steps[self._step]
        if step.send:
            self.tcp.send(step.send.replace(b"%HOST%", self.target.ascii_host.encode()))
        if step.expected is None:
            self._shake_hands()

    def _ready(self, _fd: int, _events: int) -> None:
        piece = self.receive(MAX_REPLY_BYTES)
        if piece is None or self._dialogue is None:
            self.end()
            return
        self._reply += piece
        if not self._dialogue.is_whole(self._reply) and len(self._reply) < MAX_REPLY_BYTES:
            return
        expected = self._dialogue.steps[self._step].expected
        if expected is not None and not expected.search(self._reply):
            self.trace.refusal = self._reply
            self.end()
            return
        self._reply = b""
        self._step += 1
        if self._step < len(self._dialogue.steps):
            self._send_step()
        else:
            self._shake_hands()

    def _shake_hands(self) -> None:
        self.stop_reading()
        target = replace(self.target, scheme="https")
        request = Request(
            target=target,
            url=target.url,
            method="GET",
            headers=(),
            body=None,
            addresses=(self.trace.ip or "",),
            timeout_ms=max(1, int((self.deadline - time.monotonic()) * 1000)),
            limit=self.spec.timeout,
            verify_tls=self.spec.verify_tls,
            follow_redirects=False,
            asks_body=False,
            refusal=self.policy.refusal,
            connected=self.tcp,
        )
        self.tools.transfers.start(request, self.guard(self._exchanged), self.on_error)

    def _exchanged(self, exchange: Exchange) -> None:
        exchange.connect = self.trace.connect or 0.0
        self.trace.exchange = exchange
        self.end()

    def end(self) -> None:
        self.trace.tls = time.monotonic() - self.phase_began
        super().end()

    def outcome(self) -> Outcome:
        return make_outcome(self, self.trace)


def make_outcome(check: RunningCheck, trace: TlsTrace) -> Outcome:
    at = check.checked_at
    leaf = read_certificate(trace.certificates[0]) if trace.certificates else None
    expires = leaf and warns(check.spec.ssl_alert_days, leaf.not_before, leaf.not_after, at)
    failure = judge(trace, check.tools.trust, at)
    phases = (trace.resolution.dns, trace.connect, trace.tls)
    return check.build_outcome(
        trace.resolution,
        failure,
        timings=Timings(*map(whole_ms, phases)),
        response_ms=whole_ms(sum(filter(None, phases))) if failure is None else None,
        ip=trace.ip,
        warnings=(*trace.warnings, *([str(Warn.TLS_EXPIRING)] if expires else ())),
        answer=(trace.ip, leaf and leaf.fingerprint),
        single={AssertionSource.CERTIFICATE_DAYS: leaf and leaf.whole_days_left(at)},
        evidence=lambda: evidence(trace),
        answered=trace.ip is not None,
        ssl_issued_at=leaf and leaf.not_before,
        ssl_expires_at=leaf and leaf.not_after,
        ssl_fingerprint=leaf and leaf.fingerprint,
        ssl_host=leaf and trace.target.ascii_host,
    )


def evidence(trace: TlsTrace) -> dict[str, Any]:
    figures: dict[str, Any] = {"tls": [describe(pem) for pem in trace.certificates]}
    if trace.refusal is not None:
        figures["banner"] = strip_controls(trace.refusal.decode("utf-8", "backslashreplace"))
        figures["banner_bytes"] = len(trace.refusal)
    return figures


def judge(trace: TlsTrace, trust: TrustStore, now: datetime) -> Failure | None:
    if (failure := trace.failure) is not None:
        # A reset before the handshake has the same cause code as for https.
        is_reset = failure.code == Cause.CONNECTION_RESET
        return replace(failure, code=Cause.TLS_HANDSHAKE) if is_reset else failure
    if trace.exchange is not None:
        return handshake(trace.exchange, trust, now)
    if trace.refusal is not None:
        cause = Cause.STARTTLS_REFUSED
        sentence = N_(
            "The server at %(ip)s port %(port)s does not start TLS. It answered “%(reply)s”."
        )
    elif trace.broken_by is not None or trace.closed:
        cause = Cause.TLS_HANDSHAKE
        sentence = (
            N_("The server at %(ip)s port %(port)s closed the connection before TLS began.")
            if trace.closed
            else N_("The server at %(ip)s port %(port)s reset the connection before TLS began.")
        )
    else:
        cause = Cause.TIMEOUT_TLS
        sentence = N_(
            "The server at %(ip)s port %(port)s did not answer in the protocol %(protocol)s within"
            " the limit of %(limit)s s, so TLS did not begin."
        )
    values = {
        "ip": trace.ip,
        "port": trace.target.port,
        "reply": shortened(
            strip_controls((trace.refusal or b"").decode("utf-8", "replace")).strip(), 100
        ),
        "protocol": trace.spec.starttls,
        "limit": f"{trace.spec.timeout:g}",
    }
    return Failure(cause, _(sentence, **values))


# --- STARTTLS -------------------------------------------------------------------------------------
#
# The dialogue of each protocol before the TLS handshake.
#
# A dialogue has steps: the check sends something (nothing, if the server greets first), and the
# whole reply must match what the step expects.

MAX_REPLY_BYTES = 16 * 1024  # of one reply: a greeting has some hundred


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


# The last line of a reply: its code is not followed by a hyphen, or it has no code.
_CODED = re.compile(rb"^\d{3}(?: [^\n]*+|\r)?\n|\A(?!\d{3})[^\n]*+\n", re.MULTILINE)
# Any line of IMAP except the untagged ones that are no answer (all but OK, PREAUTH and BYE).
_TAGGED = re.compile(rb"^(?!\* (?!OK|PREAUTH|BYE))[^\n]*\n", re.MULTILINE | re.IGNORECASE)
_LINE = re.compile(rb"\n")
_STANZA = re.compile(
    rb"</(?:\w++:)?features\s*+>|<(?:\w++:)?features\s*+/>|<proceed\b[^<>]*+>|<failure\b[^<>]*+>"
    rb"|<(?:\w++:)?error\b|</(?:\w++:)?stream\s*+>"
)
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..|\x83...|\x84....)"
_LDAP_REQUEST = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037"
_POSTGRES_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
# A byte of capabilities in which the bit of TLS is set.
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
