"""The checks of the kind http in one prober."""

from __future__ import annotations

from app.checks.certificate import TrustStore
from app.checks.http.curls import Curls
from app.checks.http.exchange import Trace
from app.checks.http.outcome import Outcomes
from app.checks.http.run import Run
from app.checks.tools import Broken, Done, Tools
from app.net.policy import Policy
from app.records import CheckSpec
from app.rules.url import Target


class HttpChecks:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._curls = Curls(tools.loop, tools.ca_bundle, tools.user_agent)
        self.outcomes = Outcomes(TrustStore(tools.ca_bundle), tools.location)

    def start(
        self, spec: CheckSpec, target: Target, policy: Policy, done: Done, broken: Broken
    ) -> None:
        def finished(trace: Trace) -> None:
            done(self.outcomes.make(trace))

        Run(self._tools, self._curls, spec, policy, finished, broken).start(target)

    def close(self) -> None:
        self._curls.close()
