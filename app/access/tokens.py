"""Tokens of links and cookies, of which only a hash is stored; keyed hashes, by which encrypted
values are looked up; sealed data, which a page sends back with the next request; and signed links.

Keyed hashes keep a guessed address from being recognised in the database. Their key is the
installation's oldest secret key. The hashes stay the same after that key is removed: with two
hashes, one channel value would have two lanes, and a recovery could be sent before its outage.
Therefore ``wakeful secrets rotate`` stores the key among the settings, encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from cryptography.fernet import InvalidToken, MultiFernet
from flask import current_app
from itsdangerous import BadData, SignatureExpired, URLSafeTimedSerializer

from app.db.settings import store_setting, stored_setting
from app.db.types import readable
from app.errors import Denied
from app.i18n import N_, _
from app.secret_keys import cipher, keys_of, signing_keys

TOKEN_BYTES = 24  # 192 bits
HASH_KEY = "hash_key"
_CACHED_KEY = "wakeful.hash_key"
SEALED_SECONDS = 24 * 3600  # of sealed data
PAGE_TOO_OLD = N_("This page is too old, or it is not complete. Start again.")


def make_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest_of(secret: str) -> str:
    """The hash that is stored in place of a token, a code or an email address."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def keyed_hash(*parts: str) -> str:
    """An HMAC with SHA-256, in hex. Needs an application context. It may read the database."""
    return hmac.new(_key().encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()


def store_hash_key(now: datetime) -> None:
    """Store the key of the hashes, so that this secret key can be removed from the environment."""
    if stored_setting(HASH_KEY) is None:
        store_setting(HASH_KEY, keys_of()[-1], now)


def _key() -> str:
    """The key of the hashes: the stored one or, until one is stored, the oldest secret key."""
    key: str | None = current_app.extensions.get(_CACHED_KEY)
    if key is None:
        key = readable(stored_setting(HASH_KEY)) or keys_of()[-1]
        current_app.extensions[_CACHED_KEY] = key
    return key


def seal(data: Any, purpose: str) -> str:
    """``data``, which must fit in JSON, as text that a page sends back with its next request. The
    text is encrypted, because the source of a page must not show the passwords of an import. Needs
    an application context.
    """
    packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode())
    return _fernet(purpose).encrypt(packed).decode()


def unseal(text: str, purpose: str) -> Any:
    """The data that ``seal`` was given. Raises Denied with a sentence for anything else."""
    try:
        packed = _fernet(purpose).decrypt(text.encode(), ttl=SEALED_SECONDS)
    except (InvalidToken, ValueError):
        raise Denied(_(PAGE_TOO_OLD)) from None
    return json.loads(zlib.decompress(packed))


def _fernet(purpose: str) -> MultiFernet:
    return cipher(f"wakeful sealed v1 {purpose}".encode(), keys_of())


# --- Links to acknowledge -------------------------------------------------------------------------
#
# The links are signed, so that nobody can forge one, and expire, so that an old mail is of no use.
# A link opens a page with one button, because mail scanners follow links: a link that acknowledged
# at once would acknowledge every incident before a person had seen it.

ACKNOWLEDGE_SECONDS = 7 * 24 * 3600
EXPIRED = N_("This link has expired. Open the incident in the dashboard to acknowledge it.")
NOT_VALID = N_("This link is not valid. Copy it whole from the message, or open the dashboard.")
_SALT = "wakeful acknowledge v1"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The content of a link. ``via`` says where the link was, such as "a link in the email to
    ops@example.com"; it is not a secret. ``delivery_id``: the message, if it is about several
    incidents.
    """

    incident_id: int
    via: str
    delivery_id: int | None = None


def acknowledgement_token(
    incident_id: int, via: str | None = None, delivery_id: int | None = None
) -> str:
    """The token of a link to the acknowledge page. Needs an application context."""
    message = [] if delivery_id is None else [delivery_id]
    return str(_serializer().dumps([incident_id, via or _("a link in an alert"), *message]))


def read_acknowledgement(token: str) -> Acknowledgement:
    """The content of ``token``. Raises Denied with a sentence if it is not ours or has expired."""
    try:
        incident_id, via, *message = _serializer().loads(token, max_age=ACKNOWLEDGE_SECONDS)
    except SignatureExpired:
        raise Denied(_(EXPIRED)) from None
    except (BadData, TypeError, ValueError):
        raise Denied(_(NOT_VALID)) from None
    return Acknowledgement(int(incident_id), str(via), *message)


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(signing_keys(), salt=_SALT)


# --- Links of subscribers -------------------------------------------------------------------------
#
# A token proves that somebody may confirm or end a subscription. Tokens are not stored. A token
# names its purpose, the subscriber and the target, so it fits one subscription and one use. It also
# names the status page, which is shown even if the subscription has ended already.

CONFIRM_WITHIN = timedelta(hours=48)
_MARK = 16  # of the digest: identifies a target
_MAC = 40  # 160 bits


class Purpose(StrEnum):
    CONFIRM = "confirm"
    UNSUBSCRIBE = "unsubscribe"


@dataclass(frozen=True, slots=True)
class Subscription:
    """The content of a token. ``mark`` is the beginning of the digest."""

    page_id: int
    subscriber_id: int
    mark: str


def target_digest(channel: str, target: str) -> str:
    """A keyed hash of a target, so that a guessed address cannot be recognised in the database.
    Two spellings of an email address that differ in case are one.
    """
    folded = target.casefold() if channel == "email" else target
    return keyed_hash("subscriber", channel, folded)


def subscription_token(
    purpose: Purpose, page_id: int, subscriber_id: int, digest: str, now: datetime
) -> str:
    stamp = int(now.timestamp()) if purpose is Purpose.CONFIRM else 0
    content = f"{page_id}-{subscriber_id}-{digest[:_MARK]}-{stamp}"
    return f"{content}-{_mac(keys_of()[0], purpose, content)}"


def read_subscription(purpose: Purpose, token: str, now: datetime) -> Subscription | None:
    """The content of a token that is ours, for this purpose, and not too old."""
    content, _dash, mac = token.rpartition("-")
    expected = (_mac(key, purpose, content) for key in keys_of())
    if not token.isascii() or not any(hmac.compare_digest(mac, other) for other in expected):
        return None
    page_id, subscriber_id, mark, stamp = content.split("-")
    if purpose is Purpose.CONFIRM and now.timestamp() - int(stamp) > CONFIRM_WITHIN.total_seconds():
        return None
    return Subscription(int(page_id), int(subscriber_id), mark)


def _mac(key: str, purpose: Purpose, content: str) -> str:
    parts = ("subscription token v1", purpose, content)
    return hmac.new(key.encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:_MAC]
