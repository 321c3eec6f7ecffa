"""Which forms were sent, so that one that is sent twice at once is carried out once, in whichever
processes the two arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, or_, select, update

from app.db import best_effort, db, writing
from app.db.tables import SentFormRow
from app.db.upserts import inserting

# A form that is still being carried out after this is of a process that was killed.
LONGEST = timedelta(minutes=2)
# The second click of two reaches the server before the browser has the answer to the first, and
# may wait there for a free thread. Later, the same form is sent on purpose, as after Back.
SAME_FOR = timedelta(seconds=10)
# The clock was ahead where the form is of later than that: two machines may differ by less, and of
# two forms at once, the one that waited for the other's write read its clock before.
AHEAD = timedelta(seconds=10)
WHAT = "A form that was sent"


@dataclass(frozen=True, slots=True)
class SentForm:
    """``location``: where the answer led; None while the form is being carried out."""

    location: str | None


class SentForms:
    clock: Callable[[], datetime]

    def begin_form(self, digest: str) -> bool:
        """Whether to carry out the form with this digest: it is not the same one sent again. A
        database that cannot be written refuses no form; what the form asks for says so itself.
        """
        return best_effort(WHAT, lambda: self._begin(digest)) is not False

    def _begin(self, digest: str) -> bool:
        now = self.clock()
        values = {"digest": digest, "sent_at": now, "ended_at": None, "location": None}
        statement = inserting(SentFormRow).values(values)
        over = or_(
            SentFormRow.ended_at <= now - SAME_FOR,
            SentFormRow.ended_at.is_(None) & (SentFormRow.sent_at < now - LONGEST),
            _is_ahead(now),
        )
        statement = statement.on_conflict_do_update(
            index_elements=[SentFormRow.digest], set_=values, where=over
        ).returning(SentFormRow.digest)
        with writing() as session:
            return session.execute(statement).scalar_one_or_none() is not None

    def end_form(self, digest: str, location: str | None) -> None:
        """``location``: where the answer leads; None if the form was not carried out, so that it
        may be sent again.
        """
        best_effort(WHAT, lambda: self._end(digest, location))

    def _end(self, digest: str, location: str | None) -> None:
        here = SentFormRow.digest == digest
        with writing() as session:
            if location is None:
                session.execute(delete(SentFormRow).where(here))
            else:
                values = {"ended_at": self.clock(), "location": location}
                session.execute(update(SentFormRow).where(here).values(values))

    def sent_form(self, digest: str) -> SentForm | None:
        """None if it was not carried out."""
        db.session.rollback()  # what another process wrote after this transaction began counts
        row = db.session.execute(
            select(SentFormRow.location).where(SentFormRow.digest == digest)
        ).one_or_none()
        return SentForm(row.location) if row else None

    def forget_sent_forms(self) -> None:
        """Delete those that are over. The engine's housekeeping calls it."""
        now = self.clock()
        over = or_(SentFormRow.sent_at < now - LONGEST - SAME_FOR, _is_ahead(now))
        with writing() as session:
            session.execute(delete(SentFormRow).where(over))


def _is_ahead(now: datetime) -> ColumnElement[bool]:
    return SentFormRow.sent_at > now + AHEAD
