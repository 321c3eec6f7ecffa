"""What a monitor's page shows beside the monitor: figures, charts, days, checks, incidents.

Parts that the store does not offer are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from flask import request, url_for

from app.errors import Invalid
from app.i18n import N_, _
from app.records import (
    CertificateChain,
    Incident,
    IncidentQuery,
    IncidentSeverity,
    IncidentSortBy,
    Monitor,
    Page,
    Ping,
    PingQuery,
    PlaceSeen,
    Result,
    ResultQuery,
    is_heartbeat,
)
from app.rules.figures import DAY
from app.rules.text import one_of
from app.stats import RANGES
from app.stores import current_store
from app.web.frame import servers
from app.web.shown import axis, charts, looks, markers, monitor_rows, times, zoom
from app.web.shown import places as seen_from

HOUR = 3600
DEFAULT_RANGE = "24h"
BAR_DAYS = 90
CHECKS_SHOWN = 10
INCIDENTS_SHOWN = 10
INCIDENTS_MARKED = 100
ANY_DAY = "yyyy-mm-dd"  # stands in an address for the day
RANGE_WORDS = {
    "3h": N_("3 hours"),
    "24h": N_("24 hours"),
    "7d": N_("7 days"),
    "30d": N_("30 days"),
    "90d": N_("90 days"),
    "365d": N_("1 year"),
}
DAY_WORDS = {
    "up": N_("up"),
    "down": N_("down"),
    "maintenance": N_("maintenance"),
    "unknown": N_("unknown"),
    "none": N_("no data"),
}


def context_of(monitor: Monitor) -> dict[str, Any]:
    """The variables of the monitor's page. The address has ``range``, or ``from`` and ``to``, and
    ``phases``. Raises Invalid.
    """
    zoomed = zoom.requested()
    chosen = None if zoomed else request.args.get("range") or DEFAULT_RANGE
    if chosen and chosen not in RANGES:
        raise Invalid({"range": [one_of(RANGES)]})
    store = current_store()
    incidents = store.incidents.list(
        IncidentQuery(
            monitor_id=monitor.id,
            sort_by=IncidentSortBy.STARTED_AT,
            per_page=INCIDENTS_MARKED,
            brief=True,
        )
    )
    context: dict[str, Any] = {
        "incidents": incidents.items[:INCIDENTS_SHOWN],
        "incidents_total": incidents.total,
        "results": _results(monitor.id),
        "pings": _pings(monitor),
        "places": places(monitor),
        "range": chosen,
        "ranges": list(RANGES),
        "range_words": {name: _(words) for name, words in RANGE_WORDS.items()},
        "stacked": _stacked(),
        "zoom": zoomed,
        "zoom_form": zoom.form() if not servers.is_bare() else None,
        "statistics": None,
        "uptimes": monitor.uptime,
        "drawn": None,
        "marked": None,
        "days": None,
    }
    if servers.is_bare():
        return context
    statistics = (
        store.results.statistics_between(monitor.id, zoomed.start, zoomed.end)
        if zoomed
        else store.results.statistics(monitor.id, chosen or DEFAULT_RANGE)
    )
    year = store.results.statistics(monitor.id, "365d", response=False)
    days = year["buckets"][-BAR_DAYS:]
    return context | {
        "statistics": statistics,
        "uptimes": {**monitor.uptime, "365d": year["uptime"]},
        "drawn": draw(monitor, statistics, incidents.items),
        "marked": INCIDENTS_MARKED if _cut(statistics, incidents) else None,
        "days": _days(monitor.id, days),
        "days_in_words": monitor_rows.in_words(days, _("The last %(days)s days", days=BAR_DAYS)),
    }


def _stacked() -> bool:
    return "phases" in request.args


def chain(id: int) -> CertificateChain:
    """The certificates that a monitor's target sent last, if the store has them."""
    if servers.is_bare():
        return CertificateChain()
    return current_store().results.certificates(id)


def places(monitor: Monitor) -> Sequence[PlaceSeen]:
    """What each place sees, where there are several."""
    if len(monitor.locations) < 2 or not servers.is_whole():
        return ()
    return current_store().locations.of_monitor(monitor.id)


def _cut(statistics: Mapping[str, Any], incidents: Page[Incident]) -> bool:
    """Whether the chart goes back to older incidents, which are not marked on it."""
    if not incidents.items or incidents.total <= len(incidents.items):
        return False
    start = datetime.fromisoformat(statistics["buckets"][0]["start"])
    return incidents.items[-1].started_at > start


def draw(
    monitor: Monitor, statistics: Mapping[str, Any], incidents: Sequence[Incident]
) -> dict[str, Any]:
    """The chart, with real incidents marked (no false alarms, no maintenance), and what the macro
    in components/chart.html needs besides.
    """
    real = [
        drawn
        for incident in incidents
        if incident.classification is None
        for drawn in _drawn(incident)
    ]
    buckets, seconds = statistics["buckets"], statistics["bucket_seconds"]
    first = datetime.fromisoformat(buckets[0]["start"])
    last = datetime.fromisoformat(buckets[-1]["end"])
    form, zone = axis.form_of(seconds, last - first), times.zone()

    def format_moment(moment: datetime) -> str:
        # A bucket of a day is one of UTC.
        return (moment if seconds >= DAY else times.local(moment, zone)).strftime(form)

    chart = charts.response_chart(
        statistics,
        format_moment,
        stacked=_stacked(),
        slow_after=monitor.slow_after,
        marks=axis.of_statistics(statistics, zone),
        incidents=real,
        markers=_markers(monitor.id, buckets),
        places=_lines(monitor, first, len(buckets), seconds),
    )
    return {
        "chart": chart,
        "readings": axis.readings(buckets, format_moment),
        "start": buckets[0]["start"],
        "seconds": seconds,
        "page": _larger(monitor.id),
    }


def _drawn(incident: Incident) -> Iterator[charts.DrawnIncident]:
    """An incident; one that became down as two spans: slow, and down."""
    link = url_for("incidents.show", id=incident.id)
    if incident.down_since is not None:
        degraded = IncidentSeverity.DEGRADED
        yield incident.started_at, incident.down_since, _("Slow"), link, degraded
    began = incident.down_since or incident.started_at
    yield began, incident.ended_at, incident.cause or _("Incident"), link, incident.severity


def _lines(
    monitor: Monitor, start: datetime, count: int, seconds: int
) -> Sequence[charts.PlaceSeries]:
    """What the chart draws of each place, where there are several. Of longer times only sums of all
    places together are kept at hand.
    """
    if not 1 < len(monitor.locations) <= seen_from.STYLES or seconds >= HOUR:
        return ()
    by_place = current_store().results.by_place(monitor.id, start, count, seconds)
    return [
        charts.PlaceSeries(
            seen_from.title(name), style, by_place[name], bridged=monitor.true_interval // seconds
        )
        for name, style in seen_from.styles(monitor.locations).items()
        if name in by_place
    ]


def _larger(id: int) -> str:
    """Where a part of the chart is shown larger."""
    phases = 1 if _stacked() else None
    return url_for("monitors.show", id=id, _anchor=zoom.ANCHOR, phases=phases)


def _markers(monitor_id: int, buckets: Sequence[charts.Bucket]) -> list[tuple[datetime, str]]:
    if not buckets:
        return []
    first, last = (
        datetime.fromisoformat(buckets[n][end]) for n, end in ((0, "start"), (-1, "end"))
    )
    return [(marker.time, marker.name) for marker in markers.between(monitor_id, first, last)]


def _results(monitor_id: int) -> Page[Result] | None:
    store = current_store()
    if servers.is_bare():
        return None
    return store.results.list(ResultQuery(monitor_id, per_page=CHECKS_SHOWN))


def _pings(monitor: Monitor) -> Page[Ping] | None:
    """What has called a heartbeat; None for a monitor of another kind."""
    if not is_heartbeat(monitor.url) or servers.is_bare():
        return None
    return current_store().heartbeats.list(PingQuery(monitor.id, per_page=CHECKS_SHOWN))


def _days(id: int, buckets: Sequence[charts.Bucket]) -> list[tuple[str, str, str]]:
    """State, title and URL of each day (UTC), oldest first."""
    cells = []
    words = {state: _(word) for state, word in DAY_WORDS.items()}
    # Built once: 90 of them took as long as the figures.
    address = url_for("checks.day", id=id, day=ANY_DAY)
    for state, bucket in charts.day_cells(buckets):
        start = datetime.fromisoformat(bucket["start"])
        facts = [f"{times.plain_day(start)}: {words[state]}"]
        if bucket["uptime"] is not None:
            facts.append(_("uptime %(percent)s", percent=looks.percent(bucket["uptime"], DAY)))
        if bucket["down"]:
            facts.append(monitor_rows.lasted("down", bucket["down"]))
        link = address.replace(ANY_DAY, f"{start:%Y-%m-%d}")
        cells.append((state, ", ".join(facts), link))
    return cells
