"""Hashes by which stored values are found again although they are encrypted. They are keyed, so
that a guessed address cannot be recognised in the database.

The key is the secret key that the installation began with. When it is replaced, the hashes stay as
they are: two hashes of one channel value would be two lanes, and a recovery could overtake its
outage. Therefore ``wakeful secrets rotate`` keeps that key among the settings, encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime

from flask import current_app

from app.db.settings import keep_setting, stored_setting
from app.db.types import readable
from app.secret_keys import keys_of

HASH_KEY = "hash_key"
_FOUND = "wakeful.hash_key"


def keyed_hash(*parts: str) -> str:
    """SHA-256 in hex. Needs an application context; may read in the present transaction."""
    return hmac.new(_key().encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()


def settle(now: datetime) -> None:
    """Store the key of the hashes before the secret key that it is can be removed."""
    if stored_setting(HASH_KEY) is None:
        keep_setting(HASH_KEY, keys_of()[-1], now)


def _key() -> str:
    """Until it is stored, it is the last of the keys: new ones are put in front."""
    found: str | None = current_app.extensions.get(_FOUND)
    if found is None:
        found = readable(stored_setting(HASH_KEY)) or keys_of()[-1]
        current_app.extensions[_FOUND] = found
    return found
