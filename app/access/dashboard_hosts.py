"""At which host names people use the dashboard. Where no setting names its hosts, a status page
could otherwise be given one of them, and would take the dashboard's place there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update

from app.db import DbSession, db, writing
from app.db.tables import DashboardHostRow
from app.db.upserts import inserting

KEPT = timedelta(days=90)  # after the last use; a session ends after 30
MOST = 1000  # whoever is logged in can send any Host header


def remember(session: DbSession, host: str | None, now: datetime) -> None:
    """Somebody is logged in at ``host``. To be called while writing."""
    row = DashboardHostRow
    if host is None:
        return
    known = update(row).where(row.host == host).values(used_at=now).returning(row.host)
    if session.scalar(known) is None and _count(session) < MOST:
        session.execute(inserting(row).values(host=host, used_at=now).on_conflict_do_nothing())


def is_used(host: str, now: datetime) -> bool:
    """Whether somebody was logged in at ``host`` lately."""
    used = db.session.scalar(select(DashboardHostRow.used_at).where(DashboardHostRow.host == host))
    return used is not None and now - used < KEPT


def forget_old(now: datetime) -> None:
    """Delete those that nobody uses any more. The engine's housekeeping calls it."""
    with writing() as session:
        session.execute(delete(DashboardHostRow).where(DashboardHostRow.used_at <= now - KEPT))


def _count(session: DbSession) -> int:
    return session.scalar(select(func.count()).select_from(DashboardHostRow)) or 0
