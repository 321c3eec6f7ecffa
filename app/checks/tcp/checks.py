"""One check of a TCP port: connect, and for a text condition read what the server sends first.

``judge`` says why it is down. The evidence has ``banner`` and ``banner_bytes``. The banner is what
the server sent first, as text with ``\\xff`` for bytes that are not UTF-8. It is read only if the
monitor has a text condition or an assertion on it.

A connection that is accepted is ``up``. A text condition reads until the text is found, 1 KiB has
arrived, the server closes the connection or the time limit is over, and judges what has arrived.
Waiting for a text does not count as slow: ``response_time`` ends with the last byte that arrived.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from app.checks.connection import Connection, ConnectionCheck
from app.checks.outcome import RESET, Failure, excerpt, judge_text, strip_controls, whole_ms
from app.checks.redact import Redactor
from app.checks.running import RunningCheck
from app.i18n import N_, _, _n
from app.records import (
    TEXT_CONDITIONS,
    Assertion,
    AssertionOp,
    AssertionSource,
    Cause,
    Outcome,
    Timings,
)
from app.rules.assertions import OPPOSITES, AnswerParts, evaluate
from app.rules.text import shortened

BANNER_BYTES = 1024  # decision 3


@dataclass(slots=True)
class TcpTrace(Connection):
    """The course of a check. Times are in seconds, each from the end of the phase before it; None
    for a phase that was not reached.
    """

    banner: bytes = b""
    first_byte: float | None = None
    download: float | None = None  # from the first byte to the last

    @property
    def has_text_condition(self) -> bool:
        return self.spec.alert_condition in TEXT_CONDITIONS

    @property
    def reads_banner(self) -> bool:
        return self.has_text_condition or bool(self._banner_assertions)

    @property
    def _banner_assertions(self) -> list[Assertion]:
        return [row for row in self.spec.assertions if row.source == AssertionSource.BANNER]

    @property
    def has_enough(self) -> bool:
        """Whether reading can end: the text has arrived, and the assertions on the banner hold
        whatever else arrives.
        """
        if self.has_text_condition and (self.spec.alert_text_lookup or "") not in self.text:
            return False
        if any(
            row.op in OPPOSITES or row.op == AssertionOp.EMPTY for row in self._banner_assertions
        ):
            return False
        return evaluate(self._banner_assertions, AnswerParts(self.single))[1] is None

    @property
    def single(self) -> dict[AssertionSource, object]:
        """The banner for assertions, without a line break at its end."""
        banner = strip_controls(self.text).rstrip("\r\n")
        return {AssertionSource.BANNER: banner} if self.reads_banner else {}

    @property
    def text(self) -> str:
        return self.banner.decode("utf-8", "replace")


class TcpCheck(ConnectionCheck):
    trace: TcpTrace

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.trace = TcpTrace(self.spec, self.target)

    def talk(self) -> None:
        if self.trace.reads_banner:
            self.read_until_deadline(self._ready)
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
        trace.download = took - trace.first_byte
        trace.banner += piece
        if len(trace.banner) == BANNER_BYTES or trace.has_enough:
            self.end()

    def outcome(self) -> Outcome:
        return make_outcome(self, self.trace)


def make_outcome(check: RunningCheck, trace: TcpTrace) -> Outcome:
    timings, response_ms = figures(trace)
    lookup = trace.spec.alert_text_lookup if trace.has_text_condition else None
    return check.build_outcome(
        trace.resolution,
        judge(trace),
        response_ms=response_ms,
        timings=timings,
        ip=trace.ip,
        warnings=tuple(trace.warnings),
        answer=(trace.ip, trace.banner),
        single=trace.single,
        evidence=lambda: evidence(trace),
        answered=trace.ip is not None,
        matched=excerpt(trace.text, lookup, Redactor(trace.spec)) if lookup else None,
    )


def figures(trace: TcpTrace) -> tuple[Timings, int | None]:
    """Milliseconds in each phase, and their total. The total is None without a connection, and if
    it broke.
    """
    dns = trace.resolution.dns
    spent = (dns, trace.connect, trace.first_byte, trace.download)
    dns_ms, connect, ttfb, download = map(whole_ms, spent)
    timings = Timings(dns=dns_ms, connect=connect, ttfb=ttfb, download=download)
    if trace.ip is None or trace.broken_by is not None:
        return timings, None
    return timings, round(sum(seconds or 0.0 for seconds in spent) * 1000)


def evidence(trace: TcpTrace) -> dict[str, Any]:
    if trace.ip is None or not trace.reads_banner:
        return {}
    banner = strip_controls(trace.banner.decode("utf-8", "backslashreplace"))
    return {"banner": banner, "banner_bytes": len(trace.banner)}


def judge(trace: TcpTrace) -> Failure | None:
    if trace.failure is not None:
        return trace.failure
    if trace.reads_banner and trace.broken_by is not None:
        return _interrupted(trace, trace.broken_by)
    return _text(trace) if trace.has_text_condition else None


def _text(trace: TcpTrace) -> Failure | None:
    lookup = trace.spec.alert_text_lookup or ""
    cause = judge_text(trace.spec.alert_condition, lookup, trace.text, cut=False)
    if cause is None:
        return None
    if not trace.banner and trace.closed:
        sentence = N_(
            "The server at %(ip)s port %(port)s closed the connection without sending anything."
            " The text “%(text)s” is expected."
        )
    elif not trace.banner:
        sentence = N_(
            "The server at %(ip)s port %(port)s sent nothing within %(limit)s s. The text"
            " “%(text)s” is expected."
        )
    elif cause == Cause.TEXT_FOUND:
        sentence = N_(
            "What the server at %(ip)s port %(port)s sends first (%(size)s) contains the text"
            " “%(text)s”."
        )
    else:
        sentence = N_(
            "What the server at %(ip)s port %(port)s sends first (%(size)s) does not contain the"
            " text “%(text)s”."
        )
    values = {
        "ip": trace.ip,
        "port": trace.target.port,
        "limit": f"{trace.spec.timeout:g}",
        "size": _size(trace),
        "text": shortened(lookup, 80),
    }
    return Failure(cause, _(sentence, **values))


def _interrupted(trace: TcpTrace, number: int) -> Failure:
    sentence = (
        N_("The connection was reset by the other side after %(size)s.")
        if number in RESET
        else N_("The connection was broken (%(error)s) by the other side after %(size)s.")
    )
    sentence = _(sentence, error=os.strerror(number), size=_size(trace))
    return Failure(Cause.CONNECTION_RESET, sentence)


def _size(trace: TcpTrace) -> str:
    return _n("%(num)s byte", "%(num)s bytes", len(trace.banner))
