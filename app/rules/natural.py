"""The natural order of names: ``Shop 2`` before ``Shop 10``, ignoring case, and ``Ä`` beside ``A``.
Pure.
"""

from __future__ import annotations

import re
import unicodedata

# A longer key would not fit in PostgreSQL's index.
MAX_KEY = 600
_DIGITS = re.compile("[0-9]+")
# Letters that Unicode does not decompose.
LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h"}
)


def natural_key(name: str) -> str:
    """A text whose order, byte by byte, is the natural order of names. Databases store it."""
    parts = unicodedata.normalize("NFKD", name)
    letters = "".join(part for part in parts if not unicodedata.combining(part))
    return _DIGITS.sub(_number, letters.casefold().translate(LETTERS))[:MAX_KEY]


def _number(match: re.Match[str]) -> str:
    """A number with the count of its digits before it, because a longer number is larger."""
    digits = match[0].lstrip("0") or "0"
    return f"{len(digits):03}{digits}"
