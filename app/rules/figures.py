"""How figures are written for people: percentages and durations. Pure."""

from __future__ import annotations

from collections.abc import Callable

from app.i18n import N_, _, _n

MINUTE, HOUR, DAY = 60, 3600, 86400
# Seconds, and how a number of the unit is written.
UNITS: tuple[tuple[int, Callable[[int], str]], ...] = (
    (DAY, lambda count: _n("%(num)s day", "%(num)s days", count)),
    (HOUR, lambda count: _n("%(num)s hour", "%(num)s hours", count)),
    (MINUTE, lambda count: _n("%(num)s minute", "%(num)s minutes", count)),
    (1, lambda count: _n("%(num)s second", "%(num)s seconds", count)),
)
INSTANT = N_("less than a second")


# How many decimals a percentage has by the seconds that it is of: more would tell apart what the
# checks of that time cannot. At one check a minute, one of them is 1.7% of an hour.
DECIMALS = ((HOUR, 0), (2 * DAY, 1), (27 * DAY, 2))
MOST_DECIMALS = 3


def percent(value: float | None, seconds: float | None = None) -> str:
    """``99.95%``: never rounded up to 100, because that would hide an outage. ``seconds``: how much
    time it is of, if that is known.
    """
    if value is None:
        return "–"
    if value >= 100:
        return "100%"
    short = (most for length, most in DECIMALS if seconds is not None and seconds < length)
    decimals = next(short, MOST_DECIMALS)
    scale = 10**decimals
    text = f"{int(value * scale + 1e-6) / scale:.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if decimals else text}%"


def about(seconds: float) -> str:
    """A duration in its largest unit, in words: ``3 minutes``."""
    for size, written in UNITS:
        if count := int(seconds // size):
            return written(count)
    return _(INSTANT)


def span(seconds: float) -> str:
    """A duration in its two largest units: ``3 d 4 h``, ``12 min 5 s``."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts)
