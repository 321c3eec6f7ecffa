"""Passwords: argon2 hashes. The rule for a new one is ``app.forms.text``'s."""

from __future__ import annotations

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_hasher = PasswordHasher()


@cache
def _nobody() -> str:
    """What an unknown email is compared with, so that the answer takes as long as for a known one.

    Made when it is first wanted: a checker starts without it.
    """
    return _hasher.hash("nobody has this password")


def hashed(password: str) -> str:
    return _hasher.hash(password)


def matches(hash_: str | None, password: str) -> bool:
    """Whether ``password`` made ``hash_``; never for None, in the same time."""
    nobody = _nobody()  # asked each time: the first question takes longer, whoever it is about
    try:
        return _hasher.verify(hash_ or nobody, password) and hash_ is not None
    except (VerificationError, InvalidHashError):
        return False


def outdated(hash_: str) -> bool:
    """Whether the hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(hash_)
