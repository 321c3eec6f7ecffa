"""Record outcomes: results, states, incidents and alerts, in one transaction for each batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, bindparam, select

from app.access.actors import acting_as
from app.alerts.targets import unsent_openings
from app.db import AnySession, changes, journal, latest, shards, writing
from app.db.latest import lock_states
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow
from app.db.types import from_ms, to_ms
from app.db.windows import MaintenanceTimes
from app.engine.recorder import assigned, evidence, gaps, outages, unreachable
from app.engine.recorder.assigned import NO_PLACE, MonitorAssignments
from app.engine.recorder.batch import STATE_COLUMNS, Family, MonitorInBatch, ResultBatch
from app.engine.recorder.judging import carry_out, finish, judge, set_cause
from app.engine.recorder.rows import cover_limit_s, rejudged_from, state_of
from app.engine.recorder.steady import Steady, steady_of
from app.engine.schedule import Claim, Standing
from app.judge.verdict import (
    MIN_COVER_S,
    Effect,
    Rules,
    Situation,
    Stage,
    judge_votes,
    silent_failures,
    vote_valid_for,
)
from app.records import Outcome, Result

_STATES = MonitorStateRow.__table__
_MONITOR_COLUMNS = (
    MonitorRow.id, MonitorRow.name, MonitorRow.interval, MonitorRow.timeout,
    MonitorRow.confirmations, MonitorRow.paused, MonitorRow.maintenance_start_at,
    MonitorRow.maintenance_end_at, MonitorRow.ssl_alert_days, MonitorRow.tags,
    MonitorRow.location_rule, MonitorRow.created_at, MonitorRow.slow_after,
    MonitorRow.slow_alert_after, MonitorRow.options,
)  # fmt: skip
# Built once: building them takes longer than running them.
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_LOADED = (
    select(
        *_STATES.columns,
        *_MONITOR_COLUMNS,
        latest.newest("at", _STATES.c.monitor_id, latest.UNTIL).label("newest"),
    )
    .join(MonitorRow, MonitorRow.id == _STATES.c.monitor_id)
    .where(_STATES.c.monitor_id.in_(_IDS))
)
_OPEN = select(
    IncidentRow.id, IncidentRow.monitor_id, IncidentRow.started_at, IncidentRow.by_hand,
    IncidentRow.created_at, IncidentRow.severity, IncidentRow.down_since,
).where(IncidentRow.monitor_id.in_(_IDS), IncidentRow.ended_at.is_(None))  # fmt: skip
# Checks of one monitor in one place that start in the same millisecond.
_MAX_IN_MILLISECOND = 50


def record(
    outcomes: Sequence[tuple[int, Outcome]], now: datetime, *, location: str = "default"
) -> list[Result | None]:
    """Record checks on request, by monitor id. Returns each result as recorded, or None if there is
    no such monitor.

    Such a check counts like any other, but does not change the schedule. If the monitor is paused,
    or not checked from this place, only the result is stored.
    """
    claimed = [(Claim(id), outcome) for id, outcome in outcomes]
    return [result for result, _standing in _record(claimed, now, location, fenced=False)]


def record_claimed(
    outcomes: Sequence[tuple[Claim, Outcome]],
    now: datetime,
    *,
    location: str = "default",
    steady: Steady | None = None,
) -> list[Standing | None]:
    """Record checks of the schedule. Returns each monitor's new standing; None for a dropped check.

    A check is dropped if its checker has lost the shard, or if the monitor was paused, changed,
    deleted or checked by another checker since the check started. ``steady`` remembers the monitors
    whose rows need not be read at their next good check.
    """
    if steady is not None:
        steady.follow_changes()
    recorded = _record(outcomes, now, location, fenced=True, steady=steady)
    return [standing for _result, standing in recorded]


def _record(
    outcomes: Sequence[tuple[Claim, Outcome]],
    now: datetime,
    location: str,
    *,
    fenced: bool,
    steady: Steady | None = None,
) -> list[tuple[Result | None, Standing | None]]:
    if not outcomes:
        return []
    journal.assign_numbers([outcome.result for _claim, outcome in outcomes])
    place = journal.place_id(location)
    # Otherwise the audit log would say that the incident was opened by the person who asked for the
    # check, or by the agent that brought it.
    with acting_as(None), writing() as session:
        numbers = {claim.shard for claim, _outcome in outcomes} if fenced else set()
        tokens = shards.locked(session, place, numbers)
        ids = {claim.monitor_id for claim, _outcome in outcomes}
        family = unreachable.lock_family(session, ids)
        monitors = _load(session, ids | family.ids, place, now)
        windows, failing = MaintenanceTimes(session, now), evidence.FailingChecks(session, monitors)
        stored_times = _stored_before(monitors, outcomes, place)
        batch = ResultBatch(
            session, now, location, place, windows, monitors, tokens, failing, stored_times, family
        )
        recorded: list[tuple[Result | None, Standing | None]] = [(None, None)] * len(outcomes)
        for index in _parents_first(outcomes, family):
            claim, outcome = outcomes[index]
            if fenced and not _is_valid(batch, claim):
                continue
            result = _record_outcome(batch, claim.monitor_id, outcome, fenced=fenced)
            if result is not None:
                recorded[index] = result, monitors[claim.monitor_id].standing
        finish(batch)
        if not fenced:
            # The owner of the shard must not use the state that it has cached.
            for monitor_id in ids & monitors.keys():
                if monitors[monitor_id].assigned.is_assigned:
                    changes.note(session, monitor_id)
    if steady is not None:
        for claim, _outcome in outcomes:
            monitor = monitors.get(claim.monitor_id)
            remembered = None
            if monitor is not None and not monitor.assigned.other_places:
                standing, columns = monitor.standing, monitor.columns
                remembered = steady_of(claim, monitor.row, monitor.state, standing, columns)
            steady.remember(claim.monitor_id, remembered)
    return recorded


def _parents_first(outcomes: Sequence[tuple[Claim, Outcome]], family: Family) -> Iterable[int]:
    """The indexes of these outcomes, parents before their children. Otherwise a monitor would wait
    for its parent although both are in the batch.
    """
    if not family.above:
        return range(len(outcomes))
    ids = [claim.monitor_id for claim, _outcome in outcomes]
    return sorted(range(len(ids)), key=lambda index: len(family.above.get(ids[index], ())))


def _stored_before(
    monitors: Mapping[int, MonitorInBatch], outcomes: Iterable[tuple[Claim, Outcome]], place: int
) -> set[tuple[int, int]]:
    """The monitor and time (ms) of each outcome whose result the place has stored already. Nearly
    all outcomes are newer than the last check there, so nothing is read for them. A heartbeat has
    no place; its newest result counts as the last check.
    """
    times: set[tuple[int, int]] = set()
    for claim, outcome in outcomes:
        if (monitor := monitors.get(claim.monitor_id)) is not None:
            at, assignment = to_ms(outcome.result.checked_at), monitor.assigned.this_place
            last = monitor.newest if assignment is None else assignment["checked_at"]
            if last is None or at <= to_ms(last):
                times.add((claim.monitor_id, at))
    return journal.stored_times(times, place)


def _is_valid(batch: ResultBatch, claim: Claim) -> bool:
    """Whether the check was made by the shard's owner, at the monitor's present generation."""
    monitor = batch.monitors.get(claim.monitor_id)
    return (
        monitor is not None
        and batch.tokens.get(claim.shard) == claim.token
        and monitor.assigned.generation == claim.generation
    )


def _load(
    session: AnySession, ids: set[int], place: int, now: datetime
) -> dict[int, MonitorInBatch]:
    """The monitors with these ids, whose states are locked."""
    parameters = {"ids": sorted(ids), "until": latest.last_moment(now)}
    rows = session.execute(_LOADED, parameters).all()
    open_now = {row.monitor_id: row for row in session.execute(_OPEN, parameters)}
    assignments = assigned.load(session, {row.monitor_id: row.newest for row in rows}, place)
    unsent = unsent_openings(session, [incident.id for incident in open_now.values()])
    monitors = {
        row.monitor_id: _monitor_of(row, open_now.get(row.monitor_id), assignments[row.monitor_id])
        for row in rows
    }
    for monitor_id, monitor in monitors.items():
        if monitor_id in open_now:
            monitor.unsent = unsent.get(open_now[monitor_id].id, ())
    return monitors


def _monitor_of(row: Any, incident: Any, assignments: MonitorAssignments) -> MonitorInBatch:
    state = state_of(row, incident)
    silent_from, newest = gaps.silent_from(state), latest.later(state.checked_at, row.newest)
    if (
        not assignments.other_places
    ):  # its good checks do not write the state each time (``steady``)
        state = replace(state, checked_at=newest)
    rules = rules_of(row, assignments.places())
    restarts = (row.created_at, row.resumed_at, row.spec_since)
    situation = Situation(state, assignments.votes(rules))
    columns = {name: getattr(row, name) for name in STATE_COLUMNS}
    return MonitorInBatch(
        row, rules, situation, columns, assignments, newest,
        rejudged_from=rejudged_from(row),
        votes_from=max(restart for restart in restarts if restart is not None),
        opened_at=incident and incident.created_at, silent_from=silent_from,
    )  # fmt: skip


def _record_outcome(
    batch: ResultBatch, monitor_id: int, outcome: Outcome, *, fenced: bool
) -> Result | None:
    monitor = batch.monitors.get(monitor_id)
    if monitor is None:
        return None
    if monitor_id in batch.incident_changes:
        carry_out(batch)  # this result follows the incident that opened or ended
    outcome = _with_place(batch, monitor, outcome)
    result, row = outcome.result, monitor.row
    cover_s = _cover_s(monitor, conclusive=outcome.conclusive)
    batch.rows.append(journal.row_of(result, batch.place_id, cover_s))
    if result.assertions and monitor.assigned.is_answer(result.checked_at):
        evidence.store_assertions(batch.session, result)
    if not row.paused:
        if fenced:
            monitor.assigned.mark_done(row.id, row.interval, result)
        if monitor.assigned.has_vote:
            judge(batch, monitor, outcome)
    return journal.as_recorded(result, batch.place_id)


def _cover_s(monitor: MonitorInBatch, *, conclusive: bool) -> int:
    """The most seconds for which the result counts. 0 while the monitor is paused, and in a place
    that does not check it (after its places changed, or for a check on request).

    The result of a monitor without places counts only at its time, because no next check ends its
    cover. A heartbeat has no places, and needs none.
    """
    if monitor.row.paused or not monitor.assigned.has_vote:
        return 0
    follows = conclusive or monitor.assigned.this_place is not None
    return cover_limit_s(monitor.row) if follows else MIN_COVER_S


def _with_place(batch: ResultBatch, monitor: MonitorInBatch, outcome: Outcome) -> Outcome:
    """The outcome with its monitor and place, which the prober does not always set, and with a time
    that no other result of the monitor has in this place.
    """
    at = from_ms(_free_ms(batch, monitor.row.id, to_ms(outcome.result.checked_at)))
    result = replace(
        outcome.result,
        monitor_id=monitor.row.id,
        checked_at=at,
        location=batch.place_name,
        maintenance=batch.windows.covers(monitor.row, at),
    )
    return replace(outcome, result=result)


def _free_ms(batch: ResultBatch, monitor_id: int, at_ms: int) -> int:
    """The first time from ``at_ms`` on at which the place has no result of this monitor: results of
    a monitor and place with equal times would replace each other.
    """
    if (monitor_id, at_ms) in batch.stored_times:
        times = [(monitor_id, at_ms + offset) for offset in range(_MAX_IN_MILLISECOND)]
        batch.stored_times |= journal.stored_times(times, batch.place_id)
        at_ms = next((time for id, time in times if (id, time) not in batch.stored_times), at_ms)
    batch.stored_times.add((monitor_id, at_ms))
    return at_ms


def rules_of(monitor: Any, places: Mapping[int, datetime]) -> Rules:
    """The rules of a monitor. ``places``: since when each of its places checks it."""
    return Rules(
        monitor.location_rule,
        monitor.confirmations,
        vote_valid_for(monitor),
        places,
        gaps.longest_without_gap(monitor),
    )


def judge_votes_again(session: AnySession, row: MonitorRow, now: datetime) -> None:
    """Judge the newest results of a monitor's places again after its rule or places have changed:
    set its status, and end its incident, by the present rule and places. A place that it lost has
    no vote any more; a new one has none yet. Inside ``writing()``.

    The next check may be an hour away. Until then, the monitor would be down because of a place
    that no longer checks it. If a place that saw the failure is silent, nothing changes until the
    next check.
    """
    if row.paused:
        return
    session.flush()
    changes.note(session, row.id)
    lock_states(session, [row.id])
    loaded = _load(session, {row.id}, NO_PLACE, now)
    monitor, windows = loaded[row.id], MaintenanceTimes(session, now)
    state_before, maintenance = monitor.state, windows.covers(row, now)
    decision = judge_votes(monitor.rules, monitor.situation, now, maintenance=maintenance)
    votes = decision.situation.votes.values()
    if decision.effect is Effect.END and silent_failures(
        monitor.rules, votes, state_before.down_since, now
    ):
        return  # a place that saw the failure is silent: the next check decides
    monitor.set_state(decision.situation.state)
    unconfirmed_at = monitor.columns["unconfirmed_at"]
    if decision.recheck or decision.unconfirmed:
        monitor.columns["unconfirmed_at"] = unconfirmed_at or now
    elif monitor.state.stage not in (Stage.CONFIRMING, Stage.RECOVERING):
        monitor.columns["unconfirmed_at"] = None
    failing = evidence.FailingChecks(session, [row.id])
    batch = ResultBatch(session, now, "", NO_PLACE, windows, loaded, {}, failing, set())
    set_cause(batch, monitor, decision.valid_votes)
    if decision.effect is Effect.CANCEL:
        failing.drop(row.id)
    elif decision.effect is Effect.END and decision.moment:
        closing = outages.Closing(row.id, decision.moment, (), by_change=True)
        batch.incident_changes[row.id] = closing
    unreachable.update_family(batch, monitor, state_before, now)
    finish(batch)
