"""The chart of the hour around an incident, with each single check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.errors import NotFound
from app.i18n import _, _n
from app.records import Incident, Marker, Result, ResultQuery, Verdict
from app.stores import current_store
from app.web.frame import servers
from app.web.shown import axis, looks, places, plot, times
from app.web.shown.markers import Lettering, marker_lines

SPAN, AFTER = timedelta(hours=1), timedelta(minutes=30)
LETTERING = Lettering(13, 22)  # the size on phones
PER_PAGE, PAGES = 100, 30  # of results: an interval of 10 s from eight places


@dataclass(frozen=True, slots=True, kw_only=True)
class HourChart(plot.TimeChart):
    """The chart as data for the macro: each check is a dot, and ``lines`` connect successive good
    checks of a place. ``unknown``: checks that could not be made.
    """

    # Narrow, so that its letters can be read on a phone without scrolling.
    width, height = 640, 190
    left, right, top, bottom = 92, 632, 12, 160

    good: Sequence[plot.Dot]
    failed: Sequence[plot.Dot]
    unknown: Sequence[plot.Dot]
    incident: plot.Band


def around(incident: Incident, now: datetime) -> tuple[datetime, datetime]:
    """The time of the chart: half an hour on each side of the start, or the last hour if the half
    hour after the start is not over. It ends at a full minute, so that the page does not change
    each time that it refreshes.
    """
    minute = now.replace(second=0, microsecond=0)
    if minute < now:
        minute += timedelta(minutes=1)
    end = max(incident.started_at, min(incident.started_at + AFTER, minute))
    return end - SPAN, end


def chart_of(incident: Incident, markers: Sequence[Marker] = ()) -> HourChart | None:
    """The chart of an incident's hour, with ``markers``; None without results, which are deleted
    after some time.
    """
    if servers.is_bare():
        return None
    begin, end = around(incident, times.now())
    results = list(_results(incident.monitor_id, begin, end))
    return hour_chart(incident, results, begin, end, markers) if results else None


def hour_chart(
    incident: Incident,
    results: Sequence[Result],
    begin: datetime,
    end: datetime,
    markers: Sequence[Marker] = (),
) -> HourChart:
    """``results``: those between ``begin`` and ``end``, oldest first."""
    measured = [ms for result in results if (ms := _time_of(result)) is not None]
    y_lines = plot.axis_lines(plot.usual_top(measured))
    scale = plot.Scale(HourChart, 1, y_lines[-1][0])
    styles = places.styles(result.location for result in results)
    several = len(styles) > 1
    if not several:
        styles = dict.fromkeys(styles, "average")

    def x_of(moment: datetime) -> float:
        return scale.x((moment - begin) / SPAN)

    def point(result: Result) -> plot.Point | None:
        ms = _time_of(result)
        return None if ms is None else (x_of(result.checked_at), scale.y(ms))

    def dot(result: Result) -> plot.Dot:
        """A check without an answer is at the lower edge."""
        ms, title = _time_of(result), times.clock(result.checked_at)
        if several:
            title = f"{title}, {places.title(result.location)}"
        answer = looks.ms(ms) if ms is not None else result.cause or result.verdict
        style = styles[result.location]
        return plot.Dot(x_of(result.checked_at), scale.y(ms or 0), f"{title}: {answer}", style)

    left, right = x_of(max(begin, incident.started_at)), x_of(min(end, incident.ended_at or end))
    sentences = [
        _label(results, measured, begin, end),
        *(_place_sentences(results) if several else ()),
        plot.clipped_sentence(measured, scale),
    ]
    return HourChart(
        label=" ".join(filter(None, sentences)),
        lines=[
            (style, plot.path(run))
            for place, style in styles.items()
            for run in plot.unbroken(
                point(result) for result in results if result.location == place
            )
            if len(run) > 1
        ],
        good=[
            dot(result)
            for result in results
            if (ms := _time_of(result)) is not None and ms <= scale.top_ms
        ],
        failed=[dot(result) for result in results if result.verdict is Verdict.DOWN],
        unknown=[dot(result) for result in results if result.verdict is Verdict.UNKNOWN],
        clipped=[dot(result) for result in results if (_time_of(result) or 0) > scale.top_ms],
        incident=plot.Band(left, max(2.0, round(right - left, 1)), _("Incident")),
        x_ticks=[plot.Tick(x_of(at), text) for at, text in axis.marks(begin, end, times.zone())],
        y_ticks=[plot.Tick(scale.y(ms), text) for ms, text in y_lines],
        markers=marker_lines(
            [
                (x_of(marker.time), marker.name, f"{times.clock(marker.time)}: {marker.name}")
                for marker in markers
                if begin <= marker.time <= end
            ],
            HourChart.width,
            LETTERING,
        ),
        places=[(style, places.title(name)) for name, style in styles.items()] if several else (),
    )


def _time_of(result: Result) -> int | None:
    """The response time of a good check; None for a failing one, so that no line crosses an
    outage.
    """
    return result.response_time if result.is_good else None


def _place_sentences(results: Sequence[Result]) -> Iterator[str]:
    """The checks of each place in words."""
    for name in places.styles(result.location for result in results):
        of_place = [result for result in results if result.location == name]
        figures = _(
            "%(place)s: %(count)s, %(failed)s failed",
            place=places.title(name),
            count=len(of_place),
            failed=sum(result.verdict is Verdict.DOWN for result in of_place),
        )
        if measured := [ms for result in of_place if (ms := _time_of(result)) is not None]:
            average = looks.ms(sum(measured) / len(measured))
            figures = _("%(figures)s, %(average)s on average", figures=figures, average=average)
        yield f"{figures}."


def _label(
    results: Sequence[Result], measured: Sequence[int], begin: datetime, end: datetime
) -> str:
    figures = {
        "start": times.clock(begin),
        "end": times.clock(end),
        "count": len(results),
        "failed": sum(result.verdict is Verdict.DOWN for result in results),
    }
    if measured:
        label = _(
            "Checks from %(start)s to %(end)s: %(count)s, of which %(failed)s failed,"
            " %(average)s on average.",
            average=looks.ms(sum(measured) / len(measured)),
            **figures,
        )
    else:
        label = _(
            "Checks from %(start)s to %(end)s: %(count)s, of which %(failed)s failed.", **figures
        )
    if unknown := sum(result.verdict is Verdict.UNKNOWN for result in results):
        label += " " + _n("%(num)s could not be made.", "%(num)s could not be made.", unknown)
    return label


def _results(monitor_id: int, begin: datetime, end: datetime) -> list[Result]:
    """Oldest first; none if another server no longer has the monitor."""
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
