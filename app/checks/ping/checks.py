"""One check by ping: look up, and send a series of echoes to an address of each family at once, so
that a dead one is noticed. The next address is tried if none has answered a moment later.
"""

from __future__ import annotations

import time
from typing import Any

from app.checks.ping.outcome import make_outcome
from app.checks.running import Resolution, RunningCheck
from app.net.families import DEAD_WAIT, routed
from app.net.icmp import PingNotAllowed, Series
from app.net.loop import Timer
from app.net.race import STAGGER_SECONDS, interleaved, is_ipv6

PAUSE_SECONDS = 0.2  # between two echoes; less where they would not fit into half the time limit
LAST_WAIT = 1.0  # seconds to wait for echoes that may be lost, once one was answered


class PingCheck(RunningCheck):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._resolution = Resolution()
        self._untried: list[str] = []
        self._series: list[Series] = []
        self._timers: list[Timer] = []
        self._is_done = False

    def begin(self) -> None:
        self.look_up(self.target, self._resolved)

    def cancel(self) -> None:
        self._is_done = True
        for timer in self._timers:
            timer.cancel()
        for series in self._series:
            series.close()

    def _resolved(self, resolution: Resolution) -> None:
        self._resolution = resolution
        self._untried = list(interleaved(routed(resolution.addresses)))
        if resolution.failure is not None:
            self._finish()
            return
        self._timers.append(self.tools.loop.call_at(self.deadline, self.guard(self._finish)))
        other = next((a for a in self._untried if is_ipv6(a) != is_ipv6(self._untried[0])), None)
        if other is not None:
            self._untried.remove(other)
            self._untried.insert(0, other)
            self._try_next()
        self._try_next()
        self._stagger()

    def _stagger(self) -> None:
        if self._untried and not self._is_done:
            timer = self.tools.loop.call_later(STAGGER_SECONDS, self.guard(self._try_more))
            self._timers.append(timer)

    def _try_more(self) -> None:
        """Try the next address of a family that has not answered."""
        alive = {is_ipv6(series.address) for series in self._series if series.answers}
        self._untried = [a for a in self._untried if is_ipv6(a) not in alive]
        if self._untried:
            self._try_next()
            self._stagger()

    def _try_next(self) -> None:
        if self._is_done:
            return
        count = self.spec.ping_count
        pause = min(PAUSE_SECONDS, self.spec.timeout / 2 / count)
        address = self._untried.pop(0)
        series = Series(self.tools.loop, address, count, pause, self.guard(self._changed))
        self._series.append(series)
        try:
            series.start()
        except PingNotAllowed as fault:
            self.cancel()
            self.fail(str(fault))

    def _changed(self) -> None:
        """Finish when nothing more is expected, and look again when waiting is over."""
        if self._is_done:
            return
        answered = [series for series in self._series if series.answers]
        if not answered:
            if all(series.is_over for series in self._series):
                if self._untried:
                    self._try_next()
                else:
                    self._finish()
            return
        now = time.monotonic()
        ends = [self._end_of(series) for series in self._series]
        if max(ends) <= now:
            self._finish()
        elif max(ends) < self.deadline:
            self._timers.append(self.tools.loop.call_at(max(ends), self.guard(self._changed)))

    def _end_of(self, series: Series) -> float:
        """Until when to wait for this series (monotonic), now that there is an answer."""
        if series.is_over or not series.echoes:
            return 0.0
        if not series.is_sent:
            return self.deadline
        wait = LAST_WAIT if series.answers else DEAD_WAIT
        slowest = max((echo.seconds or 0.0 for echo in series.echoes), default=0.0)
        return series.echoes[-1].sent_at + max(wait, 2 * slowest)

    def _finish(self) -> None:
        if self._is_done:
            return
        self.cancel()
        self.done(make_outcome(self, self._resolution, self._series))
