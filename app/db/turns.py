"""Transactions that take turns, by PostgreSQL's advisory locks. On SQLite, which has one writer at
a time, they do already.
"""

from __future__ import annotations

from enum import IntEnum

from sqlalchemy import func, select

from app.db import AnySession


class Turn(IntEnum):
    """What only one transaction at a time does. The numbers are those of the locks."""

    # Beside them, migrations/env.py has 0x77616B65.
    OUTBOX = 0x57414B45  # decide what is sent next
    CHANGES = 0x77616B66  # write the change feed
    POST_TEMPLATES = 0x7074706C  # name a post template
    CONTACTS = 0x636F6E74  # say which monitors use which contacts


def take_turn(session: AnySession, what: Turn) -> None:
    """Wait until no other transaction does this, and keep others from it until this one ends."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(int(what))))


def share_turn(session: AnySession, what: Turn) -> None:
    """Keep all others from taking this turn until this transaction ends, beside others who share
    it. Do not take it then: two who share it would wait for each other.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock_shared(int(what))))
