"""One check of DNS: look the server up if it is named, and ask it for one type of record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import dns.name
import dns.rdatatype

from app.checks.dns.address import DnsTarget
from app.checks.dns.outcome import DnsTrace, make_outcome
from app.checks.running import Resolution, RunningCheck
from app.net.dnsquery import DnsAnswer, RecordQuestion
from app.net.families import routed
from app.net.hosts import DnsServer
from app.net.loop import Timer
from app.net.race import interleaved


class DnsCheck(RunningCheck):
    target: DnsTarget

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._began = 0.0
        self._question: RecordQuestion | None = None
        self._timer: Timer | None = None
        self.trace = DnsTrace(self.target)

    def begin(self) -> None:
        if self.target.server is None:
            self._ask(self.tools.resolver.servers())
        else:
            self.look_up(self.target.server, self._resolved)

    def cancel(self) -> None:
        if self._question is not None:
            self._question.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def _resolved(self, resolution: Resolution) -> None:
        self.trace.resolution = resolution
        if resolution.failure is not None:
            self._finish()
            return
        tried = interleaved(routed(resolution.addresses))
        self._ask([DnsServer(address, self.target.port) for address in tried])

    def _ask(self, servers: Sequence[DnsServer]) -> None:
        self._began = time.monotonic()
        self._timer = self.tools.loop.call_at(self.deadline, self.guard(self._too_late))
        ours = self.target.server is None
        self._question = RecordQuestion(
            self.tools.loop,
            dns.name.from_text(self.target.ascii_host),
            dns.rdatatype.from_text(self.target.rdtype),
            servers,
            self.guard(self._answered),
            self.tools.resolver.note_silence if ours else lambda _server: None,
        )
        self._question.start()

    def _too_late(self) -> None:
        if self._question is not None:
            self._answered(self._question.answer_so_far())

    def _answered(self, answer: DnsAnswer) -> None:
        self.trace.answer, self.trace.took = answer, time.monotonic() - self._began
        if self._question is not None:
            self.trace.message = self._question.message
        self._finish()

    def _finish(self) -> None:
        self.cancel()
        self.done(make_outcome(self, self.trace))
