"""At which host names people use the dashboard. Otherwise, if no setting names its hosts, a status
page could be given one of them and would take the dashboard's place there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import func, select

from app.db import DbSession, db
from app.db.statements import delete_rows, inserting, keep_newest
from app.db.tables import DashboardHostRow

KEPT = timedelta(days=90)  # after the last use; a session ends after 30
# Whoever is logged in can send any Host header. A bound for all together would let one of them
# fill it, and no other host would be remembered.
MAX_OF_ONE = 20


def remember(session: DbSession, person_id: int, host: str | None, now: datetime) -> None:
    """This person is logged in at ``host``. To be called while writing."""
    row = DashboardHostRow
    if host is None:
        return
    insertion = inserting(row).values(host=host, person_id=person_id, used_at=now)
    key = [row.host, row.person_id]
    session.execute(insertion.on_conflict_do_update(index_elements=key, set_={"used_at": now}))
    keep_newest(session, row.host, row.person_id == person_id, row.used_at, MAX_OF_ONE)


def is_used(host: str, now: datetime) -> bool:
    """Whether somebody was logged in at ``host`` lately."""
    last_use = func.max(DashboardHostRow.used_at)
    used = db.session.scalar(select(last_use).where(DashboardHostRow.host == host))
    return used is not None and now - used < KEPT


def forget_old(now: datetime) -> None:
    """Delete those that nobody uses any more. The engine's housekeeping calls it."""
    delete_rows(DashboardHostRow, DashboardHostRow.used_at <= now - KEPT)
