"""Forms that were sent. A form that arrives twice is carried out once, also by two processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import or_, select, update

from app.db import best_effort, db, writing
from app.db.statements import delete_rows, inserting
from app.db.tables import SentFormRow
from app.rules.clocks import believable

# If a form is not carried out after this time, its process was killed.
ABANDONED_AFTER = timedelta(minutes=2)
# A second click reaches the server before the browser has the answer to the first click, and may
# wait there for a free thread. After this time, the same form is sent on purpose, for example after
# Back.
DOUBLE_CLICK_WINDOW = timedelta(seconds=10)
# A form that creates something has a token of its page. The same token comes from the same page,
# reloaded or sent again, as long as the form of an open page is accepted.
CREATION_WINDOW = timedelta(hours=12)
SUBJECT = "A form that was sent"  # of log lines when it cannot be stored


@dataclass(frozen=True, slots=True)
class SentForm:
    """``location``: the page to which the answer redirected; None while the form is being carried
    out.
    """

    location: str | None


@dataclass(frozen=True, slots=True)
class BegunForm:
    """A form that the caller carries out. ``sent_at`` distinguishes it from the same form in a
    process that takes it over after ``ABANDONED_AFTER``; None if the database cannot be written.
    """

    digest: str
    sent_at: datetime | None


class SentForms:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def begin(self, digest: str, *, creates: bool = False) -> BegunForm | None:
        """Begin the form with this digest. Returns None if the same form was sent before.
        ``creates``: the form creates something. If the database cannot be written, the form is not
        refused here: its action fails with its own message.
        """
        now, window = self.clock(), CREATION_WINDOW if creates else DOUBLE_CLICK_WINDOW
        is_new = best_effort(SUBJECT, lambda: self._begin(digest, now, window))
        if is_new is None:
            return BegunForm(digest, None)
        return BegunForm(digest, now) if is_new else None

    def _begin(self, digest: str, now: datetime, window: timedelta) -> bool:
        values = {"digest": digest, "sent_at": now, "ended_at": None, "location": None}
        statement = inserting(SentFormRow).values(values)
        outdated = or_(
            SentFormRow.ended_at <= now - window,
            SentFormRow.ended_at.is_(None) & (SentFormRow.sent_at < now - ABANDONED_AFTER),
            SentFormRow.sent_at > believable(now),
        )
        statement = statement.on_conflict_do_update(
            index_elements=[SentFormRow.digest], set_=values, where=outdated
        ).returning(SentFormRow.digest)
        with writing() as session:
            return session.execute(statement).scalar_one_or_none() is not None

    def end(self, form: BegunForm, location: str | None) -> None:
        """Store the end of a form. ``location``: the page to which the answer redirects; None if
        the form was not carried out, so that it may be sent again.
        """
        if form.sent_at is not None:
            best_effort(SUBJECT, lambda: self._end(form, location))

    def _end(self, form: BegunForm, location: str | None) -> None:
        own_row = (SentFormRow.digest == form.digest, SentFormRow.sent_at == form.sent_at)
        if location is None:
            return delete_rows(SentFormRow, *own_row)
        values = {"ended_at": self.clock(), "location": location}
        with writing() as session:
            session.execute(update(SentFormRow).where(*own_row).values(values))

    def get(self, digest: str) -> SentForm | None:
        """The form with this digest; None if it was not begun, or not carried out."""
        db.session.rollback()  # a new transaction sees what another process has written meanwhile
        row = db.session.execute(
            select(SentFormRow.location).where(SentFormRow.digest == digest)
        ).one_or_none()
        return SentForm(row.location) if row else None

    def forget_old(self) -> None:
        """Delete forms that can no longer be repeated. The engine's housekeeping calls it."""
        now = self.clock()
        usable = SentFormRow.sent_at.between(
            now - ABANDONED_AFTER - CREATION_WINDOW, believable(now)
        )
        delete_rows(SentFormRow, ~usable)
