"""Sessions: who is logged in, in which browsers. Each has a record, which a cookie only names.

A cookie cannot be revoked, and each answer renews its date. So only the record decides whether a
session is valid, for every copy of its cookie: until 12 hours without use, until 30 days in all,
and until a logout or a change of the person ends it (decisions.md 15).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import delete, or_, select, update

from app.access.people import person_record
from app.config import SESSION_SECONDS
from app.db import best_effort, db, writing
from app.db.clocks import SKEW
from app.db.tables import PersonRow, SessionRow
from app.records import Person

IDLE = timedelta(hours=12)
IN_ALL = timedelta(seconds=SESSION_SECONDS)
USED_AFTER = timedelta(minutes=3)  # a busy browser must not cost a write for each request
TOKEN_BYTES = 24


class Sessions:
    clock: Callable[[], datetime]

    def begin_session(self, person_id: int) -> str:
        """Start a session of this person. Returns its token, which only the browser gets."""
        token, now = secrets.token_urlsafe(TOKEN_BYTES), self.clock()
        row = SessionRow(
            digest=_digest(token), person_id=person_id, created_at=now, last_used_at=now
        )
        with writing() as session:
            session.add(row)
        return token

    def session_person(self, token: str) -> Person | None:
        """The person of this session; None if it does not exist or is over."""
        found = db.session.execute(
            select(SessionRow, PersonRow)
            .join(PersonRow, PersonRow.id == SessionRow.person_id)
            .where(SessionRow.digest == _digest(token), PersonRow.disabled.is_(False))
        ).one_or_none()
        now = self.clock()
        if found is None or _is_over(found.SessionRow, now):
            return None
        person = person_record(found.PersonRow)
        id, used_at = found.SessionRow.id, found.SessionRow.last_used_at
        # abs(): after the clock was set back, the time must not stay in the future.
        if abs(now - used_at) >= USED_AFTER:
            best_effort("The last use of a session", lambda: self._touch_session(id, now))
        return person

    def _touch_session(self, id: int, now: datetime) -> None:
        with writing() as session:
            session.execute(update(SessionRow).where(SessionRow.id == id).values(last_used_at=now))

    def end_session(self, token: str) -> None:
        """Ending twice changes nothing."""
        with writing() as session:
            session.execute(delete(SessionRow).where(SessionRow.digest == _digest(token)))

    def forget_old_sessions(self) -> None:
        """Delete sessions that are over. The engine's housekeeping calls it."""
        now = self.clock()
        over = or_(
            SessionRow.last_used_at <= now - IDLE,
            SessionRow.created_at <= now - IN_ALL,
            SessionRow.created_at > now + SKEW,
        )
        with writing() as session:
            session.execute(delete(SessionRow).where(over))


def _is_over(row: SessionRow, now: datetime) -> bool:
    """One that began in the future would last until then and for its 30 days as well."""
    idle, age = now - row.last_used_at, now - row.created_at
    return idle >= IDLE or age >= IN_ALL or age < -SKEW


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
