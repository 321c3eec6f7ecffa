"""One check by ping: look up, and send a series of echoes to an address of each family in parallel,
so that a dead address family is noticed. A moment later, the next address of a family that has not
answered is tried.

``judge`` says why it is down. The evidence has ``echoes``; an echo is ``{"address", "ms", "ttl",
"error"}``. ``ms`` is its round trip, ``error`` the error that came in place of an answer; both are
None if nothing came.

One answer is ``up``. ``response_time`` is the median of the round trips to the address that
answered first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from app.checks.outcome import Failure, connect_failure, whole_ms
from app.checks.running import Resolution, RunningCheck
from app.i18n import N_, _, _n
from app.net.icmp import Echo, PingNotAllowed, Series
from app.net.loop import Timer
from app.net.race import DEAD_WAIT, OWN_ERRORS, STAGGER_SECONDS, interleaved, is_ipv6, routed
from app.records import AssertionSource, Cause, Outcome, Timings, Warn

PAUSE_SECONDS = 0.2  # between two echoes; less if they would not fit into half the time limit
LAST_WAIT = 1.0  # seconds to wait for echoes that may be lost, once one was answered
MAX_ECHOES = 20  # in the evidence


class PingCheck(RunningCheck):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._resolution = Resolution()
        self._untried: list[str] = []
        self._series: list[Series] = []
        self._timers: list[Timer] = []
        self._is_done = False

    def cancel(self) -> None:
        self._is_done = True
        for timer in self._timers:
            timer.cancel()
        for series in self._series:
            series.close()

    def _resolved(self, resolution: Resolution) -> None:
        self._resolution = resolution
        self._untried = list(interleaved(routed(resolution.addresses)))
        if resolution.failure is not None:
            self._finish()
            return
        self._timers.append(self.tools.loop.call_at(self.deadline, self.guard(self._finish)))
        first = self._untried[0]
        families = (address for address in self._untried if is_ipv6(address) != is_ipv6(first))
        if (other := next(families, None)) is not None:
            self._untried.remove(other)
            self._untried.insert(0, other)
            self._try_next()
        self._try_next()
        self._stagger()

    def _stagger(self) -> None:
        if self._untried and not self._is_done:
            timer = self.tools.loop.call_later(STAGGER_SECONDS, self.guard(self._try_more))
            self._timers.append(timer)

    def _try_more(self) -> None:
        """Try the next address of a family that has not answered."""
        alive = {is_ipv6(series.address) for series in self._series if series.answers}
        self._untried = [address for address in self._untried if is_ipv6(address) not in alive]
        if self._untried:
            self._try_next()
            self._stagger()

    def _try_next(self) -> None:
        if self._is_done:
            return
        count = self.spec.ping_count
        pause = min(PAUSE_SECONDS, self.spec.timeout / 2 / count)
        address = self._untried.pop(0)
        series = Series(self.tools.loop, address, count, pause, self.guard(self._changed))
        self._series.append(series)
        try:
            series.start()
        except PingNotAllowed as fault:
            self.cancel()
            self.fail(str(fault))

    def _changed(self) -> None:
        """Finish if no more answers are expected; otherwise set a timer for the time when none
        is.
        """
        if self._is_done:
            return
        answered = [series for series in self._series if series.answers]
        if not answered:
            if all(series.is_over for series in self._series):
                if self._untried:
                    self._try_next()
                else:
                    self._finish()
            return
        now = time.monotonic()
        ends = [self._end_of(series) for series in self._series]
        if max(ends) <= now:
            self._finish()
        elif max(ends) < self.deadline:
            self._timers.append(self.tools.loop.call_at(max(ends), self.guard(self._changed)))

    def _end_of(self, series: Series) -> float:
        """Until when to wait for this series (monotonic), now that there is an answer."""
        if series.is_over or not series.echoes:
            return 0.0
        if not series.is_sent:
            return self.deadline
        wait = LAST_WAIT if series.answers else DEAD_WAIT
        slowest = max((echo.seconds or 0.0 for echo in series.echoes), default=0.0)
        return series.echoes[-1].sent_at + max(wait, 2 * slowest)

    def _finish(self) -> None:
        if self._is_done:
            return
        self.cancel()
        self.on_done(make_outcome(self, self._resolution, self._series))


def make_outcome(check: RunningCheck, resolution: Resolution, tried: Sequence[Series]) -> Outcome:
    answered = sorted((series for series in tried if series.answers), key=_first_answer)
    best = answered[0] if answered else None
    trips = [echo.seconds for echo in best.answers if echo.seconds] if best else []
    response_ms = whole_ms(median(trips)) if trips else None
    ip = best.address if best else None
    return check.build_outcome(
        resolution,
        resolution.failure or (None if best else judge(check, tried)),
        response_ms=response_ms,
        timings=Timings(dns=whole_ms(resolution.dns), ttfb=response_ms),
        ip=ip,
        warnings=_dead_families(answered, tried) if best else (),
        answer=(ip, best and len(best.answers)),
        single={AssertionSource.LOSS: _loss(best) if best else None},
        evidence=lambda: {"echoes": _echoes(tried)[:MAX_ECHOES]},
        answered=best is not None,
    )


def _loss(series: Series) -> int:
    """Percent of the pings without an answer."""
    return round(100 * (1 - len(series.answers) / len(series.echoes)))


def _first_answer(series: Series) -> float:
    return min(echo.sent_at + (echo.seconds or 0.0) for echo in series.answers)


def _dead_families(answered: Sequence[Series], tried: Sequence[Series]) -> tuple[str, ...]:
    alive = {is_ipv6(series.address) for series in answered}
    dead = {is_ipv6(series.address) for series in tried} - alive
    return tuple(str(Warn.IPV6_UNREACHABLE if is_six else Warn.IPV4_UNREACHABLE) for is_six in dead)


def _echoes(tried: Sequence[Series]) -> list[dict[str, Any]]:
    return [_facts(series.address, echo) for series in tried for echo in series.echoes]


def _facts(address: str, echo: Echo) -> dict[str, Any]:
    error = None if echo.error is None else os.strerror(echo.error)
    if error and echo.router:
        error = f"{error} ({echo.router})"
    ms = None if echo.seconds is None else round(echo.seconds * 1000, 3)
    return {"address": address, "ms": ms, "ttl": echo.ttl, "error": error}


def judge(check: RunningCheck, tried: Sequence[Series]) -> Failure:
    """Why no echo was answered."""
    failed = [(series, echo) for series in tried for echo in series.echoes if echo.error]
    for series, echo in failed:
        number, error = echo.error or 0, os.strerror(echo.error or 0)
        if number in OWN_ERRORS:
            return Failure(Cause.CHECK_ERROR, _("The check itself failed: %(fault)s.", fault=error))
        if echo.router:
            sentence = N_(
                "%(address)s cannot be reached: the router %(router)s reports “%(error)s”."
            )
            values = {"address": series.address, "router": echo.router, "error": error}
            return Failure(Cause.HOST_UNREACHABLE, _(sentence, **values))
        return connect_failure(number, series.address, 0.0, error)
    sent = len(tried[0].echoes) if tried else 0
    sentence = _n(
        "No answer from %(tried)s to %(num)s ping within the limit of %(limit)s s.",
        "No answer from %(tried)s to %(num)s pings within the limit of %(limit)s s.",
        sent,
        tried=", ".join(series.address for series in tried[:3]),
        limit=f"{check.spec.timeout:g}",
    )
    return Failure(Cause.PING_TIMEOUT, sentence)
