"""The parents through which a monitor is reached: rows of a table of their own, without a circle
(decision 20).
"""

from __future__ import annotations

from collections.abc import Sequence

from app.access import audit
from app.db import DbSession, dependencies
from app.db.locks import Lock, take_lock
from app.db.tables import MonitorRow
from app.errors import Invalid, no_such
from app.i18n import _
from app.stores.local.part import locked_monitors


def choose(session: DbSession, row: MonitorRow, parents: Sequence[int]) -> bool:
    """Let a monitor be reached through these, and no others; returns whether that is a change.
    Raises Invalid.
    """
    before = dependencies.parents(session, [row.id]).get(row.id, [])
    check(session, row.id, parents)
    if list(parents) == before:
        return False
    dependencies.choose(session, row.id, parents)
    # Rows of another table; the session logs the columns of the monitor.
    audit.changed(session, audit.thing(row), {"depends_on": (before or None, [*parents] or None)})
    return True


def check(session: DbSession, monitor_id: int | None, parents: Sequence[int]) -> None:
    """Raise Invalid if one of these is not stored, or is reached through the monitor itself. Until
    the transaction ends, nobody else adds a dependency, and none of these is deleted.
    """
    if not parents:
        return
    take_lock(session, Lock.DEPENDENCIES)
    stored = locked_monitors(session, parents)
    above = {} if monitor_id is None else dependencies.above(session, list(stored))
    for position, id in enumerate(parents):
        fault = None
        if id == monitor_id:
            fault = _("A monitor cannot be reached through itself.")
        elif id not in stored:
            fault = no_such("monitor", id)
        elif monitor_id in above.get(id, ()):
            fault = _("Monitor %(id)s is itself reached through this one.", id=id)
        if fault:
            raise Invalid({f"depends_on.{position}": [fault]})
