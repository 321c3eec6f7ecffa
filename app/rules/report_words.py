"""How an availability report is titled: by what it is of. Pure."""

from __future__ import annotations

from datetime import datetime

from app.i18n import _

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December")  # fmt: skip


def month(moment: datetime) -> str:
    """``October 2026``."""
    return f"{MONTHS[moment.month - 1]} {moment.year}"


def subject(names: list[str], tag: str | None, *, chosen: bool) -> str:
    """``12 monitors tagged shop``, ``all 12 monitors``, or the name of the only one.

    ``chosen``: somebody picked them.
    """
    if len(names) == 1 and not tag:
        return names[0]
    count = f"{len(names):,} monitor{'' if len(names) == 1 else 's'}"
    if tag:
        return f"{count} tagged {tag}"
    return count if chosen or not names else f"all {count}"


def title(subject: str, month: str) -> str:
    """``Availability of 12 monitors tagged shop, October 2026``."""
    return _("Availability of %(subject)s, %(month)s", subject=subject, month=month)
