"""People, API keys, settings and counters of this installation. They are always local, also in
remote mode.

The rules for an email address, a password and a role are here, because the dashboard, the set-up
page and the command line all create accounts. ``Access`` combines the parts; each has a file.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from app.access.audit_log import AuditLog
from app.access.half_logins import HalfLogins
from app.access.invitations import Invitations
from app.access.keys import Keys
from app.access.recovery import Recovery
from app.access.sent_forms import SentForms
from app.access.sessions import Sessions
from app.access.setup import Setup
from app.access.shares import Shares
from app.access.wall_links import WallLinks
from app.config import Settings

__all__ = ["Access"]


class Access(
    Keys, Sessions, HalfLogins, Setup, Invitations, Recovery, WallLinks, AuditLog, SentForms
):
    """All parts. ``clock`` returns the present moment in UTC; tests pass their own."""

    def __init__(
        self, settings: Settings, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.shares = Shares(self)
