"""Judge a monitor anew when its rule or places have changed, from what its places saw last.

Its next check may be an hour away: so long it would be down because of a place that does not check
it any more. Inside ``writing()``, in the transaction of the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.db import AnySession
from app.db.tables import MonitorRow, MonitorStateRow
from app.engine.recorder import by_place, evidence, outages, places
from app.engine.recorder.quiet import Quiet
from app.engine.recorder.rows import columns_of, lock, open_incident, state_of
from app.judge import verdict as judge
from app.judge.verdict import Stands, State, Step, Transition, Vote, rejudged
from app.records import Verdict


def judge_anew(session: AnySession, monitor: MonitorRow, now: datetime) -> None:
    """Set the status of a monitor, and end its incident, as its present rule and places say. The
    places that it lost have no vote any more, and those that are new have none yet.
    """
    if monitor.paused:
        return
    row = lock(session, monitor.id)
    assigned = places.of_monitor(session, monitor.id)
    maintenance = Quiet(session, now).covers(monitor, now)
    incident = open_incident(session, monitor.id)
    before = (
        state_of(row, None, by_hand=False)
        if incident is None
        else state_of(row, incident.started_at, incident.by_hand)
    )
    votes = assigned.votes_elsewhere(monitor, now, maintenance=maintenance)
    awaited = assigned.awaited(monitor, now, maintenance=maintenance)
    verdict = judge.decide(
        votes, monitor.location_rule, awaited, incident=before.started_at is not None
    )
    after = rejudged(before, verdict, now, maintenance=maintenance)
    if after.step is Step.END and assigned.silent_down(monitor, before.started_at, now):
        return  # a place that saw the failure is silent: the next check says so as it ends it
    doubted = not maintenance and places.doubted(votes, verdict)
    _set_state(row, after, now, doubted=doubted)
    _set_cause(session, row, monitor, votes, now)
    _carry_out(session, row, before, after, now)


def _set_state(row: MonitorStateRow, after: Transition, now: datetime, *, doubted: bool) -> None:
    for name, value in columns_of(after.state).items():
        setattr(row, name, value)
    if after.recheck or doubted:
        row.unconfirmed_at = row.unconfirmed_at or now
    elif after.state.stands not in (Stands.CONFIRMING, Stands.RECOVERING):
        row.unconfirmed_at = None


def _set_cause(
    session: AnySession,
    row: MonitorStateRow,
    monitor: MonitorRow,
    votes: Sequence[Vote],
    now: datetime,
) -> None:
    """Store the cause of the monitor's status. That of a failure stays, if only places that have no
    vote see it.
    """
    if row.verdict == Verdict.UP:
        row.cause_code = row.cause = None
    if row.verdict not in (Verdict.DOWN, Verdict.DEGRADED):
        return
    verdict = Verdict(row.verdict)
    seen = by_place.of_monitor(session, monitor, now)
    code, cause = by_place.told_by_some(seen, votes, verdict)
    if all(vote.verdict is verdict for vote in votes):
        same = (one for one in seen if one.verdict is verdict)
        code, cause = next(((one.cause_code, one.cause) for one in same), (code, cause))
    if cause is not None:
        row.cause_code, row.cause = code, cause


def _carry_out(
    session: AnySession, row: MonitorStateRow, before: State, after: Transition, now: datetime
) -> None:
    failing = evidence.Failing(session, [row.monitor_id])
    if after.step is Step.CANCEL:
        failing.drop(row.monitor_id)
        failing.write()
    elif after.step is Step.END and after.moment:
        session.flush()
        ends = outages.Closing(row.monitor_id, after.moment, row.rolled_until, (), changed=True)
        outages.carry_out(session, [ends], failing, now)
