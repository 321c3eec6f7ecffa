"""The days of a monitor as a graphic, as text, and as data for the script. Pure.

Adjacent days of one kind are one line, which dashes cut into bars. So 90 days without an outage
take a few dozen bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby

from cachetools import LRUCache

from app.i18n import _, _n, spoken
from app.records import Component, PublicDay
from app.rules.figures import BRIEF_OUTAGE, day_and_month, percent, span

STEP = 4  # units for each day
HEIGHT = 32
# A worse day has a taller bar, for people who cannot tell the colours apart.
HEIGHTS = {"n": 4, "u": 14, "g": 26, "m": 26, "p": 29, "d": HEIGHT}


@dataclass(frozen=True, slots=True)
class Bars:
    """``lines``: class and path. ``data``: the days that are not simply up, for the script."""

    width: int
    lines: Sequence[tuple[str, str]]
    data: str
    label: str


_Drawn = tuple[float | None, Sequence[PublicDay]]


class BarsCache:
    """A cache of bars, which drops the least recently used. Most monitors do not change between two
    reads, and to compare days takes a hundredth of the time that drawing them takes.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._cache: LRUCache[Hashable, tuple[_Drawn, Bars]] = LRUCache(limit)

    def of(self, component: Component) -> Bars:
        # A monitor has other days in other time zones and months, and other bars in each language.
        key = (component.id, component.days[0].day if component.days else None, spoken())
        values = component.uptime, component.days
        cached = self._cache.get(key)
        if cached is None or cached[0] != values:
            cached = self._cache[key] = values, bars(component.days, component.uptime)
        return cached[1]


def bars(days: Sequence[PublicDay], uptime: float | None) -> Bars:
    classes = [day_class(day) for day in days]
    return Bars(STEP * len(days) - 1, _lines(classes), _data(days), bars_label(days, uptime))


def day_class(day: PublicDay) -> str:
    """The class of a day: n: no data, u: unknown, g: good, m: maintenance, p: down for a short
    time, d: down.
    """
    if day.down_s:
        return "p" if day.down_s <= BRIEF_OUTAGE else "d"
    if day.uptime is None:
        return "m" if day.maintenance_s else "u" if day.unknown_s else "n"
    return "g" if day.maintenance_s < 3600 else "m"


def _lines(classes: Sequence[str]) -> list[tuple[str, str]]:
    paths: dict[str, str] = {}
    start = 0
    for name, run in groupby(classes):
        days = len(list(run))
        y = f"{HEIGHT - HEIGHTS[name] / 2:g}"
        paths[name] = f"{paths.get(name, '')}M{STEP * start} {y}h{STEP * days - 1}"
        start += days
    return list(paths.items())


def _data(days: Sequence[PublicDay]) -> str:
    """``index:percent:down:maintenance:unknown`` for each day that was not simply up, in seconds;
    empty values at the end are left out. Adjacent days without data are ``0-56``.
    """
    parts: list[str] = []
    for text, run in groupby(enumerate(days), key=lambda numbered: _day_data(numbered[1])):
        indices = [index for index, _day in run]
        if text:
            parts += [f"{index}:{text}" for index in indices]
        elif text is not None:
            last = f"-{indices[-1]}" if len(indices) > 1 else ""
            parts.append(f"{indices[0]}{last}")
    return ",".join(parts)


def _day_data(day: PublicDay) -> str | None:
    """None for a day that was simply up."""
    if day.uptime == 100 and not (day.maintenance_s or day.unknown_s):
        return None
    uptime = "" if day.uptime is None else percent(day.uptime).rstrip("%")
    seconds = (day.down_s, day.maintenance_s, day.unknown_s)
    return ":".join([uptime, *(str(n) if n else "" for n in seconds)]).rstrip(":")


def bars_label(days: Sequence[PublicDay], uptime: float | None) -> str:
    """The days in words, for people who cannot see the bars."""
    if uptime is None:
        return _("No data yet.")
    bad = [day for day in days if day.down_s]
    if not bad:
        return _("%(percent)s up, no day with downtime.", percent=percent(uptime))
    worst = max(bad, key=lambda day: day.down_s)
    return _n(
        "%(percent)s up, %(num)s day with downtime, at most %(span)s on %(day)s.",
        "%(percent)s up, %(num)s days with downtime, at most %(span)s on %(day)s.",
        len(bad),
        percent=percent(uptime),
        span=span(worst.down_s),
        day=f"{day_and_month(worst.day)} {worst.day.year:04}",
    )
