"""The time axis of a chart: round times on the clocks of the person's zone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# For each range of the chart: the step between two marks, and their format. Days are counted from a
# Monday, so that marks a week or two apart are Mondays; a year has months.
MARKS = {
    "3h": (30 * MINUTE, "%H:%M"),
    "24h": (4 * HOUR, "%H:%M"),
    "7d": (DAY, "%a %-d"),
    "30d": (5 * DAY, "%-d %b"),
    "90d": (14 * DAY, "%-d %b"),
}
MONTHS = 2
MONDAY = datetime(1970, 1, 5)  # noqa: DTZ001 - a date on the clocks of any zone


def of_buckets(
    range_: str, buckets: Sequence[Mapping[str, Any]], zone: tzinfo
) -> list[tuple[datetime, str]]:
    """``marks`` from the first bucket of a ``statistics`` answer to the last."""
    if not buckets:
        return []
    first, last = buckets[0]["start"], buckets[-1]["end"]
    return marks(range_, datetime.fromisoformat(first), datetime.fromisoformat(last), zone)


def marks(range_: str, first: datetime, last: datetime, zone: tzinfo) -> list[tuple[datetime, str]]:
    """Moments between ``first`` and ``last`` and their labels on the axis, in order.

    ``range_``: one of ``app.stats.RANGES``.
    """
    begin = first.astimezone(zone).replace(tzinfo=None)
    end = last.astimezone(zone).replace(tzinfo=None)
    step, form = MARKS.get(range_, (None, "%b"))
    places = _months(begin, end) if step is None else _steps(begin, end, step)
    found = [(place.replace(tzinfo=zone), place.strftime(form)) for place in places]
    return [(moment, text) for moment, text in found if first <= moment <= last]


def _steps(begin: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    place = begin - (begin - MONDAY) % step
    while place <= end:
        yield place
        place += step


def _months(begin: datetime, end: datetime) -> Iterator[datetime]:
    for month in range(begin.year * 12 + begin.month - 1, end.year * 12 + end.month):
        if month % MONTHS == 0:
            yield MONDAY.replace(month // 12, month % 12 + 1, 1)
