"""The checks of the kind tcp in one prober."""

from __future__ import annotations

from app.checks.outcome import GoodEvidence
from app.checks.tcp.outcome import make_outcome
from app.checks.tcp.run import Run, Seen
from app.checks.tools import Broken, Done, Tools
from app.net.policy import Policy
from app.records import CheckSpec
from app.rules.url import Target


class TcpChecks:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._good = GoodEvidence()
        self._runs: set[Run] = set()

    def start(
        self, spec: CheckSpec, target: Target, policy: Policy, done: Done, broken: Broken
    ) -> None:
        def finished(seen: Seen) -> None:
            outcome = make_outcome(seen, self._tools.location, self._good)
            self._runs.discard(run)
            done(outcome)

        def failed(error: Exception) -> None:
            self._runs.discard(run)
            run.cancel()
            broken(error)

        run = Run(self._tools, spec, target, policy, finished, failed)
        self._runs.add(run)
        run.start()

    def close(self) -> None:
        for run in self._runs:
            run.cancel()
        self._runs.clear()
