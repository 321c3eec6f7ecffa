"""Record outcomes: results, states, incidents and alerts, in one transaction for each batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from flask import current_app
from sqlalchemy import BindParameter, bindparam, select, update

from app.access.actors import acting_as
from app.alerts.recipients import unsent_openings
from app.config import Settings
from app.db import AnySession, changes, journal, latest, shards, writing
from app.db.by_place import Seen
from app.db.latest import lock_states
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow
from app.db.types import from_ms, to_ms
from app.engine.recorder import alerting, beginnings, by_place, evidence, gaps, outages, places
from app.engine.recorder.quiet import Quiet
from app.engine.recorder.rows import columns_of, covers_s, state_of, whole
from app.engine.recorder.steady import Held, Steady, held_of
from app.engine.schedule import Claim, Standing, is_repeat
from app.judge import verdict as judge
from app.judge.verdict import (
    MOMENT_S,
    TOGETHER,
    Observation,
    Stands,
    State,
    Step,
    Transition,
    Vote,
    advance,
    backdated,
    confirms,
)
from app.records import Outcome, Result, Verdict

_STATES = MonitorStateRow.__table__
_MONITOR_COLUMNS = (
    MonitorRow.id, MonitorRow.interval, MonitorRow.timeout, MonitorRow.confirmations,
    MonitorRow.paused, MonitorRow.maintenance_start_at, MonitorRow.maintenance_end_at,
    MonitorRow.ssl_alert_days, MonitorRow.tags, MonitorRow.location_rule,
)  # fmt: skip
_WRITTEN = (
    "checked_at", "verdict", "status_since", "failing_since", "failures", "recovering_since",
    "unconfirmed_at", "cause_code", "cause", "response_time", "ssl_issued_at",
    "ssl_expires_at", "ssl_fingerprint", "alerted_certificates",
)  # fmt: skip
_WRITE = (
    update(_STATES)  # type: ignore[arg-type] # Flask-SQLAlchemy types __table__ as a FromClause
    .where(_STATES.c.monitor_id == bindparam("of"))
    .values({name: bindparam(f"new_{name}") for name in _WRITTEN})
)
# Built once: building them takes longer than running them.
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_LOADED = (
    select(
        *_STATES.columns,
        *(column.label(f"m_{column.key}") for column in _MONITOR_COLUMNS),
        latest.newest("at", _STATES.c.monitor_id, latest.UNTIL).label("newest"),
    )
    .join(MonitorRow, MonitorRow.id == _STATES.c.monitor_id)
    .where(_STATES.c.monitor_id.in_(_IDS))
)
_OPEN = select(
    IncidentRow.id, IncidentRow.monitor_id, IncidentRow.started_at, IncidentRow.by_hand,
    IncidentRow.created_at,
).where(IncidentRow.monitor_id.in_(_IDS), IncidentRow.ended_at.is_(None))  # fmt: skip
# Checks of one monitor in one place that begin in the same millisecond.
_MOST_AT_ONCE = 50


@dataclass(slots=True)
class _Known:
    """A monitor and its state, as the results of the batch have made it so far."""

    monitor: Any
    state: State
    columns: dict[str, Any]
    assigned: places.MonitorAssignments
    summed_until: datetime | None
    opened_at: datetime | None = None  # when the open incident was written, if one was before
    # The lanes whose message about the open incident's opening was given up unsent
    unsent: Collection[str] = ()
    changed: bool = False
    # The last check before the silence of all its places, until a check ends that
    silent_from: datetime | None = None


@dataclass(slots=True)
class _Batch:
    """What the results of a batch share. They are of one place, ``location``, which is called
    ``name``. ``tokens`` are those of the shards whose checks are recorded.
    """

    session: AnySession
    now: datetime
    name: str
    location: int
    quiet: Quiet
    known: dict[int, _Known]
    tokens: dict[int, int]
    failing: evidence.Failing
    taken: set[tuple[int, int]]  # the times (ms) of results that the place has, by monitor
    good: dict[int, Any] = field(default_factory=dict)  # evidence of good checks
    # Incidents that open or end, by monitor: they are read for and written together
    found: dict[int, outages.Change] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)


def record(
    outcomes: Sequence[tuple[int, Outcome]], now: datetime, *, location: str = "default"
) -> list[Result | None]:
    """Record checks on request, by monitor id. Returns each result as recorded, or None if there is
    no such monitor.

    Such a check counts like any other, but does not change the schedule. For a paused monitor, and
    for one that is checked from other places alone, only the result is stored.
    """
    return _record([(Claim(id), outcome) for id, outcome in outcomes], now, location, fenced=False)


def record_claimed(
    outcomes: Sequence[tuple[Claim, Outcome]],
    now: datetime,
    *,
    location: str = "default",
    steady: Steady | None = None,
) -> list[Standing | None]:
    """Record checks of the schedule. Returns each monitor's new standing, None for a dropped check.

    A check is dropped if its owner has lost the shard, or if the monitor was paused, changed,
    deleted or checked by another checker since the check was started. ``steady`` learns which
    monitors need not be read at their next good check.
    """
    stood: list[Standing | None] = []
    if steady is not None:
        steady.start()
    _record(outcomes, now, location, fenced=True, stood=stood, steady=steady)
    return stood


def _record(
    outcomes: Sequence[tuple[Claim, Outcome]],
    now: datetime,
    location: str,
    *,
    fenced: bool,
    stood: list[Standing | None] | None = None,
    steady: Steady | None = None,
) -> list[Result | None]:
    if not outcomes:
        return []
    journal.known_numbers([outcome.result for _claim, outcome in outcomes])
    place = journal.location_id(location)
    # Whoever asked for a check or brought its result did not open the incident.
    with acting_as(None), writing() as session:
        numbers = {claim.shard for claim, _outcome in outcomes} if fenced else set()
        tokens = shards.locked(session, place, numbers)
        known = _load(session, {claim.monitor_id for claim, _outcome in outcomes}, place, now)
        quiet, failing = Quiet(session, now), evidence.Failing(session, known)
        taken = _taken(known, outcomes, place)
        batch = _Batch(session, now, location, place, quiet, known, tokens, failing, taken)
        recorded = []
        for claim, outcome in outcomes:
            may = not fenced or _may(batch, claim)
            recorded.append(_one(batch, claim.monitor_id, outcome, fenced=fenced) if may else None)
            if stood is not None:
                done = recorded[-1] is not None
                stood.append(_standing(known[claim.monitor_id]) if done else None)
        _carry_out(batch)
        failing.write()
        _write_states(batch)
        places.write(session, [found.assigned for found in known.values()])
        if not fenced:
            # Whoever owns the shard must not go on from what it remembers of the monitor.
            for monitor_id in known:
                changes.note(session, monitor_id)
    if steady is not None:
        for claim, _outcome in outcomes:
            found = known.get(claim.monitor_id)
            steady.hold(claim.monitor_id, None if found is None else _held(found, claim))
    return recorded


def _taken(
    known: Mapping[int, _Known], outcomes: Iterable[tuple[Claim, Outcome]], place: int
) -> set[tuple[int, int]]:
    """The times (ms) of these outcomes at which the place has a result of the monitor already. Not
    asked for where the outcome is newer than the last check there, as nearly always.
    """
    times = {
        (claim.monitor_id, to_ms(outcome.result.checked_at))
        for claim, outcome in outcomes
        if claim.monitor_id in known
        and not known[claim.monitor_id].assigned.is_newer(outcome.result)
    }
    return journal.stored(times, place)


def _held(known: _Known, claim: Claim) -> Held | None:
    alone = not known.assigned.others
    return held_of(claim, known.monitor, known.state, _standing(known), known.columns, alone=alone)


def _standing(known: _Known) -> Standing | None:
    return known.assigned.standing(known.columns["unconfirmed_at"])


def _may(batch: _Batch, claim: Claim) -> bool:
    """Whether the check was made by the shard's owner, at the monitor's present turn."""
    known = batch.known.get(claim.monitor_id)
    return (
        known is not None
        and batch.tokens.get(claim.shard) == claim.token
        and known.assigned.turn == claim.turn
    )


def _load(session: AnySession, ids: set[int], place: int, now: datetime) -> dict[int, _Known]:
    lock_states(session, ids)
    asked = {"ids": sorted(ids), "until": latest.last_moment(now)}
    rows = session.execute(_LOADED, asked).all()
    open_now = {row.monitor_id: row for row in session.execute(_OPEN, asked)}
    assigned = places.load(session, [row.monitor_id for row in rows], place)
    for row in rows:
        assigned[row.monitor_id].caught_up(row.newest)
    unsent = unsent_openings(session, [incident.id for incident in open_now.values()])
    known = {
        row.monitor_id: _known(row, open_now.get(row.monitor_id), assigned[row.monitor_id])
        for row in rows
    }
    for monitor_id, found in known.items():
        if monitor_id in open_now:
            found.unsent = unsent.get(open_now[monitor_id].id, ())
    return known


def _known(row: Any, incident: Any, assigned: places.MonitorAssignments) -> _Known:
    state = state_of(row, incident and incident.started_at, bool(incident and incident.by_hand))
    silent_from = gaps.silent_from(state)
    state = replace(state, checked_at=latest.later(state.checked_at, row.newest))
    columns = {name: getattr(row, name) for name in _WRITTEN}
    return _Known(
        _Columns(row),
        state,
        columns,
        assigned,
        row.rolled_until,
        incident and incident.created_at,
        silent_from=silent_from,
    )


class _Columns:
    """The monitor's columns of a joined row, under their own names."""

    __slots__ = tuple(column.key for column in _MONITOR_COLUMNS)

    def __init__(self, row: Any) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(row, f"m_{name}"))


def _one(batch: _Batch, monitor_id: int, outcome: Outcome, *, fenced: bool) -> Result | None:
    known = batch.known.get(monitor_id)
    if known is None:
        return None
    if monitor_id in batch.found:
        _carry_out(batch)  # this result follows the incident that opened or ended
    outcome = _placed(batch, known, outcome)
    result, monitor = outcome.result, known.monitor
    batch.rows.append(journal.row_of(result, batch.location, _covers(known)))
    if not monitor.paused:
        known.assigned.seen(result)
        if fenced:
            known.assigned.done(monitor.id, monitor.interval, result)
        if known.assigned.has_vote:
            _judge(batch, known, outcome)
    return journal.as_recorded(result, batch.location)


def _covers(known: _Known) -> int:
    """For how many seconds the result counts at most; 0 while the monitor is paused, and for one of
    a place that is not the monitor's (a check on request, before its places changed).

    One of a monitor without places counts for its moment alone: no check follows and ends its time.
    """
    if known.monitor.paused or not known.assigned.has_vote:
        return 0
    return MOMENT_S if known.assigned.here is None else covers_s(known.monitor)


def _placed(batch: _Batch, known: _Known, outcome: Outcome) -> Outcome:
    """The outcome with its monitor and place, which agents and probers do not know by themselves,
    and a time that no other result of the monitor has in this place.
    """
    at = from_ms(_free(batch, known.monitor.id, to_ms(outcome.result.checked_at)))
    result = replace(
        outcome.result,
        monitor_id=known.monitor.id,
        checked_at=at,
        location=batch.name,
        maintenance=batch.quiet.covers(known.monitor, at),
    )
    return replace(outcome, result=result)


def _free(batch: _Batch, monitor_id: int, at: int) -> int:
    """The first time (ms) from ``at`` on at which the place has no result of this monitor: of two
    with the same monitor, place and time, only one is stored.
    """
    if (monitor_id, at) in batch.taken:
        times = [(monitor_id, at + more) for more in range(_MOST_AT_ONCE)]
        batch.taken |= journal.stored(times, batch.location)
        at = next((time for id, time in times if (id, time) not in batch.taken), at)
    batch.taken.add((monitor_id, at))
    return at


def _judge(batch: _Batch, known: _Known, outcome: Outcome) -> None:
    result, before = outcome.result, known.state
    if (since := known.silent_from) is not None:
        known.silent_from, session = None, batch.session
        before = gaps.after_silence(session, known.monitor, before, since, result.checked_at)
    elif gap := gaps.before(known.monitor, before, result.checked_at):
        before = gaps.note(batch.session, known.monitor.id, before, gap)
    votes = known.assigned.votes(result, known.monitor, batch.now)
    vote = _vote(batch, known, votes, result)
    at = known.assigned.moment(result, before)
    seen = Observation(at, vote, result.maintenance)
    if beginnings.is_earlier(known.assigned, result, vote, before, at):
        seen = replace(seen, since=_since(batch, known, result, votes, before, at))
        before = _backdated(known, before, seen)
    if not _tells(batch, known, result, votes, vote, before):
        _restate(batch, known, result, votes, vote)
        _keep_aside(batch, known, outcome)
        return
    doubted = not result.maintenance and places.doubted(votes, vote)
    after = advance(before, seen, known.monitor.confirmations)
    waits = before.stands is Stands.OPEN and _waits_for_others(after.state, result, votes, vote)
    if waits:
        still = replace(after.state, verdict=before.verdict, status_since=before.status_since)
        after = replace(after, state=still)
    known.state, known.changed = after.state, True
    known.columns |= columns_of(after.state)
    if not after.overtaken:
        if not waits:
            _cause(batch, known, result, votes, vote)
        known.columns["response_time"] = result.response_time
        _certificate(batch, known, outcome)
        _keep_evidence(batch, before, after, outcome)
        _incident(batch, known, before, after, outcome)
        _tell_again(batch, known, result)
        if after.step not in (Step.SUSPECT, Step.OPEN):
            _keep_aside(batch, known, outcome)
        _plan(batch, known, after, result, doubted=doubted)


def _tells(
    batch: _Batch,
    known: _Known,
    result: Result,
    votes: Sequence[Vote],
    vote: Verdict,
    before: State,
) -> bool:
    """Whether the state machine counts this check. Of several places that repeat a check at once,
    one does it for all.
    """
    assigned, unconfirmed_at = known.assigned, known.columns["unconfirmed_at"]
    if not assigned.others:
        return True
    judged_at = known.columns["checked_at"]
    return assigned.newest and judge.counts(
        before,
        result.verdict,
        votes,
        vote,
        known.monitor.location_rule,
        assigned.awaited(known.monitor, batch.now, maintenance=result.maintenance),
        repeats=assigned.repeats(result, before, unconfirmed_at, judged_at, batch.now),
        since=unconfirmed_at,
        maintenance=result.maintenance,
    )


def _vote(batch: _Batch, known: _Known, votes: Sequence[Vote], result: Result) -> Verdict:
    return _decided(batch, known, votes, result) if known.assigned.others else result.verdict


def _decided(batch: _Batch, known: _Known, votes: Sequence[Vote], result: Result) -> Verdict:
    monitor = known.monitor
    awaited = known.assigned.awaited(monitor, batch.now, maintenance=result.maintenance)
    incident = known.state.stands in (Stands.OPEN, Stands.RECOVERING)
    return judge.decide(votes, monitor.location_rule, awaited, incident=incident)


def _since(
    batch: _Batch,
    known: _Known,
    result: Result,
    votes: Sequence[Vote],
    before: State,
    at: datetime,
) -> datetime | None:
    _write_rows(batch)
    monitor, session = known.monitor, batch.session
    return beginnings.since(session, known.assigned, monitor, result, votes, before, at, batch.now)


def _backdated(known: _Known, before: State, seen: Observation) -> State:
    """The state before a check, if what is being confirmed in it began as early as that shows."""
    state = backdated(before, seen)
    if state is not before:
        known.state, known.changed = state, True
        times = ("failing_since", "recovering_since", "status_since")
        known.columns |= {name: getattr(state, name) for name in times}
    return state


def _restate(
    batch: _Batch, known: _Known, result: Result, votes: Sequence[Vote], vote: Verdict
) -> None:
    """Store who sees what after a check that neither confirms nor ends anything: another place may
    see the failure too, or no longer. The state machine does not count it.
    """
    verdict = known.state.verdict
    if not known.assigned.newest:
        return
    if vote is not verdict:
        recovers = known.state.stands is Stands.RECOVERING and verdict is Verdict.DOWN
        if recovers and _waits_for_others(known.state, result, votes, vote):
            return
        known_to_be = Verdict.UP if recovers else verdict
        if not {vote, known_to_be} <= {Verdict.UP, Verdict.DEGRADED}:
            return
        known.state = replace(known.state, verdict=vote, status_since=result.checked_at)
        known.columns |= {"verdict": vote, "status_since": result.checked_at}
    known.changed = True
    _cause(batch, known, result, votes, vote)
    since = known.columns["unconfirmed_at"]
    if since and confirms(known.state.stands, vote) and _all_repeat(votes, since):
        # All have repeated it, and others see it now: it is repeated once more.
        known.columns["unconfirmed_at"] = batch.now
        changes.note(batch.session, known.monitor.id)


def _all_repeat(votes: Sequence[Vote], since: datetime) -> bool:
    settings: Settings = current_app.extensions["wakeful.settings"]
    confirm = timedelta(seconds=settings.confirm_seconds)
    return all(is_repeat(since, one.at, confirm) for one in votes)


def _waits_for_others(state: State, result: Result, votes: Sequence[Vote], vote: Verdict) -> bool:
    """Whether a recovery that has begun leaves the monitor degraded only by failures of places that
    have not been heard in this slot. They check at the same time, and an agent's result comes up to
    seconds later: until then the monitor stays down, or it would be degraded for a moment though
    all of them are good. The recheck that confirms the recovery ends the wait.
    """
    if state.stands is not Stands.RECOVERING or vote is not Verdict.DEGRADED:
        return False
    return judge.old_failures_alone(votes, result.checked_at - TOGETHER)


def _cause(
    batch: _Batch, known: _Known, result: Result, votes: Sequence[Vote], vote: Verdict
) -> None:
    """Store the cause of the monitor's status. It names the places if only some see it."""
    failing = vote in (Verdict.DOWN, Verdict.DEGRADED)
    some = failing and any(one.verdict is not vote for one in votes)
    code, cause = None, None
    if some:
        code, cause = by_place.told_by_some(_seen(batch, known), votes, vote)
    if cause is None and result.verdict is vote:
        code, cause = result.cause_code, result.cause
    known.columns |= {"cause_code": code, "cause": cause}


def _seen(batch: _Batch, known: _Known) -> Sequence[Seen]:
    """What the monitor's places saw last, with this batch."""
    _write_rows(batch)
    places.write(batch.session, [known.assigned])
    return by_place.of_monitor(batch.session, known.monitor, batch.now)


def _plan(
    batch: _Batch, known: _Known, after: Transition, result: Result, *, doubted: bool
) -> None:
    """Store whether the check is to be repeated soon, and notify the other places. The pause counts
    from ``now``, which is just after the end of the check.

    ``doubted``: too few places see a failure, and it is repeated until it is confirmed. Only a
    failing check begins another repeat: those of places that see nothing belong to the one before.
    """
    was, columns = known.columns["unconfirmed_at"], known.columns
    goes_on = doubted and was is not None and result.verdict is not Verdict.DOWN
    if not goes_on:
        columns["unconfirmed_at"] = batch.now if after.recheck or doubted else None
    if columns["unconfirmed_at"] != was and known.assigned.others_wait:
        changes.note(batch.session, known.monitor.id)


def _certificate(batch: _Batch, known: _Known, outcome: Outcome) -> None:
    if outcome.ssl_expires_at is None or outcome.ssl_fingerprint is None:
        return
    columns = known.columns
    columns["ssl_issued_at"] = outcome.ssl_issued_at
    columns["ssl_expires_at"] = outcome.ssl_expires_at
    columns["ssl_fingerprint"] = outcome.ssl_fingerprint
    before = columns["alerted_certificates"]
    due = not alerting.alerted(before, outcome.ssl_fingerprint) and alerting.certificate_due(
        outcome, known.monitor.ssl_alert_days, batch.now
    )
    if due and alerting.tell_certificate(batch.session, known.monitor.id, outcome, batch.now):
        columns["alerted_certificates"] = alerting.with_alerted(before, outcome.ssl_fingerprint)


def _keep_evidence(batch: _Batch, before: State, after: Transition, outcome: Outcome) -> None:
    if evidence.wants_good(outcome):
        batch.good[outcome.result.monitor_id or 0] = evidence.check_of(outcome)
    if after.step in (Step.SUSPECT, Step.OPEN):
        if outcome.result.is_good:
            return  # the majority fails, but this check was good
        batch.failing.keep(outcome, first=before.failing_since is None)
    elif after.step is Step.CANCEL:
        batch.failing.drop(outcome.result.monitor_id or 0)


def _keep_aside(batch: _Batch, known: _Known, outcome: Outcome) -> None:
    """Keep the evidence of a place whose failure does not change the monitor's state."""
    result, assigned = outcome.result, known.assigned
    if not assigned.others or not assigned.newest:
        return
    if assigned.recovered or result.maintenance:
        batch.failing.drop_aside(known.monitor.id, result.location)
    if result.verdict is not Verdict.DOWN or result.maintenance:
        return
    stands = known.state.stands
    if stands in (Stands.OPEN, Stands.RECOVERING):
        if assigned.failures == 1 or assigned.first_since(known.opened_at):
            evidence.add_place(batch.session, known.monitor.id, outcome)
    elif (
        assigned.failures <= known.monitor.confirmations + 1
        or stands is Stands.CONFIRMING
        # A failure of another place that was not confirmed has dropped it.
        or not batch.failing.has_aside(known.monitor.id, result.location)
    ):
        batch.failing.keep_aside(outcome)


def _write_good(batch: _Batch) -> None:
    several = {id: one for id, one in batch.good.items() if batch.known[id].assigned.others}
    if several:
        batch.good |= evidence.beside_others(batch.session, several)
    journal.keep_good_evidence(batch.good)
    batch.good = {}


def _write_rows(batch: _Batch) -> None:
    journal.keep(batch.rows)
    batch.rows = []


def _incident(
    batch: _Batch, known: _Known, before: State, after: Transition, outcome: Outcome
) -> None:
    """Note that an incident opens or ends."""
    if after.moment is None:
        return
    id, moment = known.monitor.id, after.moment
    if after.step is Step.OPEN:
        batch.found[id] = outages.Opening(id, moment, outcome.result, known.summed_until)
        known.state = replace(known.state, started_at=whole(moment))
    elif after.step is Step.END:
        silent = _fallen_silent(batch, known, before)
        ids = {one.place for one in silent}
        held = known.assigned.is_held(outcome.result, known.monitor, ids, batch.now)
        good = known.assigned.good(before.started_at)
        batch.found[id] = outages.Closing(id, moment, known.summed_until, good, silent, held)


def _carry_out(batch: _Batch) -> None:
    """Write the results, and the incidents that they open and end."""
    _write_rows(batch)
    _write_good(batch)  # an incident that opens now includes it
    if batch.found:
        places.write(batch.session, [batch.known[id].assigned for id in batch.found])
        outages.carry_out(batch.session, list(batch.found.values()), batch.failing, batch.now)
        batch.found = {}


def _fallen_silent(batch: _Batch, known: _Known, before: State) -> Sequence[Seen]:
    """The places that saw the failure to the last, and have no vote any more."""
    silent = known.assigned.silent_down(known.monitor, before.started_at, batch.now)
    return [one for one in _seen(batch, known) if one.place in silent] if silent else ()


def _tell_again(batch: _Batch, known: _Known, result: Result) -> None:
    """Alert to an incident again, once, if a failing check shows that it still lasts."""
    still = known.state.verdict is Verdict.DOWN and known.state.stands is Stands.OPEN
    if known.unsent and still and not result.maintenance:
        alerting.tell_again(batch.session, known.monitor.id, known.unsent, batch.now)
        known.unsent = ()


def _write_states(batch: _Batch) -> None:
    changed = [
        {"of": monitor_id} | {f"new_{name}": known.columns[name] for name in _WRITTEN}
        for monitor_id, known in batch.known.items()
        if known.changed
    ]
    if changed:
        batch.session.execute(_WRITE, changed)
