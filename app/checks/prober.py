"""The prober: runs thousands of checks in parallel on one thread.

Create it after a fork, not before: threads do not survive a fork.
"""

from __future__ import annotations

import logging
import os
import resource
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name

import certifi

from app.checks.certificate import TrustStore
from app.checks.curl.transfers import Transfers
from app.checks.kinds import KINDS, read_url
from app.checks.outcome import check_error
from app.checks.running import CheckTools, OnDone, RunningChecks
from app.i18n import _
from app.net.hosts import DnsServer, SystemNames
from app.net.loop import MAX_ENDING, Loop
from app.net.policy import Policy
from app.net.race import Families
from app.net.resolver import Resolver
from app.records import CheckSpec, Outcome

log = logging.getLogger(__name__)

DEFAULT_USER_AGENT = "Wakeful/1.0 (uptime check)"
MAX_RUNNING = 2000
# File descriptors of a check: its connection, two DNS questions, the other address family.
_FILES_A_CHECK = 4
_FILES_OF_OTHERS = 100 + MAX_ENDING
_SETTLE_SECONDS = 1.0  # at the end, for the connections that are ending
_GRACE_SECONDS = 5.0  # beyond the time limit of a check, before a caller that waits gives up


class Prober:
    """Runs checks. Thread-safe; ``on_done`` is called on the prober's thread and must be quick.

    ``policy`` is called at the start of each check, so that a change on the Settings page takes
    effect at once. ``dns_servers`` (default: the system's) and ``ca_bundle`` (a PEM file added to
    the trusted authorities) are the settings of the same names.
    """

    def __init__(
        self, *, policy: Callable[[], Policy], dns_servers: Sequence[DnsServer] = (),
        ca_bundle: str | None = None, location: str = "default",
        user_agent: str = DEFAULT_USER_AGENT, names: SystemNames | None = None,
    ) -> None:  # fmt: skip
        self._policy = policy
        self._bundle = Bundle(ca_bundle)
        self._loop = Loop()
        self._families = Families(self._loop)
        self._resolver = Resolver(self._loop, names or SystemNames(tuple(dns_servers)))
        self._tools = CheckTools(
            loop=self._loop,
            resolver=self._resolver,
            families=self._families,
            location=location,
            transfers=Transfers(self._loop, self._bundle.path, user_agent),
            trust=TrustStore(self._bundle.path),
        )
        self._checks = {
            kind.name: RunningChecks(self._tools, resolve_name(kind.check))
            for kind in KINDS
            if kind.check is not None
        }
        self._max_running = _max_running()
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        # By ticket: the checks that were submitted and whose ``on_done`` has not been called.
        self._unfinished: dict[int, CheckSpec] = {}
        self._tickets = 0
        self._closing = False
        self._torn_down = False
        self._waiting: deque[Callable[[], None]] = deque()  # on the loop's thread
        self._running = 0
        self._thread = threading.Thread(target=self._loop.run, name="wakeful-prober", daemon=True)
        self._thread.start()

    @property
    def in_flight(self) -> int:
        """The number of checks submitted whose ``on_done`` has not been called yet."""
        return len(self._unfinished)

    def submit(self, spec: CheckSpec, on_done: OnDone) -> None:
        """Start a check. Raises RuntimeError once ``close`` has been called."""
        with self._lock:
            if self._closing:
                raise RuntimeError("The prober is closed.")
            self._tickets += 1
            ticket = self._tickets
            self._unfinished[ticket] = spec
        self._loop.call_soon_threadsafe(partial(self._accept, ticket, spec, on_done))

    def check(self, spec: CheckSpec) -> Outcome:
        """Run one check and wait for it. Raises TimeoutError if the prober does not answer."""
        ready = threading.Event()
        outcomes: list[Outcome] = []

        def on_done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            ready.set()

        self.submit(spec, on_done)
        if not ready.wait(spec.timeout + _GRACE_SECONDS):
            raise TimeoutError(_("The prober did not finish the check in time."))
        return outcomes[0]

    def close(self, timeout: float = 0.0) -> list[CheckSpec]:
        """Accept no more checks, wait up to ``timeout`` seconds for those in flight, and return the
        specs of the unfinished ones, whose ``on_done`` is never called.

        May be called twice, but not from an ``on_done``.
        """
        deadline = time.monotonic() + timeout
        with self._idle:
            self._closing = True
            while self._unfinished and (remaining := deadline - time.monotonic()) > 0:
                self._idle.wait(remaining)
            abandoned = list(self._unfinished.values())
            self._unfinished.clear()
            torn_down, self._torn_down = self._torn_down, True
        if not torn_down:
            self._loop.stop()
            self._thread.join()
            for checks in self._checks.values():
                checks.close()
            self._tools.transfers.close()
            self._resolver.close()
            self._families.close()
            self._loop.settle(_SETTLE_SECONDS)
            self._loop.close()
            self._bundle.close()
        return abandoned

    # --- on the loop's thread

    def _accept(self, ticket: int, spec: CheckSpec, on_done: OnDone) -> None:
        begin = partial(self._begin, ticket, spec, on_done)
        if self._running < self._max_running:
            begin()
        else:
            self._waiting.append(begin)

    def _begin(self, ticket: int, spec: CheckSpec, on_done: OnDone) -> None:
        self._running += 1
        finish = partial(self._finish, ticket, on_done)

        def fail(sentence: str) -> None:
            finish(check_error(spec, self._tools.location, sentence))

        def on_error(error: Exception) -> None:
            log.error(
                "A check failed by a fault of ours (monitor %s)", spec.monitor_id, exc_info=error
            )
            name = type(error).__name__
            fail(_("The check itself failed: %(fault)s. The log says more.", fault=name))

        if spec.fault is not None:
            log.error("Monitor %s: %s", spec.monitor_id, spec.fault)
            fail(spec.fault)
            return
        try:
            kind, target = read_url(spec.url)
        except ValueError as error:
            fail(_("The URL cannot be checked.") + f" {error}")
            return
        try:
            self._checks[kind.name].start(spec, target, self._policy(), finish, on_error)
        except Exception as error:
            on_error(error)

    def _finish(self, ticket: int, on_done: OnDone, outcome: Outcome) -> None:
        with self._idle:
            is_waited_for = self._unfinished.pop(ticket, None) is not None
            if not self._unfinished:
                self._idle.notify_all()
        self._running -= 1
        if self._waiting and self._running < self._max_running:
            # Not called directly: a thousand checks that fail together would overflow the stack.
            self._loop.call_soon(self._waiting.popleft())
        if is_waited_for:
            try:
                on_done(outcome)
            except Exception:
                log.exception("The outcome of a check could not be handed on")


class Bundle:
    """The file of trusted authorities for curl, at ``path``. With the file ``extra`` added, it is
    in memory until ``close``: a killed process leaves no copy on disk, and ``path`` is valid only
    in this process and its forks. Raises OSError if ``extra`` cannot be read.
    """

    def __init__(self, extra: str | None) -> None:
        self._memory: int | None = None
        self.path = certifi.where()
        if extra:
            data = Path(extra).read_bytes() + b"\n" + Path(self.path).read_bytes()
            self._memory = os.memfd_create("wakeful-ca")
            self.path = f"/proc/self/fd/{self._memory}"
            with open(self._memory, "wb", closefd=False) as file:
                file.write(data)

    def close(self) -> None:
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None


def _max_running() -> int:
    """How many checks may run in parallel, by the limit on this process's open files."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return MAX_RUNNING
    return max(10, min(MAX_RUNNING, (soft - _FILES_OF_OTHERS) // _FILES_A_CHECK))
