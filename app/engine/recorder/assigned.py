"""The assignments of a monitor to its places: the newest result of each, the scheduled time of its
check, and requests for a check now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, func, select, update

from app.db import AnySession, assignments, latest, writing
from app.db.statements import updating
from app.db.tables import AssignmentRow, ResultRow
from app.db.types import from_ms, to_ms
from app.engine.recorder.rows import lock_state
from app.engine.schedule import REQUEST_LASTS, Standing, last_scheduled
from app.judge.verdict import Rules, Vote
from app.records import Cause, Result, Verdict
from app.rules.clocks import believable

_ASSIGNMENTS = AssignmentRow.__table__
_WRITTEN = ("generation", "scheduled_at", "checked_at", "verdict", "blind", "failures")
_OF_STANDING = ("generation", "scheduled_at", "checked_at", "blind", "asked_at")
NO_PLACE = 0  # an id that no place has
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_WRITE = (
    update(_ASSIGNMENTS)  # type: ignore[arg-type] # Flask-SQLAlchemy types __table__ as a FromClause
    .where(
        _ASSIGNMENTS.c.monitor_id == bindparam("monitor"),
        _ASSIGNMENTS.c.location_id == bindparam("place"),
    )
    .values({getattr(AssignmentRow, name): bindparam(f"new_{name}") for name in _WRITTEN})
)


@dataclass(slots=True)
class MonitorAssignments:
    """A monitor's assignments within a batch. ``this_place``: that of the place of the results,
    None if the monitor is not assigned to it (a check on request). ``other_places``: those of other
    places.
    """

    this_place: dict[str, Any] | None
    other_places: Sequence[Any]
    on_request: bool = True  # a check on request; False: one of the schedule
    unwritten: bool = False

    @property
    def generation(self) -> int | None:
        return None if self.this_place is None else self.this_place["generation"]

    @property
    def is_assigned(self) -> bool:
        """Whether a checker checks the monitor. A heartbeat has no place."""
        return self.this_place is not None or bool(self.other_places)

    @property
    def has_vote(self) -> bool:
        """Whether the place is one of the monitor's (decision 14). A check on request may be made
        in another place.
        """
        return self.this_place is not None or not self.other_places

    def checked(self) -> list[datetime | None]:
        """The time of the newest check of each place."""
        return [row["checked_at"] for row in self._rows()]

    def places(self) -> dict[int, datetime]:
        """Since when each place checks the monitor (``Rules.places_since``). A row that was not
        checked since its assignment, or since a pause or another change that reset it, has the time
        (ms) of that as its generation.
        """
        return {
            row["location_id"]: _LONG_AGO if row["checked_at"] else from_ms(row["generation"])
            for row in self._rows()
        }

    def votes(self, rules: Rules) -> dict[int, Vote]:
        """The vote of each place: its newest result."""
        return {
            (place := row["location_id"]): rules.vote(
                place, row["checked_at"], row["verdict"] or Verdict.UNKNOWN, row["failures"]
            )
            for row in self._rows()
            if row["checked_at"] is not None
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        if self.this_place is not None:
            yield self.this_place
        for row in self.other_places:
            yield row._mapping

    def set_vote(self, vote: Vote) -> None:
        """Set the newest result of this place."""
        if self.this_place is not None:
            self.this_place.update(checked_at=vote.at, verdict=vote.verdict, failures=vote.failures)
            self.unwritten = True

    def mark_done(self, monitor_id: int, interval: int, result: Result) -> None:
        """Note for which scheduled time the check was made."""
        if self.this_place is None:
            return
        self.this_place |= {
            "generation": self.this_place["generation"] + 1,
            "scheduled_at": last_scheduled(monitor_id, interval, result.checked_at),
            "blind": result.cause_code == Cause.NETWORK_DOWN,
        }
        self.on_request, self.unwritten = False, True

    def is_answer(self, at: datetime) -> bool:
        """Whether a check at ``at`` answers the last request to this place."""
        if self.this_place is None or (asked_at := self.this_place["asked_at"]) is None:
            return False
        last_check_at: datetime | None = self.this_place["checked_at"]
        return at >= asked_at and (last_check_at is None or last_check_at < asked_at)

    def standing(self, unconfirmed_at: datetime | None) -> Standing | None:
        if self.this_place is None:
            return None
        fields = {name: self.this_place[name] for name in _OF_STANDING}
        return Standing(**fields, unconfirmed_at=unconfirmed_at)


def load(
    session: AnySession, newest: Mapping[int, int | None], place: int
) -> dict[int, MonitorAssignments]:
    """The assignments of each monitor. ``newest``: the time (ms) of its newest result, which may be
    newer than the row: good checks of a monitor with one place do not write it (``steady``).
    """
    rows = assignments.of_each(session, newest)
    return {id: _assignments_of(of_monitor, place, newest[id]) for id, of_monitor in rows.items()}


def _assignments_of(rows: Mapping[int, Any], place: int, newest: int | None) -> MonitorAssignments:
    other_places = [row for location, row in rows.items() if location != place]
    if place not in rows:
        return MonitorAssignments(None, other_places)
    assignment = dict(rows[place]._mapping)
    if not other_places and assignment["checked_at"] is not None:
        assignment["checked_at"] = latest.later(assignment["checked_at"], newest)
    return MonitorAssignments(assignment, other_places)


def write(session: AnySession, assigned: Sequence[MonitorAssignments]) -> None:
    """Write the assignments that have changed. The lock on the monitor's state protects them."""
    rows = [
        {"monitor": monitor.this_place["monitor_id"], "place": monitor.this_place["location_id"]}
        | {f"new_{name}": monitor.this_place[name] for name in _WRITTEN}
        for monitor in assigned
        if monitor.unwritten and monitor.this_place is not None
    ]
    if rows:
        session.execute(_WRITE, rows)
    for monitor in assigned:
        monitor.unwritten = False


# --- Requests for a check

# Requests within this time, such as a double click, get the same check.
SAME_REQUEST = timedelta(seconds=1)


def ask(
    monitor_id: int, places: Collection[int], now: datetime, seconds: float
) -> dict[int, datetime]:
    """Ask these places of a monitor for a check, for which somebody waits so many ``seconds``, in a
    transaction of its own. Returns when each was asked: ``now``, or the time of an earlier request,
    which this one joins. Raises NotFound.

    If the clock of a place is ahead, the time is just after its last result: otherwise that result
    would count as the answer, and the place would make no check.
    """
    row, patience = AssignmentRow, timedelta(seconds=seconds)
    of_monitor = row.monitor_id == monitor_id
    with writing() as session:
        # This also notes the monitor in the change feed, so that each place reads its row.
        lock_state(session, monitor_id)
        rows = session.execute(
            select(row.location_id, row.asked_at, row.checked_at).where(
                of_monitor, row.location_id.in_(places)
            )
        )
        asked_times = {
            place: asked_at
            for place, asked_at, checked_at in rows
            if asked_at is not None and _is_joined(asked_at, checked_at, now, patience)
        }
        if not_asked := set(places) - asked_times.keys():
            newest = session.scalar(  # if it is not before ``now``
                select(func.max(ResultRow.at)).where(
                    ResultRow.monitor_id == monitor_id,
                    ResultRow.at.between(to_ms(now), latest.last_moment(now)),
                    ResultRow.location_id.in_(not_asked),
                )
            )
            # In whole milliseconds, as it is stored and compared
            asked_at = from_ms(to_ms(now) if newest is None else newest + 1)
            to_ask = updating(row).where(of_monitor, row.location_id.in_(not_asked))
            session.execute(to_ask.values(asked_at=asked_at))
            asked_times |= dict.fromkeys(not_asked, asked_at)
    return asked_times


def _is_joined(
    asked_at: datetime, checked_at: datetime | None, now: datetime, patience: timedelta
) -> bool:
    """Whether the check of the last request to a place answers this request too. If it was not
    made yet, the last request must stay valid for as long as this one waits.
    """
    if asked_at > believable(now):
        return False
    if checked_at is not None and checked_at >= asked_at:
        return abs(now - asked_at) <= SAME_REQUEST
    return now - asked_at <= min(patience, REQUEST_LASTS - patience)
