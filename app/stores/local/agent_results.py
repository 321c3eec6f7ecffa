"""Store the results that an agent sends, within limits (``Budgets``).

An agent checks on its own schedule and may be cut off for hours. A monitor and a time identify each
of its results, so that it is stored once. A result is judged only if it is recent and newer than
the last judged result of its place. Other results correct the figures (``recorder.record_late``).

Two web processes may handle the same results at once, because an agent that waits for too long
sends them again. The monitor's generation decides: the process that finds the generation unchanged
judges the result. The other process reads the monitor again, and leaves out the results that were
judged meanwhile. Needs an application context.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, TypeVar

from sqlalchemy import func, select

from app.access import Access
from app.access.counters import SHORT_WINDOWS
from app.access.keys import AgentPlace
from app.codec.packing import read_outcome
from app.codec.values import MalformedData
from app.db import db, journal, shards, writing
from app.db.faults import passes
from app.db.statements import grouped
from app.db.tables import AssignmentRow, MonitorRow, MonitorStateRow
from app.db.types import from_ms, record_of, to_ms
from app.engine import recorder
from app.engine.agent.buffer import RETENTION
from app.engine.schedule import Claim, Standing
from app.errors import Invalid, Throttled
from app.i18n import N_, _
from app.judge.verdict import vote_valid_for
from app.lasting import Lasting
from app.records import CONFIRMATIONS, Outcome, Result
from app.rules.clocks import believable

log = logging.getLogger(__name__)
_log = Lasting(log, 60.0)

T = TypeVar("T")

BUSY = N_(
    "Another request of the agent of %(place)s is being answered. Send this one again in a second."
)
# Results of one monitor in a request that are judged, each in its own transaction. While a
# result counts (two intervals and the time limit), an agent makes four checks by its schedule, and
# repeats each of them until a failure is confirmed. Every 10 s, it makes nine, and most repeats are
# among them. Twice as many, because it also repeats checks that found no network, and makes those
# that people ask for.
MAX_JUDGED = 2 * 4 * (1 + CONFIRMATIONS[1])
# If monitors change while their results are judged, the results are judged again. After this number
# of attempts, Throttled is raised.
MAX_ATTEMPTS = 3
OLDEST = RETENTION + timedelta(hours=1)  # an agent looks for old results every ten minutes


@dataclass(frozen=True, slots=True)
class AgentResult:
    """A result of an agent. ``made_for``: the time of the monitor's last change (ms) that the agent
    had received.
    """

    outcome: Outcome
    made_for: int

    @property
    def monitor_id(self) -> int:
        return self.outcome.result.monitor_id or 0

    @property
    def at(self) -> datetime:
        return self.outcome.result.checked_at


def read(data: Any) -> tuple[list[AgentResult], int]:
    """The results of a request, and the number of those that cannot be read. Raises Invalid."""
    if not isinstance(data, list) or len(data) > MAX_RESULTS:
        sentence = _("Send a list of at most %(most)d results.", most=MAX_RESULTS)
        raise Invalid({"results": [sentence]})
    results, wrong = [], 0
    for entry in data:
        try:
            made_for = entry["made_for"]
            outcome = read_outcome(entry["outcome"])
            if not isinstance(made_for, int) or outcome.result.monitor_id is None:
                raise MalformedData("made_for")
            at = from_ms(to_ms(outcome.result.checked_at))  # as it will be stored
            placed = replace(outcome, result=replace(outcome.result, checked_at=at))
            results.append(AgentResult(placed, made_for))
        except (ValueError, KeyError, TypeError, OverflowError):
            wrong += 1
    return results, wrong


def busy(place: AgentPlace) -> Throttled:
    return Throttled(_(BUSY, place=place.name), 1)


class ResultIntake:
    """The processing of the results of one request.

    ``standings``: the standing of each monitor with a result that has a vote, by id. A result that
    was judged before counts too: the agent may have missed that answer, and needs the standing to
    decide whether to repeat the check.
    """

    def __init__(self, place: AgentPlace, now: datetime) -> None:
        self._place, self._now = place, now
        self.refused = 0
        self.standings: dict[int, Standing] = {}
        self._outdated = 0
        self._judged: list[AgentResult] = []
        self._late: list[AgentResult] = []
        # Late results that still have a vote, because a newer result or a copy was judged.
        self._voting: list[AgentResult] = []

    @property
    def taken(self) -> int:
        return len(self._judged) + len(self._late)

    @property
    def has_votes(self) -> bool:
        """Whether one of the results has a vote."""
        return bool(self._judged or self._voting)

    def record(self, results: Sequence[AgentResult]) -> None:
        """Record each result, or refuse it for good; a result that cannot be recorded because of a
        bug is refused. Raises Throttled if some were not judged, because their monitors changed
        during each attempt. The agent sends all again, and the recorded ones are left out.
        """
        # A deleted place may have had the same name.
        journal.cache_place_id(self._place.name, self._place.id)
        unjudged = results
        for _attempt in range(MAX_ATTEMPTS):
            unjudged = self._judge_recent(unjudged)
        self._correct()
        if self._outdated:
            log.warning(
                "%d results of %s are left out: when it made them, it did not know yet that what"
                " these monitors check was changed.",
                self._outdated,
                self._place.name,
            )
        if unjudged:
            raise busy(self._place)

    def _judge_recent(self, all_results: Sequence[AgentResult]) -> list[AgentResult]:
        """Judge these results, and collect the late ones. Returns the results that were not judged,
        because their monitors have changed since they were read.
        """
        rows = _monitor_rows(self._place.id, {result.monitor_id for result in all_results})
        # An agent keeps results for a day, so older results could only be forged. A result from far
        # in the future would hide all later results.
        oldest, newest = self._now - OLDEST, believable(self._now)
        of_place = [
            result
            for result in all_results
            if result.monitor_id in rows and oldest <= result.at <= newest
        ]
        self.refused += len(all_results) - len(of_place)
        judged = []
        for id, results in _by_monitor(of_place).items():
            row = rows[id]
            recent, late = _divided(results, row, self._now)
            judged.append(recent)
            self._late += late
            self._outdated += len(results) - len(recent) - len(late)
            if voting := [result for result in late if _has_vote(result, row, self._now)]:
                self._voting += voting
                self.standings[id] = record_of(Standing, row, asked_at=None)
        generations = {id: row.generation for id, row in rows.items()}
        tokens = _tokens(self._place.id) if any(judged) else {}
        unjudged: list[AgentResult] = []
        for batch in zip_longest(*judged):  # the first of each monitor, then the second of each
            unjudged += self._judge([*filter(None, batch)], generations, tokens)
        return unjudged

    def _correct(self) -> None:
        """Correct the figures by the late results. Judged results are included, because the server
        may have been stopped before it summed them.
        """
        judged = [*self._judged, *self._voting]
        pairs = [(result, True) for result in self._late] + [(result, False) for result in judged]
        pairs.sort(key=lambda pair: pair[0].monitor_id)  # parts have all results of a monitor

        def record(part: Sequence[tuple[AgentResult, bool]]) -> None:
            recorder.record_late(
                _results(result for result, is_late in part if is_late),
                self._now,
                location=self._place.name,
                in_time=_results(result for result, is_late in part if not is_late),
            )

        faulty = self._record_halves(record, pairs)
        unrecorded = {id(result) for result, is_late in faulty if is_late}
        self.refused += len(unrecorded)
        self._late = [result for result in self._late if id(result) not in unrecorded]

    def _judge(
        self, results: Sequence[AgentResult], generations: dict[int, int], tokens: Mapping[int, int]
    ) -> list[AgentResult]:
        """Judge one result of each monitor, in one transaction if possible. Return those that were
        not judged.
        """
        unjudged: list[AgentResult] = []

        def record(part: Sequence[AgentResult]) -> None:
            outcomes = []
            for result in part:
                id, shard = result.monitor_id, shards.of(result.monitor_id)
                outcomes.append((Claim(id, shard, tokens[shard], generations[id]), result.outcome))
            standings = recorder.record_claimed(outcomes, self._now, location=self._place.name)
            for result, standing in zip(part, standings, strict=True):
                if standing is None:
                    unjudged.append(result)
                    continue
                generations[result.monitor_id] = standing.generation
                self.standings[result.monitor_id] = standing
                self._judged.append(result)

        self.refused += len(self._record_halves(record, results))
        return unjudged

    def _record_halves(
        self, record: Callable[[Sequence[T]], None], results: Sequence[T]
    ) -> list[T]:
        """Record all results at once or, if that fails, by repeated halving, so that one bad result
        does not affect others. Return those that cannot be recorded.
        """
        if not results:
            return []
        try:
            record(results)
            return []
        except Exception as fault:
            if passes(fault):
                raise
            if len(results) == 1:
                # Logged once a minute: a thousand equal tracebacks would fill the disk.
                _log.error(
                    "A result of %s cannot be recorded, and is left out. The fault is ours:",
                    self._place.name,
                    topic=self._place.name,
                    exc_info=fault,
                )
                return [*results]
        half = len(results) // 2
        halves = (results[:half], results[half:])
        return [result for part in halves for result in self._record_halves(record, part)]


def _results(agent_results: Iterable[AgentResult]) -> list[Result]:
    return [result.outcome.result for result in agent_results]


_COLUMNS = (
    AssignmentRow.monitor_id, AssignmentRow.generation, AssignmentRow.scheduled_at,
    AssignmentRow.checked_at, AssignmentRow.blind, MonitorRow.interval, MonitorRow.timeout,
    MonitorRow.paused, MonitorRow.created_at, MonitorRow.updated_at, MonitorStateRow.unconfirmed_at,
    MonitorStateRow.spec_since, MonitorStateRow.judged_since, MonitorStateRow.resumed_at,
)  # fmt: skip


def _monitor_rows(place: int, ids: Collection[int]) -> dict[int, Any]:
    """The rows of these monitors, if the place checks them."""
    if not ids:
        return {}
    rows = db.session.execute(
        select(*_COLUMNS)
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .join(MonitorStateRow, MonitorStateRow.monitor_id == AssignmentRow.monitor_id)
        .where(AssignmentRow.location_id == place, AssignmentRow.monitor_id.in_(ids))
    ).all()
    db.session.rollback()
    return {row.monitor_id: row for row in rows}


def _by_monitor(results: Iterable[AgentResult]) -> dict[int, list[AgentResult]]:
    """The results of each monitor, in the order of time."""
    in_order = sorted(results, key=lambda result: (result.monitor_id, result.at))
    return grouped((result.monitor_id, result) for result in in_order)


def _divided(
    of_monitor: Sequence[AgentResult], row: Any, now: datetime
) -> tuple[list[AgentResult], list[AgentResult]]:
    """The results of a monitor to judge, in the order of time, and the late results
    (``app/judge/replay.py``). All recent results are judged, because an outage begins with the
    first of them.

    An agent that is cut off goes on checking, and does not know of changes. If the check of the
    monitor was changed, the agent's results from after the change are dropped: they are of another
    check. After any other change, such as of the name, they are valid.
    """
    since = row.spec_since or row.created_at
    judged: list[AgentResult] = []
    late: list[AgentResult] = []
    for result in reversed(of_monitor):
        current = result.made_for >= to_ms(since) or result.made_for == to_ms(row.updated_at)
        # Two results with the same time are copies, of which one is judged.
        fits = len(judged) < MAX_JUDGED and not (judged and judged[-1].at == result.at)
        if current and fits and _has_vote(result, row, now) and _is_newer(result, row, now):
            judged.append(result)
        elif current or result.at < since:
            late.append(result)
    return judged[::-1], late


def _has_vote(result: AgentResult, row: Any, now: datetime) -> bool:
    """Whether a result can be the vote of its place. A result from before a pause, or from before a
    change of the check or of the rule, cannot.
    """
    if row.paused or now - result.at > vote_valid_for(row):
        return False
    sinces = (row.spec_since, row.judged_since, row.resumed_at)
    return not any(result.at < since for since in sinces if since)


def _is_newer(result: AgentResult, row: Any, now: datetime) -> bool:
    """Whether a result is newer than the last judged result of its place, if there is one."""
    judged_at: datetime | None = row.checked_at
    return judged_at is None or result.at > judged_at or judged_at > believable(now)


def _tokens(place: int) -> dict[int, int]:
    """The tokens of the place's shards. No checker owns them: the agent makes all checks."""
    rows = shards.read(place)
    if len(rows) < shards.count():
        with writing():
            shards.make(place)
        rows = shards.read(place)
    db.session.rollback()
    return {shard.number: shard.token for shard in rows}


# --- Limits ---------------------------------------------------------------------------------------
#
# Somebody who has stolen an agent's token must not flood the database, its disk or the threads of
# the web server. A place may send ``ROOM`` times the results that its monitors make. An agent that
# was cut off for a day has sent its results after 76 minutes (1440 / (ROOM - 1)), besides new ones.
# The windows are short, because new results wait behind old ones until the next window.

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
SHARES = 100  # of a budget: a process takes one at a time, and may not use all of it
TOO_MUCH = N_(
    "The agent of %(place)s sends too much: at most %(requests)s requests, %(results)s results and"
    " %(kib)s KiB in %(window)s s. Send the rest in %(reset)s s."
)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a place in a window."""

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
    """The budgets of all places. ``count`` raises Throttled above one."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._budgets: dict[int, tuple[float, Budget]] = {}

    def count(self, place: AgentPlace, limit_name: str, number: int) -> None:
        """``limit_name``: the field of ``Budget`` with the limit."""
        if not number:
            return
        budget = self._budget_of(place.id)
        limit: int = getattr(budget, limit_name)
        used = self._access.counters.count(
            f"{SHORT_WINDOWS}{place.id}:{limit_name}",
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
    """The number of results that the monitors of a place make in a second."""
    results = db.session.scalar(
        select(func.sum(1.0 / MonitorRow.interval))
        .join(AssignmentRow, AssignmentRow.monitor_id == MonitorRow.id)
        .where(AssignmentRow.location_id == place)
    )
    db.session.rollback()
    return float(results or 0)
