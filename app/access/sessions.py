"""Sessions of browsers that were ended by logging out. A cookie cannot be called back: without this
a copy of it would be good for as long as it may live.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import delete

from app.config import SESSION_SECONDS
from app.db import db, writing
from app.db.tables import EndedSessionRow


class Sessions:
    clock: Callable[[], datetime]

    def end_session(self, token: str) -> None:
        """``token``: the random part of the session's cookie. Ending twice changes nothing."""
        with writing() as session:
            session.merge(EndedSessionRow(digest=_digest(token), ended_at=self.clock()))

    def session_ended(self, token: str) -> bool:
        return db.session.get(EndedSessionRow, _digest(token)) is not None

    def forget_ended_sessions(self) -> None:
        """Delete those whose cookies are too old by now. The engine's housekeeping calls it."""
        horizon = self.clock() - timedelta(seconds=SESSION_SECONDS)
        with writing() as session:
            session.execute(delete(EndedSessionRow).where(EndedSessionRow.ended_at < horizon))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
