"""Domain expiry: find the domain of each URL, ask when it expires, and alert (decision 3).

A registry is asked at most once a day for each domain, however many monitors share it and however
many checkers run. All functions need an application context.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import or_, select, update

from app.alerts.outbox import Alert, enqueue
from app.checks.expiry.domain import DomainExpiry, domain_of
from app.db import AnySession, db, writing
from app.db.latest import lock_states
from app.db.statements import insert_new
from app.db.tables import DomainRow, MonitorRow, MonitorStateRow
from app.db.types import Unreadable
from app.db.windows import MaintenanceTimes
from app.engine.recorder.alerting import with_mark
from app.records import ALERT_DAYS, Event
from app.rules.clocks import believable
from app.rules.time import days_left

ASK_EVERY = timedelta(days=1)
# RDAP gives a time, WHOIS often only a date in the registry's zone. Both are the same expiry; a
# renewal moves it by much more.
SAME_DATE = timedelta(days=1)
DOMAINS_PER_STATEMENT = 500
_MAX_LEAD = timedelta(days=max(ALERT_DAYS) + 1)  # no alert comes so long before the expiry

NO_DOMAIN = ""  # in MonitorStateRow.domain: this URL has no domain that could expire


def name_domains(*, private: bool) -> int:
    """Find the domain of each monitor that is new or has a new URL; returns how many."""
    missing = select(MonitorStateRow.monitor_id).where(MonitorStateRow.domain.is_(None)).limit(1)
    if db.session.scalar(missing) is None:
        return 0
    with writing() as session:
        # A monitor that somebody is changing at this moment is left for the next round.
        ids = session.scalars(
            select(MonitorStateRow.monitor_id)
            .where(MonitorStateRow.domain.is_(None))
            .limit(DOMAINS_PER_STATEMENT)
            .with_for_update(skip_locked=True)
        ).all()
        rows = session.execute(
            select(MonitorStateRow, MonitorRow.url)
            .join(MonitorRow, MonitorRow.id == MonitorStateRow.monitor_id)
            .where(MonitorStateRow.monitor_id.in_(ids))
        ).all()
        for state, url in rows:
            state.domain = domain_of(url, private=private) or NO_DOMAIN
    return len(rows)


def claim_domain(now: datetime) -> str | None:
    """Choose a domain whose registry has not been asked for a day, and mark it as asked."""
    asked_at = DomainRow.asked_at
    # A time in the future was written by a clock that was ahead, so the domain is due.
    due = or_(asked_at.is_(None), asked_at <= now - ASK_EVERY, asked_at > believable(now))
    with writing() as session:
        domain: str | None = session.scalar(
            select(MonitorStateRow.domain)
            .join(MonitorRow, MonitorRow.id == MonitorStateRow.monitor_id)
            .outerjoin(DomainRow, DomainRow.domain == MonitorStateRow.domain)
            .where(
                MonitorStateRow.domain.is_not(None),
                MonitorStateRow.domain != NO_DOMAIN,
                MonitorRow.paused.is_(False),
                due,
            )
            .limit(1)
        )
        if domain is None:
            return None
        # Two checkers may have found the same domain: the one that marks it asks.
        insert_new(DomainRow, [{"domain": domain}])
        marked = session.execute(
            update(DomainRow)
            .where(DomainRow.domain == domain, due)
            .values(asked_at=now)
            .returning(DomainRow.domain)
        ).all()
    return domain if marked else None


def ask(domain: str, look_up: Callable[[str], DomainExpiry]) -> None:
    """Ask the registry and store its answer. A failed answer does not delete an earlier date."""
    answer = look_up(domain)
    with writing() as session:
        row = session.get(DomainRow, domain)
        if row is None:
            return
        row.note = answer.note
        if answer.expires_at is not None:
            row.expires_at = answer.expires_at
            row.source = answer.source


def alert_expiring(now: datetime) -> int:
    """Alert to domains that expire soon, once for each monitor and date; returns how many."""
    ids = [alert.monitor.id for alert, _dates in _due(db.session, now)]
    if not ids:
        return 0
    with writing() as session:
        lock_states(session, ids)
        due = [pair for pair in _due(session, now) if pair[0].monitor.id in ids]
        enqueue(session, [alert for alert, _dates in due], now)
        for alert, dates in due:
            session.execute(
                update(MonitorStateRow)
                .where(MonitorStateRow.monitor_id == alert.monitor.id)
                .values(alerted_domain_dates=dates)
            )
    return len(due)


def _due(session: AnySession, now: datetime) -> list[tuple[Alert, str]]:
    """The alerts about the expiry of a domain that are due now, each with the new value of
    ``alerted_domain_dates``: all dates that people were alerted to.
    """
    state = MonitorStateRow
    rows = session.execute(
        select(MonitorRow, state.domain, state.alerted_domain_dates, DomainRow.expires_at)
        .join(state, state.monitor_id == MonitorRow.id)
        .join(DomainRow, DomainRow.domain == state.domain)
        .where(
            MonitorRow.domain_alert_days.is_not(None),
            MonitorRow.paused.is_(False),
            DomainRow.expires_at <= now + _MAX_LEAD,
        )
        .order_by(MonitorRow.id)
        .execution_options(populate_existing=True)
    ).all()
    windows, due = MaintenanceTimes(session, now), []
    for monitor, domain, alerted, expires in rows:
        if domain is None or expires is None:
            continue
        days = days_left(expires, now)
        if days > (monitor.domain_alert_days or 0):
            continue
        if _is_alerted(alerted, expires):
            continue
        if windows.covers(monitor, now) or isinstance(monitor.alerts, Unreadable):
            continue  # the alert is sent when neither applies any more
        facts = {"expires_at": expires, "days_left": days, "domain": domain}
        alert = Alert(Event.DOMAIN_EXPIRING, monitor, extra=facts)
        due.append((alert, with_mark(alerted, f"{expires:%Y-%m-%d}")))
    return due


def _is_alerted(alerted: str | None, expires: datetime) -> bool:
    """Whether people were alerted to this date, or to the day before or after it, which is the same
    expiry.
    """
    dates = (expires - SAME_DATE, expires, expires + SAME_DATE)
    return any(f"{date:%Y-%m-%d}" in (alerted or "").split() for date in dates)
