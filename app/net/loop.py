"""A small event loop on epoll: file descriptors, timers and calls from other threads.

curl's multi interface and the resolver share one, so that ten thousand checks a minute need one
thread. asyncio on top of curl costs half as much CPU again for each check.

It also ends TCP connections that are no longer needed, without a reset (``hang_up``).
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

log = logging.getLogger(__name__)

READ = select.EPOLLIN
WRITE = select.EPOLLOUT

HANG_UP_SECONDS = 5.0  # how long the other side may take to end a connection too
HANG_UP_BYTES = 64 * 1024  # how many bytes the other side may still send
MAX_ENDING = 200  # connections that are ending; for another one, the oldest is closed

Handler = Callable[[int, int], None]  # (file descriptor, epoll events)


class Timer:
    """A call that is due at a monotonic time, and can be cancelled."""

    __slots__ = ("call", "due")

    def __init__(self, due: float, call: Callable[[], None]) -> None:
        self.due = due
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class _EndingConnection:
    """A connection on which nothing is written any more, until the other side ends it too."""

    __slots__ = ("_remaining", "tcp", "timer")

    def __init__(self, tcp: socket.socket, timer: Timer) -> None:
        self.tcp = tcp
        self.timer = timer
        self._remaining = HANG_UP_BYTES  # bytes that the other side may still send

    def drain(self) -> bool:
        """Read the bytes that have arrived. Returns whether to close the socket: the other side has
        ended the connection, or has sent too much.
        """
        try:
            while self._remaining > 0 and (data := self.tcp.recv(self._remaining)):
                self._remaining -= len(data)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True


class Loop:
    """Runs on one thread; only ``call_soon_threadsafe`` and ``stop`` may be called from others.

    ``failed`` gets an exception that a handler raises; by default it is logged.
    """

    def __init__(self, failed: Callable[[Exception], None] | None = None) -> None:
        self._failed = failed or _log_fault
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._sequence = itertools.count()
        self._calls: deque[Callable[[], None]] = deque()
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wakeup, READ)
        self._woken = False
        self._stopping = False
        self._ending: dict[int, _EndingConnection] = {}
        # Called once after every round of events, to collect curl's finished transfers.
        self.after_round: Callable[[], None] = _nothing

    def watch(self, fd: int, events: int, handler: Handler) -> None:
        """Call ``handler`` when ``fd`` is ready; a second call changes events and handler."""
        try:
            if fd in self._handlers:
                self._epoll.modify(fd, events)
            else:
                self._epoll.register(fd, events)
        except FileNotFoundError:  # closed, then reopened with the same number
            self._epoll.register(fd, events)
        except FileExistsError:
            self._epoll.modify(fd, events)
        self._handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        """Stop watching ``fd``; harmless if it is unknown or closed already."""
        if self._handlers.pop(fd, None) is not None:
            with suppress(OSError, ValueError):
                self._epoll.unregister(fd)

    def call_at(self, due: float, call: Callable[[], None]) -> Timer:
        """Run ``call`` at a time of ``time.monotonic()``."""
        timer = Timer(due, call)
        heapq.heappush(self._timers, (due, next(self._sequence), timer))
        return timer

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self.call_at(time.monotonic() + seconds, call)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Run ``call`` in this round or the next. On the loop's thread only."""
        self._calls.append(call)

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        """Run ``call`` on the loop's thread, soon. From any thread."""
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            with suppress(OSError):  # the loop has been closed meanwhile
                os.eventfd_write(self._wakeup, 1)

    def stop(self) -> None:
        """Leave ``run`` after the present round. From any thread."""
        self._stopping = True
        self.call_soon_threadsafe(_nothing)

    def run(self) -> None:
        """Run until ``stop``. A handler that raises is logged and never ends the loop."""
        while not self._stopping:
            self.run_once(None)

    def run_once(self, max_seconds: float | None) -> None:
        """One round: wait up to ``max_seconds`` (None: until something happens), then handle all
        events.
        """
        wait = self._wait_seconds(max_seconds)
        for fd, events in self._epoll.poll(wait, 256):
            if fd == self._wakeup:
                os.eventfd_read(fd)
                # Reset before the calls are counted: a call that is added later must wake us again.
                self._woken = False
                continue
            handler = self._handlers.get(fd)
            if handler is not None:
                self._guarded(handler, fd, events)
        for _ in range(len(self._calls)):
            self._guarded(self._calls.popleft())
        self._run_timers()
        self._guarded(self.after_round)

    def hang_up(self, tcp: socket.socket) -> None:
        """End a TCP connection, and close the socket when the other side has ended it too.

        Writing is shut down first, and what arrives is read: the kernel resets a connection that is
        closed with unread data, and a MySQL server blocks a host that resets its greeting.
        """
        tcp.setblocking(False)
        try:
            tcp.shutdown(socket.SHUT_WR)
        except OSError:  # not connected yet, or not any more: nobody waits for its end
            tcp.close()
            return
        if len(self._ending) >= MAX_ENDING:
            self._close_ending(next(iter(self._ending)))
        fd = tcp.fileno()
        self._ending[fd] = _EndingConnection(
            tcp, self.call_later(HANG_UP_SECONDS, partial(self._close_ending, fd))
        )
        self.watch(fd, READ, self._read_ending)

    def settle(self, seconds: float) -> None:
        """Run until all connections have ended, for at most ``seconds``."""
        deadline = time.monotonic() + seconds
        while self._ending and (remaining := deadline - time.monotonic()) > 0:
            self.run_once(remaining)

    def _read_ending(self, fd: int, _events: int) -> None:
        if self._ending[fd].drain():
            self._close_ending(fd)

    def _close_ending(self, fd: int) -> None:
        self.unwatch(fd)
        ending = self._ending.pop(fd)
        ending.timer.cancel()
        ending.tcp.close()

    def close(self) -> None:
        for fd in list(self._ending):
            self._read_ending(fd, READ)
        for fd in list(self._ending):
            self._close_ending(fd)
        self._epoll.close()
        os.close(self._wakeup)
        self._handlers.clear()
        self._timers.clear()

    def _wait_seconds(self, limit: float | None) -> float:
        if self._calls:
            return 0.0
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return -1.0 if limit is None else limit
        until = max(0.0, self._timers[0][0] - time.monotonic())
        return until if limit is None else min(until, limit)

    def _run_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            call = heapq.heappop(self._timers)[2].call
            if call is not None:
                self._guarded(call)

    def _guarded(self, call: Callable[..., Any], *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception as fault:  # one broken handler must not end the thread of all checks
            self._failed(fault)


def _nothing() -> None:
    return None


def _log_fault(fault: Exception) -> None:
    log.error("A handler of the check loop failed", exc_info=fault)
