"""What runs a check of a kind that is not HTTP: its life from start to outcome, and all of them in
one prober.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from app.checks.lookup import LookUp, Resolution
from app.checks.outcome import GoodEvidence
from app.checks.tools import CheckTools, Done, OnError, guarded
from app.net.policy import Policy
from app.records import CheckSpec
from app.rules.url import Target


class RunningCheck:
    """A running check. ``done`` is called once with its outcome, on the loop; an exception goes to
    ``on_error`` instead. A kind adds ``begin``, and ``cancel``, which closes what is open.
    """

    def __init__(
        self,
        tools: CheckTools,
        good: GoodEvidence,
        spec: CheckSpec,
        target: Target,
        policy: Policy,
        done: Done,
        on_error: OnError,
    ) -> None:
        self.tools, self.good = tools, good
        self.spec, self.target, self.policy = spec, target, policy
        self.done, self.on_error = done, on_error
        self.checked_at = datetime.now(UTC)
        self.deadline = time.monotonic() + spec.timeout

    def begin(self) -> None:
        raise NotImplementedError

    def cancel(self) -> None:
        raise NotImplementedError

    def guard(self, callback: Callable[..., None]) -> Callable[..., None]:
        """``step``, to be called by the loop: what it raises goes to ``on_error``."""
        return partial(guarded, self.on_error, callback)

    def look_up(self, target: Target, then: Callable[[Resolution], None]) -> None:
        LookUp(
            self.tools, target, self.policy, self.deadline, self.spec.timeout,
            self.guard(then), self.on_error,
        ).start()  # fmt: skip


class RunningChecks:
    """All checks of one kind in one prober. ``check`` makes one."""

    def __init__(self, tools: CheckTools, check: type[RunningCheck]) -> None:
        self._tools = tools
        self._check = check
        self._good = GoodEvidence()
        self._running: set[RunningCheck] = set()

    def start(
        self, spec: CheckSpec, target: Target, policy: Policy, done: Done, on_error: OnError
    ) -> None:
        def finished(outcome: Any) -> None:
            self._running.discard(run)
            done(outcome)

        def failed(error: Exception) -> None:
            self._running.discard(run)
            run.cancel()
            on_error(error)

        run = self._check(self._tools, self._good, spec, target, policy, finished, failed)
        self._running.add(run)
        run.begin()

    def close(self) -> None:
        for run in self._running:
            run.cancel()
        self._running.clear()
