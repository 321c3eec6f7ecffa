"""Open and end incidents because of checks, and write the alerts about them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime

from app.alerts.outbox import enqueue, enqueue_again
from app.alerts.words import count_of
from app.db import AnySession, rollups
from app.db.by_place import Seen
from app.db.tables import IncidentRow, MonitorRow
from app.db.types import Unreadable, readable
from app.engine.recorder import evidence, gaps
from app.engine.recorder.rows import end, open_incident, remark_at, tell_opened, whole
from app.records import MAX_CAUSE, Ending, Event, Outcome, Result, Verdict
from app.rules.certificates import warns
from app.rules.time import days_left
from app.rules.who_saw import fell_silent, seen_by

log = logging.getLogger(__name__)


def open_automatic(
    session: AnySession,
    monitor_id: int,
    since: datetime,
    result: Result,
    now: datetime,
    seen: Sequence[Seen],
) -> datetime:
    """Open an incident that started at ``since``; its start in whole seconds. ``seen``: what the
    monitor's places saw last.

    Its cause is the first failing check's: a repeat may fail for another reason, as when a server
    first hangs and then refuses.
    """
    monitor = session.get_one(MonitorRow, monitor_id)
    kept = evidence.of_incident(session, monitor, since, seen)
    first = kept["failing"] or {}
    cause = (first.get("cause") or result.cause or "")[:MAX_CAUSE] or None
    incident = IncidentRow(
        monitor_id=monitor_id,
        started_at=whole(since),
        cause=cause,
        cause_folded=cause and cause.casefold(),
        cause_code=first.get("cause_code") or result.cause_code,
        by_hand=False,
        created_at=whole(now),
        updated_at=whole(now),
    )
    evidence.keep(incident, kept)
    session.add(incident)
    session.flush()
    # The incident may have begun in an hour that is already summed.
    rollups.reroll(monitor_id, incident.started_at)
    tell_opened(session, monitor, incident, now)
    return incident.started_at


def end_automatic(
    session: AnySession, monitor_id: int, at: datetime, now: datetime, silent: Sequence[Seen] = ()
) -> None:
    """End the open incident at ``at``, the first good check of the recovery. ``silent``: places
    that saw the failure to the last and have no vote any more. If no other place saw it, nobody saw
    it end, and the incident and its message say so.
    """
    incident = open_incident(session, monitor_id)
    if incident is None:
        return
    if silent and not seen_by(readable(incident.evidence)) - {one.name for one in silent}:
        ended = end(incident, at, now, Ending.SILENCE)
        remark_at(incident, fell_silent(incident.seen_by or [one.title for one in silent]), ended)
        gaps.add(incident, max(one.last_at or ended for one in silent), ended)
    else:  # a place that saw the failure saw its end too
        ended = end(incident, at, now, Ending.RECOVERED)
    gaps.keep_those_within(incident, ended)
    session.flush()
    rollups.reroll(monitor_id, ended)
    monitor = session.get_one(MonitorRow, monitor_id)
    enqueue(session, Event.INCIDENT_RESOLVED, monitor, incident, now)


def tell_again(session: AnySession, monitor_id: int, lanes: Collection[str], now: datetime) -> None:
    """Alert the lanes whose message about the opening was given up unsent, as after the restore of
    an old backup, because a check has just found that the incident still lasts.
    """
    incident = open_incident(session, monitor_id)
    if incident is None:
        return
    incident.reminded_at = now  # reminders count from here
    session.flush()
    monitor = session.get_one(MonitorRow, monitor_id)
    rows = enqueue_again(session, monitor, incident, lanes, now)
    log.warning(
        "Incident %d still lasts, and its opening was given up unsent: %s tells of it now.",
        incident.id,
        count_of(len(rows), "message"),
    )


# The servers behind one name may each have a certificate of their own, and answer in turn. If only
# the last certificate were stored, each would be alerted again and again. So the column holds the
# beginnings of the last four fingerprints.
_BEGINNING, _COLUMN = 16, 64


def knows(told: str, fingerprint: str) -> bool:
    """Whether this certificate was alerted. ``told`` is the column ``ssl_alerted``."""
    marks = (told[place : place + _BEGINNING] for place in range(0, _COLUMN, _BEGINNING))
    return _mark(fingerprint) in marks


def remember(told: str, fingerprint: str) -> str:
    """The column ``ssl_alerted`` with this certificate added."""
    return (_mark(fingerprint) + told)[:_COLUMN]


def _mark(fingerprint: str) -> str:
    return fingerprint[:_BEGINNING].ljust(_BEGINNING)


def certificate_due(outcome: Outcome, setting: int | str | None, now: datetime) -> bool:
    """Whether the certificate's expiry is to be alerted, unless it was already.

    Not in maintenance: the alert comes afterwards. Not if the check fails because of TLS: the
    incident reports that.
    """
    result = outcome.result
    if setting is None or outcome.ssl_expires_at is None or result.maintenance:
        return False
    if result.verdict is Verdict.DOWN and (result.cause_code or "").startswith("tls_"):
        return False
    return warns(setting, outcome.ssl_issued_at, outcome.ssl_expires_at, now)


def tell_certificate(session: AnySession, monitor_id: int, outcome: Outcome, now: datetime) -> bool:
    """Alert to a certificate that expires; returns whether that is done. While the monitor's alerts
    cannot be read it is not, so that it is tried again.
    """
    expires, monitor = outcome.ssl_expires_at, session.get_one(MonitorRow, monitor_id)
    if expires is None or isinstance(monitor.alerts, Unreadable):
        return False
    facts = {
        "expires_at": expires,
        "days_left": days_left(expires, now),
        "host": outcome.ssl_host,
    }
    enqueue(session, Event.CERTIFICATE_EXPIRING, monitor, None, now, facts)
    return True
