"""Quiet hours: the times of day, in a time zone, during which alerts wait. Pure.

They may cross midnight. A time that the clocks skip becomes later by the length of the skip. If a
time occurs twice, quiet hours begin at the first and end at the second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from app.i18n import N_, _
from app.rules.time import clock_moment, zone_of
from app.rules.zones import zones

CLOCK_TIME = N_("Send a time of day as HH:MM, from 00:00 to 23:59, such as 22:00.")
ZONE = N_("This time zone is not known. Use a name such as Europe/Berlin.")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_DAYS = (-1, 0, 1)  # a window that began yesterday may still be open


@dataclass(frozen=True, slots=True)
class QuietHours:
    """``start`` and ``end`` are ``HH:MM``, ``zone`` is an IANA name. ``end`` is exclusive."""

    start: str
    end: str
    zone: str

    def until(self, at: datetime) -> datetime | None:
        """The end, in UTC, of the quiet hours that contain ``at``; None outside of them."""
        start, end = parse_clock(self.start), parse_clock(self.end)
        # The zone was valid when it was stored. If it no longer is, UTC is better than no alert.
        zone = zone_of(self.zone)
        today = at.astimezone(zone).date()
        for days in _DAYS:
            day = today + timedelta(days)
            last = day + timedelta(end <= start)
            starts_at = clock_moment(datetime.combine(day, start), zone, second=False)
            ends_at = clock_moment(datetime.combine(last, end), zone, second=True)
            if starts_at <= at < ends_at:
                return ends_at
        return None


def from_fields(start: str | None, end: str | None, zone: str | None) -> QuietHours | None:
    """The quiet hours in the fields of a monitor or a contact; None if it has none."""
    return QuietHours(start, end, zone or "UTC") if start and end else None


def parse_clock(text: str) -> time:
    """``HH:MM`` as a time of day. Raises ValueError with a sentence."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(_(CLOCK_TIME))
    return time(int(match[1]), int(match[2]))


def parse_zone(name: str) -> str:
    """Return ``name`` if it is a time zone. Raises ValueError with a sentence."""
    if name not in zones():
        raise ValueError(_(ZONE))
    return name
