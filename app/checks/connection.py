"""The base of checks over TCP: look up, and connect to the first address that accepts."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from app.checks.outcome import Failure, connect_failure
from app.checks.running import Resolution, RunningCheck
from app.i18n import N_, _
from app.net.loop import READ, Timer
from app.net.race import STAGGER_SECONDS, Race, RaceResult, interleaved, routed
from app.records import Cause, CheckSpec, Outcome, Warn
from app.rules.url import Target


@dataclass(slots=True)
class Connection:
    """The course of a connection. ``ip``: the address that accepted it; None without a connection.
    ``connect``: how long the attempt took, in seconds; None if there was none.
    """

    spec: CheckSpec
    target: Target
    resolution: Resolution = field(default_factory=Resolution)
    tried: tuple[str, ...] = ()
    race: RaceResult = field(default_factory=RaceResult)
    ip: str | None = None
    connect: float | None = None
    broken_by: int | None = None  # the error number that ended it
    closed: bool = False  # the server ended it
    warnings: list[str] = field(default_factory=list)

    @property
    def failure(self) -> Failure | None:
        """Why there is no connection; None if there is one."""
        if self.resolution.failure is not None:
            return self.resolution.failure
        return self._not_connected() if self.ip is None else None

    def _not_connected(self) -> Failure:
        address = _("%(host)s port %(port)s", host=", ".join(self.tried[:3]), port=self.target.port)
        number, error = self.race.error, os.strerror(self.race.error)
        if self.race.own_error is not None:
            return Failure(Cause.CHECK_ERROR, _("The check itself failed: %(fault)s.", fault=error))
        if self.race.silent:
            sentence = N_("No TCP connection to %(address)s within the limit of %(limit)s s.")
            limit = f"{self.spec.timeout:g}"
            return Failure(Cause.TIMEOUT_CONNECT, _(sentence, address=address, limit=limit))
        return connect_failure(number, address, self.connect or 0.0, error)


class ConnectionCheck(RunningCheck):
    """The check of a kind that uses a TCP connection. It implements ``talk``, which gets the open
    connection and must lead to a call of ``end``, and ``outcome``. ``phase_began``: when the
    present phase began (monotonic).
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.phase_began = 0.0
        self._race: Race | None = None
        self.tcp: socket.socket | None = None
        self._timer: Timer | None = None
        self.trace = Connection(self.spec, self.target)

    def cancel(self) -> None:
        if self._race is not None:
            self._race.cancel()
        self._hang_up()

    def _resolved(self, resolution: Resolution) -> None:
        self.trace.resolution = resolution
        if resolution.failure is not None:
            self.on_done(self.outcome())
            return
        self.trace.tried = interleaved(routed(resolution.addresses))
        self.phase_began = time.monotonic()
        self._race = Race(
            self.tools.loop, self.trace.tried, self.target.port, self.deadline, STAGGER_SECONDS
        )
        self._race.start(self.guard(self._connected))

    def _connected(self, race: RaceResult) -> None:
        self.tcp = race.tcp
        now = time.monotonic()
        self.trace.connect, self.phase_began = now - self.phase_began, now
        self.trace.ip = race.address
        self.trace.race = race
        if self.tcp is None:
            self.on_done(self.outcome())
        else:
            self.talk()

    def talk(self) -> None:
        raise NotImplementedError

    def outcome(self) -> Outcome:
        raise NotImplementedError

    def read_until_deadline(self, ready: Callable[[int, int], None]) -> None:
        """Call ``ready`` when the server has sent something, and ``end`` when the time is over."""
        if self.tcp is not None:
            self._timer = self.tools.loop.call_at(self.deadline, self.guard(self.end))
            self.tools.loop.watch(self.tcp.fileno(), READ, self.guard(ready))

    def stop_reading(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.tcp is not None:
            self.tools.loop.unwatch(self.tcp.fileno())

    def receive(self, max_bytes: int) -> bytes | None:
        """The bytes that have arrived, at most ``max_bytes``; None if the connection has ended or
        broken.
        """
        if self.tcp is None:
            return None
        try:
            piece = self.tcp.recv(max_bytes)
        except BlockingIOError:
            return b""
        except OSError as error:
            self.trace.broken_by = error.errno
            return None
        self.trace.closed = not piece
        return piece or None

    def end(self) -> None:
        """End the connection, test the other address family, and finish the check."""
        self._hang_up()
        # The other family is tested last: a dead one may take all the time that the server needs.
        addresses, ip = self.trace.resolution.addresses, self.trace.ip or ""
        self.tools.families.test(
            addresses, ip, self.target.port, self.deadline, self.guard(self._finish)
        )

    def _finish(self, warning: Warn | None) -> None:
        if warning is not None:
            self.trace.warnings.append(str(warning))
        self.on_done(self.outcome())

    def _hang_up(self) -> None:
        self.stop_reading()
        if self.tcp is not None:
            self.tools.loop.hang_up(self.tcp)
            self.tcp = None
