"""How an availability report is titled: by what it is of. Pure."""

from __future__ import annotations

from datetime import datetime

from app.i18n import N_, _, _n

MONTHS = (
    N_("January"),
    N_("February"),
    N_("March"),
    N_("April"),
    N_("May"),
    N_("June"),
    N_("July"),
    N_("August"),
    N_("September"),
    N_("October"),
    N_("November"),
    N_("December"),
)


def month(moment: datetime) -> str:
    """``October 2026``."""
    return _("%(month)s %(year)s", month=_(MONTHS[moment.month - 1]), year=moment.year)


def subject(names: list[str], tag: str | None, *, chosen: bool) -> str:
    """``12 monitors tagged shop``, ``all 12 monitors``, or the name of the only one.

    ``chosen``: somebody picked them.
    """
    if len(names) == 1 and not tag:
        return names[0]
    count, shown = len(names), f"{len(names):,}"
    if tag:
        return _n(
            "%(num)s monitor tagged %(tag)s",
            "%(num)s monitors tagged %(tag)s",
            count,
            num=shown,
            tag=tag,
        )
    if chosen or not names:
        return _n("%(num)s monitor", "%(num)s monitors", count, num=shown)
    return _n("all %(num)s monitor", "all %(num)s monitors", count, num=shown)


def title(subject: str, month: str) -> str:
    """``Availability of 12 monitors tagged shop, October 2026``."""
    return _("Availability of %(subject)s, %(month)s", subject=subject, month=month)
