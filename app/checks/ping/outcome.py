"""Turn the echoes of a check by ping into its outcome; ``judge`` says why it is down.

The evidence is ``{"url", "resolved", "refused", "ip", "timings", "echoes"}``; an echo is
``{"address", "ms", "ttl", "error"}``: its round trip, or what came in its place, or neither.

One answer is ``up``. ``response_time`` is the median of the round trips to the address that
answered first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from statistics import median
from typing import Any

from app.checks.outcome import Failure, connect_failure, milliseconds
from app.checks.running import Resolution, RunningCheck
from app.i18n import N_, _, _n
from app.net.icmp import Echo, Series
from app.net.race import OURS, is_ipv6
from app.records import AssertionSource, Cause, Outcome, Timings, Warn

MAX_ECHOES = 20  # in the evidence


def make_outcome(check: RunningCheck, resolution: Resolution, tried: Sequence[Series]) -> Outcome:
    answered = sorted((series for series in tried if series.answers), key=_first_answer)
    best = answered[0] if answered else None
    trips = [echo.seconds for echo in best.answers if echo.seconds] if best else []
    response_ms = milliseconds(median(trips)) if trips else None
    ip = best.address if best else None
    return check.outcome_of(
        resolution,
        resolution.failure or (None if best else judge(check, tried)),
        response_ms=response_ms,
        timings=Timings(dns=milliseconds(resolution.dns), ttfb=response_ms),
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
    return tuple(str(Warn.IPV6_UNREACHABLE if six else Warn.IPV4_UNREACHABLE) for six in dead)


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
        if number in OURS:
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
