"""Judge the results of a batch, and write what follows: states, incidents, evidence and alerts.

``app/judge`` decides; this carries its decisions out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from flask import current_app
from sqlalchemy import bindparam, update

from app.config import Settings
from app.db import AnySession, changes, journal, rollups
from app.db.by_place import NewestCheck
from app.db.tables import MonitorStateRow
from app.db.types import to_ms
from app.db.windows import Quiet
from app.engine.recorder import alerting, assigned, by_place, evidence, gaps, outages
from app.engine.recorder.assigned import MonitorAssignments
from app.engine.recorder.rows import columns_of, covers_s, last_end, whole
from app.engine.schedule import is_repeat
from app.judge.fold import in_turn, is_out_of_turn, margin
from app.judge.verdict import (
    Decision,
    PlaceCheck,
    Rules,
    Situation,
    Stage,
    State,
    Step,
    Vote,
    after_gap,
    ends_by_silence,
    good_places,
    is_late,
    is_open,
    silent_failures,
    step,
    without_future,
)
from app.records import Outcome, Result, Verdict
from app.rules.clocks import believable

_STATES = MonitorStateRow.__table__
STATE_COLUMNS = (
    "checked_at", "verdict", "status_since", "failing_since", "failures", "recovering_since",
    "unconfirmed_at", "cause_code", "cause", "response_time", "ssl_issued_at",
    "ssl_expires_at", "ssl_fingerprint", "alerted_certificates",
)  # fmt: skip
_WRITE = (
    update(_STATES)  # type: ignore[arg-type] # Flask-SQLAlchemy types __table__ as a FromClause
    .where(_STATES.c.monitor_id == bindparam("of"))
    .values({name: bindparam(f"new_{name}") for name in STATE_COLUMNS})
)


@dataclass(slots=True)
class JudgedMonitor:
    """A monitor and its situation, as the results of the batch have made it so far."""

    monitor: Any
    rules: Rules
    situation: Situation
    columns: dict[str, Any]
    assigned: MonitorAssignments
    summed_until: datetime | None
    newest: datetime | None  # when its newest check began
    ruled_since: datetime  # since when it has its present rule and places
    voting_since: datetime  # results from before are of another target, or of before a pause
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
class RecordedBatch:
    """What the results of a batch share. They are of one place, which is called ``place_name``.
    ``tokens`` are those of the shards whose checks are recorded.
    """

    session: AnySession
    now: datetime
    place_name: str
    place_id: int
    quiet: Quiet
    monitors: dict[int, JudgedMonitor]
    tokens: dict[int, int]
    failing: evidence.Failing
    taken: set[tuple[int, int]]  # the times (ms) of results that the place has, by monitor
    good: dict[int, Any] = field(default_factory=dict)  # evidence of good checks
    # Incidents that open or end, by monitor: they are read for and written together
    incident_changes: dict[int, outages.Change] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)


def judge(batch: RecordedBatch, judged: JudgedMonitor, outcome: Outcome) -> None:
    result = outcome.result
    check = PlaceCheck(batch.place_id, result.checked_at, result.verdict, result.maintenance)
    _note_gap(batch, judged, check.at)
    before = judged.situation = without_future(judged.situation, check, batch.now)
    if is_late(before, check):
        return
    decision = _decision(batch, judged, check)
    judged.situation = decision.after
    judged.assigned.keep(decision.after.votes[check.place])
    if decision.counted or decision.shown:
        judged.set_state(decision.after.state)
    if decision.shown:
        set_cause(batch, judged, decision.votes, result)
    if decision.counted:
        judged.columns["response_time"] = result.response_time
        _certificate(batch, judged, outcome)
        _keep_evidence(batch, before.state, decision.step, outcome)
        _incident(batch, judged, before.state, decision, result)
        _notify_again(batch, judged, result)
    if decision.step not in (Step.CONFIRM, Step.OPEN) or not decision.counted:
        _keep_aside(batch, judged, before.votes.get(check.place), outcome)
    _plan(batch, judged, decision, result)


def _note_gap(batch: RecordedBatch, judged: JudgedMonitor, at: datetime) -> None:
    """Note a time without checks before the one at ``at``."""
    session, monitor = batch.session, judged.monitor
    if (since := judged.silent_from) is not None:
        judged.silent_from = None
        gap = gaps.after_silence(session, monitor, judged.newest, since, at)
    else:
        gap = gaps.before(monitor, judged.newest, at)
    judged.newest = max(judged.newest or at, at)
    if gap is None:
        return
    if is_open(judged.state):
        gaps.note(session, monitor.id, gap)
    if (state := after_gap(judged.state)) is not judged.state:
        judged.set_state(state)


def _decision(batch: RecordedBatch, judged: JudgedMonitor, check: PlaceCheck) -> Decision:
    rules, monitor = judged.rules, judged.monitor
    decision = step(rules, judged.situation, check)
    if not is_out_of_turn(judged.situation, check, decision):
        return decision
    _write_rows(batch)
    covers = timedelta(seconds=covers_s(monitor))
    ended = judged.state.started_at or last_end(batch.session, monitor.id)
    since = max(check.at - margin(rules, covers), judged.ruled_since, judged.voting_since)
    if ended is not None and ended <= batch.now:
        since = max(since, ended)
    first, last = max(since - rules.stale_after, judged.voting_since), believable(batch.now)
    stored = rollups.checks([monitor.id], to_ms(first), to_ms(last) + 1)[monitor.id]
    checks = [other for other in stored if other.place in rules.places_since]
    # A place that has voted meanwhile was awaited at first.
    begun = {place: max(at, judged.ruled_since) for place, at in rules.places_since.items()}
    rules = replace(rules, places_since=begun)
    return in_turn(rules, covers, judged.situation, check, decision, checks, since)


def set_cause(
    batch: RecordedBatch, judged: JudgedMonitor, votes: Sequence[Vote], result: Result | None = None
) -> None:
    """Store the cause of the monitor's status. It names the places if only some see it. Without a
    ``result``, that of a failure stays if only places that have no vote see it.
    """
    verdict, code, cause = judged.state.verdict, None, None
    failing = verdict in (Verdict.DOWN, Verdict.DEGRADED)
    if failing and verdict and any(vote.verdict is not verdict for vote in votes):
        code, cause = by_place.cause_by_some(_newest_checks(batch, judged), votes, verdict)
    if cause is None and result is not None and result.verdict is verdict:
        code, cause = result.cause_code, result.cause
    if cause is None and result is None and verdict is not Verdict.UP:
        same = (
            place for place in _newest_checks(batch, judged) if failing and place.verdict is verdict
        )
        if (first := next(same, None)) is None or first.cause is None:
            return
        code, cause = first.cause_code, first.cause
    judged.columns |= {"cause_code": code, "cause": cause}


def _newest_checks(batch: RecordedBatch, judged: JudgedMonitor) -> Sequence[NewestCheck]:
    """What the monitor's places saw last, with this batch."""
    _write_rows(batch)
    assigned.write(batch.session, [judged.assigned])
    return by_place.of_monitor(batch.session, judged.monitor, batch.now)


def _plan(batch: RecordedBatch, judged: JudgedMonitor, decision: Decision, result: Result) -> None:
    """Store whether the check is to be repeated soon, and notify the other places. The pause counts
    from ``now``, which is just after the end of the check.

    Where too few places see a failure, only a failing check begins another repeat: those of places
    that see nothing belong to the one before. Where enough see it, and all have repeated it before
    that, it is repeated once more.
    """
    was, columns = judged.columns["unconfirmed_at"], judged.columns
    if decision.counted:
        goes_on = decision.unconfirmed and was is not None and result.verdict is not Verdict.DOWN
        if not goes_on:
            soon = decision.recheck or decision.unconfirmed
            columns["unconfirmed_at"] = batch.now if soon else None
    elif decision.waits and was is not None and _all_repeat(decision.votes, was):
        columns["unconfirmed_at"] = batch.now
    if columns["unconfirmed_at"] != was and judged.assigned.others_wait:
        changes.note(batch.session, judged.monitor.id)


def _all_repeat(votes: Iterable[Vote], since: datetime) -> bool:
    settings: Settings = current_app.extensions["wakeful.settings"]
    confirm = timedelta(seconds=settings.confirm_seconds)
    return all(is_repeat(since, vote.at, confirm) for vote in votes)


def _certificate(batch: RecordedBatch, judged: JudgedMonitor, outcome: Outcome) -> None:
    if outcome.ssl_expires_at is None or outcome.ssl_fingerprint is None:
        return
    columns = judged.columns
    columns["ssl_issued_at"] = outcome.ssl_issued_at
    columns["ssl_expires_at"] = outcome.ssl_expires_at
    columns["ssl_fingerprint"] = outcome.ssl_fingerprint
    before = columns["alerted_certificates"]
    due = not alerting.alerted(before, outcome.ssl_fingerprint) and alerting.certificate_due(
        outcome, judged.monitor.ssl_alert_days, batch.now
    )
    if due and alerting.notify_certificate(batch.session, judged.monitor.id, outcome, batch.now):
        columns["alerted_certificates"] = alerting.with_alerted(before, outcome.ssl_fingerprint)


def _keep_evidence(batch: RecordedBatch, before: State, done: Step, outcome: Outcome) -> None:
    if evidence.wants_good(outcome):
        batch.good[outcome.result.monitor_id or 0] = evidence.check_of(outcome)
    if done in (Step.CONFIRM, Step.OPEN):
        if outcome.result.is_good:
            return  # the majority fails, but this check was good
        batch.failing.keep(outcome, first=before.failing_since is None)
    elif done is Step.CANCEL:
        batch.failing.drop(outcome.result.monitor_id or 0)


def _keep_aside(
    batch: RecordedBatch, judged: JudgedMonitor, previous: Vote | None, outcome: Outcome
) -> None:
    """Keep the evidence of a place whose failure does not change the monitor's state. ``previous``:
    what the place saw before.
    """
    result, id = outcome.result, judged.monitor.id
    if not judged.assigned.elsewhere:
        return
    recovered = result.is_good and previous is not None and previous.failures > 0
    if recovered or result.maintenance:
        batch.failing.drop_aside(id, result.location)
    if result.verdict is not Verdict.DOWN or result.maintenance:
        return
    failures = judged.situation.votes[batch.place_id].failures
    if is_open(judged.state):
        opened = judged.opened_at
        # The incident's evidence has none of this place.
        is_first = opened is None or previous is None or previous.at < opened
        if failures == 1 or is_first:
            evidence.add_place(batch.session, id, outcome)
    elif (
        failures <= judged.monitor.confirmations + 1
        or judged.state.stage is Stage.CONFIRMING
        # A failure of another place that was not confirmed has dropped it.
        or not batch.failing.has_aside(id, result.location)
    ):
        batch.failing.keep_aside(outcome)


def _incident(
    batch: RecordedBatch, judged: JudgedMonitor, before: State, decision: Decision, result: Result
) -> None:
    """Note that an incident opens or ends."""
    if decision.moment is None:
        return
    id, moment, rules = judged.monitor.id, decision.moment, judged.rules
    if decision.step is Step.OPEN:
        batch.incident_changes[id] = outages.Opening(id, moment, result, judged.summed_until)
        judged.set_state(replace(judged.state, started_at=whole(moment)))
    elif decision.step is Step.END:
        votes = decision.after.votes.values()
        places = silent_failures(rules, votes, before.started_at, batch.now)
        silent = (
            [place for place in _newest_checks(batch, judged) if place.place_id in places]
            if places
            else ()
        )
        by_silence = ends_by_silence(rules, decision, places)
        good = good_places(votes, before.started_at)
        batch.incident_changes[id] = outages.Closing(
            id, moment, judged.summed_until, good, silent, by_silence
        )


def _notify_again(batch: RecordedBatch, judged: JudgedMonitor, result: Result) -> None:
    """Alert to an incident again, once, if a failing check shows that it still lasts."""
    still = judged.state.verdict is Verdict.DOWN and judged.state.stage is Stage.OPEN
    if judged.unsent and still and not result.maintenance:
        alerting.notify_again(batch.session, judged.monitor.id, judged.unsent, batch.now)
        judged.unsent = ()


def carry_out(batch: RecordedBatch) -> None:
    """Write the results, and the incidents that they open and end."""
    _write_rows(batch)
    _write_good(batch)  # an incident that opens now includes it
    if batch.incident_changes:
        assigned.write(
            batch.session, [batch.monitors[id].assigned for id in batch.incident_changes]
        )
        outages.carry_out(
            batch.session, list(batch.incident_changes.values()), batch.failing, batch.now
        )
        batch.incident_changes = {}


def _write_good(batch: RecordedBatch) -> None:
    several = {
        id: check for id, check in batch.good.items() if batch.monitors[id].assigned.elsewhere
    }
    if several:
        batch.good |= evidence.beside_others(batch.session, several)
    journal.keep_good_evidence(batch.good)
    batch.good = {}


def _write_rows(batch: RecordedBatch) -> None:
    journal.keep(batch.rows)
    batch.rows = []


def finish(batch: RecordedBatch) -> None:
    """Write all that has changed."""
    carry_out(batch)
    batch.failing.write()
    _write_states(batch)
    assigned.write(batch.session, [judged.assigned for judged in batch.monitors.values()])


def _write_states(batch: RecordedBatch) -> None:
    changed = [
        {"of": monitor_id} | {f"new_{name}": judged.columns[name] for name in STATE_COLUMNS}
        for monitor_id, judged in batch.monitors.items()
        if judged.changed
    ]
    if changed:
        batch.session.execute(_WRITE, changed)
