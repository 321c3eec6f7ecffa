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
from app.db import AnySession, changes, journal, latest, rollups, shards, writing
from app.db.by_place import Seen
from app.db.latest import lock_states
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow
from app.db.types import from_ms, to_ms
from app.engine.recorder import alerting, assigned, by_place, evidence, gaps, outages
from app.engine.recorder.assigned import NOWHERE, MonitorAssignments
from app.engine.recorder.quiet import Quiet
from app.engine.recorder.rows import columns_of, covers_s, last_end, stale_after, state_of, whole
from app.engine.recorder.steady import Held, Steady, held_of
from app.engine.schedule import Claim, Standing, is_repeat
from app.judge.fold import in_turn, is_late, margin
from app.judge.verdict import (
    MOMENT_S,
    Decision,
    PlaceCheck,
    Rules,
    Situation,
    Stands,
    State,
    Step,
    Vote,
    after_gap,
    ends_by_silence,
    good_places,
    is_open,
    is_overtaken,
    revote,
    silent_failures,
    step,
    without_future,
)
from app.records import Outcome, Result, Verdict
from app.rules.time import SKEW

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
    """A monitor and its situation, as the results of the batch have made it so far."""

    monitor: Any
    rules: Rules
    situation: Situation
    columns: dict[str, Any]
    assigned: MonitorAssignments
    summed_until: datetime | None
    newest: datetime | None  # when its newest check began
    floor: datetime | None  # results from before it are of another rule, target or pause
    opened_at: datetime | None = None  # when the open incident was written, if one was before
    # The lanes whose message about the open incident's opening was given up unsent
    unsent: Collection[str] = ()
    changed: bool = False
    # The last check before the silence of all its places, until a check ends that
    silent_from: datetime | None = None

    @property
    def state(self) -> State:
        return self.situation.state

    def set_state(self, state: State) -> None:
        self.situation = Situation(state, self.situation.votes)
        self.columns |= columns_of(state)
        self.changed = True


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
        _finish(batch)
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
        if claim.monitor_id in known and not _is_newer(known[claim.monitor_id], outcome.result)
    }
    return journal.stored(times, place)


def _is_newer(known: _Known, result: Result) -> bool:
    """Whether the result is newer than the last check of its place that is known."""
    here = known.assigned.here
    before = None if here is None else here["checked_at"]
    return before is not None and to_ms(result.checked_at) > to_ms(before)


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
    its = assigned.load(session, {row.monitor_id: row.newest for row in rows}, place)
    unsent = unsent_openings(session, [incident.id for incident in open_now.values()])
    known = {
        row.monitor_id: _known(row, open_now.get(row.monitor_id), its[row.monitor_id])
        for row in rows
    }
    for monitor_id, found in known.items():
        if monitor_id in open_now:
            found.unsent = unsent.get(open_now[monitor_id].id, ())
    return known


def _known(row: Any, incident: Any, its: MonitorAssignments) -> _Known:
    state = state_of(row, incident and incident.started_at, bool(incident and incident.by_hand))
    silent_from, newest = gaps.silent_from(state), latest.later(state.checked_at, row.newest)
    if not its.others:  # its good checks do not write the state each time (``steady``)
        state = replace(state, checked_at=newest)
    monitor = _Columns(row)
    rules = rules_of(monitor, its.places())
    floors = (row.judged_since, row.resumed_at, row.spec_since)
    return _Known(
        monitor,
        rules,
        Situation(state, its.votes(rules)),
        {name: getattr(row, name) for name in _WRITTEN},
        its,
        row.rolled_until,
        newest,
        max((one for one in floors if one is not None), default=None),
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
    result = outcome.result
    check = PlaceCheck(batch.location, result.checked_at, result.verdict, result.maintenance)
    _note_gap(batch, known, check.at)
    before = known.situation = without_future(known.situation, check, batch.now)
    if is_overtaken(before, check):
        return
    decision = _decision(batch, known, check)
    known.situation = decision.after
    known.assigned.keep(decision.after.votes[check.place])
    if decision.counted or decision.shown:
        known.set_state(decision.after.state)
    if decision.shown:
        _cause(batch, known, decision.votes, result)
    if decision.counted:
        known.columns["response_time"] = result.response_time
        _certificate(batch, known, outcome)
        _keep_evidence(batch, before.state, decision.step, outcome)
        _incident(batch, known, before.state, decision, result)
        _tell_again(batch, known, result)
    if decision.step not in (Step.SUSPECT, Step.OPEN) or not decision.counted:
        _keep_aside(batch, known, before.votes.get(check.place), outcome)
    _plan(batch, known, decision, result)


def _note_gap(batch: _Batch, known: _Known, at: datetime) -> None:
    """Note a time without checks before the one at ``at``."""
    session, monitor = batch.session, known.monitor
    if (since := known.silent_from) is not None:
        known.silent_from = None
        gap = gaps.after_silence(session, monitor, known.newest, since, at)
    else:
        gap = gaps.before(monitor, known.newest, at)
    known.newest = max(known.newest or at, at)
    if gap is None:
        return
    if is_open(known.state):
        gaps.note(session, monitor.id, gap)
    if (state := after_gap(known.state)) is not known.state:
        known.set_state(state)


def _decision(batch: _Batch, known: _Known, check: PlaceCheck) -> Decision:
    rules, monitor = known.rules, known.monitor
    decision = step(rules, known.situation, check)
    if not is_late(known.situation, check, decision):
        return decision
    _write_rows(batch)
    covers = timedelta(seconds=covers_s(monitor))
    ended = known.state.started_at or last_end(batch.session, monitor.id)
    since = check.at - margin(rules, covers)
    if ended is not None and ended <= batch.now:
        since = max(since, ended)
    first = since - rules.stale_after
    if known.floor is not None:
        since, first = max(since, known.floor), max(first, known.floor)
    last = to_ms(batch.now + SKEW) + 1
    checks = rollups.checks([monitor.id], to_ms(first), last)[monitor.id]
    return in_turn(rules, covers, known.situation, check, decision, checks, since)


def rules_of(monitor: Any, places: Mapping[int, datetime]) -> Rules:
    """The rules of a monitor that is checked from these places, each since then."""
    return Rules(
        monitor.location_rule,
        monitor.confirmations,
        stale_after(monitor),
        places,
        gaps.longest_regular(monitor),
    )


def judge_anew(session: AnySession, monitor: MonitorRow, now: datetime) -> None:
    """Judge a monitor anew whose rule or places have changed, by what its places saw last: set its
    status, and end its incident, as its present rule and places say. The places that it lost have
    no vote any more, and those that are new have none yet. Inside ``writing()``.

    Its next check may be an hour away: so long it would be down because of a place that does not
    check it any more.
    """
    if monitor.paused:
        return
    session.flush()
    changes.note(session, monitor.id)
    loaded = _load(session, {monitor.id}, NOWHERE, now)
    known, quiet = loaded[monitor.id], Quiet(session, now)
    before, maintenance = known.state, quiet.covers(monitor, now)
    decision = revote(known.rules, known.situation, now, maintenance=maintenance)
    votes = decision.after.votes.values()
    if decision.step is Step.END and silent_failures(known.rules, votes, before.started_at, now):
        return  # a place that saw the failure is silent: the next check says so as it ends it
    known.set_state(decision.after.state)
    unconfirmed_at = known.columns["unconfirmed_at"]
    if decision.recheck or decision.doubted:
        known.columns["unconfirmed_at"] = unconfirmed_at or now
    elif known.state.stands not in (Stands.CONFIRMING, Stands.RECOVERING):
        known.columns["unconfirmed_at"] = None
    failing = evidence.Failing(session, [monitor.id])
    batch = _Batch(session, now, "", NOWHERE, quiet, loaded, {}, failing, set())
    _cause(batch, known, decision.votes)
    if decision.step is Step.CANCEL:
        failing.drop(monitor.id)
    elif decision.step is Step.END and decision.moment:
        batch.found[monitor.id] = outages.Closing(
            monitor.id, decision.moment, known.summed_until, (), changed=True
        )
    _finish(batch)


def _cause(
    batch: _Batch, known: _Known, votes: Sequence[Vote], result: Result | None = None
) -> None:
    """Store the cause of the monitor's status. It names the places if only some see it. Without a
    ``result``, that of a failure stays if only places that have no vote see it.
    """
    verdict, code, cause = known.state.verdict, None, None
    failing = verdict in (Verdict.DOWN, Verdict.DEGRADED)
    if failing and verdict and any(vote.verdict is not verdict for vote in votes):
        code, cause = by_place.told_by_some(_seen(batch, known), votes, verdict)
    if cause is None and result is not None and result.verdict is verdict:
        code, cause = result.cause_code, result.cause
    if cause is None and result is None and verdict is not Verdict.UP:
        same = (one for one in _seen(batch, known) if failing and one.verdict is verdict)
        if (first := next(same, None)) is None or first.cause is None:
            return
        code, cause = first.cause_code, first.cause
    known.columns |= {"cause_code": code, "cause": cause}


def _seen(batch: _Batch, known: _Known) -> Sequence[Seen]:
    """What the monitor's places saw last, with this batch."""
    _write_rows(batch)
    assigned.write(batch.session, [known.assigned])
    return by_place.of_monitor(batch.session, known.monitor, batch.now)


def _plan(batch: _Batch, known: _Known, decision: Decision, result: Result) -> None:
    """Store whether the check is to be repeated soon, and notify the other places. The pause counts
    from ``now``, which is just after the end of the check.

    Where too few places see a failure, only a failing check begins another repeat: those of places
    that see nothing belong to the one before. Where enough see it, and all have repeated it before
    that, it is repeated once more.
    """
    was, columns = known.columns["unconfirmed_at"], known.columns
    if decision.counted:
        goes_on = decision.doubted and was is not None and result.verdict is not Verdict.DOWN
        if not goes_on:
            soon = decision.recheck or decision.doubted
            columns["unconfirmed_at"] = batch.now if soon else None
    elif decision.waits and was is not None and _all_repeat(decision.votes, was):
        columns["unconfirmed_at"] = batch.now
    if columns["unconfirmed_at"] != was and known.assigned.others_wait:
        changes.note(batch.session, known.monitor.id)


def _all_repeat(votes: Iterable[Vote], since: datetime) -> bool:
    settings: Settings = current_app.extensions["wakeful.settings"]
    confirm = timedelta(seconds=settings.confirm_seconds)
    return all(is_repeat(since, one.at, confirm) for one in votes)


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


def _keep_evidence(batch: _Batch, before: State, done: Step, outcome: Outcome) -> None:
    if evidence.wants_good(outcome):
        batch.good[outcome.result.monitor_id or 0] = evidence.check_of(outcome)
    if done in (Step.SUSPECT, Step.OPEN):
        if outcome.result.is_good:
            return  # the majority fails, but this check was good
        batch.failing.keep(outcome, first=before.failing_since is None)
    elif done is Step.CANCEL:
        batch.failing.drop(outcome.result.monitor_id or 0)


def _keep_aside(batch: _Batch, known: _Known, previous: Vote | None, outcome: Outcome) -> None:
    """Keep the evidence of a place whose failure does not change the monitor's state. ``previous``:
    what the place saw before.
    """
    result, id = outcome.result, known.monitor.id
    if not known.assigned.others:
        return
    recovered = result.is_good and previous is not None and previous.failures > 0
    if recovered or result.maintenance:
        batch.failing.drop_aside(id, result.location)
    if result.verdict is not Verdict.DOWN or result.maintenance:
        return
    failures = known.situation.votes[batch.location].failures
    if is_open(known.state):
        opened = known.opened_at
        # The incident's evidence has none of this place.
        is_first = opened is None or previous is None or previous.at < opened
        if failures == 1 or is_first:
            evidence.add_place(batch.session, id, outcome)
    elif (
        failures <= known.monitor.confirmations + 1
        or known.state.stands is Stands.CONFIRMING
        # A failure of another place that was not confirmed has dropped it.
        or not batch.failing.has_aside(id, result.location)
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
    batch: _Batch, known: _Known, before: State, decision: Decision, result: Result
) -> None:
    """Note that an incident opens or ends."""
    if decision.moment is None:
        return
    id, moment, rules = known.monitor.id, decision.moment, known.rules
    if decision.step is Step.OPEN:
        batch.found[id] = outages.Opening(id, moment, result, known.summed_until)
        known.set_state(replace(known.state, started_at=whole(moment)))
    elif decision.step is Step.END:
        votes = decision.after.votes.values()
        places = silent_failures(rules, votes, before.started_at, batch.now)
        silent = [one for one in _seen(batch, known) if one.place in places] if places else ()
        held = ends_by_silence(rules, decision, places)
        good = good_places(votes, before.started_at)
        batch.found[id] = outages.Closing(id, moment, known.summed_until, good, silent, held)


def _carry_out(batch: _Batch) -> None:
    """Write the results, and the incidents that they open and end."""
    _write_rows(batch)
    _write_good(batch)  # an incident that opens now includes it
    if batch.found:
        assigned.write(batch.session, [batch.known[id].assigned for id in batch.found])
        outages.carry_out(batch.session, list(batch.found.values()), batch.failing, batch.now)
        batch.found = {}


def _tell_again(batch: _Batch, known: _Known, result: Result) -> None:
    """Alert to an incident again, once, if a failing check shows that it still lasts."""
    still = known.state.verdict is Verdict.DOWN and known.state.stands is Stands.OPEN
    if known.unsent and still and not result.maintenance:
        alerting.tell_again(batch.session, known.monitor.id, known.unsent, batch.now)
        known.unsent = ()


def _finish(batch: _Batch) -> None:
    """Write all that has changed."""
    _carry_out(batch)
    batch.failing.write()
    _write_states(batch)
    assigned.write(batch.session, [known.assigned for known in batch.known.values()])


def _write_states(batch: _Batch) -> None:
    changed = [
        {"of": monitor_id} | {f"new_{name}": known.columns[name] for name in _WRITTEN}
        for monitor_id, known in batch.known.items()
        if known.changed
    ]
    if changed:
        batch.session.execute(_WRITE, changed)
