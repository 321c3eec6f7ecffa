"""Which networks checks and alerts may reach besides public addresses.

WAKEFUL_ALLOW_NETWORKS overrides the setting that an admin makes on the Settings page.
"""

from __future__ import annotations

import logging

from app.config import Settings
from app.db import db
from app.db.settings import stored_setting
from app.db.types import readable
from app.net.policy import Policy

ALLOW_NETWORKS = "allow_networks"

log = logging.getLogger(__name__)


def are_locked(settings: Settings) -> bool:
    return settings.allow_networks is not None


def allowed_networks(settings: Settings) -> str:
    """The networks as written; empty for public addresses only. Needs an application context."""
    if settings.allow_networks is not None:
        return settings.allow_networks
    return readable(stored_setting(ALLOW_NETWORKS)) or ""


class Policies:
    """The present policy. ``current`` is fast and thread-safe; ``refresh`` reads the database."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._text = settings.allow_networks or ""
        self._policy = Policy.parse(self._text)

    def current(self) -> Policy:
        return self._policy

    def refresh(self) -> None:
        """Read the stored setting. Needs an application context."""
        text = allowed_networks(self._settings)
        db.session.rollback()  # ends the read transaction, which would keep an old snapshot
        if text == self._text:
            return
        try:
            self._policy = Policy.parse(text)
        except ValueError:
            log.exception("The stored networks cannot be read; the policy stays as it was.")
        self._text = text
