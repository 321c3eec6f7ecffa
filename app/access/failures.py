"""Failures to log in, in the audit log: a line each, within bounds. The failures beyond them
are counted, and a later line has the count. So none is lost, and nobody fills the disk by failing.

Lines are bounded in each window in which wrong passwords are counted. A failure has a source. For
an account that exists, the source is the account; otherwise it is the address of the client,
because the name of the account is only what somebody typed. In a window, each source has a limited
number of lines, and a count of the failures beyond them; all sources together have a limit as well.

The counts are rows, so all processes share them, and a restart keeps them. The first event in a
later window makes lines of them, or the engine's housekeeping does.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Row, case, delete, select

from app.access import actors, audit
from app.access.counters import (
    LOGIN_WINDOW_SECONDS,
    LOGINS_PER_ACCOUNT,
    add,
    counted_address,
    window_of,
)
from app.db import DbSession, db, writing
from app.db.statements import count_of, inserting
from app.db.tables import CountedFailuresRow
from app.records import Action, Actor, ActorKind, AuditedObject, ObjectKind

MAX_OF_SOURCE = LOGINS_PER_ACCOUNT  # lines of one source in a window
MAX_OF_ACCOUNTS = 200  # lines of all accounts that exist
MAX_OF_STRANGERS = 50  # lines of all accounts that do not exist
MAX_SOURCES = 20  # addresses that have a count each; ``ELSEWHERE`` counts all others
ELSEWHERE = "elsewhere"
LEFT_OUT = "left_out"


def record(event: str, account: AuditedObject, now: datetime) -> None:
    """Write a line, or count the failure. ``account``: without an id, it does not exist."""
    actor = actors.actor() or actors.WAKEFUL
    window = window_of(now, LOGIN_WINDOW_SECONDS)
    if account.id is None:
        source, group, max_lines = counted_address(actor.address), "strangers", MAX_OF_STRANGERS
    else:
        source, group, max_lines = f"person:{account.id}", "accounts", MAX_OF_ACCOUNTS
    with writing() as session:
        # A source over its limit must not use up the limit of all.
        if (
            add(session, f"audited:{event}:{source}", window) <= MAX_OF_SOURCE
            and add(session, f"audited:{event}:{group}", window) <= max_lines
        ):
            audit.note(session, Action.LOGIN_FAILED, account)
        else:
            if account.id is None:
                source = _counted_as(session, window, event, source)
            _count(session, CountedFailuresRow(
                window=window, event=event, source=source, number=1, first_at=now, last_at=now,
                actor_kind=actor.kind.value, address=actor.address,
                object_id=account.id, object_name=account.name,
            ))  # fmt: skip


def write_left_out(now: datetime) -> None:
    """Make one line of each count of past windows. A window in the future is past as well: the
    clock was set back.
    """
    over = CountedFailuresRow.window != window_of(now, LOGIN_WINDOW_SECONDS)
    if db.session.scalar(select(CountedFailuresRow.window).where(over).limit(1)) is None:
        return  # a refused guess costs no write
    with writing() as session:
        deletion = (
            delete(CountedFailuresRow).where(over).returning(*CountedFailuresRow.__table__.columns)
        )
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
        AuditedObject(ObjectKind.PERSON, row.object_id, row.object_name),
        {name: (None, value) for name, value in changes.items()},
        actor=Actor(kind, name, id, row.address),
    )


def _counted_as(session: DbSession, window: int, event: str, address: str) -> str:
    """``address``, or ``ELSEWHERE`` if enough other addresses have a count already."""
    row = CountedFailuresRow
    in_window = (row.window == window, row.event == event, row.object_id.is_(None))
    if session.scalar(select(row.source).where(*in_window, row.source == address)) is not None:
        return address
    return address if count_of(session, row, *in_window) < MAX_SOURCES else ELSEWHERE


def _count(session: DbSession, row: CountedFailuresRow) -> None:
    """Add one to the count of its source. Fields that differ among the failures are left empty."""
    table = CountedFailuresRow
    columns = table.__mapper__.columns
    values = {column.name: getattr(row, name) for name, column in columns.items()}
    statement = inserting(table).values(values)
    new = statement.excluded
    statement = statement.on_conflict_do_update(
        index_elements=[table.window, table.event, table.source],
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
