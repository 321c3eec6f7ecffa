"""Settings in the database: values that an admin sets on the settings page, or that Wakeful creates
once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from app.access import actors, audit
from app.config import Settings
from app.db import db, liveness, wakeups, writing
from app.db.settings import notices, store_setting, stored_setting, unreadable_settings
from app.db.types import Unreadable, readable
from app.errors import Conflict
from app.i18n import N_, _
from app.net.policy import Policy
from app.records import AuditedObject, Notice, ObjectKind


class StoredSettings:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def get(self, name: str) -> str | None:
        """The value stored under ``name``, or None. An unreadable value counts as not set:
        ``unreadable`` names it.
        """
        return readable(stored_setting(name))

    def is_unreadable(self, name: str) -> bool:
        """Whether there is a value under ``name`` that cannot be read."""
        return isinstance(stored_setting(name), Unreadable)

    def unreadable(self) -> frozenset[str]:
        """The names of the settings whose stored value cannot be read."""
        return unreadable_settings()

    def notices(self) -> dict[Notice, str]:
        """The notices that every page shows now, with the value stored under each."""
        return notices()

    def set(self, name: str, value: str | None) -> None:
        """Store ``value`` under ``name``; None removes it."""
        with writing() as session:
            old = self.get(name)
            store_setting(name, value, self.clock())
            wakeups.note(session, liveness.CHECKER)  # the networks of checks are a setting
            if name in audit.SETTINGS and actors.actor() is not None:
                changes = audit.SETTINGS[name](old, value)
                audit.note_change(session, AuditedObject(ObjectKind.SETTING, None, name), changes)

    def get_or_make(self, name: str, make: Callable[[], str]) -> str:
        """The value stored under ``name``. If there is none, ``make`` makes it, once, even if
        several processes ask at the same time. Raises Conflict for an unreadable value: it is in
        use elsewhere, so a new one must not replace it.
        """
        if (value := _usable(name)) is None:
            with writing():
                if (value := _usable(name)) is None:
                    value = make()
                    self.set(name, value)
        return value


def _usable(name: str) -> str | None:
    stored = stored_setting(name)
    if isinstance(stored, Unreadable):
        sentence = N_("The stored setting %(name)s cannot be read, because %(why)s.")
        raise Conflict(_(sentence, name=name, why=_(stored.why)))
    return stored


# --- The mail server that alerts, confirmations, invitations and recovery links go through.
# ``WAKEFUL_SMTP_URL`` overrides the setting of an admin.

SMTP_URL = "smtp_url"  # the setting's name


def mail_is_locked(settings: Settings) -> bool:
    """Whether the environment sets the mail server."""
    return settings.smtp_url is not None


def smtp_url(settings: Settings) -> str | None:
    """The mail server as a URL (``app.rules.smtp``); None if no email can be sent. The setting is
    read at each call, so that a change reaches every process without a restart.
    """
    return settings.smtp_url or readable(stored_setting(SMTP_URL))


def can_mail(settings: Settings) -> bool:
    """Whether email can be sent."""
    return smtp_url(settings) is not None


def mail_is_unreadable(settings: Settings) -> bool:
    """Whether a mail server is stored and cannot be read."""
    return not mail_is_locked(settings) and isinstance(stored_setting(SMTP_URL), Unreadable)


def with_mail(settings: Settings) -> Settings:
    """These settings with the present mail server."""
    return replace(settings, smtp_url=smtp_url(settings))


# --- Which networks checks and alerts may reach besides public addresses.
# ``WAKEFUL_ALLOW_NETWORKS`` overrides the setting that an admin makes.

ALLOW_NETWORKS = "allow_networks"

log = logging.getLogger(__name__)


def networks_are_locked(settings: Settings) -> bool:
    """Whether the environment sets the networks."""
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
