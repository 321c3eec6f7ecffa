"""People, API keys, settings and counters of this installation. They are always local, also in
remote mode.

``Access`` has an attribute for each part; each part has a module.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from app.access import people
from app.access.audit_log import AuditLog
from app.access.counters import Counters
from app.access.invitations import Invitations
from app.access.keys import ApiKeys
from app.access.passkeys import Passkeys
from app.access.pending_logins import PendingLogins
from app.access.people import People, Setup
from app.access.recovery import Recovery
from app.access.second_factor import SecondFactors
from app.access.sent_forms import SentForms
from app.access.sessions import LoginSessions
from app.access.settings import StoredSettings
from app.access.wall_links import WallLinks

__all__ = ["Access"]


class Access:
    """``clock`` returns the present moment in UTC; tests pass their own."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.clock = clock

        def now() -> datetime:
            return self.clock()

        self.counters = Counters(now)
        self.settings = StoredSettings(now)
        self.people = People(now, self.counters)
        self.factors = SecondFactors(now, self.people, self.settings)
        self.passkeys = Passkeys(now, self.people, self.factors)
        self.pending_logins = PendingLogins(now, self.counters, self.people, self.passkeys)
        self.sessions = LoginSessions(now)
        self.keys = ApiKeys(now)
        self.setup = Setup(self.people, self.settings)
        self.invitations = Invitations(now, self.people)
        self.recovery = Recovery(now, self.counters)
        self.wall_links = WallLinks(now)
        self.audit = AuditLog(now)
        self.sent_forms = SentForms(now)

    def forget_old(self) -> None:
        """Delete what is over. The engine's housekeeping calls it."""
        for part in (
            self.counters, self.sent_forms, self.sessions, self.invitations, self.recovery,
            self.pending_logins, self.passkeys, self.audit,
        ):  # fmt: skip
            part.forget_old()
        people.forget_old_devices(self.clock())
