"""Passwords: argon2 hashes, and the rule for a new one, whose length is in ``app.rules.text``.

Hashing takes 64 MiB on purpose, so only a few run in parallel: sixteen log-ins at the same moment
would take a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import Type, hash_secret_raw

from app.errors import Throttled
from app.i18n import N_, _
from app.rules import text
from app.slots import BUSY_SECONDS, PASSWORDS, TRUSTED_PASSWORDS, Slots

BUSY = N_("Too many people are logging in at this moment.")
# Requests wait for some seconds and are served in order; PASSWORDS limits how many wait.
_HASH_SLOTS = Slots(2, patience=20.0)

_hasher = PasswordHasher()
# Its cost is not stored with a digest, so it never changes.
DIGEST_COST = {"time_cost": 3, "memory_cost": 64 * 1024, "parallelism": 4, "hash_len": 32}


@cache
def _unknown_hash() -> str:
    """A hash to compare with if no account has the email address, so that the answer takes as long
    as for an account. It is made on first use, so that a checker starts faster.
    """
    return _hasher.hash("nobody has this password")


@contextmanager
def _hashing(*, trusted: bool = False) -> Iterator[None]:
    """Wait until there is memory for a hash. ``trusted``: for somebody whom strangers must not keep
    waiting. Raises Throttled.
    """
    with ExitStack() as stack:
        admitted = stack.enter_context(PASSWORDS.taken())
        if not admitted and trusted:
            admitted = stack.enter_context(TRUSTED_PASSWORDS.taken())
        if admitted and stack.enter_context(_HASH_SLOTS.taken()):
            yield
            return
    raise Throttled(_(BUSY), BUSY_SECONDS)


COMMON = N_("This is one of the most common passwords, which attackers try first. Choose another.")
CONTAINS_ADDRESS = N_(
    "The password contains part of the email address or of the product's name"
    ' ("%(part)s"). Choose another.'
)
MAX_COMMON = 10_000
MIN_PART = 4  # letters; shorter ones are in many words
PRODUCT = "wakeful"


def fault_of(password: str, email: str) -> str | None:
    """Why this cannot be the new password of the account with this address; None if it can."""
    if (fault := text.fault_of(lambda: text.new_password(password))) is not None:
        return fault
    folded = password.casefold()
    if folded in _common():
        return _(COMMON)
    words = "".join(char if char.isalnum() else " " for char in email.casefold())
    parts = (PRODUCT, *words.split())
    match = next((part for part in parts if len(part) >= MIN_PART and part in folded), None)
    return _(CONTAINS_ADDRESS, part=match) if match else None


@cache
def _common() -> frozenset[str]:
    # Imported here, so that only a person who chooses a password waits for it.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(FREQUENCY_LISTS["passwords"][:MAX_COMMON])


def hashed(password: str, *, trusted: bool = False) -> str:
    """The argon2 hash of a password. Raises Throttled if too many are hashed in parallel."""
    with _hashing(trusted=trusted):
        return _hasher.hash(password)


def slow_digest(secret: bytes, salt: str) -> str:
    """A salted slow hash in hex, by which a secret is looked up. Raises Throttled."""
    with _hashing():
        return hash_secret_raw(secret, salt.encode(), **DIGEST_COST, type=Type.ID).hex()


def matches(
    hash_: str | None,
    password: str,
    *,
    count: Callable[[], object] = lambda: None,
    trusted: bool = False,
) -> bool:
    """Whether ``hash_`` is the hash of ``password``. Without a hash, the answer is False after the
    same time. ``count`` counts the attempt. It is called once there is memory for the hash, because
    an attempt that is refused for lack of memory must not cost a write. Raises Throttled.
    """
    try:
        with _hashing(trusted=trusted):
            count()
            unknown = _unknown_hash()  # always called, because the first call takes longer
            return _hasher.verify(hash_ or unknown, password) and hash_ is not None
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(hash_: str) -> bool:
    """Whether the hash was made with weaker parameters than the present ones."""
    return _hasher.check_needs_rehash(hash_)
