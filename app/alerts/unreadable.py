"""The monitors that would alert nobody, because their stored alerts cannot be read.

This reads the alerts of all monitors. The home page asks for it each time, so the result is cached
for a minute; a monitor that is corrected meanwhile is left out at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from flask import current_app
from sqlalchemy import select

from app.alerts.targets import alerting_nobody
from app.db import AnySession
from app.db.tables import ContactRow, MonitorContactRow, MonitorRow
from app.db.types import Unreadable
from app.records import MonitorRef

LOOKED_EVERY = 60.0  # seconds
AT_ONCE = 500  # rows in memory at a time
_KEPT = "wakeful.unreadable_alerts"


def unreadable_alerts(session: AnySession) -> Sequence[MonitorRef]:
    """By name. Paused monitors are left out, because they send no alerts."""
    kept: tuple[float, list[int]] | None = current_app.extensions.get(_KEPT)
    if kept is None or time.monotonic() - kept[0] >= LOOKED_EVERY:
        kept = time.monotonic(), _broken(session)
        current_app.extensions[_KEPT] = kept
    if not kept[1]:
        return ()
    query = select(MonitorRow).where(MonitorRow.id.in_(kept[1]), ~MonitorRow.paused)
    rows = session.scalars(query.order_by(MonitorRow.name_folded, MonitorRow.id)).all()
    lost = alerting_nobody(session, rows)
    return [MonitorRef(row.id, row.name, row.url) for row in rows if row.id in lost]


def _broken(session: AnySession) -> list[int]:
    """The monitors of which some alerts cannot be read."""
    query = select(MonitorRow.id, MonitorRow.alerts).where(MonitorRow.alerts.is_not(None))
    rows = session.execute(query.execution_options(yield_per=AT_ONCE))
    own = [id for id, alerts in rows if isinstance(alerts, Unreadable)]
    contacts = session.execute(select(ContactRow.id, ContactRow.channels)).all()
    lost = [id for id, channels in contacts if isinstance(channels, Unreadable)]
    member = MonitorContactRow
    users = select(member.monitor_id).where(member.contact_id.in_(lost))
    return [*own, *(session.scalars(users) if lost else ())]
