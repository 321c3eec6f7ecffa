"""The change feed: ascending numbers of changes, each with the monitor that checkers must reload.

Code that changes a monitor calls ``note`` in the same transaction. The rows are written just before
it commits, under a lock on PostgreSQL, so that numbers become visible in order: otherwise a reader
of number 6 would miss a 5 that is committed later. After this lock, the transaction locks only
rows of monitors whose states it has locked before, so it cannot cause a deadlock. SQLite has only
one writer at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, event, func, insert, select
from sqlalchemy.orm import Session, scoped_session

from app.db import AnySession, db, liveness, wakeups, writing
from app.db.locks import Lock, take_lock
from app.db.tables import ChangeRow

# The statement names the table: one that named the class would go through the ORM.
_INSERT = insert(ChangeRow.__table__)  # type: ignore[arg-type]
_NEWEST = select(func.max(ChangeRow.__table__.c.id))
_NOTED = "wakeful.changes"
_AT_LAST = "wakeful.changes.before_commit"
MAX_FOLLOWED = 5000  # changes in one read
# The shortest time between two reads of the feed by a checker, also if it was woken.
LOOK_SECONDS = 0.5


def note(session: Session | scoped_session[Any], monitor_id: int) -> None:
    """Announce a change of this monitor to checkers, if this transaction commits."""
    session.info.setdefault(_NOTED, set()).add(monitor_id)
    wakeups.note(session, liveness.CHECKER)


def before_commit(session: Session | scoped_session[Any], call: Callable[[], object]) -> None:
    """Call ``call`` just before the transaction commits: from then on, owners of shards that have
    not read its changes cannot store good results. Only for a transaction that notes a change.
    """
    session.info.setdefault(_AT_LAST, []).append(call)


@event.listens_for(db.session, "before_commit")
def _write(session: Session) -> None:
    noted = session.info.pop(_NOTED, None)
    calls = session.info.pop(_AT_LAST, ())
    if not noted:
        return
    session.flush()
    take_lock(session, Lock.CHANGES)
    for call in calls:
        call()
    session.flush()
    at = datetime.now(UTC)
    rows = [{"monitor_id": monitor_id, "at": at} for monitor_id in sorted(noted)]
    session.execute(_INSERT, rows)


@event.listens_for(db.session, "after_rollback")
def _forget(session: Session) -> None:
    session.info.pop(_NOTED, None)
    session.info.pop(_AT_LAST, None)


def newest() -> int:
    """The number of the newest change."""
    number = newest_of(db.session)
    db.session.rollback()
    return number


def newest_of(session: AnySession) -> int:
    """The number of the newest change, read in the caller's transaction."""
    return session.scalar(_NEWEST) or 0


def following(session: AnySession, number: int) -> Sequence[tuple[int, int]] | None:
    """All changes after ``number``, read in the caller's transaction. None if there are too many,
    or if ``number`` is not stored, as after the restore of a backup.
    """
    changes = _from(session, number, MAX_FOLLOWED)
    if len(changes) == MAX_FOLLOWED or (number and (not changes or changes[0][0] != number)):
        return None
    return [change for change in changes if change[0] > number]


def since(number: int, limit: int) -> Sequence[tuple[int, int]]:
    """At most ``limit`` changes after ``number``, oldest first: (number, monitor id)."""
    changes = _from(db.session, number + 1, limit)
    db.session.rollback()
    return changes


def _from(session: AnySession, number: int, limit: int) -> Sequence[tuple[int, int]]:
    query = select(ChangeRow.id, ChangeRow.monitor_id).where(ChangeRow.id >= number)
    rows = session.execute(query.order_by(ChangeRow.id).limit(limit))
    return [(row.id, row.monitor_id) for row in rows]


def trim(before: datetime, after: datetime) -> None:
    """Delete the changes before ``before``, and those after ``after``, which a wrong clock wrote.
    The newest change stays, because the next number follows its number.
    """
    with writing() as session:
        last = session.scalar(select(func.max(ChangeRow.id))) or 0
        old = ~ChangeRow.at.between(before, after)
        session.execute(delete(ChangeRow).where(old, ChangeRow.id < last))


class Feed:
    """Follows the change feed for one reader. Call ``start`` before reading monitors, so that no
    later change is missed.
    """

    def __init__(self) -> None:
        self._number: int | None = None

    def start(self) -> None:
        if self._number is None:
            self._number = newest()

    def news(self) -> set[int]:
        """The monitors that have changed since the last call."""
        self.start()
        changes = since(self._number or 0, MAX_FOLLOWED)
        if changes:
            self._number = changes[-1][0]
        return {monitor_id for _number, monitor_id in changes}
