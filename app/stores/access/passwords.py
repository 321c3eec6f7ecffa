"""Passwords: argon2 hashes, and the rule for a new one."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.records import MAX_CREDENTIAL

MIN_PASSWORD = 8
_hasher = PasswordHasher()
# What an unknown email is compared with, so that the answer takes as long as for a known one.
_nobody = _hasher.hash("nobody has this password")


def fault(password: str) -> str | None:
    """Why ``password`` cannot be taken, or None."""
    if len(password) < MIN_PASSWORD:
        return f"The password is too short: use {MIN_PASSWORD} characters or more."
    if len(password) > MAX_CREDENTIAL:
        return f"The password is too long: use {MAX_CREDENTIAL} characters at most."
    return None


def hashed(password: str) -> str:
    return _hasher.hash(password)


def matches(hash_: str | None, password: str) -> bool:
    """Whether ``password`` made ``hash_``; never for None, in the same time."""
    try:
        return _hasher.verify(hash_ or _nobody, password) and hash_ is not None
    except (VerificationError, InvalidHashError):
        return False


def outdated(hash_: str) -> bool:
    """Whether the hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(hash_)
