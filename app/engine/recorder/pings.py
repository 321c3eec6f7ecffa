"""Record the pings of heartbeats, and the deadlines that pass without a ping.
``app/judge/heartbeat`` decides what they mean. Each success, failure, overrun and missed deadline
becomes a result, which is judged like any other.

A heartbeat has no place. While its state does not change, one result in each interval repeats it,
because time without results is a gap, as for any monitor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Integer, bindparam, delete, func, insert, select, update
from sqlalchemy.orm import load_only

from app.checks.outcome import strip_controls
from app.checks.redact import Redactor
from app.db import AnySession, db, journal, liveness, wakeups, writing
from app.db.statements import locked, pieces
from app.db.tables import HeartbeatStateRow, MonitorRow, MonitorStateRow, PingRow, SignOfLifeRow
from app.db.types import from_ms, readable, record_of, to_ms
from app.engine.recorder import unreachable
from app.engine.recorder.results import record
from app.i18n import N_, _
from app.judge.heartbeat import (
    NOT_LISTENING,
    HeartbeatFault,
    HeartbeatRules,
    HeartbeatState,
    OpenRun,
    after_absence,
    after_ping,
    after_time,
)
from app.records import (
    EVIDENCE_BODY_BYTES,
    HEARTBEAT_URL,
    ArrivedPing,
    Cause,
    CheckSpec,
    Outcome,
    PingKind,
    Result,
    Verdict,
    is_heartbeat,
)
from app.rules.figures import in_one_unit

HEARTBEATS_PER_TRANSACTION = 500
_ABSENT_AFTER = timedelta(seconds=16)  # web processes have missed three signs of life
_SIGNED_AT = select(SignOfLifeRow.at).where(SignOfLifeRow.name == liveness.WEB)
# Only the newest pings of a heartbeat are stored: the holder of its secret could fill the disk. The
# results of older pings stay, and the body of a failure is in the evidence of its incident.
PINGS_KEPT, BODIES_KEPT = 10_000, 1_000
_TRIMMED = 100  # pings in one transaction: more than arrive meanwhile, and it is short
MAX_MS = 2**31 - 1  # the largest number in the column of response times
_PING: Any = PingRow.__table__
_HEARTBEAT: Any = HeartbeatStateRow.__table__
# One statement selects the heartbeats with more pings than are kept: a thousand heartbeats may be
# pinged in one second, and few of them have so many.
_WITH_MANY_PINGS = select(_HEARTBEAT.c.monitor_id).where(
    _HEARTBEAT.c.monitor_id.in_(bindparam("ids", expanding=True)),
    select(_PING.c.id)
    .where(_PING.c.monitor_id == _HEARTBEAT.c.monitor_id)
    .order_by(_PING.c.id.desc())
    .limit(1)
    .offset(bindparam("kept", type_=Integer))
    .correlate(_HEARTBEAT)
    .scalar_subquery()
    .is_not(None),
)
_CAUSES = (
    Cause.HEARTBEAT_MISSED, Cause.HEARTBEAT_FAILED, Cause.HEARTBEAT_OVERRAN, Cause.NOT_LISTENING,
    Cause.SLOW_RESPONSE,
)  # fmt: skip
_SLOW_RUN = N_("The run took %(time)s; above %(limit)s is slow.")
_WATCHED = (
    select(HeartbeatStateRow, MonitorRow, MonitorStateRow.verdict, MonitorStateRow.cause)
    .join(MonitorRow, MonitorRow.id == HeartbeatStateRow.monitor_id)
    .join(MonitorStateRow, MonitorStateRow.monitor_id == MonitorRow.id)
    # Without the monitor's secrets: their decryption would take longer than all else.
    .options(
        load_only(MonitorRow.paused, MonitorRow.interval, MonitorRow.slow_after, MonitorRow.options)
    )
    .execution_options(populate_existing=True)
)
Recorded = tuple[int, Outcome]
Change = Callable[[HeartbeatRules, HeartbeatState, datetime], HeartbeatState]


@dataclass(slots=True)
class _Heartbeat:
    """A heartbeat in a transaction. ``slow``: the cause, if its last run was slow."""

    row: HeartbeatStateRow
    monitor: MonitorRow
    rules: HeartbeatRules
    state: HeartbeatState
    slow: str | None = None

    def outcome(
        self,
        at: datetime,
        *,
        is_new: bool = False,
        took: int | None = None,
        body: str | None = None,
        web_absent: bool = False,
    ) -> Iterable[Recorded]:
        """Yield its state at ``at`` as the outcome of a check, unless it is pending. ``is_new``:
        the state has a new fault. ``took``: how long the run took (ms) that the ping ended.
        ``web_absent``: no web process runs, so it is unknown.
        """
        verdict, fault = self.state.verdict(at), self.state.fault
        if verdict is None:
            return
        code, cause = (fault.code, fault.sentence) if fault else (None, None)
        if web_absent or verdict is Verdict.UNKNOWN:
            verdict, code, cause = Verdict.UNKNOWN, Cause.NOT_LISTENING, _(NOT_LISTENING)
        if took is not None:
            self.slow, limit = None, self.monitor.slow_after
            if limit is not None and took > limit:
                time, highest = in_one_unit(took, limit)
                self.slow = _(_SLOW_RUN, time=time, limit=highest)
        if verdict is Verdict.UP and self.slow is not None:
            verdict, code, cause = Verdict.DEGRADED, Cause.SLOW_RESPONSE, self.slow
        self.row.result_at = max(at, self.row.result_at or at)
        result = Result(
            checked_at=self.row.result_at,
            verdict=verdict,
            cause_code=code,
            cause=cause,
            response_time=None if took is None else min(took, MAX_MS),
        )
        evidence = {"body": body[:EVIDENCE_BODY_BYTES]} if body and not result.is_good else None
        since = fault.since if fault and is_new else None
        yield self.row.monitor_id, Outcome(result, evidence, conclusive=True, since=since)

    def store(self, session: AnySession) -> None:
        """Write the state, and wake the watch over deadlines if the next one is earlier now."""
        row, state, due_before = self.row, self.state, self.row.due_at
        for name in ("last_ping_at", "ended_at", "expected_at", "unknown_until"):
            setattr(row, name, getattr(state, name))
        row.runs = [
            [run.rid, to_ms(run.started_at), None if run.until is None else to_ms(run.until)]
            for run in state.runs
        ]
        fault = state.fault
        row.fault_code, row.fault, row.fault_since = fault or (None, None, None)
        moments = [state.acts_at(self.rules)]
        if row.result_at is not None and (fault or state.ended_at):
            moments.append(row.result_at + timedelta(seconds=self.monitor.interval))
        due = [moment for moment in moments if moment is not None]
        row.due_at = None if self.monitor.paused else min(due, default=None)
        if row.due_at is not None and (due_before is None or row.due_at < due_before):
            wakeups.note(session, liveness.DEADLINES)


def rules_of(monitor: MonitorRow) -> HeartbeatRules:
    options: Any = monitor  # the fields of a kind are attributes of the row
    return HeartbeatRules(
        timedelta(seconds=options.period or monitor.interval),
        timedelta(seconds=options.grace),
        options.schedule,
        options.zone,
        None if options.max_run is None else timedelta(seconds=options.max_run),
    )


def _state_of(row: HeartbeatStateRow) -> HeartbeatState:
    fault = None
    if row.fault_code is not None and row.fault_since is not None:
        fault = HeartbeatFault(Cause(row.fault_code), row.fault or "", row.fault_since)
    runs = tuple(
        OpenRun(rid, from_ms(started), None if until is None else from_ms(until))
        for rid, started, until in row.runs
    )
    return record_of(HeartbeatState, row, runs=runs, fault=fault)


def _load(session: AnySession, ids: Collection[int]) -> dict[int, _Heartbeat]:
    """Lock and read these heartbeats, by id."""
    # In the order in which ``record`` locks, to avoid deadlocks
    unreachable.lock_family(session, ids)
    rows = session.execute(_WATCHED.where(HeartbeatStateRow.monitor_id.in_(ids))).all()
    return {
        row.monitor_id: _Heartbeat(
            row,
            monitor,
            rules_of(monitor),
            _state_of(row),
            cause if verdict == Verdict.DEGRADED else None,
        )
        for row, monitor, verdict, cause in rows
    }


def _number_causes() -> None:
    """Number all causes of heartbeats, because ``journal.assign_numbers`` must not be called in the
    transaction that follows.
    """
    now = from_ms(0)
    journal.assign_numbers([Result(now, Verdict.DOWN, cause_code=code) for code in _CAUSES])


def record_pings(pings: Sequence[tuple[int, ArrivedPing]], now: datetime) -> None:
    """Store pings, by monitor id in the order in which they arrived, and their results, in one
    transaction. A ping of a paused heartbeat is stored, and has no result.
    """
    _number_causes()
    with writing() as session:
        if is_web_absent(session, now):
            # After the machine was suspended, a ping may arrive before the next sign of life.
            _end_absence(session, now)
        watched = _load(session, {id for id, _ping in pings})
        outcomes: list[Recorded] = []
        rows: list[dict[str, Any]] = []
        for id, ping in pings:
            if (heartbeat := watched.get(id)) is not None:
                rows.append(_record_ping(heartbeat, ping, outcomes))
        for heartbeat in watched.values():
            heartbeat.store(session)
        if rows:
            session.execute(insert(_PING), rows)
        _trim(session, watched)
        record(outcomes, now)


def _trim(session: AnySession, ids: Iterable[int]) -> None:
    for id in session.scalars(_WITH_MANY_PINGS, {"ids": list(ids), "kept": BODIES_KEPT}).all():
        newest = select(_PING.c.id).where(_PING.c.monitor_id == id).order_by(_PING.c.id.desc())
        old, quiet = (newest.offset(kept).limit(_TRIMMED) for kept in (PINGS_KEPT, BODIES_KEPT))
        session.execute(delete(_PING).where(_PING.c.id.in_(old)))
        has_body = _PING.c.body.is_not(None)
        session.execute(update(_PING).where(_PING.c.id.in_(quiet), has_body).values(body=None))


def _record_ping(
    heartbeat: _Heartbeat, ping: ArrivedPing, outcomes: list[Recorded]
) -> dict[str, Any]:
    """Apply a ping to the heartbeat, and add the outcomes that follow. Returns the ping's row."""
    body = _masked(heartbeat.row, ping.body)
    took = ping.took
    if heartbeat.monitor.paused:
        heartbeat.state = replace(heartbeat.state, last_ping_at=ping.at)
    else:
        fault_before = heartbeat.state.fault
        heartbeat.state = after_time(heartbeat.rules, heartbeat.state, ping.at)
        if heartbeat.state.fault is not fault_before:
            outcomes += heartbeat.outcome(ping.at, is_new=True)
        heartbeat.state, run = after_ping(heartbeat.rules, heartbeat.state, ping)
        if run is not None:
            took = round(run.total_seconds() * 1000)
        if ping.kind in (PingKind.SUCCESS, PingKind.FAIL):
            outcomes += heartbeat.outcome(ping.at, took=took, body=body)
    return {
        "monitor_id": heartbeat.row.monitor_id,
        "at": ping.at,
        "kind": ping.kind,
        "exit_status": ping.exit_status,
        "rid": ping.rid,
        "duration": took,
        "method": ping.method,
        "address": ping.address,
        "body": body,
    }


def _masked(row: HeartbeatStateRow, body: str) -> str | None:
    """The body without control characters, like all evidence, and without the secret of the
    heartbeat: a script may print the command that pings it.
    """
    if not body:
        return None
    spec = CheckSpec(HEARTBEAT_URL, auth=("", readable(row.token) or ""))
    return strip_controls(Redactor(spec).text(body))


def record_deadlines(
    now: datetime, *, web_absent: bool = False, all_heartbeats: bool = False
) -> None:
    """Record deadlines that passed without a ping, and repeat states that have not changed for an
    interval. ``web_absent``: no web process runs, so no ping can arrive and no deadline passes.
    ``all_heartbeats``: record also those that are not due.
    """
    _number_causes()
    due = HeartbeatStateRow.due_at <= now
    while True:
        with writing() as session:
            condition = HeartbeatStateRow.result_at.is_not(None) if all_heartbeats else due
            ids = session.scalars(
                select(HeartbeatStateRow.monitor_id)
                .join(MonitorRow, MonitorRow.id == HeartbeatStateRow.monitor_id)
                .where(condition, MonitorRow.paused.is_(False))
                .order_by(HeartbeatStateRow.due_at)
                .limit(HEARTBEATS_PER_TRANSACTION)
            ).all()
            watched = _load(session, ids)
            outcomes: list[Recorded] = []
            for heartbeat in watched.values():
                fault_before = heartbeat.state.fault
                if not web_absent:
                    heartbeat.state = after_time(heartbeat.rules, heartbeat.state, now)
                is_new = heartbeat.state.fault is not fault_before
                outcomes += heartbeat.outcome(now, is_new=is_new, web_absent=web_absent)
                heartbeat.store(session)
                if web_absent:
                    interval = timedelta(seconds=heartbeat.monitor.interval)
                    heartbeat.row.due_at = now + interval
            record(outcomes, now)
        if all_heartbeats or len(watched) < HEARTBEATS_PER_TRANSACTION:
            return


def next_deadline() -> datetime | None:
    """When ``record_deadlines`` is due."""
    return db.session.scalar(select(func.min(HeartbeatStateRow.due_at)))


def add_heartbeat(
    session: AnySession, monitor_id: int, token: str, token_hash: str, slug: str | None
) -> None:
    """Add the state of a new heartbeat, which is pending."""
    session.add(
        HeartbeatStateRow(
            monitor_id=monitor_id, token=token, token_hash=token_hash, slug=slug, runs=[]
        )
    )
    session.flush()


def change_heartbeat(
    session: AnySession, monitor: MonitorRow, now: datetime, change: Change | None = None
) -> None:
    """Apply ``change`` to the state of a heartbeat whose fields have changed, and store it with its
    next deadline. Ignores monitors of other kinds.
    """
    if not is_heartbeat(monitor.url):
        return
    session.flush()
    for heartbeat in _load(session, [monitor.id]).values():
        if change is not None:
            heartbeat.state = change(heartbeat.rules, heartbeat.state, now)
        heartbeat.row.slug = heartbeat.monitor.slug  # type: ignore[attr-defined]
        heartbeat.store(session)


def is_web_absent(session: AnySession, now: datetime) -> bool:
    """Whether no web process runs that could take pings. A sign of life from the future, written
    before the clock was set back, counts as one of now.
    """
    at = session.scalar(_SIGNED_AT)
    return at is not None and now - at > _ABSENT_AFTER


def sign_web(now: datetime) -> None:
    """Store that a web process can take pings ``now``, and end an absence of web processes."""
    with writing() as session:
        _end_absence(session, now)
        liveness.write(liveness.WEB, now)


def _end_absence(session: AnySession, now: datetime) -> None:
    """If no web process could take pings until now, add the time of their absence to all
    deadlines.
    """
    row = session.scalar(locked(SignOfLifeRow).where(SignOfLifeRow.name == liveness.WEB))
    if row is not None and now - row.at > _ABSENT_AFTER:
        _add_absence(session, row.at, now)
        liveness.write(liveness.WEB, now)


def _add_absence(session: AnySession, since: datetime, returned_at: datetime) -> None:
    ids = session.scalars(select(HeartbeatStateRow.monitor_id)).all()
    for part in pieces(ids, HEARTBEATS_PER_TRANSACTION):
        for heartbeat in _load(session, part).values():
            heartbeat.state = after_absence(heartbeat.rules, heartbeat.state, since, returned_at)
            heartbeat.store(session)
            if heartbeat.row.due_at is not None:
                heartbeat.row.due_at = returned_at
    wakeups.note(session, liveness.DEADLINES)
