"""Column types of our own: moments, encrypted text, JSON in an encrypted column.

An encrypted value that cannot be read comes back as ``Unreadable``: to raise would take all other
rows of the same query with it. Who needs the value asks ``isinstance``, or ``readable``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flask import current_app
from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.types import TypeDecorator

T = TypeVar("T")


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970 of an aware datetime."""
    return round(moment.timestamp() * 1000)


def from_ms(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


class Moment(TypeDecorator[datetime]):
    """An aware datetime in UTC, kept as whole milliseconds: the same in SQLite and PostgreSQL,
    small and sortable.

    A naive datetime is refused: read in the machine's zone it would be off by hours without a word.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("A naive datetime reached the database.")
        return to_ms(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else from_ms(value)


REMEMBERED = 8192
SHORT = 1024  # bytes of an encrypted text: some 700 of plain; 16 MB at most are remembered


class _Cipher:
    """Encrypts and decrypts with one key.

    What was decrypted of late is remembered where it is short: a list of a hundred monitors that
    refreshes itself spends a tenth of its time on the same secrets otherwise. Who can read this
    process's memory finds the key there anyway. Evidence is long, and seldom read twice.
    """

    def __init__(self, fernet: Fernet) -> None:
        self.encrypt = fernet.encrypt
        self._decrypt = fernet.decrypt
        self._remembered = lru_cache(maxsize=REMEMBERED)(fernet.decrypt)

    def decrypt(self, token: bytes) -> bytes:
        return (self._remembered if len(token) <= SHORT else self._decrypt)(token)


def _cipher() -> _Cipher:
    cipher: _Cipher | None = current_app.extensions.get("wakeful.cipher")
    if cipher is None:
        # A key of its own, derived from SECRET_KEY: a leak of one use (cookies) must not open the
        # other.
        derived = HKDF(
            algorithm=SHA256(), length=32, salt=None, info=b"wakeful database secrets v1"
        ).derive(current_app.config["SECRET_KEY"].encode())
        cipher = _Cipher(Fernet(base64.urlsafe_b64encode(derived)))
        current_app.extensions["wakeful.cipher"] = cipher
    return cipher


class Why(StrEnum):
    """Why a stored value cannot be read, as the end of a sentence."""

    OTHER_KEY = "the value was written with another WAKEFUL_SECRET_KEY, or changed since"
    DAMAGED = "the value is damaged"
    ODD = "the value is not what Wakeful writes there"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in a record for an encrypted value that cannot be read."""

    why: Why


def readable(value: T | Unreadable) -> T | None:
    """``value``; None where it cannot be read."""
    return None if isinstance(value, Unreadable) else value


# The parts of a Fernet token: version, time and initialisation vector; blocks; signature.
_HEAD, _BLOCK, _SIGNATURE = 1 + 8 + 16, 16, 32


def _why_not(token: str) -> Why:
    """A whole token has another key's signature, or was changed; a piece of one is damaged."""
    try:
        raw = base64.urlsafe_b64decode(token)
    except ValueError:
        return Why.DAMAGED
    blocks, rest = divmod(len(raw) - _HEAD - _SIGNATURE, _BLOCK)
    return Why.OTHER_KEY if raw[:1] == b"\x80" and blocks > 0 and not rest else Why.DAMAGED


class Encrypted(TypeDecorator[Any]):
    """Text that is unreadable to whoever holds only the database. Needs an application context."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else _cipher().encrypt(value.encode()).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        try:
            return _cipher().decrypt(value.encode()).decode()
        except InvalidToken:
            return Unreadable(_why_not(value))
        except UnicodeDecodeError:
            return Unreadable(Why.ODD)


class EncryptedJson(Encrypted):
    """JSON-ready data in an encrypted column. ``fits`` tells whether it has the shape that is
    written there.
    """

    cache_ok = True

    def __init__(self, fits: Callable[[Any], bool]) -> None:
        super().__init__()
        self.fits = fits

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        text = None if value is None else json.dumps(value, separators=(",", ":"))
        return super().process_bind_param(text, dialect)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        text = super().process_result_value(value, dialect)
        if text is None or isinstance(text, Unreadable):
            return text
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return Unreadable(Why.ODD)
        return data if self.fits(data) else Unreadable(Why.ODD)
