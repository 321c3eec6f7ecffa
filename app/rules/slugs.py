"""Slugs of status pages and heartbeats, tokens of heartbeats, and the name that no place may have.

A slug of a page is ``[a-z0-9]+(-[a-z0-9]+)*``, up to 64 characters (decision 12).
"""

from __future__ import annotations

import re
import secrets
import unicodedata
import uuid
from collections.abc import Collection
from string import ascii_lowercase, digits

from app.i18n import N_, _
from app.records import (
    DELETED_LOCATION,
    MAX_HEARTBEAT_SLUG,
    MAX_NAME,
    MAX_SLUG,
    MAX_TOKEN,
    MIN_TOKEN,
)
from app.rules.natural import LETTERS

SLUG = N_(
    "Use lower-case letters a to z, digits and single hyphens between them, such as our-shop; at "
    "most 64 characters."
)
HEARTBEAT_SLUG = N_("Use lower-case letters a to z, digits, - and _; at most 100 characters.")
NAMELESS = "status"
_RANDOM_BYTES = 10  # 80 bits
_ALLOWED = frozenset(ascii_lowercase + digits)


def is_slug(value: str) -> bool:
    parts = value.split("-")
    return len(value) <= MAX_SLUG and all(part and _ALLOWED.issuperset(part) for part in parts)


def check(value: str) -> str:
    """Raises ValueError with a sentence."""
    if not is_slug(value):
        raise ValueError(_(SLUG))
    return value


def of_name(name: str) -> str:
    """A slug like the name; ``status`` if nothing of it is left."""
    # Normalizing a long run of combining marks takes quadratic time.
    short = name[:MAX_NAME].lower().translate(LETTERS)
    plain = unicodedata.normalize("NFKD", short).lower()
    spaced = "".join(c if c in _ALLOWED else " " for c in plain if unicodedata.category(c) != "Mn")
    return _cut("-".join(spaced.split()), MAX_SLUG) or NAMELESS


def is_heartbeat_slug(value: str) -> bool:
    allowed = _ALLOWED | {"-", "_"}
    return 0 < len(value) <= MAX_HEARTBEAT_SLUG and allowed.issuperset(value)


def check_heartbeat_slug(value: str) -> str:
    """Raises ValueError with a sentence."""
    if not is_heartbeat_slug(value):
        raise ValueError(_(HEARTBEAT_SLUG))
    return value


def of_heartbeat(name: str) -> str | None:
    """The slug of a heartbeat of this name; None if nothing of it is left."""
    lowered = name.lower().replace(" ", "-")
    if is_heartbeat_slug(lowered):
        return lowered
    slug = of_name(name)
    return None if slug == NAMELESS and NAMELESS not in lowered else slug


def numbered(slug: str, others: Collection[str]) -> str:
    """``slug``, with the first number from 2 on that makes it differ from all ``others`` if it is
    one of them.
    """
    candidate, number = slug, 1
    while candidate in others:
        number += 1
        end = f"-{number}"
        candidate = _cut(slug, MAX_SLUG - len(end)) + end
    return candidate


def random() -> str:
    """A random slug that nobody can guess."""
    return secrets.token_hex(_RANDOM_BYTES)


def _cut(slug: str, limit: int) -> str:
    return slug[:limit].rstrip("-")


NAME_OF_DELETED = N_("Results of deleted places have this name. Choose another one.")


def check_not_deleted(name: str) -> None:
    """Raises ValueError for the name that results of deleted places have."""
    if name == DELETED_LOCATION:
        raise ValueError(_(NAME_OF_DELETED))


# --- The secret of a heartbeat's ping URL (decision 18)

TOKEN = N_(
    "Send a UUID, or %(least)s to %(most)s of A to Z, a to z, 0 to 9, - and _.",
    least=MIN_TOKEN,
    most=MAX_TOKEN,
)
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{{MIN_TOKEN},{MAX_TOKEN}}}")


def is_token(value: str) -> bool:
    return _TOKEN.fullmatch(value) is not None


def check_token(value: str) -> str:
    """Raises ValueError with a sentence."""
    if not is_token(value):
        raise ValueError(_(TOKEN))
    return value


def make_ping_token() -> str:
    return str(uuid.uuid4())
