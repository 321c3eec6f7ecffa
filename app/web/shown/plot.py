"""The scales, axes and lines that all charts of response times share. Pure.

Positions are in the units of the SVG's view box, so that a chart scales with the page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from app.i18n import _n
from app.stats.series import MINUTE_MS
from app.stats.tally import HOUR_MS
from app.web.shown.looks import ms
from app.web.shown.markers import MarkerLine

Point = tuple[float, float]
SECOND_MS = 1000
# The possible distances of two lines of the axis, times a power of ten; and the possible numbers of
# distances. Of axes with the same end, the first is used.
STEPS = (1, 1.5, 2, 2.5, 3, 4, 5)
STEP_COUNTS = (4, 5, 3, 2, 1)
# Times above the 99th percentile times FAR are cut, because they would flatten the chart.
FAR = 3
MIN_TO_CLIP = 4


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis at ``at``. ``anchor``: the SVG attribute ``text-anchor``."""

    at: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Dot:
    """A single measurement with its title. ``style``: the class of its place."""

    x: float
    y: float
    title: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """A span of the chart with a title: maintenance or an incident. ``style``: a class. ``begins``:
    whether its beginning is marked.
    """

    x: float
    width: float
    title: str
    href: str | None = None
    style: str = ""
    begins: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeChart:
    """The data that the macros need for any chart. ``lines``: SVG paths with their classes.
    ``clipped``: the times above the chart. ``places``: class and title of the line of each place,
    if there are several. The class variables are the sizes of the SVG and of the area of the lines.
    """

    width: ClassVar[int]
    height: ClassVar[int]
    left: ClassVar[int]
    right: ClassVar[int]
    top: ClassVar[int]
    bottom: ClassVar[int]

    label: str
    lines: Sequence[tuple[str, str]]
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    clipped: Sequence[Dot] = ()
    markers: Sequence[MarkerLine] = ()
    places: Sequence[tuple[str, str]] = ()

    @property
    def above(self) -> int:
        """The height of the markers' names above the chart."""
        return -min((line.y for line in self.markers if line.y is not None), default=0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Converts an index among ``count`` buckets, and a response time in ms, to positions in the
    SVG.
    """

    chart: type[TimeChart]
    count: int
    top_ms: int

    def x(self, index: float) -> float:
        width = self.chart.right - self.chart.left
        return round(self.chart.left + width * index / max(1, self.count), 1)

    def y(self, ms: float) -> float:
        usable = self.chart.bottom - self.chart.top
        return round(self.chart.top + usable * (1 - min(ms, self.top_ms) / self.top_ms), 1)


def usual_top(times: Collection[float], p99: float | None = None) -> float:
    """The highest time in ms that a chart shows, without times far above the 99th percentile, which
    is that of ``times``, or that of all checks (``p99``) if it is lower.
    """
    ordered = sorted(times)
    if len(ordered) < MIN_TO_CLIP:
        return max(ordered, default=0)
    usual = ordered[-1 - max(1, len(ordered) // 100)]
    if p99 is not None:
        usual = min(usual, p99)
    return next((ms for ms in reversed(ordered) if ms <= FAR * usual), usual)


def clipped_sentence(times: Collection[float], scale: Scale) -> str:
    """A sentence on the times above the chart; empty if there are none."""
    above = [time for time in times if time > scale.top_ms]
    if not above:
        return ""
    return _n(
        "One time is above the chart: %(most)s.",
        "%(num)s times are above the chart, the longest %(most)s.",
        len(above),
        most=ms(max(above)),
    )


def axis_lines(highest: float) -> list[tuple[int, str]]:
    """The lines of an axis in ms, with their labels: from 0 to the lowest round number that is at
    least ``highest``.
    """
    size, unit = _unit(highest)
    round_in = size if size > SECOND_MS else 1  # a round number of ms is round in seconds too
    units = max(1, highest / round_in)
    power = 10 ** (len(str(int(units))) - 1)
    steps = [
        (step * part * round_in, count)
        for part in (power / 10, power)
        for step in STEPS
        for count in STEP_COUNTS
        if step * part * round_in % 1 == 0 and step * part * count >= units
    ]
    step, count = min(steps, key=lambda choice: choice[0] * choice[1])
    values = (round(step * number) for number in range(count + 1))
    return [(value, f"{value / size:,g} {unit}") for value in values]


def _unit(highest: float) -> tuple[int, str]:
    """The size of the axis's unit in ms, and its name."""
    for size, name in ((HOUR_MS, "h"), (MINUTE_MS, "min")):
        if highest >= 3 * size:  # below, the distances would be fractions of the unit
            return size, name
    return (SECOND_MS, "s") if highest > MINUTE_MS else (1, "ms")


def path(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def unbroken(points: Iterable[Point | None]) -> list[list[Point]]:
    """The points in runs, split at each None."""
    runs = groupby(points, key=lambda point: point is not None)
    return [[point for point in run if point] for has_points, run in runs if has_points]
