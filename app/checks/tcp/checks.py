"""One check of a TCP port: connect, and for a text condition read what the server sends first."""

from __future__ import annotations

import time
from typing import Any

from app.checks.connection import ConnectionCheck
from app.checks.tcp.outcome import TcpTrace, make_outcome
from app.records import Outcome

BANNER_BYTES = 1024  # decision 3


class TcpCheck(ConnectionCheck):
    trace: TcpTrace

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.trace = TcpTrace(self.spec, self.target)

    def talk(self) -> None:
        if self.trace.reads_banner:
            self.read_by(self._ready)
        else:
            self.end()

    def _ready(self, _fd: int, _events: int) -> None:
        trace = self.trace
        piece = self.receive(BANNER_BYTES - len(trace.banner))
        if piece is None:
            self.end()
            return
        if not piece:
            return
        took = time.monotonic() - self.phase_began
        trace.first_byte = took if trace.first_byte is None else trace.first_byte
        trace.rest = took - trace.first_byte
        trace.banner += piece
        if len(trace.banner) == BANNER_BYTES or trace.has_all:
            self.end()

    def outcome(self) -> Outcome:
        return make_outcome(self, self.trace)
