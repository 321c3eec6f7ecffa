"""Tokens of links and cookies, of which only a hash is stored; keyed hashes, by which encrypted
values are looked up; and sealed data, which a page holds for the next request.

Keyed hashes keep a guessed address from being recognised in the database. Their key is the first
secret key of the installation. When that is replaced, the hashes stay as they are: with two hashes,
one channel value would be two lanes, and a recovery could be sent before its outage. Therefore
``wakeful secrets rotate`` stores that key among the settings, encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import zlib
from datetime import datetime
from typing import Any

from cryptography.fernet import InvalidToken, MultiFernet
from flask import current_app

from app.db.settings import store_setting, stored_setting
from app.db.types import readable
from app.errors import Denied
from app.i18n import N_, _
from app.secret_keys import cipher, keys_of

TOKEN_BYTES = 24  # 192 bits
HASH_KEY = "hash_key"
_CACHED_KEY = "wakeful.hash_key"
LIFETIME_SECONDS = 24 * 3600  # of sealed data
PAGE_TOO_OLD = N_("This page is too old, or it is not complete. Start again.")


def make_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest_of(secret: str) -> str:
    """The hash that is stored in place of a token, a code or an email address."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def keyed_hash(*parts: str) -> str:
    """SHA-256 in hex. Needs an application context; may read in the present transaction."""
    return hmac.new(_key().encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()


def store_hash_key(now: datetime) -> None:
    """Store the key of the hashes, so that the secret key that served as it can be removed."""
    if stored_setting(HASH_KEY) is None:
        store_setting(HASH_KEY, keys_of()[-1], now)


def _key() -> str:
    """The key of the hashes; until one is stored, the oldest secret key, which is the last."""
    key: str | None = current_app.extensions.get(_CACHED_KEY)
    if key is None:
        key = readable(stored_setting(HASH_KEY)) or keys_of()[-1]
        current_app.extensions[_CACHED_KEY] = key
    return key


def seal(data: Any, purpose: str) -> str:
    """``data``, which must fit in JSON, as text that a page sends back with its next request. It is
    encrypted, because passwords of an import must not be readable in the source of a page. Needs an
    application context.
    """
    packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode())
    return _fernet(purpose).encrypt(packed).decode()


def unseal(text: str, purpose: str) -> Any:
    """The data that ``seal`` was given. Raises Denied with a sentence for anything else."""
    try:
        packed = _fernet(purpose).decrypt(text.encode(), ttl=LIFETIME_SECONDS)
    except (InvalidToken, ValueError):
        raise Denied(_(PAGE_TOO_OLD)) from None
    return json.loads(zlib.decompress(packed))


def _fernet(purpose: str) -> MultiFernet:
    return cipher(f"wakeful sealed v1 {purpose}".encode(), keys_of())
