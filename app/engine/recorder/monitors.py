"""Start, change, pause, resume and end the checks of a monitor. All functions but ``show_unknown``
are called inside ``writing()``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, case, delete, func, literal, select

from app.alerts.outbox import enqueue_closing
from app.checks.expiry.domain import domain_of
from app.db import AnySession, assignments, changes, writing
from app.db.assignments import IDS_PER_STATEMENT
from app.db.statements import bulk_insert, locked, pieces, updating
from app.db.tables import (
    AssignmentRow,
    IncidentRow,
    MaintenanceWindowMonitorRow,
    MaintenanceWindowRow,
    MonitorEvidenceRow,
    MonitorRow,
    MonitorStateRow,
    PackedHourRow,
    ResultRow,
    RollupRow,
)
from app.db.types import to_ms
from app.engine.recorder import found_late, gaps, pings, unreachable
from app.engine.recorder.rows import (
    end_incident,
    find_open_incident,
    lock_state,
    remark,
    reset_confirmation,
)
from app.errors import existing
from app.i18n import N_, _
from app.judge.heartbeat import after_change, after_resume
from app.judge.verdict import MIN_COVER_S
from app.records import CHECK_OPTIONS, Cause, Ending, Verdict
from app.stats.tally import MAX_COVER_MS

WATCHING_STOPPED = N_("Watching stopped: the monitor was paused.")

# A change of one of these may change the verdict of a check, so the monitor is checked at once.
FIELDS_THAT_FORCE_A_CHECK = frozenset(
    {
        "url", "request_method", "request_headers", "request_auth_username",
        "request_auth_password", "request_body", "alert_condition", "alert_text_lookup",
        "assertions", "timeout", "accepted_statuses", "follow_redirects", "verify_tls",
        "cache_buster", "slow_after",
        *CHECK_OPTIONS,
    }
)  # fmt: skip
# A change of one of these may change the verdict that the votes of a monitor's places lead to.
FIELDS_OF_RULES = frozenset({"confirmations", "location_rule"})
# Results from before a change of one of these columns are not judged again when late results
# arrive: they were judged by other rules, or are of another target.
FIELDS_THAT_END_REJUDGING = frozenset(
    {"interval", "timeout", "confirmations", "location_rule", "url"}
)


def add_monitors(
    session: AnySession, monitors: Sequence[tuple[MonitorRow, Collection[int]]], now: datetime
) -> None:
    """Store new monitors, each with the ids of the places that check it. Their first checks are due
    at once unless they are paused.
    """
    session.add_all(monitor for monitor, _places in monitors)
    session.flush()
    places = {monitor.id: place_ids for monitor, place_ids in monitors}
    states = [(id, 0) for id in places]
    bulk_insert(session, MonitorStateRow, ("monitor_id", "failures"), states)
    assignments.assign_new(session, places, now)
    for id in places:
        changes.note(session, id)


def set_places(
    session: AnySession, monitor_id: int, places: Collection[int], now: datetime
) -> bool:
    """Set the places that check a monitor; returns whether they changed. Results of the places that
    it lost stop counting ``now``.
    """
    row = lock_state(session, monitor_id)
    if not assignments.assign(session, monitor_id, places, now):
        return False
    row.judged_since = now
    changes.note(session, monitor_id)
    end_cover = partial(_end_cover, session, monitor_id, now, kept_places=places)
    changes.before_commit(session, end_cover)
    return True


def apply_changes(
    session: AnySession, monitor: MonitorRow, fields: Collection[str], now: datetime
) -> None:
    """Apply a change of the ``fields`` of a monitor to its state and schedule."""
    row = lock_state(session, monitor.id)
    if FIELDS_THAT_END_REJUDGING & set(fields):
        row.judged_since = now
    if fields:
        changes.note(session, monitor.id)
    if "url" in fields:
        # The target is another one, so everything stored about the old one is dropped.
        if domain_of(monitor.url) != row.domain:
            row.alerted_domain_dates = None  # nobody was alerted to the expiry of the new domain
        row.domain = row.ssl_issued_at = row.ssl_expires_at = row.ssl_fingerprint = None
        reset_confirmation(session, row)
        unreachable.detach(session, row, now)
        _reset_verdict(row)
        if (evidence := session.get(MonitorEvidenceRow, monitor.id)) is not None:
            evidence.last_good = None
    if FIELDS_THAT_FORCE_A_CHECK & set(fields):
        row.spec_since = now
        # A running check with the old fields must not count for the new ones.
        _reset_places(session, monitor.id, now)
    elif "interval" in fields:
        # The last result counts for the old interval. With a longer one, the monitor would be
        # unknown until its next check, and an open incident would not count.
        _make_due(session, monitor.id, now)
    if "depends_on" in fields:
        # Its next check decides whether it is behind one of its new parents.
        unreachable.detach(session, row, now)
        row.parents_asked_at = None
        unreachable.check_again(session, [monitor.id], now)
    if fields:
        pings.change_heartbeat(session, monitor, now, after_change)


def pause(session: AnySession, monitor_id: int, now: datetime) -> None:
    """Pause a monitor. An open incident ends now (decision 2). Nobody is notified, except that
    services with an alert for each incident are sent its end.
    """
    row = lock_state(session, monitor_id)
    monitor = _monitor(session, monitor_id)
    if monitor.paused:
        return
    monitor.paused, row.paused_at = True, now
    _reset_places(session, monitor_id, now)
    reset_confirmation(session, row)
    unreachable.detach(session, row, now)
    unreachable.check_children(session, monitor_id, now)
    pings.change_heartbeat(session, monitor, now)
    changes.before_commit(session, partial(_end_cover, session, monitor_id, now))
    incident = find_open_incident(session, monitor_id)
    if incident is not None:
        incident.unwatched = list(gaps.gaps_until(incident, row, now)) or None
        end_incident(incident, now, now, Ending.PAUSE)
        remark(incident, _(WATCHING_STOPPED))
        enqueue_closing(session, monitor, incident, now, deleted=False)


def resume(session: AnySession, monitor_id: int, now: datetime) -> None:
    """Resume a monitor; its first check is due at once. Until then it is pending, or still
    unknown.
    """
    row = lock_state(session, monitor_id)
    monitor = _monitor(session, monitor_id)
    if not monitor.paused:
        return
    monitor.paused, row.resumed_at = False, now
    _reset_places(session, monitor_id, now)
    reset_confirmation(session, row)
    _reset_verdict(row)
    pings.change_heartbeat(session, monitor, now, after_resume)


def show_unknown(
    causes: Mapping[int, str],
    now: datetime,
    checked_meanwhile: Callable[[AnySession, Collection[int]], Collection[int]],
) -> None:
    """Show these monitors, which no place checks now, as unknown with these causes. It must not be
    called inside ``writing()``. ``checked_meanwhile`` returns the monitors that were checked or
    changed since the silence was noticed; it is called with their states locked.
    """
    for part in pieces(sorted(causes), IDS_PER_STATEMENT):
        with writing() as session:
            of_these = locked(MonitorStateRow).where(MonitorStateRow.monitor_id.in_(part))
            rows = session.scalars(of_these.order_by(MonitorStateRow.monitor_id)).all()
            checked = checked_meanwhile(session, part)
            unchecked = [row for row in rows if row.monitor_id not in checked]
            _store_unknown(session, unchecked, causes, now)


def _store_unknown(
    session: AnySession, rows: Iterable[MonitorStateRow], causes: Mapping[int, str], now: datetime
) -> None:
    newly_unknown = [row for row in rows if row.verdict not in (None, Verdict.UNKNOWN)]
    for row in newly_unknown:
        unreachable.detach(session, row, now)
        row.verdict, row.status_since = Verdict.UNKNOWN, now
        row.cause_code, row.cause = Cause.CHECK_ERROR, causes[row.monitor_id]
        changes.note(session, row.monitor_id)
    # A gap since the last check; the next check corrects its end (``gaps.gap_after_silence``).
    last = {row.monitor_id: row.checked_at for row in newly_unknown if row.checked_at is not None}
    is_open = IncidentRow.ended_at.is_(None), ~IncidentRow.by_hand
    of_these = select(IncidentRow).where(IncidentRow.monitor_id.in_(last), *is_open)
    for incident in session.scalars(of_these):
        if last[incident.monitor_id] < now:
            gaps.add(incident, last[incident.monitor_id], now)


def delete_monitor(session: AnySession, monitor_id: int, now: datetime) -> None:
    """Delete a monitor with everything recorded of it. Nobody is notified, except that services
    with an alert for each incident are sent the end of an open one. Raises NotFound.
    """
    lock_state(session, monitor_id)
    if (incident := find_open_incident(session, monitor_id)) is not None:
        end_incident(incident, now, now, Ending.PAUSE)
        enqueue_closing(session, _monitor(session, monitor_id), incident, now, deleted=True)
    changes.note(session, monitor_id)
    unreachable.forget_parent(session, monitor_id, now)
    # A window that was only for this monitor is deleted: a window without monitors and tags applies
    # to all, and would silence the others.
    only_of_it = (
        select(MaintenanceWindowMonitorRow.window_id)
        .group_by(MaintenanceWindowMonitorRow.window_id)
        .having(
            func.min(MaintenanceWindowMonitorRow.monitor_id) == monitor_id,
            func.max(MaintenanceWindowMonitorRow.monitor_id) == monitor_id,
        )
    )
    windows = select(MaintenanceWindowRow).where(MaintenanceWindowRow.id.in_(only_of_it))
    for window in session.scalars(windows.where(MaintenanceWindowRow.tags == "")).all():
        session.delete(window)  # a row at a time, for the audit log
    session.execute(delete(MonitorRow).where(MonitorRow.id == monitor_id))
    # Results and rollups have no foreign key, which would cost an index entry for each check.
    for table in (ResultRow, PackedHourRow):
        results = delete(table).where(table.monitor_id == monitor_id)
        changes.before_commit(session, partial(session.execute, results))
    session.execute(delete(RollupRow).where(RollupRow.monitor_id == monitor_id))


def _reset_places(session: AnySession, monitor_id: int, now: datetime) -> None:
    """Make the monitor due at once in all of its places, and drop their votes, which were made
    before a pause, or by another check. (``reset_confirmation`` and ``_reset_verdict`` reset its
    state.)
    """
    # ``asked_at`` too: a new request must not join an old one.
    values = {"checked_at": None, "verdict": None, "failures": 0, "asked_at": None}
    _make_due(session, monitor_id, now, **values)


def _make_due(session: AnySession, monitor_id: int, now: datetime, **values: Any) -> None:
    """Make the monitor due at once in each of its places, and invalidate its running checks.
    ``values``: more columns of the assignments.
    """
    next_generation, now_ms = AssignmentRow.generation + 1, to_ms(now)
    session.execute(
        updating(AssignmentRow)
        .where(AssignmentRow.monitor_id == monitor_id)
        # A new place gets this generation too (``assignments.assign``): its vote is awaited from
        # now on.
        .values(
            generation=case((next_generation > now_ms, next_generation), else_=now_ms),
            scheduled_at=None,
            **values,
        )
    )
    changes.note(session, monitor_id)


def _reset_verdict(row: MonitorStateRow) -> None:
    """Show the monitor as not checked yet, until its next check. One that is unknown stays so: its
    next check ends the silence of its places.
    """
    if row.verdict != Verdict.UNKNOWN:
        row.verdict = row.status_since = row.cause_code = row.cause = None


def _end_cover(
    session: AnySession, monitor_id: int, now: datetime, kept_places: Collection[int] = ()
) -> None:
    """End now the cover of the newest result of each place except ``kept_places``. With an interval
    of an hour, it would otherwise count for up to an hour after a pause. An incident that was found
    late lasts as long as its last result counts, so it ends too.
    """
    found_late.end_found_late(session, monitor_id, now)
    at, now_ms = ResultRow.at, to_ms(now)
    counts_now = at + ResultRow.covers_s * literal(1000, BigInteger) > now_ms
    session.execute(
        updating(ResultRow)
        .where(ResultRow.monitor_id == monitor_id, at > now_ms - MAX_COVER_MS)
        .where(ResultRow.covers_s > 0, counts_now, ResultRow.location_id.not_in(kept_places))
        .values(covers_s=case((at > now_ms - 2000, MIN_COVER_S), else_=(now_ms - at) // 1000))
    )


def _monitor(session: AnySession, monitor_id: int) -> MonitorRow:
    return existing(session.get(MonitorRow, monitor_id), "monitor", monitor_id)
