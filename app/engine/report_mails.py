"""Monthly reports by email: each covers the last month and is sent once. Needs an application
context.

``send`` is safe to call in several processes in parallel, after restarts and after steps of the
clock: a row for the month is inserted in the transaction that writes the messages, and its key is
unique.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import exists, or_, select

from app.alerts import outbox
from app.db import AnySession, db, faults, rollups, writing
from app.db.statements import insert_new
from app.db.tables import ContactRow, IncidentRow, MonitorRow, ReportMailRow, ReportMailSentRow
from app.db.types import to_ms
from app.records import MAX_REPORT_MONITORS, IncidentSeverity
from app.rules.clocks import believable
from app.rules.figures import month_name, report_subject, report_title
from app.rules.time import iso
from app.stats.report import ALL

log = logging.getLogger(__name__)

# The last checks of a month arrive after its end.
SETTLED = timedelta(minutes=15)
# The most monitors (the worst first) and incidents in the message. The linked page has all.
NAMED, INCIDENTS_NAMED = 50, 20


def send(now: datetime) -> int:
    """Write the messages of the reports that are due. Returns the number of reports."""
    start, end = last_month(now)
    if now - end < SETTLED:
        return 0
    return sum(_isolated(id, start, end, now) for id in _due(f"{start:%Y-%m}"))


def last_month(now: datetime) -> tuple[datetime, datetime]:
    """The first moment of the last month and the first of the present month, in UTC."""
    end = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    year, month = (end.year - 1, 12) if end.month == 1 else (end.year, end.month - 1)
    return end.replace(year=year, month=month), end


def _due(month: str) -> list[int]:
    is_sent = exists().where(
        ReportMailSentRow.report_mail_id == ReportMailRow.id, ReportMailSentRow.month == month
    )
    return list(db.session.scalars(select(ReportMailRow.id).where(~is_sent)))


def _isolated(id: int, start: datetime, end: datetime, now: datetime) -> bool:
    is_sent = False
    with (
        faults.isolated(log, f"The monthly report {id} was not sent. It will be tried again."),
        writing() as session,
    ):
        is_sent = _send(session, id, start, end, now)
    return is_sent


def _send(session: AnySession, id: int, start: datetime, end: datetime, now: datetime) -> bool:
    row = session.scalar(select(ReportMailRow).where(ReportMailRow.id == id).with_for_update())
    # A report covers no month that ended before it was ordered. The time of an order that is in the
    # future does not count, because a wrong clock wrote it.
    if row is None or end <= row.created_at <= believable(now):
        return False
    month = f"{start:%Y-%m}"
    key = ReportMailSentRow.report_mail_id == id, ReportMailSentRow.month == month
    if session.scalar(select(ReportMailSentRow).where(*key)) is not None:
        return False  # another process was faster
    facts = _facts(session, row, start, end, now)
    if facts is None:
        return False
    insert_new(ReportMailSentRow, [{"report_mail_id": id, "month": month, "at": now}])
    contact = session.get(ContactRow, row.contact_id)
    if contact is None or not outbox.enqueue_report(session, contact, facts, now):
        log.error("The monthly report %s has no email address to go to.", id)
    return True


def _facts(
    session: AnySession, row: ReportMailRow, start: datetime, end: datetime, now: datetime
) -> dict[str, Any] | None:
    """The facts of the message. None if nothing was checked in the month, for example because the
    clock was set forward.
    """
    monitors = _monitors(session, row.tag)
    figures = rollups.report_figures(list(monitors), to_ms(start), to_ms(end), now)
    total = figures.pop(ALL)
    if not total["checks"]:
        return None
    subject = report_subject(list(monitors.values()), row.tag, chosen=False)
    worst = sorted(figures, key=lambda id: -figures[id]["downtime"])
    return {
        "title": report_title(subject, month_name(start)),
        "month": f"{start:%Y-%m}",
        "tag": row.tag,
        "all": _figures_of(total),
        "count": len(figures),
        "incidents": _incidents(session, monitors, start, end),
        "monitors": [{"name": monitors[id], **_figures_of(figures[id])} for id in worst[:NAMED]],
    }


def _incidents(
    session: AnySession, monitors: Mapping[int, str], start: datetime, end: datetime
) -> list[dict[str, Any]]:
    """The first down incidents of the month that are not classified, in order of start."""
    rows = session.scalars(
        select(IncidentRow)
        .where(
            IncidentRow.monitor_id.in_(monitors),
            IncidentRow.severity == IncidentSeverity.DOWN,
            end > rollups.DOWN_SINCE,
            or_(IncidentRow.ended_at.is_(None), IncidentRow.ended_at > start),
            IncidentRow.classification.is_(None),
        )
        .order_by(rollups.DOWN_SINCE, IncidentRow.id)
        .limit(INCIDENTS_NAMED)
    )
    return [
        {
            "name": monitors[row.monitor_id],
            "started_at": iso(row.down_since or row.started_at),
            "ended_at": row.ended_at and iso(row.ended_at),
            "cause": row.cause,
        }
        for row in rows
    ]


def _monitors(session: AnySession, tag: str | None) -> dict[int, str]:
    """The names of the report's monitors by id, in the order of the names."""
    query = select(MonitorRow.id, MonitorRow.name).order_by(MonitorRow.name_natural, MonitorRow.id)
    if tag is not None:
        query = query.where(MonitorRow.tags.contains(f"\n{tag}\n", autoescape=True))
    return {row.id: row.name for row in session.execute(query.limit(MAX_REPORT_MONITORS))}


def _figures_of(figures: Mapping[str, Any]) -> dict[str, Any]:
    names = "uptime", "watched", "downtime", "incidents", "mttr", "avg", "p95"
    return {name: figures[name] for name in names}
