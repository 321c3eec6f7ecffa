"""Recovery codes: each logs in once, in place of the second factor. Only hashes are stored."""

from __future__ import annotations

import hashlib
import secrets

# Crockford's base32: no letter looks like a digit.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
ALIKE = str.maketrans("oil", "011")
COUNT = 10
GROUPS, GROUP = 4, 7  # 28 letters of 5 bits: 140 bits


def make() -> list[str]:
    return [_make() for _number in range(COUNT)]


def _make() -> str:
    groups = ("".join(secrets.choice(ALPHABET) for _letter in range(GROUP)) for _ in range(GROUPS))
    return "-".join(groups)


def digest_of(code: str) -> str:
    """The hash that is stored. It is the same however the code is typed: capitals, spaces, dashes
    and letters that look like digits make no difference.
    """
    letters = "".join(char for char in code.casefold() if char.isalnum()).translate(ALIKE)
    return hashlib.sha256(letters.encode("utf-8", "surrogatepass")).hexdigest()
