"""One check of a TLS server: connect as TCP does, STARTTLS where it is wanted, and a handshake.

The handshake is curl's, as that of https, on the connection that was made here: certificates,
versions and old servers are judged by the same rules.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from app.checks.connection import ConnectionCheck
from app.checks.curl.exchange import Exchange, Request
from app.checks.tls.outcome import TlsTrace, make_outcome
from app.checks.tls.starttls import DIALOGUES, MAX_BYTES
from app.records import Outcome


class TlsCheck(ConnectionCheck):
    trace: TlsTrace

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.trace = TlsTrace(self.spec, self.target)
        self._reply = b""
        self._dialogue = None if self.spec.starttls is None else DIALOGUES[self.spec.starttls]
        self._number = 0  # of the step of the dialogue

    def talk(self) -> None:
        if self._dialogue is None:
            self._shake_hands()
        else:
            self.read_by(self._ready)
            self._say()

    def _say(self) -> None:
        if self._dialogue is None or self.tcp is None:
            return
        step = self._dialogue.steps[self._number]
        if step.send:
            self.tcp.send(step.send.replace(b"%HOST%", self.target.ascii_host.encode()))
        if step.expected is None:
            self._shake_hands()

    def _ready(self, _fd: int, _events: int) -> None:
        piece = self.receive(MAX_BYTES)
        if piece is None or self._dialogue is None:
            self.end()
            return
        self._reply += piece
        if not self._dialogue.is_whole(self._reply) and len(self._reply) < MAX_BYTES:
            return
        expected = self._dialogue.steps[self._number].expected
        if expected is not None and not expected.search(self._reply):
            self.trace.refusal = self._reply
            self.end()
            return
        self._reply = b""
        self._number += 1
        if self._number < len(self._dialogue.steps):
            self._say()
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
        self.tools.curls.start(request, self.guard(self._shaken), self.on_error)

    def _shaken(self, exchange: Exchange) -> None:
        exchange.connect = self.trace.connect or 0.0
        self.trace.exchange = exchange
        self.end()

    def end(self) -> None:
        self.trace.tls = time.monotonic() - self.phase_began
        super().end()

    def outcome(self) -> Outcome:
        return make_outcome(self, self.trace)
