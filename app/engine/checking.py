"""What the loops that make checks share: a checker's, an agent's, and that of a queue's prober.

Each starts checks with a prober, collects the outcomes, sorts out failures of its own network, and
says how many checks it makes a minute.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from app.checks.prober import Prober
from app.config import Settings
from app.engine.carriers import Finished, RemoteNetwork
from app.engine.network import Network
from app.engine.schedule import Claim
from app.net.canary import network_works, parse_canaries
from app.net.policy import Policy
from app.records import Outcome

COLLECTED = 200  # outcomes that are taken at once
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
    """The policy of a process without a database, which errors call ``process``."""
    policy = Policy.parse(settings.allow_networks or "", f"in WAKEFUL_ALLOW_NETWORKS of {process}")
    return lambda: policy


def own_canaries(settings: Settings) -> Callable[[], bool] | None:
    """Whether the network of a process without a database works; None if it has no canaries."""
    canaries = parse_canaries(settings.canaries)
    ask = partial(network_works, canaries, dns_servers=settings.name_servers)
    return ask if canaries else None


class Collector:
    """Outcomes on their way from a prober's thread to the loop that started their checks.
    ``gather``: how many seconds one waits for others.
    """

    def __init__(self, gather: float) -> None:
        self._gather = gather
        self._back: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()

    def came_back(self, claim: Claim, outcome: Outcome) -> None:
        """Safe from any thread."""
        self._back.put((claim, outcome))

    def wake(self) -> None:
        """End a wait. Safe from any thread."""
        self._back.put(None)

    @property
    def waiting(self) -> int:
        return self._back.qsize()

    def collect(self, wait: float) -> list[Finished]:
        """Wait up to ``wait`` seconds for an outcome, then a moment for more of them."""
        until = time.monotonic() + max(0.0, wait)
        taken: list[Finished | None] = []
        try:
            taken.append(self._back.get(timeout=max(0.0, wait)))
            if self._back.qsize() < COLLECTED:
                # Not one by one: each would wake this thread, and stop the one that checks.
                time.sleep(max(0.0, min(self._gather, until - time.monotonic())))
            while len(taken) < COLLECTED:
                taken.append(self._back.get_nowait())
        except queue.Empty:
            pass
        return [finished for finished in taken if finished is not None]


def sort(network: Network | RemoteNetwork, finished: list[Finished]) -> list[Finished]:
    """The checks whose outcomes are final: of these, and of those that waited."""
    now = time.monotonic()
    return network.sort(finished, now) + network.collect(now)


class Rate:
    """How many checks were made in the last minute."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def per_minute(self, clock: float, count: int) -> int:
        """The rate, now that there have been ``count`` checks in all. ``clock``: monotonic, in
        seconds. Less than a minute after the start it is the checks until now: first checks come
        together, and the next ones an interval later.
        """
        self._counts.append((clock, count))
        while len(self._counts) > 1 and self._counts[1][0] <= clock - WINDOW_SECONDS:
            self._counts.popleft()
        since, before = self._counts[0]
        return round((count - before) * 60 / max(WINDOW_SECONDS, clock - since))
