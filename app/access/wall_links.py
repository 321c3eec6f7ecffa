"""Links to the wall, for a screen without a person. The holder of a link sees nothing else.

Only a hash of the token is stored. Its 192 random bits cannot be guessed, so no throttle is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import select, update

from app.access.tokens import digest_of, make_token
from app.db import best_effort, db, writing
from app.db.tables import WallLinkRow
from app.db.types import record_of
from app.errors import Invalid, existing
from app.i18n import N_, _
from app.records import WallLink
from app.rules.clocks import is_due

TOUCH_AFTER = timedelta(minutes=10)  # a screen asks every few seconds, and must not write as often
MAX_LINKS = 50
TOO_MANY = N_("There are %(most)s links already. Revoke one that is not used.", most=MAX_LINKS)


class WallLinks:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def create(
        self, name: str, zone: str, *, tag: str | None = None, server: str | None = None,
        by: str | None = None,
    ) -> tuple[WallLink, str]:  # fmt: skip
        """A new link and its token, which cannot be read again. Raises Invalid."""
        token = make_token()
        with writing() as session:
            if len(self.all()) >= MAX_LINKS:
                raise Invalid({"name": [_(TOO_MANY)]})
            row = WallLinkRow(
                name=name,
                digest=digest_of(token),
                tag=tag or None,
                zone=zone,
                server=server,
                created_by=by,
                created_at=self.clock(),
            )
            session.add(row)
            session.flush()
            return record_of(WallLink, row), token

    def of_token(self, token: str) -> WallLink | None:
        """The link with this token; None if there is none, or it was revoked."""
        row = db.session.scalar(select(WallLinkRow).where(WallLinkRow.digest == digest_of(token)))
        if row is None:
            return None
        link, now = record_of(WallLink, row), self.clock()
        if is_due(link.last_used_at, now, TOUCH_AFTER):
            best_effort("The last use of a link to the wall", lambda: _touch(link.id, now))
        return link

    def all(self) -> list[WallLink]:
        """All links, the newest first."""
        rows = db.session.scalars(select(WallLinkRow).order_by(WallLinkRow.id.desc()))
        return [record_of(WallLink, row) for row in rows]

    def revoke(self, id: int) -> None:
        """End a link at once. Raises NotFound."""
        with writing() as session:
            row = existing(session.get(WallLinkRow, id), "link", id)
            session.delete(row)


def _touch(id: int, now: datetime) -> None:
    with writing() as session:
        session.execute(update(WallLinkRow).where(WallLinkRow.id == id).values(last_used_at=now))
