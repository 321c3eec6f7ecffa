"""Charts of response times, bars of states and small lines, as positions or paths in an SVG. Pure.

Positions are in the units of the SVG's view box, so that a chart scales with the page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

from markupsafe import Markup, escape

from app.i18n import _
from app.records import PHASES, IncidentSeverity
from app.stats.series import day_state
from app.web.shown import looks, plot
from app.web.shown.markers import Lettering, marker_lines, unnamed

# With more titles, the page would be large, and the bars too narrow to point at.
TITLES_AT_MAX = 48
LETTERING = Lettering(8.5, 14)

Bucket = Mapping[str, Any]
FormatMoment = Callable[[datetime], str]
# Start, end (None: it is open), title, link (None: without), and severity.
DrawnIncident = tuple[datetime, datetime | None, str, str | None, str]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The response time above which a check is degraded; ``y`` is None if it lies above the
    chart.
    """

    y: float | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(plot.TimeChart):
    """A response-time chart. ``areas``: SVG paths with their classes. ``dots``: measurements
    without a neighbour, which no line can show, with their classes. ``earlier``: the title of the
    line of an earlier time.
    """

    width, height = 900, 230
    left, right, top, bottom = 70, 894, 10, 204

    areas: Sequence[tuple[str, str]]
    maintenance: Sequence[plot.Band]
    incidents: Sequence[plot.Band]
    dots: Sequence[tuple[str, float, float]] = ()
    slow: Threshold | None = None
    earlier: str | None = None

    @property
    def empty(self) -> bool:
        return not self.lines and not self.areas and not self.dots

    @property
    def unnamed(self) -> str:
        return unnamed(self.markers)


@dataclass(frozen=True, slots=True)
class PlaceSeries:
    """The response times of a place by bucket. ``style``: the class of its line. ``bridged``: how
    many buckets without a measurement lie between two of its checks.
    """

    title: str
    style: str
    times: Sequence[int | None]
    bridged: int = 0


@dataclass(frozen=True, slots=True)
class EarlierSeries:
    """The response times of an earlier time, moved to the time of the chart: ``times`` for each
    ``width`` from ``start``. ``idle``: the indexes at which no check was due.
    ``response_time``: of the whole time, as in an answer of ``statistics``.
    """

    title: str
    start: datetime
    width: timedelta
    times: Sequence[int | None]
    idle: Collection[int]
    response_time: Mapping[str, int | None]

    def at(self, moment: datetime) -> int | None:
        index = (moment - self.start) // self.width
        return self.times[index] if 0 <= index < len(self.times) else None


def earlier_series(
    title: str, statistics: Mapping[str, Any], shift: timedelta, seconds: int
) -> EarlierSeries:
    """``statistics``: the answer for the earlier time. ``shift``: how much later the chart is.
    ``seconds``: the width of the chart's buckets; narrower buckets are combined.
    """
    width, buckets = statistics["bucket_seconds"], statistics["buckets"]
    step = max(1, seconds // width)
    groups = [buckets[index : index + step] for index in range(0, len(buckets), step)]
    return EarlierSeries(
        title=title,
        start=datetime.fromisoformat(buckets[0]["start"]) + shift,
        width=timedelta(seconds=step * width),
        times=[_mean(group) for group in groups],
        idle={index for index, group in enumerate(groups) if all(map(_between_checks, group))},
        response_time=statistics["response_time"],
    )


def _mean(buckets: Sequence[Bucket]) -> int | None:
    """The mean response time of several buckets, weighted by their checks."""
    measured = [bucket for bucket in buckets if bucket["response_time"] is not None]
    checks = sum(bucket["checks"] for bucket in measured)
    total = sum(bucket["checks"] * bucket["response_time"] for bucket in measured)
    return round(total / checks) if checks else None


def response_chart(
    statistics: Mapping[str, Any],
    format_moment: FormatMoment,
    *,
    stacked: bool = False,
    slow_after: int | None = None,
    marks: Iterable[tuple[datetime, str]] = (),
    incidents: Iterable[DrawnIncident] = (),
    markers: Iterable[tuple[datetime, str]] = (),
    places: Sequence[PlaceSeries] = (),
    earlier: EarlierSeries | None = None,
) -> Chart:
    """The chart of a ``statistics`` answer.

    ``format_moment`` writes the moments in titles. ``marks``: labels of the time axis. ``stacked``
    shows the phases on top of each other instead of average and 95th percentile. ``slow_after``:
    the threshold in ms. ``markers``: moment and name of each, oldest first. ``places``: a line for
    each, instead of the average of all places, which no place measured. Stacked phases are always
    the average of all places.
    """
    buckets = statistics["buckets"]
    bucket_times = _drawn_times(buckets, stacked, places, earlier)
    times = [ms for _start, _end, ms in bucket_times]
    figures = [statistics["response_time"], *([earlier.response_time] if earlier else [])]
    p99 = max((each["p99"] for each in figures if each["p99"] is not None), default=None)
    highest = plot.usual_top(times, p99)
    lines_of_axis = plot.axis_lines(_with_threshold(highest, slow_after))
    scale = plot.Scale(Chart, len(buckets), lines_of_axis[-1][0])
    areas: list[tuple[str, str]] = []
    runs: list[tuple[str, list[plot.Point]]] = []
    if stacked:
        areas = _stack(buckets, scale)
    elif places:
        runs = [
            (place.style, run) for place in places for run in _place_runs(place, buckets, scale)
        ]
    else:
        runs = [("average", run) for run in _figure_runs(buckets, "response_time", scale)]
        areas = [(name, _area(run, scale)) for name, run in runs if len(run) > 1]
    lines = [(name, plot.path(run)) for name, run in runs if len(run) > 1]
    if not stacked:
        lines += [
            ("p95", plot.path(run)) for run in _figure_runs(buckets, "p95", scale) if len(run) > 1
        ]
    if earlier:
        earlier_runs = _earlier_runs(earlier, buckets, scale)
        runs = [*runs, *(("earlier", run) for run in earlier_runs)]
        lines = [*(("earlier", plot.path(run)) for run in earlier_runs if len(run) > 1), *lines]
    no_times = _("No response times in this range.")
    sentences = [
        _summary(_("Response time"), statistics["response_time"]) or no_times,
        *(_place_sentence(place) for place in places),
    ]
    if earlier:
        none = _("%(title)s: no response times.", title=earlier.title)
        sentences.append(_summary(earlier.title, earlier.response_time) or none)
    sentences.append(plot.clipped_sentence(times, scale))
    return Chart(
        label=" ".join(filter(None, sentences)),
        areas=areas,
        lines=lines,
        maintenance=_maintenance(buckets, scale),
        incidents=_bands(buckets, scale, incidents),
        x_ticks=[_x_tick(_x_of(buckets, scale, at), text) for at, text in marks],
        y_ticks=[plot.Tick(scale.y(ms), text) for ms, text in lines_of_axis],
        dots=[(name, *run[0]) for name, run in runs if len(run) == 1],
        clipped=[
            plot.Dot(
                round((_x_of(buckets, scale, start) + _x_of(buckets, scale, end)) / 2, 1),
                scale.y(ms),
                f"{format_moment(start)}: {looks.ms(ms)}",
            )
            for start, end, ms in bucket_times
            if ms > scale.top_ms
        ],
        places=() if stacked else [(place.style, place.title) for place in places],
        slow=_threshold(scale, slow_after),
        markers=marker_lines(
            [
                (_x_of(buckets, scale, at), name, f"{format_moment(at)}: {name}")
                for at, name in markers
            ],
            Chart.width,
            LETTERING,
        ),
        earlier=earlier.title if earlier else None,
    )


def _summary(title: str, figures: Mapping[str, Any]) -> str:
    """Response times in words, for people who cannot see the chart."""
    if figures["avg"] is None:
        return ""
    return _(
        "%(title)s: %(average)s on average, p95 %(p95)s, %(most)s at most.",
        title=title,
        average=looks.ms(figures["avg"]),
        p95=looks.ms(figures["p95"]),
        most=looks.ms(figures["max"]),
    )


def _place_sentence(place: PlaceSeries) -> str:
    """The line of a place in words."""
    measured = [ms for ms in place.times if ms is not None]
    if not measured:
        return ""
    return _(
        "%(place)s: %(least)s to %(most)s.",
        place=place.title,
        least=looks.ms(min(measured)),
        most=looks.ms(max(measured)),
    )


# Bars -----------------------------------------------------------------------------------------


CELL, GAP, TALL = 8, 2, 22  # as the dashes of ``.strip`` in charts.css
# An outage of less than an hour is a lower cell in front of the hour's other state. Its height is
# in quarters, as the strokes of ``.strip`` in charts.css.
QUARTERS = 4


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of cells: a path for each state, and the size of the row. ``drawn``: the paths as
    SVG.
    """

    paths: Sequence[tuple[str, str]]
    width: int
    drawn: Markup
    height: int = TALL


def cells(buckets: Sequence[Bucket], *, days: bool = False) -> Bar:
    """A row of cells. ``days``: each is a day; otherwise they are the hours of one.

    Adjacent cells of one state are one dashed line, to keep a list of a hundred monitors small.
    """
    total = sum(bucket["down"] for bucket in buckets)
    parts = [_down_part(bucket, bucket["down"] if days else total) for bucket in buckets]
    states = [_other_state(bucket, part) for bucket, part in zip(buckets, parts, strict=True)]
    return _bar(tuple(part if "-" in part else "" for part in parts), tuple(states))


@lru_cache(maxsize=1024)  # most monitors of a list look alike, and most are shown again
def _bar(parts: Sequence[str], states: Sequence[str]) -> Bar:
    whole = _paths_by_state(states, lambda _state: TALL // 2)
    front = _paths_by_state(parts, lambda part: TALL - TALL * int(part[-1]) // QUARTERS // 2)
    width = len(states) * (CELL + GAP) - GAP
    paths = [*sorted(whole.items()), *sorted(front.items())]
    drawn = Markup().join(Markup('<path class="cell-{}" d="{}"/>').format(*item) for item in paths)
    return Bar(paths, max(width, 1), drawn)


def strip(bar: Bar, label: str) -> Markup:
    """The row as an image. ``label``: the row in words."""
    return Markup(  # noqa: S704 - ``drawn`` has no text of users
        f'<svg class="strip" viewBox="0 0 {bar.width} {bar.height}" preserveAspectRatio="none"'
        f' role="img" aria-label="{escape(label)}">{bar.drawn}</svg>'
    )


def _paths_by_state(states: Sequence[str], height: Callable[[str], int]) -> dict[str, str]:
    """The path of each state, at its height; cells without a state are left out."""
    paths: dict[str, str] = {}
    offset = 0
    for state, run in groupby(states):
        count = len(list(run))
        if state:
            line = f"M{offset * (CELL + GAP)} {height(state)}h{count * (CELL + GAP) - GAP}"
            paths[state] = paths.get(state, "") + line
        offset += count
    return paths


def _down_part(bucket: Bucket, in_day: int) -> str:
    """The class of the cell for the time down: ``down-1`` to ``down-3`` for quarters, ``down`` for
    the whole bucket, empty if it was not down; ``brief`` in place of ``down`` for a day with little
    time down. ``in_day``: the seconds down in the day of the bucket.
    """
    if not bucket["down"]:
        return ""
    total = bucket["up"] + bucket["down"] + bucket["unknown"] + bucket["maintenance"]
    quarters = -(-QUARTERS * bucket["down"] // total) if total else QUARTERS
    state = day_state({"down": in_day})
    return state if quarters == QUARTERS else f"{state}-{quarters}"


def _other_state(bucket: Bucket, down_part: str) -> str:
    """The state behind a partial outage; the state of a bucket without one."""
    if down_part in ("down", "brief"):
        return down_part
    return "degraded" if bucket.get("degraded") else day_state({**bucket, "down": 0})


# In quarters of a pixel, so that whole numbers, which are short, are precise enough.
SPARK_WIDTH, SPARK_HEIGHT = 384, 88


@lru_cache(maxsize=4096)  # a monitor's line changes little from one view to the next
def sparkline(values: tuple[int | None, ...]) -> Markup:
    """Paths of a small line without axes, as SVG; a missing value is a gap. Empty if there are
    fewer than two values.
    """
    measured = [value for value in values if value is not None]
    if len(measured) < 2:
        return Markup()
    top, step = max(measured) * 1.1 or 1, SPARK_WIDTH / max(1, len(values) - 1)
    usable = SPARK_HEIGHT - 8
    points: list[plot.Point | None] = [
        None if ms is None else (round(index * step), round(SPARK_HEIGHT - ms / top * usable))
        for index, ms in enumerate(values)
    ]
    return Markup().join(map(_relative_path, plot.unbroken(points)))


def _relative_path(points: Sequence[plot.Point]) -> Markup:
    """A path with relative whole numbers, which is a third as long as one with absolute ones."""
    x, y = points[0]
    moves = [f"{to[0] - start[0]} {to[1] - start[1]}" for start, to in pairwise(points)]
    if not moves:  # zero length: its round cap is a point
        return Markup('<path class="lone" d="M{} {}l0 0"/>').format(x, y)
    return Markup('<path d="M{} {}l{}"/>').format(x, y, " ".join(moves))


def day_links(cells: Iterable[tuple[str, str, str]]) -> Markup:
    """A bar of days, each a link. ``cells``: state, title and URL of each."""
    drawn = "".join(
        f'<li><a class="cell-{state}" href="{url}" title="{(text := escape(title))}" tabindex="-1">'
        f'<span class="visually-hidden">{text}</span></a></li>\n'
        for state, title, url in cells
    )
    return Markup(f'<ol class="days">\n{drawn}</ol>')  # noqa: S704 - titles are escaped


# The parts of a chart -------------------------------------------------------------------------


# A threshold above the measurements times this is not in the chart: it would flatten them.
THRESHOLD_WITHIN = 1.5
TEXT_HALF = 24  # half the width of a label of the time axis, rounded up


def _with_threshold(highest: float, slow_after: int | None) -> float:
    is_near = slow_after is not None and slow_after <= highest * THRESHOLD_WITHIN
    return max(highest, slow_after) if is_near and slow_after else highest


def _threshold(scale: plot.Scale, slow_after: int | None) -> Threshold | None:
    if slow_after is None:
        return None
    y = scale.y(slow_after) if slow_after <= scale.top_ms else None
    return Threshold(y, _("Slow after %(time)s", time=looks.ms(slow_after)))


def _x_tick(at: float, text: str) -> plot.Tick:
    """A label of the time axis. The last one ends at the edge, so that it is not cut."""
    is_last = at > Chart.right - TEXT_HALF
    return plot.Tick(Chart.right, text, "end") if is_last else plot.Tick(at, text)


def _drawn_times(
    buckets: Sequence[Bucket],
    stacked: bool,
    places: Sequence[PlaceSeries],
    earlier: EarlierSeries | None,
) -> list[tuple[datetime, datetime, float]]:
    """Start, end and longest time of each bucket of each line."""
    spans = [_time_of([bucket]) for bucket in buckets]
    drawn: list[tuple[datetime, datetime, float]] = [
        (*span, ms)
        for place in places
        for span, ms in zip(spans, place.times, strict=True)
        if ms is not None
    ]
    for span, bucket in zip(spans, buckets, strict=True):
        measured = [ms for ms in (bucket["p95"], bucket["response_time"]) if ms is not None]
        if stacked and measured:
            measured = [sum(value or 0 for value in bucket["timings"].values())]
        drawn += [(*span, max(measured))] if measured else []
    if earlier:
        for index, ms in enumerate(earlier.times):
            start = earlier.start + index * earlier.width
            if ms is not None and spans[0][0] <= start < spans[-1][1]:
                drawn.append((start, start + earlier.width, ms))
    return drawn


def _figure_runs(buckets: Sequence[Bucket], name: str, scale: plot.Scale) -> list[list[plot.Point]]:
    """The points of a figure in runs, split at buckets without the figure."""
    points: list[plot.Point | None] = [
        None if bucket[name] is None else (scale.x(index + 0.5), scale.y(bucket[name]))
        for index, bucket in enumerate(buckets)
        if not _between_checks(bucket)
    ]
    return plot.unbroken(points)


def _place_runs(
    place: PlaceSeries, buckets: Sequence[Bucket], scale: plot.Scale
) -> list[list[plot.Point]]:
    """The points of a place in runs, split where the monitor was down, or where more measurements
    are missing than between two checks.
    """
    points: list[plot.Point | None] = []
    missing = 0
    for number, (ms, bucket) in enumerate(zip(place.times, buckets, strict=True)):
        missing = 0 if ms is not None else missing + 1
        if bucket["down"] or missing > place.bridged:
            points.append(None)
        if ms is not None:
            points.append((scale.x(number + 0.5), scale.y(ms)))
    return plot.unbroken(points)


def _between_checks(bucket: Bucket) -> bool:
    """Whether no check was due in the bucket. The line then continues, because a gap would look
    like a fault.
    """
    return bucket["response_time"] is None and not bucket.get("checks") and bool(bucket.get("up"))


def _area(
    run: Sequence[plot.Point], scale: plot.Scale, lower: Sequence[plot.Point] | None = None
) -> str:
    back = lower or [(x, scale.y(0)) for x, _y in run]
    return plot.path([*run, *reversed(back)]) + "z"


def _stack(buckets: Sequence[Bucket], scale: plot.Scale) -> list[tuple[str, str]]:
    heights = [0.0] * len(buckets)
    areas: list[tuple[str, str]] = []
    for phase in PHASES:
        upper: list[plot.Point | None] = []
        lower: list[plot.Point | None] = []
        for index, bucket in enumerate(buckets):
            if _between_checks(bucket):
                continue
            measured = bucket["response_time"] is not None
            below = heights[index]
            heights[index] += bucket["timings"][phase] or 0
            x = scale.x(index + 0.5)
            upper.append((x, scale.y(heights[index])) if measured else None)
            lower.append((x, scale.y(below)) if measured else None)
        for top, bottom in zip(plot.unbroken(upper), plot.unbroken(lower), strict=True):
            areas.append((phase, _area(_wide(top), scale, _wide(bottom))))
    return areas


def _wide(run: Sequence[plot.Point]) -> Sequence[plot.Point]:
    """A measurement without a neighbour as a bar: an area of one point has no width."""
    if len(run) > 1:
        return run
    ((x, y),) = run
    return [(max(x - 2, Chart.left), y), (min(x + 2, Chart.right), y)]


def _maintenance(buckets: Sequence[Bucket], scale: plot.Scale) -> list[plot.Band]:
    title = _("Maintenance")
    return [
        plot.Band(scale.x(index), round(scale.x(index + 1) - scale.x(index), 1), title)
        for index, bucket in enumerate(buckets)
        if bucket["maintenance"]
    ]


def _bands(
    buckets: Sequence[Bucket], scale: plot.Scale, spans: Iterable[DrawnIncident]
) -> list[plot.Band]:
    if not buckets:
        return []
    first, last = _time_of(buckets)
    bands = []
    for start, end, title, href, severity in spans:
        begin, stop = max(start, first), min(end or last, last)
        if stop < first or begin > last:
            continue
        left, right = _x_of(buckets, scale, begin), _x_of(buckets, scale, stop)
        began = severity == IncidentSeverity.DEGRADED and start >= first
        width = max(2.0, round(right - left, 1))
        bands.append(plot.Band(left, width, title, href, severity, began))
    return bands


def titles(readings: Sequence[str]) -> Markup:
    """Invisible bars with titles, for browsers without scripts. ``readings``: a sentence for each
    bucket.
    """
    scale = plot.Scale(Chart, len(readings), 1)
    step = -(-len(readings) // TITLES_AT_MAX) or 1
    width, height = round(scale.x(step) - scale.x(0), 1), Chart.bottom - Chart.top
    return Markup(  # noqa: S704 - readings are escaped
        "".join(
            f'<path class="hit" d="M{scale.x(index)} {Chart.top}h{width}v{height}h-{width}z">'
            f"<title>{escape(readings[index])}</title></path>"
            for index in range(0, len(readings), step)
        )
    )


def _earlier_runs(
    earlier: EarlierSeries, buckets: Sequence[Bucket], scale: plot.Scale
) -> list[list[plot.Point]]:
    first, last = _time_of(buckets)
    points: list[plot.Point | None] = []
    for index, ms in enumerate(earlier.times):
        at = earlier.start + (index + 0.5) * earlier.width
        if first <= at <= last and index not in earlier.idle:
            points.append(None if ms is None else (_x_of(buckets, scale, at), scale.y(ms)))
    return plot.unbroken(points)


def _x_of(buckets: Sequence[Bucket], scale: plot.Scale, moment: datetime) -> float:
    first, last = _time_of(buckets)
    return scale.x(len(buckets) * ((moment - first) / (last - first)))


def _time_of(buckets: Sequence[Bucket]) -> tuple[datetime, datetime]:
    start, end = buckets[0]["start"], buckets[-1]["end"]
    return datetime.fromisoformat(start), datetime.fromisoformat(end)
