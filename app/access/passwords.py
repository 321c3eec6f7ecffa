"""Passwords: argon2 hashes. The rule for a new one is ``app.rules.text``'s.

A hash takes 64 MiB while it is made, on purpose, so few are made at once: sixteen log-ins at the
same moment would take a gigabyte.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.errors import Throttled
from app.slots import BUSY_SECONDS, PASSWORDS, Slots

BUSY = "Many people are logging in at this moment."
_AT_ONCE = Slots(2, patience=5.0)

_hasher = PasswordHasher()


@cache
def _nobody() -> str:
    """What an unknown email is compared with, so that the answer takes as long as for a known one.

    Made when it is first wanted: a checker starts without it.
    """
    return _hasher.hash("nobody has this password")


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until memory may be taken. Raises Throttled."""
    with PASSWORDS.taken() as placed:
        if placed:
            with _AT_ONCE.taken() as free:
                if free:
                    yield
                    return
    raise Throttled(BUSY, BUSY_SECONDS)


def hashed(password: str) -> str:
    """Raises Throttled when too many are hashed at once, as ``matches`` does."""
    with _turn():
        return _hasher.hash(password)


def matches(hash_: str | None, password: str) -> bool:
    """Whether ``password`` made ``hash_``; never for None, in the same time."""
    try:
        with _turn():
            nobody = _nobody()  # asked each time: the first question takes longer, whoever it is of
            return _hasher.verify(hash_ or nobody, password) and hash_ is not None
    except (VerificationError, InvalidHashError):
        return False


def outdated(hash_: str) -> bool:
    """Whether the hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(hash_)
