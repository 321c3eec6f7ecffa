"""Calendar months, written ``2026-11`` in URLs, and the entries of a calendar by day. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo

from app.errors import Invalid
from app.i18n import N_, _
from app.rules.figures import MONTHS, SHORT_MONTHS

_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})", re.ASCII)
YEARS = range(1971, 2200)
WEEKDAYS = (
    N_("Monday"), N_("Tuesday"), N_("Wednesday"), N_("Thursday"), N_("Friday"), N_("Saturday"),
    N_("Sunday"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Month:
    year: int
    number: int  # from 1

    def __str__(self) -> str:
        return f"{self.year:04}-{self.number:02}"

    @property
    def label(self) -> str:
        return f"{_(MONTHS[self.number - 1])} {self.year}"

    @property
    def short(self) -> str:
        """``Oct``."""
        return _(SHORT_MONTHS[self.number - 1])

    def plus(self, months: int) -> Month | None:
        """The month that is ``months`` later; None after the end of the calendar."""
        year, index = divmod(self.year * 12 + self.number - 1 + months, 12)
        return Month(year, index + 1) if year in YEARS else None

    def span(self, zone: tzinfo = UTC) -> tuple[datetime, datetime]:
        """The start of the month and of the next one in ``zone``, as UTC."""
        year, index = divmod(self.year * 12 + self.number, 12)
        start = datetime(self.year, self.number, 1, tzinfo=zone)
        return start.astimezone(UTC), datetime(year, index + 1, 1, tzinfo=zone).astimezone(UTC)

    def weeks(self) -> list[list[date]]:
        """Its days by weeks from Monday; the first and last week have days of other months."""
        return calendar.Calendar().monthdatescalendar(self.year, self.number)

    def contains(self, day: date) -> bool:
        return (day.year, day.month) == (self.year, self.number)


def month_of(moment: datetime) -> Month:
    return Month(moment.year, moment.month)


def read(text: str | None, default: Month) -> Month:
    """The month in a URL; ``default`` if there is none. Raises Invalid."""
    if not text:
        return default
    match = _MONTH.fullmatch(text)
    if match and int(match[1]) in YEARS and 1 <= int(match[2]) <= 12:
        return Month(int(match[1]), int(match[2]))
    sentence = _("Enter a month such as 2026-11.")
    raise Invalid({"month": [sentence]}, sentence)


@dataclass(slots=True)
class DayEntry:
    """An entry of a day. ``when``: its first time on the day; ``more``: how many times follow."""

    id: int
    name: str
    when: str
    more: int = 0


@dataclass(slots=True)
class Sheet:
    """Entries by day."""

    days: dict[date, dict[int, DayEntry]] = field(default_factory=dict)

    def put(
        self, id: int, name: str, spans: Iterable[tuple[datetime, datetime]], zone: tzinfo
    ) -> None:
        for start, end in spans:
            begin, stop = start.astimezone(zone), end.astimezone(zone)
            last = (stop - timedelta(microseconds=1)).date()
            day = begin.date()
            while day <= last:
                self._put_day(day, id, name, begin, stop)
                day += timedelta(days=1)

    def _put_day(self, day: date, id: int, name: str, begin: datetime, stop: datetime) -> None:
        entries = self.days.setdefault(day, {})
        if id in entries:
            entries[id].more += 1
        elif day == begin.date():
            entries[id] = DayEntry(id, name, f"{begin:%H:%M}")
        else:
            until = f"{stop:%H:%M}" if day == stop.date() else ""
            entries[id] = DayEntry(
                id, name, _("to %(time)s", time=until) if until else _("all day")
            )

    def entries_on(self, day: date) -> list[DayEntry]:
        """The entries of a day: first those that began earlier, then by time."""
        entries = self.days.get(day, {}).values()
        return sorted(entries, key=lambda entry: (entry.when[:1].isdigit(), entry.when))
