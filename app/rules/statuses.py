"""``accepted_statuses``: codes and ranges separated by commas, such as ``200-299,401``."""

from __future__ import annotations

from functools import lru_cache

from app.i18n import _

Ranges = tuple[tuple[int, int], ...]

_LEAST, _MOST = 100, 599


@lru_cache(maxsize=1024)
def parse_statuses(text: str) -> Ranges:
    """Read the ranges, both ends included. Raises ValueError with a sentence that names the bad
    part.
    """
    parts = [part.strip() for part in text.split(",")]
    if not any(parts):
        raise ValueError(_("Enter at least one status code, such as 200-399."))
    return tuple(_range(part) for part in parts)


def _range(part: str) -> tuple[int, int]:
    first, dash, last = part.partition("-")
    low, high = _code(first.strip(), part), _code((last if dash else first).strip(), part)
    if low > high:
        raise ValueError(_("The range %(part)s ends before it begins.", part=repr(part)))
    return low, high


def _code(text: str, part: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) == 3 and _LEAST <= int(text) <= _MOST):
        raise ValueError(
            _(
                "%(part)s is not a status code from %(least)s to %(most)s or a range such as "
                "200-299.",
                part=repr(part[:40]),
                least=_LEAST,
                most=_MOST,
            )
        )
    return int(text)


def is_accepted(status: int, text: str) -> bool:
    """Whether the status is one of the accepted ones."""
    return any(low <= status <= high for low, high in parse_statuses(text))
