"""The monitors and results of one transaction of the recorder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.db import AnySession
from app.db.windows import MaintenanceTimes
from app.engine.recorder import evidence, outages
from app.engine.recorder.assigned import MonitorAssignments
from app.engine.recorder.rows import columns_of
from app.engine.schedule import Standing
from app.judge.verdict import PastResult, Rules, Situation, State

STATE_COLUMNS = (
    "checked_at", "verdict", "status_since", "failing_since", "failures", "recovering_since",
    "unconfirmed_at", "cause_code", "cause", "response_time", "ssl_issued_at",
    "ssl_expires_at", "ssl_fingerprint", "alerted_certificates", "behind_id", "parents_asked_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """The dependencies of the monitors of a batch, direct and indirect. ``above``: the parents of
    each. ``waiting``: the children of each whose failure is being confirmed. ``parents``: the
    monitors that have children.
    """

    above: Mapping[int, Collection[int]] = field(default_factory=dict)
    waiting: Mapping[int, Collection[int]] = field(default_factory=dict)
    parents: Collection[int] = ()

    @property
    def ids(self) -> set[int]:
        return {id for part in (self.above, self.waiting) for ids in part.values() for id in ids}


NO_FAMILY = Family()


@dataclass(slots=True)
class MonitorInBatch:
    """A monitor, with its situation after the results of the batch that were judged so far. ``row``
    has the columns of the monitor and of its state as they were read; ``columns``: the columns of
    its state to be written.
    """

    row: Any
    rules: Rules
    situation: Situation
    columns: dict[str, Any]
    assigned: MonitorAssignments
    newest: datetime | None  # the start of its newest check
    rejudged_from: datetime  # ``rows.rejudged_from``
    votes_from: datetime  # earlier results are from before a pause, or of other fields
    opened_at: datetime | None = None  # when the row of its open incident was written
    # The lanes that gave up the alert about the open incident before it was sent
    unsent: Collection[str] = ()
    unwritten: bool = False
    # The start of its last check, if all its places were silent since; None after the next check
    silent_from: datetime | None = None
    # Its results of this batch, if slowness opens an incident
    results: list[PastResult] = field(default_factory=list)

    @property
    def state(self) -> State:
        return self.situation.state

    @property
    def standing(self) -> Standing | None:
        return self.assigned.standing(self.columns["unconfirmed_at"])

    def set_state(self, state: State) -> None:
        self.situation = Situation(state, self.situation.votes)
        self.columns |= columns_of(state)
        self.unwritten = True


@dataclass(slots=True)
class ResultBatch:
    """Results of one place, which one transaction records. ``monitors``: the monitors of the
    results and of their ``family``, by id. ``tokens``: the tokens of the locked shards, by number.
    ``rows``, ``good``, ``incident_changes`` and ``sum_again`` are still to be written.
    """

    session: AnySession
    now: datetime
    place_name: str
    place_id: int
    windows: MaintenanceTimes
    monitors: dict[int, MonitorInBatch]
    tokens: dict[int, int]
    failing: evidence.FailingChecks
    stored_times: set[tuple[int, int]]  # monitor and time (ms) of results that the place has
    family: Family = NO_FAMILY
    good: dict[int, Any] = field(default_factory=dict)  # evidence of good checks, by monitor
    # Incidents that open or end, by monitor
    incident_changes: dict[int, outages.Change] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    # Times at which a monitor began or ceased to be unreachable
    sum_again: list[tuple[int, datetime]] = field(default_factory=list)
