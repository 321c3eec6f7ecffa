"""The mail server that alerts, confirmations, invitations and recovery links go through.

``WAKEFUL_SMTP_URL`` overrides what an admin sets on the Settings page. Whoever asks whether email
can be sent asks here. Needs an application context.
"""

from __future__ import annotations

from dataclasses import replace

from app.config import Settings
from app.db.settings import stored_setting
from app.db.types import Unreadable, readable

SMTP_URL = "smtp_url"  # the setting's name


def is_locked(settings: Settings) -> bool:
    """Whether the environment sets the mail server."""
    return settings.smtp_url is not None


def smtp_url(settings: Settings) -> str | None:
    """The mail server as a URL (``app.rules.smtp``); None if no email can be sent. Read anew at
    each call, so that a change reaches every process without a restart.
    """
    if settings.smtp_url is not None:
        return settings.smtp_url
    return readable(stored_setting(SMTP_URL))


def can_mail(settings: Settings) -> bool:
    """Whether email can be sent."""
    return smtp_url(settings) is not None


def is_unreadable(settings: Settings) -> bool:
    """Whether a mail server is stored and cannot be read."""
    return not is_locked(settings) and isinstance(stored_setting(SMTP_URL), Unreadable)


def with_mail(settings: Settings) -> Settings:
    """These settings with the mail server of now."""
    return replace(settings, smtp_url=smtp_url(settings))
