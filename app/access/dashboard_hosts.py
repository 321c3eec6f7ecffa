"""The host names at which people use the dashboard. They are recorded because no setting has to
name them, and a status page with one of them as its domain would hide the dashboard there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import func, select

from app.db import DbSession, db
from app.db.statements import delete_all_but_newest, delete_rows, inserting
from app.db.tables import DashboardHostRow

RETENTION = timedelta(days=90)  # after the last use; a session ends after 30
# A person who is logged in can send any Host header. If all people shared one bound, one person
# could use it up, and the hosts of others would not be remembered.
MAX_PER_PERSON = 20


def remember(session: DbSession, person_id: int, host: str | None, now: datetime) -> None:
    """Record that this person is logged in at ``host``. Call this inside ``writing()``."""
    row = DashboardHostRow
    if host is None:
        return
    insertion = inserting(row).values(host=host, person_id=person_id, used_at=now)
    key = [row.host, row.person_id]
    session.execute(insertion.on_conflict_do_update(index_elements=key, set_={"used_at": now}))
    delete_all_but_newest(
        session, row.host, row.person_id == person_id, row.used_at, MAX_PER_PERSON
    )


def is_used(host: str, now: datetime) -> bool:
    """Whether somebody was logged in at ``host`` lately."""
    last_use = func.max(DashboardHostRow.used_at)
    last_used_at = db.session.scalar(select(last_use).where(DashboardHostRow.host == host))
    return last_used_at is not None and now - last_used_at < RETENTION


def forget_old(now: datetime) -> None:
    """Delete the hosts that nobody uses any more. The engine's housekeeping calls it."""
    delete_rows(DashboardHostRow, DashboardHostRow.used_at <= now - RETENTION)
