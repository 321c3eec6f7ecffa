"""When to warn that a certificate expires. Check, alert, list and page ask here, so they agree."""

from __future__ import annotations

from datetime import datetime, timedelta

from app.records import AUTO
from app.rules.time import days_left

SHORT_LIFE = timedelta(days=10)
_LAST_SECOND = timedelta(seconds=1)  # a life of 90 days ends at 23:59:59: its last second counts


def alert_days(
    setting: int | str | None, issued: datetime | None, expires: datetime | None
) -> int | None:
    """The days before its expiry from which a certificate is warned about; None for never.

    ``auto`` is a third of the certificate's whole life, or half of it where it lives 10 days or
    less: by then, a certificate that renews itself has been renewed. None for ``auto`` while the
    certificate's life is not known.
    """
    if isinstance(setting, int) or setting is None:
        return setting
    if setting != AUTO or issued is None or expires is None:
        return None
    life = expires - issued + _LAST_SECOND
    return (life / (2 if life <= SHORT_LIFE else 3)).days


def warns(
    setting: int | str | None, issued: datetime | None, expires: datetime, now: datetime
) -> bool:
    """Whether so few days remain that people are to be warned."""
    days = alert_days(setting, issued, expires)
    return days is not None and days_left(expires, now) <= days
