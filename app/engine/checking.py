"""The loop of every process that makes checks: checker, agent, and prober of a queue.

It starts due checks, collects their outcomes, holds back failures that its own network may have
caused, counts checks, and returns the final outcomes. The caller decides which checks are due and
what happens to an outcome.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import datetime
from functools import partial

from app.checks.prober import Prober
from app.config import Settings
from app.engine.carriers import CheckCarrier, Finished, RemoteNetwork
from app.engine.network import OwnNetwork
from app.engine.plan import Job, Plan
from app.engine.schedule import Claim
from app.net.canary import network_works, parse_canaries
from app.net.policy import Policy
from app.records import CheckSpec, Outcome, Verdict

MAX_IN_TURN = 200  # checks that start, and outcomes that are collected, in one turn of the loop
GATHER_SECONDS = 0.05  # how long an outcome that wakes the loop waits for others
PATIENT_SECONDS = 1.0  # a good outcome that nobody waits for may wait so long for the next turn
MIN_PAUSE_SECONDS = 0.1  # between two rounds of starts
NETWORK_SECONDS = 0.5  # between two looks at failures that wait for a sign of the network
STEP_SECONDS = 1.0  # a larger difference means that a clock was set
STOP_SECONDS = 7.0  # how long a stop waits for running checks
WINDOW_SECONDS = 60.0


def make_prober(settings: Settings, policy: Callable[[], Policy]) -> Prober:
    """A running prober, which the caller closes. Call it after a fork, never before."""
    return Prober(
        policy=policy,
        dns_servers=settings.name_servers,
        ca_bundle=settings.ca_bundle,
        location=settings.location,
    )


def own_policy(settings: Settings, process: str) -> Callable[[], Policy]:
    """The policy of a process without a database. ``process``: its name in error messages."""
    policy = Policy.parse(settings.allow_networks or "", f"in WAKEFUL_ALLOW_NETWORKS of {process}")
    return lambda: policy


def own_canaries(settings: Settings) -> Callable[[], bool] | None:
    """A function that says whether the network of a process without a database works; None if it
    has no canaries.
    """
    canaries = parse_canaries(settings.canaries)
    ask = partial(network_works, canaries, dns_servers=settings.name_servers)
    return ask if canaries else None


class CheckLoop:
    """Starts checks and collects their outcomes. ``works`` asks the canaries of this process;
    ``remote`` is the network of the probers, if these make the checks. ``gather``: how many seconds
    an outcome waits for others.
    """

    carrier: CheckCarrier  # makes the checks; set after a fork, before the loop runs

    def __init__(
        self,
        works: Callable[[], bool] | None,
        *,
        remote: RemoteNetwork | None = None,
        gather: float = GATHER_SECONDS,
    ) -> None:
        self.network = remote or OwnNetwork(works, self.wake)
        self.on_turn: Callable[[], object] = lambda: None  # called at each turn
        self.made = 0  # checks since the start, without those that policy blocked
        self._gather = gather
        self._outcomes: deque[Finished] = deque()
        self._woken = threading.Event()
        self._waits_until = float("-inf")  # when a wait ends at the latest (monotonic)

    def run(
        self,
        turn: Callable[[], object],
        receive: Callable[[list[Finished]], object],
        stop: threading.Event,
    ) -> None:
        """Call ``turn`` until ``stop`` is set or it raises. Then wait up to STOP_SECONDS for
        running checks, and pass their outcomes to ``receive``.
        """
        try:
            while not stop.is_set():
                self.on_turn()
                turn()
        finally:
            self.carrier.close(STOP_SECONDS)
            while self._outcomes:
                receive(self.collect(0.0))

    def start(self, spec: CheckSpec, claim: Claim, *, awaited: bool = True) -> None:
        """Start a check. ``awaited``: somebody waits for the outcome, even if it is good."""
        self.carrier.submit(spec, partial(self.put_outcome, claim, awaited=awaited))

    def put_outcome(self, claim: Claim, outcome: Outcome, *, awaited: bool = True) -> None:
        """Add the outcome of a check. Safe from any thread. A good outcome that nobody waits for
        does not end a wait that ends soon: each such wake-up would stop the thread of the checks.
        """
        self._outcomes.append((claim, outcome))
        may_wait = outcome.result.verdict is Verdict.UP and not (awaited or self.network.waits)
        if not may_wait or self._waits_until > time.monotonic() + PATIENT_SECONDS:
            self._woken.set()

    def wake(self) -> None:
        """End a wait. Safe from any thread."""
        self._woken.set()

    def collect(self, wait: float) -> list[Finished]:
        """Wait up to ``wait`` seconds for an outcome that ends the wait, then ``gather`` seconds
        for more. Returns the final outcomes: new ones, and those that were held back until it was
        known whether the network of this process works.
        """
        wait = max(0.0, min(wait, NETWORK_SECONDS) if self.network.waits else wait)
        # Set before the outcomes are counted: later outcomes wake this thread.
        until = self._waits_until = time.monotonic() + wait
        if self._outcomes:
            wait = min(wait, PATIENT_SECONDS)
        if self._woken.wait(wait) and len(self._outcomes) < MAX_IN_TURN:
            time.sleep(max(0.0, min(self._gather, until - time.monotonic())))
        self._woken.clear()
        finished = [self._outcomes.popleft() for _ in range(min(MAX_IN_TURN, len(self._outcomes)))]
        if self._outcomes:
            self._woken.set()
        self.made += sum(outcome.result.was_made for _claim, outcome in finished)
        now = time.monotonic()
        return self.network.sort(finished, now) + self.network.collect(now)


class PlannedLoop(CheckLoop):
    """The loop of a process with a schedule, ``plan``, whose time is that of ``clock``."""

    def __init__(
        self,
        works: Callable[[], bool] | None,
        plan: Plan,
        clock: Callable[[], datetime],
        *,
        remote: RemoteNetwork | None = None,
    ) -> None:
        super().__init__(works, remote=remote)
        self._plan, self._clock = plan, clock
        self._ahead = self._clock_ahead()  # at the last turn
        self._was_down = False  # whether the plan knows that the network is down
        self._counts: deque[tuple[float, int]] = deque()  # of checks, by time (monotonic)

    def start_due(self, limit: int = MAX_IN_TURN, without: Collection[int] = ()) -> list[Job]:
        """Start the due checks; returns their jobs. Those of monitors in ``without`` begin in
        the plan, but are not started: they count as running until they end or their time is over.
        """
        due = self._plan.begin_due(self._clock(), limit)
        jobs = [job for job in due if job.monitor_id not in without]
        for job in jobs:
            self.start(job.spec, job.claim(), awaited=job.standing.is_awaited)
        return jobs

    def until_due(self) -> float | None:
        """The seconds until the next check is due, negative if it is overdue."""
        due = self._plan.next()
        return None if due is None else (due - self._clock()).total_seconds()

    def notice_step(self) -> float:
        """Rearrange the plan if the clock was set. Returns by how many seconds it was set, or 0."""
        ahead = self._clock_ahead()
        step = ahead - self._ahead
        if abs(step) <= STEP_SECONDS:
            return 0.0
        self._ahead = ahead
        self._plan.rearrange(self._clock())
        return step

    def _clock_ahead(self) -> float:
        """By how many seconds the clock is ahead of the monotonic one: constant until it is set."""
        return self._clock().timestamp() - time.monotonic()

    @property
    def network_changed(self) -> bool:
        return self.network.down != self._was_down

    def follow_network(self) -> None:
        """Notify the plan, which then repeats checks that failed because of the network."""
        self._was_down = self.network.down
        self._plan.set_network(not self._was_down, self._clock())

    def per_minute(self, clock: float) -> int:
        """How many checks were made in the last minute. ``clock``: monotonic, in seconds. In the
        first minute it is the number of checks since the start: the first checks come together,
        and the next ones an interval later.
        """
        self._counts.append((clock, self.made))
        while len(self._counts) > 1 and self._counts[1][0] <= clock - WINDOW_SECONDS:
            self._counts.popleft()
        since, earlier_count = self._counts[0]
        return round((self.made - earlier_count) * 60 / max(WINDOW_SECONDS, clock - since))
