"""curl's multi interface on the loop of ``net.loop``: starts requests and reports their results."""

from __future__ import annotations

import select
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pycurl

from app.checks.curl.exchange import Exchange, Request
from app.checks.curl.wire import Wire
from app.net.loop import READ, WRITE, Loop, Timer

_IDLE_HANDLES = 64  # kept for reuse; each holds some 30 KB
_MAX_PINNED = 20_000  # pairs of host and port in curl's cache, which curl never shrinks
_EVENTS = {pycurl.POLL_IN: READ, pycurl.POLL_OUT: WRITE, pycurl.POLL_INOUT: READ | WRITE}
_BROKEN = select.EPOLLERR | select.EPOLLHUP


class Transfers:
    """All transfers in flight. ``start`` sends a request, and ``on_done`` gets its ``Exchange``."""

    def __init__(self, loop: Loop, ca_bundle: str, user_agent: str) -> None:
        self._loop = loop
        self._ca_bundle = ca_bundle
        self._user_agent = user_agent
        self._idle: list[Wire] = []
        self._wires: dict[pycurl.Curl, Wire] = {}
        self._pinned: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._timer: Timer | None = None
        self._due: float | None = None  # when curl asked to be called, in monotonic seconds
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_PIPELINING, 0)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._dirty = False
        loop.after_round = self._collect

    def start(
        self,
        request: Request,
        on_done: Callable[[Exchange], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """Send a request; ``on_done`` is called on the loop, never before this returns.

        If reading the result raises, ``on_error`` is called instead.
        """
        wire = self._idle.pop() if self._idle else Wire(self._ca_bundle, self._user_agent)
        try:
            wire.send(request, self._dropped_pins(request))
            wire.owner = (on_done, on_error)
            self._multi.add_handle(wire.curl)
        except BaseException:
            wire.close()
            raise
        self._wires[wire.curl] = wire

    def close(self) -> None:
        """Drop everything in flight without calling ``on_done``."""
        for wire in self._wires.values():
            wire.owner = None
            self._multi.remove_handle(wire.curl)
            wire.close()
        self._wires.clear()
        for wire in self._idle:
            wire.close()
        self._idle.clear()
        self._dirty = False
        self._multi.close()

    def _dropped_pins(self, request: Request) -> tuple[str, ...]:
        """The pins that curl is to drop. Otherwise its cache would grow with each new host."""
        if request.target.address is not None:
            return ()
        key = (request.target.ascii_host, request.target.port)
        self._pinned.pop(key, None)
        self._pinned[key] = None
        if len(self._pinned) <= _MAX_PINNED:
            return ()
        host, port = self._pinned.popitem(last=False)[0]
        return (f"-{host}:{port}",)

    # --- between curl and the loop

    def _watch(self, what: int, fd: int, multi: Any, data: Any) -> None:
        if what == pycurl.POLL_REMOVE:
            self._loop.unwatch(fd)
        else:
            self._loop.watch(fd, _EVENTS[what], self._ready)

    def _set_timer(self, milliseconds: int) -> None:
        """curl asks to be called later, and changes the time several times in each check. A timer
        that fires early enough is kept; when it fires, it is set again if curl's time is later.
        """
        if milliseconds < 0:
            self._due = None
            return
        self._due = due = time.monotonic() + milliseconds / 1000
        if self._timer is None or self._timer.due > due:
            self._arm(due)

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._timeout)

    def _timeout(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._due > time.monotonic():
            self._arm(self._due)
            return
        self._due = None
        self._dirty = True
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def _ready(self, fd: int, events: int) -> None:
        mask = 0
        if events & READ:
            mask |= pycurl.CSELECT_IN
        if events & WRITE:
            mask |= pycurl.CSELECT_OUT
        if events & _BROKEN:
            mask |= pycurl.CSELECT_ERR
        self._dirty = True
        self._multi.socket_action(fd, mask)

    def _collect(self) -> None:
        """Report finished transfers, once in each round of the loop, because asking curl is
        expensive.
        """
        if not self._dirty:
            return
        self._dirty = False
        while True:
            queued, good, bad = self._multi.info_read()
            for curl in good:
                self._finished(curl, 0, "")
            for curl, code, words in bad:
                self._finished(curl, code, words)
            if not queued:
                return

    def _finished(self, curl: pycurl.Curl, code: int, words: str) -> None:
        wire = self._wires.pop(curl)
        on_done, on_error = wire.owner
        wire.owner = None
        self._multi.remove_handle(curl)
        try:
            exchange = wire.exchange(code, words)
        except Exception as error:
            wire.close()  # its state is unknown, so it is not reused
            on_error(error)
            return
        wire.release()
        if len(self._idle) < _IDLE_HANDLES:
            self._idle.append(wire)
        else:
            wire.close()
        on_done(exchange)
