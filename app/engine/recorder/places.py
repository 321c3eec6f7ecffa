"""The places of a monitor: their votes, and the slots that are done."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, update

from app.db import AnySession, assignments, latest
from app.db.journal import VERDICT_NUMBERS, VERDICTS
from app.db.tables import AssignmentRow
from app.db.types import to_ms
from app.engine.recorder.rows import stale_after
from app.engine.schedule import Standing, last_slot
from app.judge import verdict as judge
from app.judge.verdict import OVERTAKEN_AT_MOST, State
from app.records import Cause, Result, Verdict
from app.rules.time import SKEW

_ASSIGNMENTS = AssignmentRow.__table__
_WRITTEN = ("turn", "slot", "checked_at", "verdict", "blind", "failures")
NOWHERE = 0  # the id of no place
_WRITE = (
    update(_ASSIGNMENTS)  # type: ignore[arg-type] # Flask-SQLAlchemy types __table__ as a FromClause
    .where(
        _ASSIGNMENTS.c.monitor_id == bindparam("of"),
        _ASSIGNMENTS.c.location_id == bindparam("place"),
    )
    .values({name: bindparam(f"new_{name}") for name in _WRITTEN})
)


@dataclass(slots=True)
class MonitorAssignments:
    """A monitor's assignments within a batch. ``here`` is the one of the place of the results, None
    if the monitor is not assigned to it (a check on request).
    """

    here: dict[str, Any] | None
    others: Sequence[Any]
    by_hand: bool = True  # the check was asked for; False: it is one of the schedule
    changed: bool = False
    newest: bool = True  # whether the result is the newest of its place
    previous: datetime | None = None  # when the check of this place before the result began
    recovered: bool = False  # whether it is good, after one of this place that was not

    @property
    def turn(self) -> int | None:
        return None if self.here is None else self.here["turn"]

    @property
    def has_vote(self) -> bool:
        """Whether the place is one of the monitor's (decisions.md 14). A check on request is made
        in another one where this server checks nothing of the monitor.
        """
        return self.here is not None or not self.others

    @property
    def others_wait(self) -> bool:
        """Whether other checkers must be notified of a check that is to be repeated."""
        return self.by_hand or bool(self.others)

    def caught_up(self, newest: int | None) -> None:
        """Reckon with the newest result (ms), which may be newer than the row: good checks of a
        monitor with one place do not write it each time (``steady``).
        """
        if self.here is not None and not self.others and self.here["checked_at"] is not None:
            self.here["checked_at"] = latest.later(self.here["checked_at"], newest)

    def is_newer(self, result: Result) -> bool:
        """Whether the result is newer than the last check of this place that is known."""
        before = None if self.here is None else self.here["checked_at"]
        return before is not None and to_ms(result.checked_at) > to_ms(before)

    def seen(self, result: Result) -> None:
        """Store the newest verdict of this place."""
        if self.here is None:
            return
        before = self.here["checked_at"]
        if before is not None and before > result.checked_at and self._is_recent(before, result):
            self.newest = False
            return
        self.newest, self.previous = True, before
        self.here |= {"checked_at": result.checked_at, "verdict": VERDICT_NUMBERS[result.verdict]}
        self.changed = True
        self.recovered = result.is_good and self.failures > 0
        self.here["failures"] = judge.failures_after(
            self.failures, result.verdict, maintenance=result.maintenance
        )

    @staticmethod
    def _is_recent(before: datetime, result: Result) -> bool:
        return before - result.checked_at <= OVERTAKEN_AT_MOST

    def done(self, monitor_id: int, interval: int, result: Result) -> None:
        """Mark the slot in which the check began as done."""
        if self.here is None:
            return
        self.here |= {
            "turn": self.here["turn"] + 1,
            "slot": last_slot(monitor_id, interval, result.checked_at),
            "blind": result.cause_code == Cause.NETWORK_DOWN,
        }
        self.by_hand, self.changed = False, True

    def standing(self, unconfirmed_at: datetime | None) -> Standing | None:
        if self.here is None:
            return None
        return Standing(
            self.here["turn"],
            self.here["slot"],
            self.here["checked_at"],
            unconfirmed_at,
            self.here["blind"],
            self.here["asked_at"],
        )

    def votes(self, result: Result, monitor: Any, now: datetime) -> Sequence[judge.Vote]:
        """The newest result of each place, of those that count; none where there is one place.

        What fails in maintenance is no vote after it.
        """
        if not self.others or self.here is None:
            return ()
        place = self.here["location_id"]
        own = _vote(place, result.checked_at, result.verdict, self.failures, monitor)
        others = self.votes_elsewhere(monitor, now, maintenance=result.maintenance)
        counted = judge.heard([own], now, stale_after(monitor), maintenance=result.maintenance)
        return [*others, *counted]

    def votes_elsewhere(
        self, monitor: Any, now: datetime, *, maintenance: bool
    ) -> Sequence[judge.Vote]:
        """The votes of all other places. ``maintenance``: whether the monitor is in one."""
        votes = self._newest_elsewhere(monitor)
        return judge.heard(votes, now, stale_after(monitor), maintenance=maintenance)

    def _newest_elsewhere(self, monitor: Any) -> list[judge.Vote]:
        """The newest result of each other place that has one."""
        return [
            _vote(row.location_id, row.checked_at, VERDICTS[row.verdict], row.failures, monitor)
            for row in self.others
            if row.checked_at is not None and row.verdict is not None
        ]

    def silent_down(self, monitor: Any, since: datetime | None, now: datetime) -> Collection[int]:
        """The other places whose newest result is a failure from ``since`` on that no longer counts
        as their vote.
        """
        return {
            row.location_id
            for row in self.others
            if row.verdict is not None
            and VERDICTS[row.verdict] is Verdict.DOWN
            and row.checked_at is not None
            and (since is None or since <= row.checked_at)
            and row.checked_at < now - stale_after(monitor)
        }

    def is_held(self, result: Result, monitor: Any, silent: Collection[int], now: datetime) -> bool:
        """Whether the monitor would still be down if the last failures of these ``silent`` places
        counted. Then their silence ends the incident, and nobody saw it recover there.
        """
        if not silent:
            return False
        failing = [vote for vote in self._newest_elsewhere(monitor) if vote.location in silent]
        votes = [*self.votes(result, monitor, now), *failing]
        awaited = self.awaited(monitor, now, maintenance=result.maintenance)
        return judge.decide(votes, monitor.location_rule, awaited, incident=True) is Verdict.DOWN

    def good(self, since: datetime | None) -> Collection[int]:
        """The places whose newest result, from ``since`` on, is good."""
        found = [(row.location_id, row.checked_at, row.verdict) for row in self.others]
        if (here := self.here) is not None:
            found.append((here["location_id"], here["checked_at"], here["verdict"]))
        return {
            place
            for place, at, verdict in found
            if at is not None
            and verdict is not None
            and VERDICTS[verdict] in (Verdict.UP, Verdict.DEGRADED)
            and (since is None or since <= at)
        }

    def awaited(self, monitor: Any, now: datetime, *, maintenance: bool) -> int:
        """How many other places were assigned a moment ago, or saw the monitor fail in a
        maintenance that is over, and have not reported since. A row that was never checked has the
        time (ms) of its assignment as its turn (``assignments.assign``).
        """
        since = now - stale_after(monitor)
        new = sum(1 for row in self.others if row.checked_at is None and row.turn >= to_ms(since))
        if maintenance:
            return new
        known = self._newest_elsewhere(monitor)
        return new + sum(judge.failed_in_maintenance(one) and one.at >= since for one in known)

    @property
    def failures(self) -> int:
        """Failing checks in a row in this place."""
        return 0 if self.here is None else self.here["failures"]

    def first_since(self, opened_at: datetime | None) -> bool:
        """Whether the result is the first one of this place since the open incident was written,
        whose evidence has none of it. ``opened_at``: when that was; None: with this batch.
        """
        return opened_at is None or self.previous is None or self.previous < opened_at

    def moment(self, result: Result, state: State) -> datetime:
        """The time of the vote: not before the previous one. Places check at the same times, and
        the check that is recorded first may have begun last.
        """
        at, before = result.checked_at, state.checked_at
        if self.others and before is not None and before - at <= OVERTAKEN_AT_MOST:
            return max(at, before)
        return at

    def repeats(
        self,
        result: Result,
        state: State,
        unconfirmed_at: datetime | None,
        judged_at: datetime | None,
        now: datetime,
    ) -> bool:
        """Whether the check repeats the one that was counted last, which began at ``judged_at``.
        One that began before that was recorded repeats nothing.
        """
        repeats = unconfirmed_at is None or unconfirmed_at > now + SKEW
        if not repeats and unconfirmed_at is not None and result.checked_at >= unconfirmed_at:
            repeats = self.here is None or judge.repeats(
                state, self.previous, judged_at, self.failures
            )
        return repeats


def _vote(place: int, at: datetime, verdict: Verdict, failures: int, monitor: Any) -> judge.Vote:
    return judge.Vote(place, at, verdict, failures > monitor.confirmations, failures)


def doubted(votes: Sequence[judge.Vote], verdict: Verdict) -> bool:
    """Whether a failure that too few places see is still to be confirmed."""
    if verdict is Verdict.DOWN:
        return False
    return any(vote.verdict is Verdict.DOWN and not vote.lasting for vote in votes)


def load(
    session: AnySession, monitor_ids: Sequence[int], place: int
) -> dict[int, MonitorAssignments]:
    found = assignments.of_each(session, monitor_ids)
    return {id: _assignments_of(rows, place) for id, rows in found.items()}


def of_monitor(session: AnySession, monitor_id: int) -> MonitorAssignments:
    """The assignments of a monitor where there is no new result: all are those of others."""
    return _assignments_of(assignments.of_each(session, [monitor_id])[monitor_id], NOWHERE)


def _assignments_of(rows: dict[int, Any], place: int) -> MonitorAssignments:
    here = rows.get(place)
    others = [row for location, row in rows.items() if location != place]
    return MonitorAssignments(None if here is None else dict(here._mapping), others)


def write(session: AnySession, assigned: Sequence[MonitorAssignments]) -> None:
    """Write the assignments that have changed. The lock on the monitor's state protects them."""
    rows = [
        {"of": one.here["monitor_id"], "place": one.here["location_id"]}
        | {f"new_{name}": one.here[name] for name in _WRITTEN}
        for one in assigned
        if one.changed and one.here is not None
    ]
    if rows:
        session.execute(_WRITE, rows)
    for one in assigned:
        one.changed = False
