"""The webhook secret of this installation. Wakeful creates it once. After a change, the old and the
new secret both sign for 24 hours.

If ``WAKEFUL_WEBHOOK_SECRET`` sets the secret, it can only be changed there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from datetime import UTC, datetime, timedelta

from app.access.settings import StoredSettings
from app.config import Settings
from app.errors import Conflict
from app.i18n import N_, _

PREFIX = "whsec_"  # of Standard Webhooks; base64 follows
SETTING = "webhook_secret"
PREVIOUS = "webhook_secret_previous"
SHOWN = "webhook_secret_shown"
OVERLAP = timedelta(hours=24)
SHOWN_ALREADY = N_(
    "The secret has already been shown. To see it again, run wakeful webhook-secret on the server,"
    " or change the secret."
)
_BYTES = 32  # Standard Webhooks: 24 to 64


def make_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()


def webhook_secret(settings: Settings, stored: StoredSettings) -> str:
    """The secret that receivers verify with. It is created if there is none. Raises Conflict if the
    stored secret cannot be read, because receivers would refuse a new one.
    """
    return settings.webhook_secret or stored.get_or_make(SETTING, make_secret)


def is_unreadable(settings: Settings, stored: StoredSettings) -> bool:
    """Whether the stored secret cannot be read. A change of the secret resolves that."""
    return not settings.webhook_secret and stored.is_unreadable(SETTING)


def webhook_secrets(settings: Settings, stored: StoredSettings, now: datetime) -> tuple[str, ...]:
    """The secrets that sign messages now: the present one, and in an overlap the previous one."""
    current = webhook_secret(settings, stored)
    previous = None if settings.webhook_secret else _previous(stored, now)
    return (current,) if previous is None else (current, previous[0])


def overlap_until(settings: Settings, stored: StoredSettings, now: datetime) -> datetime | None:
    """When the previous secret stops signing; None outside of an overlap."""
    previous = None if settings.webhook_secret else _previous(stored, now)
    return None if previous is None else previous[1]


def shown_at(settings: Settings, stored: StoredSettings) -> datetime | None:
    """When a page showed the present secret, or None."""
    stored_secret = _stored(stored, SHOWN, "at")
    if stored_secret is None or is_unreadable(settings, stored):
        return None
    return stored_secret[1] if stored_secret[0] == _mark(webhook_secret(settings, stored)) else None


def show_once(settings: Settings, stored: StoredSettings, now: datetime) -> str:
    """The present secret, for the one page that may show it. Raises Conflict the second time, so
    that a person who finds an open browser later cannot see it.
    """
    if shown_at(settings, stored) is not None:
        raise Conflict(_(SHOWN_ALREADY))
    secret = webhook_secret(settings, stored)
    entry = {"secret": _mark(secret), "at": now.astimezone(UTC).isoformat()}
    stored.set(SHOWN, json.dumps(entry))
    return secret


def _mark(secret: str) -> str:
    """Identifies a secret without revealing it."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]


def rotate(settings: Settings, stored: StoredSettings, now: datetime) -> str:
    """Make a new secret; the old one also signs for 24 hours. Raises Conflict."""
    if settings.webhook_secret:
        raise Conflict(_("WAKEFUL_WEBHOOK_SECRET sets the secret. Change it there, and restart."))
    if not is_unreadable(settings, stored):
        old = webhook_secret(settings, stored)
        entry = {"secret": old, "until": (now + OVERLAP).astimezone(UTC).isoformat()}
        # The old secret is stored first, so that a crash after this statement loses no secret.
        stored.set(PREVIOUS, json.dumps(entry))
    secret = make_secret()
    stored.set(SETTING, secret)
    return secret


def _previous(stored: StoredSettings, now: datetime) -> tuple[str, datetime] | None:
    stored_secret = _stored(stored, PREVIOUS, "until")
    return stored_secret if stored_secret is not None and now < stored_secret[1] else None


def _stored(stored: StoredSettings, name: str, moment: str) -> tuple[str, datetime] | None:
    """The stored record of a secret, with its time; None if there is none that can be read."""
    try:
        entry = json.loads(stored.get(name) or "null")
        at = datetime.fromisoformat(entry[moment])
        return str(entry["secret"]), at if at.tzinfo else at.replace(tzinfo=UTC)
    except (KeyError, TypeError, ValueError):
        return None
