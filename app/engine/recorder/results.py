"""Record what checks brought: results, states, incidents and alerts in one transaction a batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from flask import current_app
from sqlalchemy import bindparam, select, update

from app.alerts import told
from app.config import Settings
from app.db import journal, writing
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow
from app.db.types import from_ms, to_ms
from app.engine import quorum
from app.engine.recorder import alerting, evidence, gaps
from app.engine.recorder.quiet import Quiet
from app.engine.recorder.rows import AnySession, columns_of, state_of
from app.engine.schedule import next_check
from app.engine.state import Observation, Stands, State, Step, Transition, advance
from app.records import Outcome, Result, Verdict
from app.stats.tally import cover_limit_ms

# How locations decide together, until a monitor can choose for itself.
RULE = quorum.Rule.MAJORITY

_STATES = MonitorStateRow.__table__
_MONITOR_COLUMNS = (
    MonitorRow.id, MonitorRow.interval, MonitorRow.timeout, MonitorRow.confirmations,
    MonitorRow.paused, MonitorRow.maintenance_start_at, MonitorRow.maintenance_end_at,
    MonitorRow.ssl_alert_days,
)  # fmt: skip
_WRITTEN = (
    "next_check_at", "lease_until", "lease_token", "checked_at", "verdict", "status_since",
    "failing_since", "failures", "recovering_since", "cause_code", "cause", "response_time",
    "ssl_expires_at", "ssl_fingerprint", "ssl_alerted",
)  # fmt: skip
_WRITE = (
    update(_STATES)  # type: ignore[arg-type] # Flask-SQLAlchemy types __table__ as a FromClause
    .where(_STATES.c.monitor_id == bindparam("of"))
    .values({name: bindparam(f"new_{name}") for name in _WRITTEN})
)


@dataclass(slots=True)
class _Known:
    """A monitor as it stands within the batch: a second result of it builds on the first."""

    monitor: Any
    state: State
    columns: dict[str, Any]
    # The lanes whose message about the open incident's opening was given up unsent
    unsent: Collection[str] = ()
    changed: bool = False


@dataclass(slots=True)
class _Batch:
    session: AnySession
    now: datetime
    token: str | None
    location: int
    quiet: Quiet
    known: dict[int, _Known]
    several: bool  # locations
    good: dict[int, Any] = field(default_factory=dict)  # evidence of good checks
    rows: list[dict[str, Any]] = field(default_factory=list)


def record(
    outcomes: Sequence[tuple[int, Outcome]],
    now: datetime,
    *,
    token: str | None = None,
    location: str = "default",
) -> list[Result | None]:
    """Record outcomes by monitor id; each result as recorded, or None when it was dropped.

    ``token``: the lease under which the checks were made. A monitor whose lease is somebody else's
    by now, or that was paused, changed or deleted meanwhile, is left alone: its outcome is dropped.
    Without a token it is a check that a person asked for: it counts like any other, but leaves the
    schedule as it is, and for a paused monitor only the result is kept.
    """
    if not outcomes:
        return []
    journal.known_numbers([outcome.result for _id, outcome in outcomes])
    place = journal.location_id(location)
    with writing() as session:
        ids = {monitor_id for monitor_id, _outcome in outcomes}
        several = journal.several_locations()
        known = _load(session, ids)
        batch = _Batch(session, now, token, place, Quiet(session, now), known, several)
        recorded = [_one(batch, monitor_id, outcome) for monitor_id, outcome in outcomes]
        journal.keep(batch.rows)
        _write_good(batch)
        _write_states(batch)
    return recorded


def _load(session: AnySession, ids: set[int]) -> dict[int, _Known]:
    rows = session.execute(
        select(*_STATES.columns, *(column.label(f"m_{column.key}") for column in _MONITOR_COLUMNS))
        .join(MonitorRow, MonitorRow.id == _STATES.c.monitor_id)
        .where(_STATES.c.monitor_id.in_(ids))
        # Always in the same order: two recorders that lock crosswise would wait for each other.
        .order_by(_STATES.c.monitor_id)
        .with_for_update(of=_STATES)
    ).all()
    open_now = {
        row.monitor_id: row
        for row in session.execute(
            select(
                IncidentRow.id, IncidentRow.monitor_id, IncidentRow.started_at, IncidentRow.by_hand
            ).where(IncidentRow.monitor_id.in_(ids), IncidentRow.ended_at.is_(None))
        )
    }
    unsent = told.unsent_openings(session, [incident.id for incident in open_now.values()])
    known = {row.monitor_id: _known(row, open_now.get(row.monitor_id)) for row in rows}
    for monitor_id, found in known.items():
        if monitor_id in open_now:
            found.unsent = unsent.get(open_now[monitor_id].id, ())
    return known


def _known(row: Any, incident: Any) -> _Known:
    state = state_of(row, incident and incident.started_at, bool(incident and incident.by_hand))
    columns = {name: getattr(row, name) for name in _WRITTEN}
    return _Known(_Columns(row), state, columns)


class _Columns:
    """The monitor's columns of a joined row, under their own names."""

    __slots__ = tuple(column.key for column in _MONITOR_COLUMNS)

    def __init__(self, row: Any) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(row, f"m_{name}"))


def _one(batch: _Batch, monitor_id: int, outcome: Outcome) -> Result | None:
    known = batch.known.get(monitor_id)
    if known is None:
        return None
    if batch.token is not None and known.columns["lease_token"] != batch.token:
        return None
    outcome = _placed(batch, known, outcome)
    result = outcome.result
    monitor = known.monitor
    covers = 0 if monitor.paused else cover_limit_ms(monitor.interval, monitor.timeout) // 1000
    batch.rows.append(journal.row_of(result, batch.location, covers))
    if not monitor.paused:
        _judge(batch, known, outcome)
    return journal.as_recorded(result, batch.location)


def _placed(batch: _Batch, known: _Known, outcome: Outcome) -> Outcome:
    """The outcome with its monitor, and a time that no other result of the monitor has."""
    at = from_ms(to_ms(outcome.result.checked_at))
    if at == known.state.checked_at:
        at += timedelta(milliseconds=1)
    result = replace(
        outcome.result,
        monitor_id=known.monitor.id,
        checked_at=at,
        maintenance=batch.quiet.covers(known.monitor, at),
    )
    return replace(outcome, result=result)


def _judge(batch: _Batch, known: _Known, outcome: Outcome) -> None:
    result, before = outcome.result, known.state
    if gap := gaps.before(known.monitor, before, result.checked_at):
        before = gaps.note(batch.session, known.monitor.id, before, gap)
    seen = Observation(result.checked_at, _verdict(batch, known, result), result.maintenance)
    after = advance(before, seen, known.monitor.confirmations)
    overtaken = after.state == before
    known.state, known.changed = after.state, True
    known.columns |= columns_of(after.state)
    if not overtaken:
        known.columns |= {
            "cause_code": result.cause_code,
            "cause": result.cause,
            "response_time": result.response_time,
        }
        _certificate(batch, known, outcome)
        _keep_evidence(batch, before, after, outcome)
        _incident(batch, known, before, after, outcome)
        _tell_again(batch, known, result)
    _plan(batch, known, after)


def _verdict(batch: _Batch, known: _Known, result: Result) -> Any:
    """What all locations say together; with one location, what it says."""
    if not batch.several:
        return result.verdict
    stale = timedelta(seconds=2 * known.monitor.interval + known.monitor.timeout)
    others = journal.newest_elsewhere(known.monitor.id, batch.location, batch.now - stale)
    votes = [quorum.Vote(str(place), at, verdict) for place, at, verdict in others]
    votes.append(quorum.Vote(str(batch.location), result.checked_at, result.verdict))
    return quorum.decide(votes, RULE, batch.now, stale)


def _plan(batch: _Batch, known: _Known, after: Transition) -> None:
    """When the next check is due. A person's check moves it only to have a failure confirmed."""
    columns = known.columns
    if after.recheck:
        # ``now`` is just after the end of the check, from which the pause counts.
        settings: Settings = current_app.extensions["wakeful.settings"]
        columns["next_check_at"] = batch.now + timedelta(seconds=settings.confirm_seconds)
    elif batch.token is not None and not _planned(batch, known):
        columns["next_check_at"] = next_check(known.monitor.id, known.monitor.interval, batch.now)
    if batch.token is not None:
        columns["lease_until"] = columns["lease_token"] = None


def _planned(batch: _Batch, known: _Known) -> bool:
    """A person's check failed while this one was on its way, and its repeat is planned."""
    due = known.columns["next_check_at"]
    return due is not None and due > batch.now and known.state.failing_since is not None


def _certificate(batch: _Batch, known: _Known, outcome: Outcome) -> None:
    if outcome.ssl_expires_at is None or outcome.ssl_fingerprint is None:
        return
    columns = known.columns
    columns["ssl_expires_at"] = outcome.ssl_expires_at
    columns["ssl_fingerprint"] = outcome.ssl_fingerprint
    told = columns["ssl_alerted"] or ""
    due = not alerting.knows(told, outcome.ssl_fingerprint) and alerting.certificate_due(
        outcome, known.monitor.ssl_alert_days, batch.now
    )
    if due and alerting.tell_certificate(batch.session, known.monitor.id, outcome, batch.now):
        columns["ssl_alerted"] = alerting.remember(told, outcome.ssl_fingerprint)


def _keep_evidence(batch: _Batch, before: State, after: Transition, outcome: Outcome) -> None:
    if evidence.wants_good(outcome):
        batch.good[outcome.result.monitor_id or 0] = evidence.check_of(outcome)
    if after.step in (Step.SUSPECT, Step.OPEN):
        _write_good(batch)  # an incident that opens now takes it along
        evidence.keep_failing(batch.session, outcome, first=before.failing_since is None)
    elif after.step is Step.CANCEL:
        evidence.drop_failing(batch.session, outcome.result.monitor_id or 0)


def _write_good(batch: _Batch) -> None:
    journal.keep_good_evidence(batch.good)
    batch.good = {}


def _incident(
    batch: _Batch, known: _Known, before: State, after: Transition, outcome: Outcome
) -> None:
    if after.moment is None:
        return
    if after.step is Step.OPEN:
        started = alerting.open_automatic(
            batch.session, known.monitor.id, after.moment, outcome.result, batch.now
        )
        known.state = replace(known.state, started_at=started)
    elif after.step is Step.END:
        alerting.end_automatic(batch.session, known.monitor.id, after.moment, batch.now)


def _tell_again(batch: _Batch, known: _Known, result: Result) -> None:
    """Tell of an incident anew, once, where a check that fails shows that it still lasts."""
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
