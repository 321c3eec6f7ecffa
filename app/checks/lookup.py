"""The addresses that a check may connect to: resolve the target's name, then judge by policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from app.checks.outcome import Failure
from app.checks.tools import CheckTools, OnError, guarded
from app.i18n import _
from app.net.loop import Timer
from app.net.policy import RESOLVES, Policy, Refusal
from app.net.resolver import Resolved
from app.records import Cause
from app.rules.url import Target


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result of a look-up. ``addresses``: those that policy allows. ``dns``: how long the
    look-up took, in seconds. ``failure`` is set if no address is left.
    """

    resolved: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    dns: float | None = None
    failure: Failure | None = None


class LookUp:
    """One look-up until ``deadline`` (monotonic). ``limit`` is the check's time limit in seconds.

    ``done`` is called once: immediately for an IP address or a cached name, else on the loop.
    """

    def __init__(
        self,
        tools: CheckTools,
        target: Target,
        policy: Policy,
        deadline: float,
        limit: float,
        done: Callable[[Resolution], None],
        on_error: OnError,
    ) -> None:
        self._tools = tools
        self._target = target
        self._policy = policy
        self._deadline = deadline
        self._limit = limit
        self._done = done
        self._on_error = on_error
        self._asked_at = 0.0
        self._timer: Timer | None = None
        self._cancel: Callable[[], None] | None = None

    def start(self) -> None:
        target = self._target
        if target.address is not None:
            self._judge(Resolved(target.ascii_host, (target.address,)), None)
            return
        resolved = self._tools.resolver.without_dns(target.dns_name)
        if resolved is not None:
            self._judge(resolved, 0.0)
            return
        self._asked_at = time.monotonic()
        self._timer = self._tools.loop.call_at(
            self._deadline, partial(guarded, self._on_error, self._no_answer)
        )
        self._cancel = self._tools.resolver.lookup(
            target.dns_name, partial(guarded, self._on_error, self._answered)
        )

    def _answered(self, resolved: Resolved) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._judge(resolved, time.monotonic() - self._asked_at)

    def _no_answer(self) -> None:
        resolved = self._tools.resolver.result_so_far(self._target.dns_name, self._limit)
        if self._cancel is not None:
            self._cancel()
        self._judge(resolved, time.monotonic() - self._asked_at)

    def _judge(self, resolved: Resolved, dns: float | None) -> None:
        if resolved.cause is not None:
            self._done(Resolution(dns=dns, failure=Failure(resolved.cause, resolved.sentence)))
            return
        allowed: list[str] = []
        refused: list[Refusal] = []
        for address in resolved.addresses:
            refusal = self._policy.refusal(address)
            if refusal is None:
                allowed.append(address)
            else:
                refused.append(refusal)
        failure = None if allowed else self._blocked(refused[0])
        self._done(Resolution(resolved.addresses, tuple(allowed), tuple(refused), dns, failure))

    def _blocked(self, refusal: Refusal) -> Failure:
        sentence = refusal.sentence
        if self._target.address is None:
            host = self._target.ascii_host
            resolved = _(RESOLVES, host=host)
            sentence = f"{resolved} {sentence}"
        return Failure(Cause.BLOCKED_BY_POLICY, sentence)
