"""A running check of any kind: its tools, its life from start to outcome, and all checks of one
kind in one prober.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from app.checks.certificate import TrustStore
from app.checks.curl.transfers import Transfers
from app.checks.outcome import Failure, GoodEvidence, check_error, verdict_of
from app.checks.redact import Redactor
from app.codec.evidence import fitted
from app.i18n import _
from app.net.loop import Loop
from app.net.policy import RESOLVES, Policy, Refusal
from app.net.race import Families
from app.net.resolver import Resolved, Resolver
from app.records import AssertionSource, Cause, CheckSpec, Outcome, Result, Timings, Verdict
from app.rules.assertions import AnswerParts, evaluate, unevaluated
from app.rules.url import Target

OnDone = Callable[[Outcome], None]
OnError = Callable[[Exception], None]


@dataclass(frozen=True, slots=True)
class CheckTools:
    """The tools that all checks of one prober share."""

    loop: Loop
    resolver: Resolver
    families: Families
    location: str
    transfers: Transfers
    trust: TrustStore


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result of a look-up. ``addresses``: the resolved addresses that the policy allows.
    ``dns``: how long the look-up took, in seconds; None for an IP address. ``failure`` is set if
    there is no allowed address.
    """

    resolved: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    dns: float | None = None
    failure: Failure | None = None

    def as_evidence(self) -> dict[str, Any]:
        """The addresses as evidence."""
        return {
            "resolved": list(self.resolved),
            "refused": [
                {"address": str(refusal.address), "network": str(refusal.network)}
                for refusal in self.refusals
            ],
        }


class RunningCheck:
    """A running check. ``on_done`` is called once with its outcome, on the loop; an exception goes
    to ``on_error`` instead. Each kind implements ``_resolved``, which gets the addresses of the
    target (or ``begin``, if the check does not begin with looking the target up), and ``cancel``,
    which closes sockets and timers.
    """

    def __init__(
        self, tools: CheckTools, good: GoodEvidence, spec: CheckSpec, target: Target,
        policy: Policy, on_done: OnDone, on_error: OnError,
    ) -> None:  # fmt: skip
        self.tools, self.good = tools, good
        self.spec, self.target, self.policy = spec, target, policy
        self.on_done, self.on_error = on_done, on_error
        self.checked_at = datetime.now(UTC)
        self.deadline = time.monotonic() + spec.timeout

    def begin(self) -> None:
        self.look_up(self.target, self._resolved)

    def _resolved(self, resolution: Resolution) -> None:
        raise NotImplementedError

    def cancel(self) -> None:
        raise NotImplementedError

    def guard(self, call: Callable[..., None]) -> Callable[..., None]:
        """A callback for the loop that calls ``call`` and passes an exception to ``on_error``.
        Without it, the check would never finish.
        """
        return partial(self._guarded, call)

    def _guarded(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception as error:
            self.on_error(error)

    def fail(self, sentence: str) -> None:
        """End the check by a fault of our own."""
        self.on_done(check_error(self.spec, self.tools.location, sentence))

    # --- The addresses that it may connect to

    def look_up(self, target: Target, on_resolved: Callable[[Resolution], None]) -> None:
        """Resolve the target's name until the deadline, and ask the policy about its addresses.
        ``on_resolved`` is called once: before this returns for an IP address or a cached name, else
        by the loop.
        """
        name, resolver = target.dns_name, self.tools.resolver

        def finish(resolved: Resolved, seconds: float | None) -> None:
            self._guarded(on_resolved, self._permitted(target, resolved, seconds))

        if target.address is not None:
            finish(Resolved(target.ascii_host, (target.address,)), None)
            return
        cached = resolver.without_dns(name)
        if cached is not None:
            finish(cached, 0.0)
            return
        asked_at = time.monotonic()

        def answered(resolved: Resolved) -> None:
            timer.cancel()
            finish(resolved, time.monotonic() - asked_at)

        def give_up() -> None:
            resolved = resolver.result_so_far(name, self.spec.timeout)
            forget()
            finish(resolved, time.monotonic() - asked_at)

        timer = self.tools.loop.call_at(self.deadline, self.guard(give_up))
        forget = resolver.look_up(name, self.guard(answered))

    def _permitted(self, target: Target, resolved: Resolved, seconds: float | None) -> Resolution:
        if resolved.cause is not None:
            return Resolution(dns=seconds, failure=Failure(resolved.cause, resolved.sentence))
        by_address = [(address, self.policy.refusal(address)) for address in resolved.addresses]
        allowed = tuple(address for address, refusal in by_address if refusal is None)
        refusals = tuple(refusal for _address, refusal in by_address if refusal is not None)
        failure = None
        if not allowed:
            sentence = refusals[0].sentence
            if target.address is None:
                sentence = f"{_(RESOLVES, host=target.ascii_host)} {sentence}"
            failure = Failure(Cause.BLOCKED_BY_POLICY, sentence)
        return Resolution(resolved.addresses, allowed, refusals, seconds, failure)

    # --- The outcome of a kind that is not HTTP

    def build_outcome(
        self, resolution: Resolution, failure: Failure | None, *,
        timings: Timings, response_ms: int | None, ip: str | None, answer: tuple[object, ...],
        evidence: Callable[[], dict[str, Any]], single: dict[AssertionSource, object],
        warnings: tuple[str, ...] = (), **more: Any,
    ) -> Outcome:  # fmt: skip
        """Evaluate the assertions and build the outcome. A check that is ``up`` has evidence only
        if ``answer`` has changed or the last evidence is old (``GoodEvidence``), any other check
        always. ``evidence`` returns the fields beside ``url``, ``resolved``, ``refused``, ``ip``
        and ``timings``. ``single``: the values for assertions by source, without the response time.
        ``more``: other fields of the outcome.
        """
        spec = self.spec
        checked = unevaluated(spec.assertions)
        if failure is None and spec.assertions:
            values = {**single, AssertionSource.RESPONSE_TIME: response_ms}
            parts = AnswerParts(values, hide=Redactor(spec).text)
            checked, sentence = evaluate(spec.assertions, parts)
            failure = None if sentence is None else Failure(Cause.ASSERTION_FAILED, sentence)
        verdict, failure = verdict_of(failure, spec, response_ms)
        result = Result(
            checked_at=self.checked_at,
            verdict=verdict,
            monitor_id=spec.monitor_id,
            cause_code=failure.code if failure else None,
            cause=failure.sentence if failure else None,
            response_time=response_ms,
            timings=timings,
            ip=ip,
            warnings=warnings,
            location=self.tools.location,
            assertions=checked,
        )
        if verdict == Verdict.UP and not self.good.register(spec.monitor_id, (spec.url, *answer)):
            return Outcome(result, **more)
        facts = {
            "url": spec.url,
            **resolution.as_evidence(),
            "ip": ip,
            "timings": timings.by_phase(),
            **evidence(),
        }
        return Outcome(result, fitted(facts), **more)


class RunningChecks:
    """The running checks of one kind in one prober. ``check``: the class of the kind's checks. All
    methods are called on the loop's thread, ``close`` when that has ended.
    """

    def __init__(self, tools: CheckTools, check: type[RunningCheck]) -> None:
        self._tools = tools
        self._check = check
        self._good = GoodEvidence()
        self._running: set[RunningCheck] = set()

    def start(
        self, spec: CheckSpec, target: Target, policy: Policy, on_done: OnDone, on_error: OnError
    ) -> None:
        """Start a check of ``target``, the URL of ``spec`` taken apart. ``on_done`` is called once
        with its outcome, on the loop; if our own code raises, ``on_error`` is called instead.
        """

        def finished(outcome: Outcome) -> None:
            self._running.discard(run)
            on_done(outcome)

        def failed(error: Exception) -> None:
            self._running.discard(run)
            run.cancel()
            on_error(error)

        run = self._check(self._tools, self._good, spec, target, policy, finished, failed)
        self._running.add(run)
        run.guard(run.begin)()

    def close(self) -> None:
        """Drop the checks in flight without calling ``on_done``."""
        for run in self._running:
            run.cancel()
        self._running.clear()
