"""Limits on what an agent may send: somebody who has stolen its token must not flood the database,
its disk or the threads of the web server.

A place may send ``ROOM`` times the results that its monitors make. So an agent that was cut off for
a day has sent its results after 76 minutes (1440 / (ROOM - 1)), besides new ones. The windows are
short, because new results wait behind old ones until the next window begins. Needs an application
context.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from sqlalchemy import func, select

from app.access import Access
from app.access.agents import AgentPlace
from app.access.counters import SHORT_WINDOWS
from app.db import db
from app.db.tables import AssignmentRow, MonitorRow
from app.errors import Throttled
from app.i18n import N_, _

WINDOW_SECONDS = 10
ROOM = 20
MAX_RESULTS = 500  # of one request
MIN_RESULTS = MAX_RESULTS  # in a window: a whole request always fits
MIN_REQUESTS = 200
MIN_KIB = 2_048  # two requests as large as the server reads
# The budget for each result. A good one has 400 bytes, a failure up to 32 KiB.
KIB_OF_A_RESULT = 4
RESULTS_OF_A_REQUEST = 50  # an agent sends up to 200, but fewer with long evidence
CACHE_SECONDS = 10.0  # how long the budget of a place is cached
SHARES = 100  # a process takes this part of a budget at once, and may not use all of it
TOO_MUCH = N_(
    "The agent of %(place)s sends too much: at most %(requests)s requests, %(results)s results and"
    " %(kib)s KiB in %(window)s s. Send the rest in %(reset)s s."
)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a place in one window."""

    requests: int
    results: int
    kib: int


def budget_of(results: float) -> Budget:
    """The budget of a place whose monitors make this many results in a window."""
    allowed = max(MIN_RESULTS, round(ROOM * results))
    return Budget(
        MIN_REQUESTS + allowed // RESULTS_OF_A_REQUEST,
        allowed,
        max(MIN_KIB, KIB_OF_A_RESULT * allowed),
    )


class Budgets:
    """The budgets of all places. Each method counts, and raises Throttled above the budget."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._budgets: dict[int, tuple[float, Budget]] = {}

    def request(self, place: AgentPlace) -> None:
        self._count(place, "requests", 1)

    def body(self, place: AgentPlace, size: int) -> None:
        """``size``: of a request's body, in bytes."""
        self._count(place, "kib", -(-size // 1024))

    def results(self, place: AgentPlace, number: int) -> None:
        self._count(place, "results", number)

    def _count(self, place: AgentPlace, kind: str, number: int) -> None:
        if not number:
            return
        budget = self._budget_of(place.id)
        limit: int = getattr(budget, kind)
        used = self._access.counters.count(
            f"{SHORT_WINDOWS}{place.id}:{kind}",
            WINDOW_SECONDS,
            number,
            share=max(1, limit // SHARES),
        )
        if used > limit:
            reset = self._access.counters.seconds_left(WINDOW_SECONDS)
            values = {"place": place.name, "window": WINDOW_SECONDS, "reset": reset}
            raise Throttled(_(TOO_MUCH, **asdict(budget), **values), reset)

    def _budget_of(self, place: int) -> Budget:
        clock = time.monotonic()
        read_at, budget = self._budgets.get(place, (float("-inf"), None))
        if budget is None or clock - read_at > CACHE_SECONDS:
            budget = budget_of(_results_per_second(place) * WINDOW_SECONDS)
            self._budgets[place] = clock, budget
        return budget


def _results_per_second(place: int) -> float:
    """How many results the monitors of a place make in a second."""
    results = db.session.scalar(
        select(func.sum(1.0 / MonitorRow.interval))
        .join(AssignmentRow, AssignmentRow.monitor_id == MonitorRow.id)
        .where(AssignmentRow.location_id == place)
    )
    db.session.rollback()
    return float(results or 0)
