"""The alerts that the recorder writes into the outbox: for incidents that open and end, for an open
incident whose first alert was given up, for a certificate that expires, and reminders of incidents
that nobody has acknowledged.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select

from app.alerts.outbox import Alert, enqueue, enqueue_for, lane_of
from app.alerts.targets import alerting_nobody, hours_of, quiet_until, targets_of
from app.alerts.words import count_of
from app.db import AnySession, db, writing
from app.db.statements import rows_changed, updating
from app.db.tables import IncidentRow, MonitorRow
from app.db.types import Moment, Unreadable
from app.db.windows import MaintenanceTimes
from app.engine.recorder.rows import find_open_incident, lock_state, remark
from app.errors import NotFound
from app.i18n import _
from app.records import Event, Outcome, Verdict
from app.rules.clocks import believable
from app.rules.time import days_left, warns
from app.rules.unreadable import NOBODY_NOTIFIED

log = logging.getLogger(__name__)


def notify(session: AnySession, alerts: Sequence[Alert], now: datetime) -> None:
    """Write these alerts into the outbox. If the contacts of a monitor cannot be read, the comment
    of its new incident says so.
    """
    written = zip(alerts, enqueue(session, alerts, now), strict=True)
    unsent = {
        alert.monitor.id: alert
        for alert, count in written
        if alert.event == Event.INCIDENT_OPENED and not count
    }
    for id in alerting_nobody(session, [alert.monitor for alert in unsent.values()]):
        if (incident := unsent[id].incident) is not None:
            remark(incident, _(NOBODY_NOTIFIED))


def notify_again(
    session: AnySession, monitor_id: int, lanes: Collection[str], now: datetime
) -> None:
    """Alert these lanes to the open incident: they gave up its first alert before it was sent, as
    after the restore of an old backup, and a check has just shown that the incident still lasts.
    Lanes that the monitor no longer has are left out.
    """
    incident = find_open_incident(session, monitor_id)
    if incident is None:
        return
    incident.reminded_at = now  # the next reminder is due a whole period from now
    session.flush()
    monitor = session.get_one(MonitorRow, monitor_id)
    all_targets = targets_of(session, monitor).items()
    targets = {target: sources for target, sources in all_targets if lane_of(*target) in lanes}
    alert = Alert(Event.INCIDENT_OPENED, monitor, incident, {"late": True})
    rows = enqueue_for(session, alert, targets, now)
    log.warning(
        "Incident %d still lasts, and its opening was given up unsent: %s tells of it now.",
        incident.id,
        count_of(len(rows), "message"),
    )


# The servers behind one name may have different certificates and answer alternately; two registries
# may give different dates for one domain. If only the last certificate or date were stored, people
# would be alerted to each again and again. Therefore the column has a list of them, the newest
# first.
_MAX_ALERTED = 1_000
_STORED_LENGTH = 16  # of a fingerprint; the whole would be four times as long


def was_alerted(column: str | None, fingerprint: str) -> bool:
    """Whether people were alerted to this certificate. ``column``: ``alerted_certificates``."""
    return column is not None and fingerprint[:_STORED_LENGTH] in column.split()


def with_mark(column: str | None, mark: str) -> str:
    """The column with one more mark, of a certificate or a date."""
    return " ".join([mark[:_STORED_LENGTH], *(column or "").split()][:_MAX_ALERTED])


def is_certificate_due(outcome: Outcome, setting: int | str | None, now: datetime) -> bool:
    """Whether an alert about the certificate's expiry is due, if none was sent yet.

    In maintenance it is not: the alert comes afterwards. Nor is it if the check fails because of
    TLS: the incident reports that.
    """
    result = outcome.result
    if setting is None or outcome.ssl_expires_at is None or result.maintenance:
        return False
    if result.verdict is Verdict.DOWN and (result.cause_code or "").startswith("tls_"):
        return False
    return warns(setting, outcome.ssl_issued_at, outcome.ssl_expires_at, now)


def notify_certificate(
    session: AnySession, monitor_id: int, outcome: Outcome, now: datetime
) -> bool:
    """Alert to a certificate that expires; returns whether the alert was written. While the
    monitor's contacts cannot be read, it is not written, and a later check tries again.
    """
    expires, monitor = outcome.ssl_expires_at, session.get_one(MonitorRow, monitor_id)
    if expires is None or isinstance(monitor.alerts, Unreadable):
        return False
    facts = {"expires_at": expires, "days_left": days_left(expires, now), "host": outcome.ssl_host}
    enqueue(session, [Alert(Event.CERTIFICATE_EXPIRING, monitor, extra=facts)], now)
    return True


# --- Reminders, for monitors that ask for them

# When people were last alerted: by the opening, a reminder, or a digest of quiet hours.
_NOTIFIED = func.coalesce(IncidentRow.reminded_at, IncidentRow.created_at, type_=Moment)
_UNANSWERED = (IncidentRow.ended_at.is_(None), IncidentRow.acknowledged_at.is_(None))


def remind(now: datetime) -> int:
    """Write the reminders that are due; returns how many. Needs an application context.

    No reminder is due while the monitor is paused, in maintenance or in quiet hours (their digest
    includes the incident). Each reminder is one transaction, and only one of several checkers
    writes it.
    """
    windows = MaintenanceTimes(db.session, now)
    due = [
        (incident_id, monitor.id)
        for incident_id, notified_at, monitor in db.session.execute(
            select(IncidentRow.id, _NOTIFIED, MonitorRow)
            .join(MonitorRow, MonitorRow.id == IncidentRow.monitor_id)
            .where(*_UNANSWERED, MonitorRow.remind_after.is_not(None), MonitorRow.paused.is_(False))
            .order_by(IncidentRow.id)
        )
        if (
            notified_at <= now - timedelta(minutes=monitor.remind_after or 0)
            or notified_at > believable(now)
        )
        and not windows.covers(monitor, now)
        and quiet_until(hours_of(monitor), [None], now) is None
    ]
    return sum(_remind(incident_id, monitor_id, now) for incident_id, monitor_id in due)


def _remind(incident_id: int, monitor_id: int, now: datetime) -> bool:
    with writing() as session:
        try:
            lock_state(session, monitor_id)
        except NotFound:
            return False  # deleted meanwhile
        monitor = session.get(MonitorRow, monitor_id, populate_existing=True)
        if monitor is None or monitor.paused or monitor.remind_after is None:
            return False
        # The guard: a second checker finds that ``reminded_at`` was set just now.
        notified_before = now - timedelta(minutes=monitor.remind_after)
        reminding = (
            updating(IncidentRow)
            # A time in the future was written by a clock that was ahead, and does not count.
            .where(
                IncidentRow.id == incident_id,
                *_UNANSWERED,
                or_(notified_before >= _NOTIFIED, believable(now) < _NOTIFIED),
            )
            .values(reminded_at=now)
        )
        if rows_changed(session, reminding) != 1:
            return False
        incident = session.get_one(IncidentRow, incident_id, populate_existing=True)
        enqueue(session, [Alert(Event.INCIDENT_REMINDER, monitor, incident)], now)
    return True
