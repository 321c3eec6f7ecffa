"""The chart of the hour around an incident: each check by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.errors import NotFound
from app.i18n import _, _n
from app.records import Incident, Marker, Result, ResultQuery, Verdict
from app.stores import current_store
from app.web.frame import servers
from app.web.shown import axis, charts, places, times
from app.web.shown.markers import Lettering, MarkerLine, height_above, marker_lines

SPAN, AFTER = timedelta(hours=1), timedelta(minutes=30)
# In units of the SVG. Narrow, so that its letters can be read on a phone without scrolling.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 190, 92, 8, 12, 30
LETTERING = Lettering(13, 22)  # in the size that it has on phones
PER_PAGE, PAGES = 100, 30  # of results: an interval of 10 s from eight places


@dataclass(frozen=True, slots=True)
class Dot:
    """One check, with what its title says. ``y`` is the lower edge for one without an answer.
    ``style``: the class of its place, where there are several.
    """

    x: float
    y: float
    title: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class HourChart:
    """What the macro draws. ``lines`` are SVG paths between good checks of a place without another
    check between them, each with its class. ``unknown``: checks that could not be made. ``places``:
    class and title of each, where there are several.
    """

    label: str
    lines: Sequence[tuple[str, str]]
    good: Sequence[Dot]
    failed: Sequence[Dot]
    unknown: Sequence[Dot]
    incident: charts.Band
    x_ticks: Sequence[charts.Tick]
    y_ticks: Sequence[charts.Tick]
    markers: Sequence[MarkerLine] = ()
    places: Sequence[tuple[str, str]] = ()
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM

    @property
    def above(self) -> int:
        return height_above(self.markers)


def around(incident: Incident, now: datetime) -> tuple[datetime, datetime]:
    """The time of the chart: half an hour on each side of the start, or the last hour if that half
    hour is not over yet. Up to a full minute: otherwise the page would change with each second, and
    be sent again each time that it refreshes.
    """
    minute = now.replace(second=0, microsecond=0)
    if minute < now:
        minute += timedelta(minutes=1)
    end = max(incident.started_at, min(incident.started_at + AFTER, minute))
    return end - SPAN, end


def chart_of(incident: Incident, markers: Sequence[Marker] = ()) -> HourChart | None:
    """The hour of an incident, with those of the ``markers`` that are in it; None without results,
    which are kept for a while only.
    """
    if servers.is_bare():
        return None
    begin, end = around(incident, times.now())
    results = list(_results(incident.monitor_id, begin, end))
    return draw(incident, results, begin, end, markers) if results else None


def draw(
    incident: Incident,
    results: Sequence[Result],
    begin: datetime,
    end: datetime,
    markers: Sequence[Marker] = (),
) -> HourChart:
    """``results``: between ``begin`` and ``end``, oldest first."""
    largest = max(_response_times(results), default=0)
    y_lines = charts.axis_lines(largest, largest)
    scale = _Scale(begin, y_lines[-1][0])
    good = [result for result in results if result.is_good and result.response_time is not None]
    failed = [result for result in results if result.verdict is Verdict.DOWN]
    unknown = [result for result in results if result.verdict is Verdict.UNKNOWN]
    styles = places.styles(result.location for result in results)
    if len(styles) == 1:
        styles = dict.fromkeys(styles, "average")
    several = len(styles) > 1
    titles = _Titles(several, largest)
    label = _label(results, good, failed, len(unknown), begin, end, largest)
    first = max(begin, incident.started_at)
    last = min(end, incident.ended_at or end)
    left = scale.x(first)
    return HourChart(
        label=" ".join([label, *_place_sentences(results, largest)]) if several else label,
        lines=[
            (styles[place], charts.path(run))
            for place, run in _runs(results, scale)
            if len(run) > 1
        ],
        good=[
            replace(scale.dot(result, titles.title(result)), style=styles[result.location])
            for result in good
        ],
        failed=[scale.dot(result, titles.title(result)) for result in failed],
        unknown=[scale.dot(result, titles.title(result)) for result in unknown],
        incident=charts.Band(left, max(2.0, round(scale.x(last) - left, 1)), _("Incident")),
        x_ticks=[
            charts.Tick(scale.x(at), text) for at, text in axis.marks(begin, end, times.zone())
        ],
        y_ticks=[charts.Tick(scale.y(ms), text) for ms, text in y_lines],
        markers=marker_lines(
            [
                (scale.x(marker.time), marker.name, f"{times.clock(marker.time)}: {marker.name}")
                for marker in markers
                if begin <= marker.time <= end
            ],
            WIDTH,
            LETTERING,
        ),
        places=[(style, places.title(name)) for name, style in styles.items()] if several else (),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    begin: datetime
    top_ms: int

    def x(self, at: datetime) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * ((at - self.begin) / SPAN), 1)

    def y(self, ms: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - ms / self.top_ms), 1)

    def dot(self, result: Result, title: str) -> Dot:
        height = result.response_time if result.is_good else None
        return Dot(self.x(result.checked_at), self.y(height or 0), title)


def _response_times(results: Iterable[Result]) -> Iterator[int]:
    return (
        result.response_time
        for result in results
        if result.is_good and result.response_time is not None
    )


def _place_sentences(results: Sequence[Result], largest: float) -> Iterator[str]:
    """What the chart shows of each of several places, in words."""
    for name in places.styles(result.location for result in results):
        own = [result for result in results if result.location == name]
        failed = sum(result.verdict is Verdict.DOWN for result in own)
        figures = _(
            "%(place)s: %(count)s, %(failed)s failed",
            place=places.title(name),
            count=len(own),
            failed=failed,
        )
        if measured := list(_response_times(own)):
            average = charts.ms_text(sum(measured) / len(measured), largest)
            figures = _("%(figures)s, %(average)s on average", figures=figures, average=average)
        yield f"{figures}."


def _runs(results: Sequence[Result], scale: _Scale) -> Iterator[tuple[str, list[charts.Point]]]:
    """The points of good checks of each place in runs, split where one failed or could not be made:
    a line across an outage would say that it answered meanwhile, and one from place to place that
    the response time went up and down.
    """
    for place in dict.fromkeys(result.location for result in results):
        run: list[charts.Point] = []
        for result in results:
            if result.location != place:
                continue
            if result.is_good and result.response_time is not None:
                run.append((scale.x(result.checked_at), scale.y(result.response_time)))
            elif run:
                yield place, run
                run = []
        if run:
            yield place, run


@dataclass(frozen=True, slots=True)
class _Titles:
    """The titles of dots; each names its place if there are several."""

    several: bool
    largest: float

    def title(self, result: Result) -> str:
        clock = times.clock(result.checked_at)
        start = f"{clock}, {places.title(result.location)}" if self.several else clock
        if result.is_good:
            return f"{start}: {charts.ms_text(result.response_time or 0, self.largest)}"
        return f"{start}: {result.cause or result.verdict}"


def _label(
    results: Sequence[Result],
    good: Sequence[Result],
    failed: Sequence[Result],
    unknown: int,
    begin: datetime,
    end: datetime,
    largest: float,
) -> str:
    measured = list(_response_times(good))
    figures = {
        "start": times.clock(begin),
        "end": times.clock(end),
        "count": len(results),
        "failed": len(failed),
    }
    if measured:
        label = _(
            "Checks from %(start)s to %(end)s: %(count)s, of which %(failed)s failed,"
            " %(average)s on average.",
            average=charts.ms_text(sum(measured) / len(measured), largest),
            **figures,
        )
    else:
        label = _(
            "Checks from %(start)s to %(end)s: %(count)s, of which %(failed)s failed.", **figures
        )
    if unknown:
        label += " " + _n("%(num)s could not be made.", "%(num)s could not be made.", unknown)
    return label


def _results(monitor_id: int, begin: datetime, end: datetime) -> list[Result]:
    """Oldest first; none where another server no longer has the monitor."""
    results: list[Result] = []
    until = end + timedelta(seconds=1)
    for number in range(1, PAGES + 1):
        query = ResultQuery(monitor_id, from_=begin, to=until, per_page=PER_PAGE, page=number)
        try:
            page = current_store().results.list(query)
        except NotFound:
            return []
        results += page.items
        if number >= page.last_number or len(page.items) < PER_PAGE:
            break
    return results[::-1]
