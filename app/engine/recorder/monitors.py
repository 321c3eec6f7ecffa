"""Start, change, pause, resume and end the checks of a monitor. Inside ``writing()``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, case, delete, func, literal, select

from app.checks.expiry.domain import domain_of
from app.db import AnySession, assignments, changes, writing
from app.db.assignments import AT_ONCE
from app.db.statements import bulk_insert, locked, updating
from app.db.tables import (
    AssignmentRow,
    IncidentRow,
    MaintenanceWindowMonitorRow,
    MaintenanceWindowRow,
    MonitorRow,
    MonitorStateRow,
    ResultRow,
    RollupRow,
)
from app.db.types import to_ms
from app.engine.recorder import found_late, gaps
from app.engine.recorder.rows import end, forget_good, lock, open_incident, remark, start_afresh
from app.errors import existing
from app.i18n import N_, _
from app.judge.verdict import SHORTEST_COVER_S
from app.records import Cause, Ending, Verdict
from app.stats.tally import LONGEST_COVER_MS

WATCHING_STOPPED = N_("Watching stopped: the monitor was paused.")

# A change of one of these may change the verdict, so the monitor is checked at once.
RECHECKED_FIELDS = frozenset(
    {
        "url", "request_method", "request_headers", "request_auth_username",
        "request_auth_password", "request_body", "alert_condition", "alert_text_lookup", "timeout",
        "accepted_statuses", "follow_redirects", "verify_tls", "cache_buster", "slow_after",
    }
)  # fmt: skip
# A change of one of these changes what the votes of a monitor's places make of it.
VOTED_FIELDS = frozenset({"confirmations", "location_rule"})
# Results from before a change of one of these are not judged again: they were judged by another
# rule, or are of another target.
JUDGED_FIELDS = frozenset({"interval", "timeout", "confirmations", "location_rule", "url"})


def watch(
    session: AnySession, monitors: Sequence[tuple[MonitorRow, Collection[int]]], now: datetime
) -> None:
    """Store new monitors, and start to check each from its places; they are due at once unless they
    are paused.
    """
    session.add_all(monitor for monitor, _places in monitors)
    session.flush()
    places = {monitor.id: wanted for monitor, wanted in monitors}
    states = [(id, 0) for id in places]
    bulk_insert(session, MonitorStateRow, ("monitor_id", "failures"), states)
    assignments.assign_new(session, places, now)
    for id in places:
        changes.note(session, id)


def watch_from(
    session: AnySession, monitor_id: int, places: Collection[int], now: datetime
) -> bool:
    """Set the places that a monitor is checked from; whether that changed something. Results of
    the others count until now.
    """
    row = lock(session, monitor_id)
    if not assignments.assign(session, monitor_id, places, now):
        return False
    row.judged_since = now
    changes.note(session, monitor_id)
    changes.at_last(session, partial(_end_cover, session, monitor_id, now, kept=places))
    return True


def apply_changes(
    session: AnySession, monitor: MonitorRow, changed: Collection[str], now: datetime
) -> None:
    """Apply a change of the fields ``changed`` of a monitor to its state and schedule."""
    row = lock(session, monitor.id)
    if JUDGED_FIELDS & set(changed):
        row.judged_since = now
    if changed:
        changes.note(session, monitor.id)
    if "url" in changed:
        # The target is another one, so everything known about the old one is dropped.
        if domain_of(monitor.url) != row.domain:
            row.alerted_domain_dates = None  # nobody was alerted to the expiry of the new domain
        row.domain = row.ssl_issued_at = row.ssl_expires_at = row.ssl_fingerprint = None
        start_afresh(session, row)
        _forget_verdict(row)
        forget_good(session, monitor.id)
    if RECHECKED_FIELDS & set(changed):
        row.spec_since = now
        # A running check of the old fields must not be judged as one of the new fields.
        _start_over(session, monitor.id, now)
    elif "interval" in changed:
        # The last result counts for the old interval. With a longer one, the monitor would be
        # unknown until its next slot, and an open incident would not count.
        _make_due(session, monitor.id, now)


def pause(session: AnySession, monitor_id: int, now: datetime) -> None:
    """Pause a monitor. An open incident ends now, without a recovery message (decision 2)."""
    row = lock(session, monitor_id)
    monitor = _monitor(session, monitor_id)
    if monitor.paused:
        return
    monitor.paused, row.paused_at = True, now
    _start_over(session, monitor_id, now)
    start_afresh(session, row)
    changes.at_last(session, partial(_end_cover, session, monitor_id, now))
    incident = open_incident(session, monitor_id)
    if incident is not None:
        incident.unwatched = list(gaps.until(incident, row, now)) or None
        end(incident, now, now, Ending.PAUSE)
        remark(incident, _(WATCHING_STOPPED))


def resume(session: AnySession, monitor_id: int, now: datetime) -> None:
    """Resume a monitor; its first check is due at once. How it is, nobody knows until then."""
    row = lock(session, monitor_id)
    monitor = _monitor(session, monitor_id)
    if not monitor.paused:
        return
    monitor.paused, row.resumed_at = False, now
    _start_over(session, monitor_id, now)
    start_afresh(session, row)
    _forget_verdict(row)


def show_unknown(
    causes: Mapping[int, str],
    now: datetime,
    seen_since: Callable[[AnySession, Collection[int]], Collection[int]],
) -> None:
    """Show these monitors as unknown, each for its cause: no place checks them now. Not within
    ``writing()``. ``seen_since`` says which of them are checked after all, or were changed, since
    that was found. It is called with their states locked.
    """
    ids = sorted(causes)
    for start in range(0, len(ids), AT_ONCE):
        with writing() as session:
            some = ids[start : start + AT_ONCE]
            rows = _locked(session, some)
            not_unknown = seen_since(session, some)
            _store_unknown(
                session, [row for row in rows if row.monitor_id not in not_unknown], causes, now
            )


def _locked(session: AnySession, ids: Collection[int]) -> Sequence[MonitorStateRow]:
    return session.scalars(
        locked(MonitorStateRow)
        .where(MonitorStateRow.monitor_id.in_(ids))
        .order_by(MonitorStateRow.monitor_id)
    ).all()


def _store_unknown(
    session: AnySession, rows: Iterable[MonitorStateRow], causes: Mapping[int, str], now: datetime
) -> None:
    shown = [row for row in rows if row.verdict not in (None, Verdict.UNKNOWN)]
    for row in shown:
        row.verdict, row.status_since = Verdict.UNKNOWN, now
        row.cause_code, row.cause = Cause.CHECK_ERROR, causes[row.monitor_id]
        changes.note(session, row.monitor_id)
    _note_silence(session, {row.monitor_id: row.checked_at for row in shown}, now)


def _note_silence(
    session: AnySession, checked: Mapping[int, datetime | None], now: datetime
) -> None:
    """Note in the open incidents of these monitors that nobody has watched since their last check;
    the next one corrects the end (``gaps.after_silence``).
    """
    of = IncidentRow
    open_now = select(of).where(of.monitor_id.in_(checked), of.ended_at.is_(None), ~of.by_hand)
    for incident in session.scalars(open_now):
        last = checked[incident.monitor_id]
        if last is not None and last < now:
            gaps.add(incident, last, now)


def forget(session: AnySession, monitor_id: int) -> None:
    """Delete a monitor with everything recorded of it. Sends nothing. Raises NotFound."""
    lock(session, monitor_id)
    changes.note(session, monitor_id)
    # A window without monitors and tags applies to all: one that was only for this monitor is
    # deleted, or it would silence all the others.
    alone = (
        select(MaintenanceWindowMonitorRow.window_id)
        .group_by(MaintenanceWindowMonitorRow.window_id)
        .having(
            func.min(MaintenanceWindowMonitorRow.monitor_id) == monitor_id,
            func.max(MaintenanceWindowMonitorRow.monitor_id) == monitor_id,
        )
    )
    windows = select(MaintenanceWindowRow).where(MaintenanceWindowRow.id.in_(alone))
    for window in session.scalars(windows.where(MaintenanceWindowRow.tags == "")).all():
        session.delete(window)  # a row at a time, for the audit log
    session.execute(delete(MonitorRow).where(MonitorRow.id == monitor_id))
    # Results and rollups have no foreign key, which would cost an index entry for each check.
    results = delete(ResultRow).where(ResultRow.monitor_id == monitor_id)
    changes.at_last(session, partial(session.execute, results))
    session.execute(delete(RollupRow).where(RollupRow.monitor_id == monitor_id))


def _start_over(session: AnySession, monitor_id: int, now: datetime) -> None:
    """Make the monitor due at once. What its places saw before has no vote: it was of the time
    before a pause, or of another check.
    """
    _make_due(
        session,
        monitor_id,
        now,
        checked_at=None,
        verdict=None,
        failures=0,
        asked_at=None,  # what was asked before is no answer to who asks now
    )


def _make_due(session: AnySession, monitor_id: int, now: datetime, **values: Any) -> None:
    """Make the monitor due at once in each of its places, and invalidate its running checks.
    ``values``: more columns of the assignments.
    """
    turn, now_ms = AssignmentRow.turn + 1, to_ms(now)
    session.execute(
        updating(AssignmentRow)
        .where(AssignmentRow.monitor_id == monitor_id)
        # A new place gets this turn too (``assignments.assign``): its vote is awaited from now on.
        .values(turn=case((turn > now_ms, turn), else_=now_ms), slot=None, **values)
    )
    changes.note(session, monitor_id)


def _forget_verdict(row: MonitorStateRow) -> None:
    """Show the monitor as not checked yet, until a check says how it is. One that is unknown stays
    so: the next check ends the silence of its places.
    """
    if row.verdict != Verdict.UNKNOWN:
        row.verdict = row.status_since = row.cause_code = row.cause = None


def _end_cover(
    session: AnySession, monitor_id: int, now: datetime, kept: Collection[int] = ()
) -> None:
    """Let the newest result of each place count only until now, but not those of the places
    ``kept``. With an interval of an hour, it would otherwise count for up to an hour after a pause.
    An incident that was found late and lasts as long as a result counts ends with it.
    """
    found_late.end(session, monitor_id, now)
    at, now_ms = ResultRow.at, to_ms(now)
    reaches = at + ResultRow.covers_s * literal(1000, BigInteger) > now_ms
    session.execute(
        updating(ResultRow)
        .where(ResultRow.monitor_id == monitor_id, at > now_ms - LONGEST_COVER_MS)
        .where(ResultRow.covers_s > 0, reaches, ResultRow.location_id.not_in(kept))
        .values(covers_s=case((at > now_ms - 2000, SHORTEST_COVER_S), else_=(now_ms - at) // 1000))
    )


def _monitor(session: AnySession, monitor_id: int) -> MonitorRow:
    return existing(session.get(MonitorRow, monitor_id), "monitor", monitor_id)
