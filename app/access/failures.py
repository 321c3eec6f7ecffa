"""Failures to log in, in the audit log: a line each, within bounds. The failures beyond them
are counted, and a later line has the count. So none is lost, and nobody fills the disk by failing.

A window is the one in which wrong passwords are counted. In it, an account that exists has as many
lines as strangers may have wrong passwords, and beyond that a count of its own. For accounts that
do not exist, the log has a limited number of lines for each address and in all, and a count for
each address: their names are what somebody typed.

The counts are rows, so they are right with several processes, and outlive each. The first event in
a later window makes lines of them, or the engine's housekeeping.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Row, case, delete, select

from app.access import actors, audit
from app.access.counters import LOGIN_WINDOW_SECONDS, LOGINS_PER_ACCOUNT, add, origin_of, window_of
from app.db import DbSession, db, writing
from app.db.statements import count_of, inserting
from app.db.tables import LeftOutRow
from app.records import Action, Actor, ActorKind, ObjectKind, Thing

MAX_OF_ONE = LOGINS_PER_ACCOUNT  # lines of one account or address in a window
MAX_OF_ACCOUNTS = 200  # of all that exist
MAX_OF_STRANGERS = 50  # of all that do not
MAX_ORIGINS = 20  # that are counted by themselves
ELSEWHERE = "elsewhere"
LEFT_OUT = "left_out"


def record(event: str, account: Thing, now: datetime) -> None:
    """Write a line, or count the failure. ``account``: without an id, it does not exist."""
    actor = actors.actor() or actors.WAKEFUL
    window = window_of(now, LOGIN_WINDOW_SECONDS)
    if account.id is None:
        source, group, most = origin_of(actor.address), "strangers", MAX_OF_STRANGERS
    else:
        source, group, most = f"person:{account.id}", "accounts", MAX_OF_ACCOUNTS
    with writing() as session:
        # An account or address over its bound leaves the lines of the others alone.
        if (
            add(session, f"audited:{event}:{source}", window) <= MAX_OF_ONE
            and add(session, f"audited:{event}:{group}", window) <= most
        ):
            audit.note(session, Action.LOGIN_FAILED, account)
        else:
            if account.id is None:
                source = _counted_as(session, window, event, source)
            _count(session, LeftOutRow(
                window=window, event=event, who=source, number=1, first_at=now, last_at=now,
                actor_kind=actor.kind.value, address=actor.address,
                object_id=account.id, object_name=account.name,
            ))  # fmt: skip


def write_left_out(now: datetime) -> None:
    """Make lines of what was counted in windows that are over, each once. A window in the future
    is of a clock that was set back.
    """
    over = LeftOutRow.window != window_of(now, LOGIN_WINDOW_SECONDS)
    if db.session.scalar(select(LeftOutRow.window).where(over).limit(1)) is None:
        return  # a refused guess costs no write
    with writing() as session:
        deletion = delete(LeftOutRow).where(over).returning(*LeftOutRow.__table__.columns)
        for row in session.execute(deletion).all():
            _note(session, row)


def _note(session: DbSession, row: Row[Any]) -> None:
    changes = {LEFT_OUT: row.number, "first": row.first_at, "last": row.last_at}
    kind, name, id = ActorKind(row.actor_kind), "", None
    if kind == ActorKind.PERSON:
        name, id = row.object_name or "", row.object_id
    audit.note(
        session,
        Action.LOGIN_FAILED,
        Thing(ObjectKind.PERSON, row.object_id, row.object_name),
        {name: (None, value) for name, value in changes.items()},
        actor=Actor(kind, name, id, row.address),
    )


def _counted_as(session: DbSession, window: int, event: str, origin: str) -> str:
    """``origin``, or ``ELSEWHERE`` if many others have a count of their own already."""
    row = LeftOutRow
    in_window = (row.window == window, row.event == event, row.object_id.is_(None))
    if session.scalar(select(row.who).where(*in_window, row.who == origin)) is not None:
        return origin
    return origin if count_of(session, row, *in_window) < MAX_ORIGINS else ELSEWHERE


def _count(session: DbSession, row: LeftOutRow) -> None:
    """Add one to the count of its source. Fields that differ among the failures are left empty."""
    table = LeftOutRow
    values = {column.name: getattr(row, column.name) for column in table.__table__.columns}
    statement = inserting(table).values(values)
    new = statement.excluded
    statement = statement.on_conflict_do_update(
        index_elements=[table.window, table.event, table.who],
        set_={
            "number": table.number + 1,
            "last_at": new.last_at,
            "address": case((table.address == new.address, table.address), else_=None),
            "object_name": case(
                (table.object_name == new.object_name, table.object_name), else_=None
            ),
        },
    )
    session.execute(statement)
