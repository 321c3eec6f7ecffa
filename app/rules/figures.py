"""Write figures for people, and the title of a report. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, tzinfo

from app.i18n import N_, _, _n
from app.rules.time import in_zone

MINUTE, HOUR, DAY = 60, 3600, 86400
# Seconds down in a day: up to this, the bar of the day is amber, above it red.
BRIEF_OUTAGE = 30 * MINUTE
# The seconds of each unit, and a count of the unit in words.
UNITS: tuple[tuple[int, Callable[[int], str]], ...] = (
    (DAY, lambda count: _n("%(num)s day", "%(num)s days", count)),
    (HOUR, lambda count: _n("%(num)s hour", "%(num)s hours", count)),
    (MINUTE, lambda count: _n("%(num)s minute", "%(num)s minutes", count)),
    (1, lambda count: _n("%(num)s second", "%(num)s seconds", count)),
)
INSTANT = N_("less than a second")


DECIMALS = 2  # of a percentage, on all pages


def percent(value: float | None, seconds: float | None = None) -> str:
    """``99.95%``: never rounded up to 100, because that would hide an outage. ``seconds``: the
    length of the time, if known. For less than an hour there are no decimals, because too few
    checks are made in that time.
    """
    if value is None:
        return "–"
    if value >= 100:
        return "100%"
    decimals = 0 if seconds is not None and seconds < HOUR else DECIMALS
    scale = 10**decimals
    text = f"{int(value * scale + 1e-6) / scale:.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if decimals else text}%"


def about(seconds: float) -> str:
    """A duration in its largest unit, in words: ``3 minutes``."""
    for size, in_words in UNITS:
        if count := int(seconds // size):
            return in_words(count)
    return _(INSTANT)


def span(seconds: float) -> str:
    """A duration in its two largest units: ``3 d 4 h``, ``12 min 5 s``."""
    remainder = max(0, int(seconds))
    parts: list[str] = []
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        count, remainder = divmod(remainder, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts)


def milliseconds(ms: float, *, largest: float = 0, exact: bool = False) -> str:
    """A duration: ``240 ms``, ``1.5 s``, ``12 min 5 s``. ``exact``: as ``25,001 ms``, for tables,
    charts and their tooltips, which must agree. Otherwise, for a sentence, it is rounded to the
    unit of the ``largest`` duration in the sentence.
    """
    if ms > MINUTE * 1000:
        return span(ms / 1000)
    if exact or max(ms, largest) < 1000:
        return f"{ms:,.0f} ms"
    return f"{ms / 1000:.3g} s"


def in_one_unit(*times: float) -> list[str]:
    """The durations (ms) of one sentence, in the same unit."""
    return [milliseconds(ms, largest=max(times)) for ms in times]


MONTHS = (
    N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June"), N_("July"),
    N_("August"), N_("September"), N_("October"), N_("November"), N_("December"),
)  # fmt: skip


SHORT_MONTHS = (
    N_("Jan"), N_("Feb"), N_("Mar"), N_("Apr"), N_("May"), N_("Jun"), N_("Jul"), N_("Aug"),
    N_("Sep"), N_("Oct"), N_("Nov"), N_("Dec"),
)  # fmt: skip


def day_and_month(day: date) -> str:
    """``22 Nov``."""
    return f"{day.day} {_(SHORT_MONTHS[day.month - 1])}"


def zoned_moment(moment: datetime, zone: tzinfo) -> str:
    """``22 Nov 2026, 09:32 CET``."""
    local = in_zone(moment, zone)
    text = f"{day_and_month(local)} {local.year:04}, {local:%H:%M} {local.tzname() or ''}"
    return text.rstrip()


def month_name(moment: datetime) -> str:
    """``October 2026``."""
    return _("%(month)s %(year)s", month=_(MONTHS[moment.month - 1]), year=moment.year)


def report_subject(names: list[str], tag: str | None, *, chosen: bool) -> str:
    """``12 monitors tagged shop``, ``all 12 monitors``, or the name of a single monitor.
    ``chosen``: a person selected them.
    """
    if len(names) == 1 and not tag:
        return names[0]
    count, number = len(names), f"{len(names):,}"
    if tag:
        return _n(
            "%(num)s monitor tagged %(tag)s",
            "%(num)s monitors tagged %(tag)s",
            count,
            num=number,
            tag=tag,
        )
    if chosen or not names:
        return _n("%(num)s monitor", "%(num)s monitors", count, num=number)
    return _n("all %(num)s monitor", "all %(num)s monitors", count, num=number)


def report_title(subject: str, month: str) -> str:
    """``Availability of 12 monitors tagged shop, October 2026``."""
    return _("Availability of %(subject)s, %(month)s", subject=subject, month=month)
