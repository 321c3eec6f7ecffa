"""One check of a TCP port (look up, connect to the first address that accepts, read), and all of
them in one prober.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from app.checks.lookup import LookUp, Resolution
from app.checks.outcome import GoodEvidence
from app.checks.tcp.outcome import TcpTrace, make_outcome
from app.checks.tools import CheckTools, Done, OnError, guarded
from app.net.families import routed
from app.net.loop import READ, Timer
from app.net.policy import Policy
from app.net.race import STAGGER_SECONDS, Race, RaceResult, interleaved
from app.records import CheckSpec, Warn
from app.rules.url import Target

BANNER_BYTES = 1024  # decision 3


class TcpCheck:
    """A running check. ``done`` is called once, on the loop; an exception goes to ``on_error``
    instead.
    """

    def __init__(
        self,
        tools: CheckTools,
        spec: CheckSpec,
        target: Target,
        policy: Policy,
        done: Callable[[TcpTrace], None],
        on_error: OnError,
    ) -> None:
        self._tools = tools
        self._policy = policy
        self._done = done
        self._on_error = on_error
        self._deadline = 0.0
        self._began = 0.0  # when the current phase began
        self._race: Race | None = None
        self._tcp: socket.socket | None = None
        self._timer: Timer | None = None
        self.trace = TcpTrace(spec, target, datetime.now(UTC))

    def start(self) -> None:
        spec, target = self.trace.spec, self.trace.target
        self._deadline = time.monotonic() + spec.timeout
        done = self._step(self._resolved)
        LookUp(
            self._tools, target, self._policy, self._deadline, spec.timeout, done, self._on_error
        ).start()

    def cancel(self) -> None:
        """Close all connections without calling ``done``."""
        if self._race is not None:
            self._race.cancel()
        self._hang_up()

    def _step(self, step: Callable[..., None]) -> Callable[..., None]:
        return partial(guarded, self._on_error, step)

    def _resolved(self, resolution: Resolution) -> None:
        self.trace.resolution = resolution
        if resolution.failure is not None:
            self._done(self.trace)
            return
        self.trace.tried = interleaved(routed(resolution.addresses))
        self._began = time.monotonic()
        self._race = Race(
            self._tools.loop,
            self.trace.tried,
            self.trace.target.port,
            self._deadline,
            stagger=STAGGER_SECONDS,
        )
        self._race.start(self._step(self._connected))

    def _connected(self, race: RaceResult) -> None:
        self._tcp = race.tcp
        now = time.monotonic()
        self.trace.connect, self._began = now - self._began, now
        self.trace.ip = race.address
        self.trace.race = race
        if self._tcp is None:
            self._done(self.trace)
        elif self.trace.reads_banner:
            self._timer = self._tools.loop.call_at(self._deadline, self._step(self._end))
            self._tools.loop.watch(self._tcp.fileno(), READ, self._step(self._ready))
        else:
            self._end()

    def _ready(self, _fd: int, _events: int) -> None:
        trace = self.trace
        if self._tcp is None:
            return
        try:
            piece = self._tcp.recv(BANNER_BYTES - len(trace.banner))
        except BlockingIOError:
            return
        except OSError as error:
            trace.broken_by = error.errno
            self._end()
            return
        if not piece:
            trace.closed = True
            self._end()
            return
        took = time.monotonic() - self._began
        trace.first_byte = took if trace.first_byte is None else trace.first_byte
        trace.rest = took - trace.first_byte
        trace.banner += piece
        if len(trace.banner) == BANNER_BYTES or (trace.spec.alert_text_lookup or "") in trace.text:
            self._end()

    def _end(self) -> None:
        self._hang_up()
        trace = self.trace
        # Not before the banner: a dead family may take all the time that the banner needs.
        self._tools.families.test(
            trace.resolution.addresses,
            trace.ip or "",
            trace.target.port,
            self._deadline,
            self._step(self._finish),
        )

    def _finish(self, warning: Warn | None) -> None:
        if warning is not None:
            self.trace.warnings.append(warning)
        self._done(self.trace)

    def _hang_up(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._tcp is not None:
            self._tools.loop.unwatch(self._tcp.fileno())
            self._tools.loop.hang_up(self._tcp)
            self._tcp = None


class TcpChecks:
    def __init__(self, tools: CheckTools) -> None:
        self._tools = tools
        self._good = GoodEvidence()
        self._runs: set[TcpCheck] = set()

    def start(
        self, spec: CheckSpec, target: Target, policy: Policy, done: Done, on_error: OnError
    ) -> None:
        def finished(trace: TcpTrace) -> None:
            outcome = make_outcome(trace, self._tools.location, self._good)
            self._runs.discard(run)
            done(outcome)

        def failed(error: Exception) -> None:
            self._runs.discard(run)
            run.cancel()
            on_error(error)

        run = TcpCheck(self._tools, spec, target, policy, finished, failed)
        self._runs.add(run)
        run.start()

    def close(self) -> None:
        for run in self._runs:
            run.cancel()
        self._runs.clear()
