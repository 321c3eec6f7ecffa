"""Judge the results of a batch by ``app/judge``, and write what it decides: states, incidents,
evidence and alerts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import bindparam, update

from app.db import changes, journal, rollups
from app.db.by_place import NewestCheck, newest_checks
from app.db.tables import MonitorStateRow
from app.db.types import to_ms
from app.engine.recorder import (
    alerting,
    assigned,
    by_place,
    evidence,
    gaps,
    outages,
    slowness,
    unreachable,
)
from app.engine.recorder.batch import STATE_COLUMNS, MonitorInBatch, ResultBatch
from app.engine.recorder.rows import confirm_delay, cover_limit_s, in_whole_seconds, last_end
from app.engine.schedule import is_repeat
from app.judge.replay import in_order, is_out_of_order, margin, parents_by_outages
from app.judge.verdict import (
    Decision,
    Effect,
    NewResult,
    Stage,
    State,
    Vote,
    after_gap,
    ends_by_silence,
    good_places,
    has_outage,
    is_outdated,
    judge_result,
    silent_failures,
    without_future,
)
from app.records import Outcome, Result, Verdict
from app.rules.clocks import believable

_STATES = MonitorStateRow.__table__
_WRITE = (
    update(_STATES)  # type: ignore[arg-type] # Flask-SQLAlchemy types __table__ as a FromClause
    .where(_STATES.c.monitor_id == bindparam("id"))
    .values({name: bindparam(f"new_{name}") for name in STATE_COLUMNS})
)


def judge(batch: ResultBatch, monitor: MonitorInBatch, outcome: Outcome) -> None:
    """Judge a result of the batch. ``finish`` writes the changes, which the batch collects."""
    result = outcome.result
    _note_gap(batch, monitor, result.checked_at)
    check = NewResult(
        batch.place_id, result.checked_at, result.verdict, result.maintenance, outcome.conclusive,
        outcome.since, unreachable.parents_of(batch, monitor),
    )  # fmt: skip
    previous = monitor.situation = without_future(monitor.situation, check, batch.now)
    if is_outdated(previous, check):
        return
    decision = _decision(batch, monitor, check)
    monitor.situation = decision.situation
    monitor.assigned.set_vote(decision.situation.votes[check.place])
    if decision.counted or decision.shown:
        monitor.set_state(decision.situation.state)
    if decision.shown:
        set_cause(batch, monitor, decision.valid_votes, result)
    if decision.counted:
        if result.response_time is not None or not outcome.conclusive:
            # A heartbeat's result without a response time repeats its state: the last run's stays.
            monitor.columns["response_time"] = result.response_time
        _note_certificate(batch, monitor, outcome)
        _store_evidence(batch, previous.state, decision.effect, outcome)
        _note_incident(batch, monitor, previous.state, decision, result)
        _notify_again(batch, monitor, result)
        unreachable.update_family(batch, monitor, previous.state, check.at)
    if monitor.row.slow_alert_after or monitor.state.slow_since is not None:
        decision = _judge_slow(batch, monitor, decision, outcome)
    if decision.effect not in (Effect.CONFIRM, Effect.OPEN) or not decision.counted:
        _store_aside(batch, monitor, previous.votes.get(check.place), outcome)
    _set_unconfirmed(batch, monitor, decision, result)


def _note_gap(batch: ResultBatch, monitor: MonitorInBatch, at: datetime) -> None:
    """Note a gap, if there were no checks for some time before the one at ``at``."""
    session, row = batch.session, monitor.row
    if (since := monitor.silent_from) is not None:
        monitor.silent_from = None
        gap = gaps.gap_after_silence(session, row, monitor.newest, since, at)
    else:
        gap = gaps.gap_before(row, monitor.newest, at)
    monitor.newest = max(monitor.newest or at, at)
    if gap is None:
        return
    if has_outage(monitor.state) or monitor.state.slow_since is not None:
        gaps.add_to_open(session, row.id, gap)
    if (state := after_gap(monitor.state)) is not monitor.state:
        monitor.set_state(state)


def _decision(batch: ResultBatch, monitor: MonitorInBatch, check: NewResult) -> Decision:
    rules, row = monitor.rules, monitor.row
    decision = judge_result(rules, monitor.situation, check)
    if not is_out_of_order(monitor.situation, check, decision):
        return decision
    _write_rows(batch)
    covers = timedelta(seconds=cover_limit_s(row))
    boundary = monitor.state.down_since or last_end(batch.session, row.id)
    since = max(check.at - margin(rules, covers), monitor.rejudged_from, monitor.votes_from)
    if boundary is not None and boundary <= batch.now:
        since = max(since, boundary)
    first, last = max(since - rules.vote_valid_for, monitor.votes_from), believable(batch.now)
    results = rollups.checks([row.id], to_ms(first), to_ms(last) + 1)[row.id]
    checks = [other for other in results if other.place in rules.places_since]
    # Places that have voted since were awaited at the times that are judged again.
    places_since = {
        place: max(at, monitor.rejudged_from) for place, at in rules.places_since.items()
    }
    rules = replace(rules, places_since=places_since)
    above = {row.id: batch.family.above.get(row.id, ())}
    outages_above = unreachable.outages_above(batch.session, above, since)
    parents_at = parents_by_outages(outages_above.get(row.id, ()), check.parents)
    return in_order(rules, covers, monitor.situation, check, decision, checks, since, parents_at)


def set_cause(
    batch: ResultBatch, monitor: MonitorInBatch, votes: Sequence[Vote], result: Result | None = None
) -> None:
    """Set the cause of the monitor's status. If only some places see the status, the cause names
    them. Without a new ``result``, the stored cause stays if no place with a vote has one.
    """
    if unreachable.set_cause(batch, monitor):
        return
    verdict, code, cause = monitor.state.verdict, None, None
    failing = verdict in (Verdict.DOWN, Verdict.DEGRADED)
    if failing and verdict and any(vote.verdict is not verdict for vote in votes):
        code, cause = by_place.cause_by_some(_newest_checks(batch, monitor), votes, verdict)
    if cause is None and result is not None and result.verdict is verdict:
        code, cause = result.cause_code, result.cause
    if cause is None and result is None and verdict is not Verdict.UP:
        places = _newest_checks(batch, monitor) if failing else ()
        first = next((place for place in places if place.verdict is verdict), None)
        if first is None or first.cause is None:
            return
        code, cause = first.cause_code, first.cause
    monitor.columns |= {"cause_code": code, "cause": cause}


def _newest_checks(batch: ResultBatch, monitor: MonitorInBatch) -> Sequence[NewestCheck]:
    """The newest result of each of the monitor's places, those of this batch included."""
    _write_rows(batch)
    assigned.write(batch.session, [monitor.assigned])
    return newest_checks(batch.session, monitor.row.id, batch.now - monitor.rules.vote_valid_for)


def _set_unconfirmed(
    batch: ResultBatch, monitor: MonitorInBatch, decision: Decision, result: Result
) -> None:
    """Set ``unconfirmed_at`` to now, just after the end of the check, if it must be repeated: each
    place does so CONFIRM_SECONDS later. The change feed tells the other places.

    If too few places see a failure, only a failing check starts another repeat: good checks of
    other places belong to the present repeat. If enough places see the failure, but not all of them
    repeated the check in time, it is repeated once more.
    """
    unconfirmed_at, columns = monitor.columns["unconfirmed_at"], monitor.columns
    if decision.counted:
        is_same_repeat = (
            decision.unconfirmed
            and unconfirmed_at is not None
            and result.verdict is not Verdict.DOWN
        )
        if not is_same_repeat:
            soon = decision.recheck or decision.unconfirmed
            columns["unconfirmed_at"] = batch.now if soon else None
    elif (
        decision.awaits_repeat
        and unconfirmed_at is not None
        and all(
            is_repeat(unconfirmed_at, vote.at, confirm_delay()) for vote in decision.valid_votes
        )
    ):
        columns["unconfirmed_at"] = batch.now
    # The checker of this place has this result itself, unless it is of a check on request.
    others_wait = monitor.assigned.on_request or monitor.assigned.other_places
    if columns["unconfirmed_at"] != unconfirmed_at and others_wait:
        changes.note(batch.session, monitor.row.id)


def _note_certificate(batch: ResultBatch, monitor: MonitorInBatch, outcome: Outcome) -> None:
    if outcome.ssl_expires_at is None or outcome.ssl_fingerprint is None:
        return
    columns = monitor.columns
    columns["ssl_issued_at"] = outcome.ssl_issued_at
    columns["ssl_expires_at"] = outcome.ssl_expires_at
    columns["ssl_fingerprint"] = outcome.ssl_fingerprint
    fingerprints = columns["alerted_certificates"]
    due = not alerting.was_alerted(
        fingerprints, outcome.ssl_fingerprint
    ) and alerting.is_certificate_due(outcome, monitor.row.ssl_alert_days, batch.now)
    if due and alerting.notify_certificate(batch.session, monitor.row.id, outcome, batch.now):
        columns["alerted_certificates"] = alerting.with_mark(fingerprints, outcome.ssl_fingerprint)


def _store_evidence(batch: ResultBatch, previous: State, effect: Effect, outcome: Outcome) -> None:
    if evidence.wants_good(outcome):
        batch.good[outcome.result.monitor_id or 0] = evidence.entry_of(outcome)
    if effect in (Effect.CONFIRM, Effect.OPEN):
        if outcome.result.is_good:
            return  # enough other places fail; this check was good
        batch.failing.add(outcome, first=previous.failing_since is None)
    elif effect is Effect.CANCEL:
        batch.failing.drop(outcome.result.monitor_id or 0)


def _store_aside(
    batch: ResultBatch, monitor: MonitorInBatch, previous: Vote | None, outcome: Outcome
) -> None:
    """Store the evidence of a place whose failure does not change the monitor's state.
    ``previous``: the vote of the place before this result.
    """
    result, id = outcome.result, monitor.row.id
    if not monitor.assigned.other_places:
        return
    recovered = result.is_good and previous is not None and previous.failures > 0
    if recovered or result.maintenance:
        batch.failing.drop_aside(id, result.location)
    if result.verdict is not Verdict.DOWN or result.maintenance:
        return
    failures = monitor.situation.votes[batch.place_id].failures
    if has_outage(monitor.state):
        opened = monitor.opened_at
        # The evidence of the incident has nothing from this place yet.
        is_first = opened is None or previous is None or previous.at < opened
        if failures == 1 or is_first:
            evidence.add_place(batch.session, id, outcome)
    elif (
        failures <= monitor.row.confirmations + 1
        or monitor.state.stage is Stage.CONFIRMING
        # An unconfirmed failure of another place has dropped its evidence.
        or not batch.failing.has_aside(id, result.location)
    ):
        batch.failing.add_aside(outcome)


def _note_incident(
    batch: ResultBatch, monitor: MonitorInBatch, previous: State, decision: Decision, result: Result
) -> None:
    """Note that an incident opens or ends."""
    if decision.moment is None:
        return
    id, moment, rules = monitor.row.id, decision.moment, monitor.rules
    if decision.effect is Effect.OPEN:
        was_slow = previous.slow_since is not None
        batch.incident_changes[id] = outages.Opening(id, moment, result, was_slow=was_slow)
        monitor.set_state(replace(monitor.state, down_since=in_whole_seconds(moment)))
    elif decision.effect is Effect.END:
        votes = decision.situation.votes.values()
        places = silent_failures(rules, votes, previous.down_since, batch.now)
        checks = _newest_checks(batch, monitor) if places else ()
        silent = [place for place in checks if place.place_id in places]
        by_silence = ends_by_silence(rules, decision, places)
        good = good_places(votes, previous.down_since)
        slow = monitor.state.verdict is Verdict.DEGRADED
        batch.incident_changes[id] = outages.Closing(
            id, moment, good, silent, by_silence, slow=slow
        )


def _judge_slow(
    batch: ResultBatch, monitor: MonitorInBatch, decision: Decision, outcome: Outcome
) -> Decision:
    """Note that an incident opens because the monitor is slow, or that such an incident ends.
    Neither happens while checks fail, or while another incident is open. A fast check opens no
    incident.
    """
    state, result, id = monitor.state, outcome.result, monitor.row.id
    check = slowness.past_result(result, batch.place_id, cover_limit_s(monitor.row))
    monitor.results.append(check)
    if state.stage is not Stage.CLEAR or id in batch.incident_changes or not result.is_good:
        return decision
    if result.maintenance:
        return decision
    places = monitor.rules.places_since
    rules = slowness.rules_of(monitor.row, monitor.votes_from, places)
    if rules is None:
        if state.slow_since is not None:
            _end_slow(batch, monitor, result.checked_at, by_change=True)
        return decision
    if state.slow_since is None and not rules.is_slow(result.response_time):
        return decision
    windows = slowness.windows_of(id, rules, monitor.results, believable(batch.now))
    ended = None if state.slow_since else last_end(batch.session, id)
    transition = windows.judge_newest(state, ended, conclusive=outcome.conclusive)
    if transition.effect is Effect.OPEN and transition.moment is not None:
        batch.failing.add(outcome, first=True)
        slow = outages.Slow(
            windows.slow_checks(), rules.limit, windows.voters(), monitor.rejudged_from
        )
        batch.incident_changes[id] = outages.Opening(id, transition.moment, result, slow=slow)
        monitor.set_state(replace(state, slow_since=in_whole_seconds(transition.moment)))
    elif transition.moment is not None and state.slow_since is not None:
        by_change = in_whole_seconds(monitor.votes_from) > state.slow_since
        _end_slow(batch, monitor, transition.moment, by_change=by_change)
    return replace(decision, recheck=decision.recheck or transition.recheck)


def _end_slow(
    batch: ResultBatch, monitor: MonitorInBatch, moment: datetime, *, by_change: bool
) -> None:
    id = monitor.row.id
    batch.incident_changes[id] = outages.Closing(id, moment, (), by_change=by_change)
    monitor.set_state(replace(monitor.state, slow_since=None))


def _notify_again(batch: ResultBatch, monitor: MonitorInBatch, result: Result) -> None:
    """Alert once more to an incident whose first alert was not sent, because a failing check shows
    that the incident still lasts.
    """
    still_down = monitor.state.verdict is Verdict.DOWN and monitor.state.stage is Stage.OPEN
    if monitor.unsent and still_down and not result.maintenance:
        alerting.notify_again(batch.session, monitor.row.id, monitor.unsent, batch.now)
        monitor.unsent = ()


def carry_out(batch: ResultBatch) -> None:
    """Write the results of the batch, and open and end the incidents that they lead to."""
    _write_rows(batch)
    of_several_places = {
        id: check for id, check in batch.good.items() if batch.monitors[id].assigned.other_places
    }
    if of_several_places:
        batch.good |= evidence.beside_others(batch.session, of_several_places)
    journal.store_evidence("last_good", batch.good)  # first, because new incidents copy it
    batch.good = {}
    if incident_changes := batch.incident_changes:
        assigned.write(batch.session, [batch.monitors[id].assigned for id in incident_changes])
        changes_now = list(incident_changes.values())
        outages.open_and_end(batch.session, changes_now, batch.failing, batch.now)
        batch.incident_changes = {}


def _write_rows(batch: ResultBatch) -> None:
    journal.insert_results(batch.rows)
    batch.rows = []


def finish(batch: ResultBatch) -> None:
    """Write all that has changed."""
    carry_out(batch)
    batch.failing.write()
    states = [
        {"id": monitor_id} | {f"new_{name}": monitor.columns[name] for name in STATE_COLUMNS}
        for monitor_id, monitor in batch.monitors.items()
        if monitor.unwritten
    ]
    if states:
        batch.session.execute(_WRITE, states)
    for id, moment in batch.sum_again:
        if rollups.is_summed(batch.monitors[id].row.rolled_until, moment):
            rollups.reroll(id, moment)
    assigned.write(batch.session, [monitor.assigned for monitor in batch.monitors.values()])
