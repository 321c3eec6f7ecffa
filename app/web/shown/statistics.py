"""The variables of a monitor's page besides the monitor: figures, charts, days, checks, incidents.

Parts that the store does not offer are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from flask import request, url_for
from markupsafe import Markup

from app import records
from app.checks.kinds import kind_of
from app.errors import Invalid
from app.i18n import N_, _
from app.rules.figures import DAY
from app.rules.text import one_of
from app.rules.what_changed import phase_words
from app.stats import RANGES
from app.stats.series import day_state
from app.stores import current_store
from app.web.frame import servers
from app.web.shown import axis, charts, looks, markers, monitor_rows, times, zoom
from app.web.shown import places as seen_from

HOUR = 3600
# In a chart of a whole day, the few checks of a new monitor would be a dot.
DEFAULT_RANGE, RANGE_WHILE_NEW, NEW = "24h", "3h", timedelta(hours=6)
COMPARED = {"before": N_("The period before"), "week": N_("The same day last week")}
WEEK = timedelta(days=7)
BAR_DAYS = 90
CHECKS_SHOWN = 10
INCIDENTS_SHOWN = 10
INCIDENTS_MARKED = 100
ANY_DAY = "yyyy-mm-dd"  # in place of the day in an address
RANGE_WORDS = {
    "3h": N_("3 hours"), "24h": N_("24 hours"), "7d": N_("7 days"), "30d": N_("30 days"),
    "90d": N_("90 days"), "365d": N_("1 year"),
}  # fmt: skip
DAY_WORDS = {
    "up": N_("up"), "down": N_("down"), "brief": N_("down"), "maintenance": N_("maintenance"),
    "unknown": N_("unknown"), "none": N_("no data"),
}  # fmt: skip


def context_of(monitor: records.Monitor) -> dict[str, Any]:
    """The variables of the monitor's page. The address has ``range``, or ``from`` and ``to``, and
    ``phases`` and ``compare``. Raises Invalid.
    """
    zoomed = zoom.requested()
    range_name = None if zoomed else request.args.get("range") or _default_range(monitor)
    if range_name and range_name not in RANGES:
        raise Invalid({"range": [one_of(RANGES)]})
    store = current_store()
    incidents = store.incidents.list(
        records.IncidentQuery(
            monitor_id=monitor.id,
            sort_by=records.IncidentSortBy.STARTED_AT,
            per_page=INCIDENTS_MARKED,
            brief=True,
        )
    )
    context: dict[str, Any] = {
        "incidents": incidents.items[:INCIDENTS_SHOWN],
        "incidents_total": incidents.total,
        "results": _results(monitor.id),
        "pings": _pings(monitor),
        "places": place_results(monitor),
        "range": range_name,
        "ranges": list(RANGES),
        "range_words": {name: _(words) for name, words in RANGE_WORDS.items()},
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
        else store.results.statistics(monitor.id, range_name or DEFAULT_RANGE)
    )
    year = store.results.statistics(monitor.id, "365d", response=False)
    days = year["buckets"][-BAR_DAYS:]
    return context | {
        "statistics": statistics,
        "uptimes": {**monitor.uptime, "365d": year["uptime"]},
        "drawn": chart_context(monitor, statistics, incidents.items),
        "marked": INCIDENTS_MARKED if _has_unmarked_incidents(statistics, incidents) else None,
        "days": _days(monitor.id, days),
        "days_in_words": monitor_rows.in_words(days, _("The last %(days)s days", days=BAR_DAYS)),
    }


def _default_range(monitor: records.Monitor) -> str:
    """The range if the address has none: 3 hours for a monitor that is younger than 6 hours and is
    checked at least every hour, otherwise 24 hours.
    """
    is_new = monitor.created_at is not None and times.now() - monitor.created_at < NEW
    return RANGE_WHILE_NEW if is_new and monitor.true_interval <= HOUR else DEFAULT_RANGE


def _stacked() -> bool:
    return "phases" in request.args


def certificate_chain(id: int) -> records.CertificateChain:
    """The certificates that a monitor's target sent last, if the store has them."""
    if servers.is_bare():
        return records.CertificateChain()
    return current_store().results.certificates(id)


def place_results(monitor: records.Monitor) -> Sequence[records.PlaceSeen]:
    """The present results of the places, if there are several."""
    if len(monitor.locations) < 2 or not servers.is_whole():
        return ()
    return current_store().locations.of_monitor(monitor.id)


def _has_unmarked_incidents(
    statistics: Mapping[str, Any], incidents: records.Page[records.Incident]
) -> bool:
    """Whether the time of the chart may contain older incidents, which were not read."""
    if not incidents.items or incidents.total <= len(incidents.items):
        return False
    start = datetime.fromisoformat(statistics["buckets"][0]["start"])
    return incidents.items[-1].started_at > start


def chart_context(
    monitor: records.Monitor, statistics: Mapping[str, Any], incidents: Sequence[records.Incident]
) -> dict[str, Any]:
    """The chart with its incidents, without false alarms and maintenance, and the other variables
    of the macro in components/chart.html.
    """
    real = [
        span
        for incident in incidents
        if incident.classification is None
        for span in _spans_of(incident)
    ]
    buckets, seconds = statistics["buckets"], statistics["bucket_seconds"]
    first = datetime.fromisoformat(buckets[0]["start"])
    last = datetime.fromisoformat(buckets[-1]["end"])
    form, zone = axis.form_of(seconds, last - first), times.zone()

    def format_moment(moment: datetime) -> str:
        # The buckets of days are days in UTC.
        return (moment if seconds >= DAY else times.local(moment, zone)).strftime(form)

    deployed = markers.between(monitor.id, first, last)
    phases = _phases(monitor, buckets)
    places = () if _stacked() else _place_lines(monitor, first, len(buckets), seconds)
    earlier = _earlier(monitor.id, first, last, seconds)
    if earlier and places:
        title = _("%(time)s, all places", time=earlier.title)
        earlier = replace(earlier, title=title)
    chart = charts.response_chart(
        statistics,
        format_moment,
        stacked=_stacked(),
        slow_after=monitor.slow_after,
        marks=axis.of_statistics(statistics, zone),
        incidents=real,
        markers=[(marker.time, marker.name or "") for marker in deployed],
        places=places,
        earlier=earlier,
    )
    readings = axis.readings(buckets, format_moment, phases, earlier)
    compared = {name: _(word) for name, word in COMPARED.items()}
    if last - first >= WEEK:  # otherwise "a week before" would overlap the chart
        del compared["week"]
    return {
        "chart": chart,
        "readings": json.dumps(readings, ensure_ascii=False, separators=(",", ":")),
        "titles": charts.titles(readings),
        "start": buckets[0]["start"],
        "seconds": seconds,
        "page": _zoom_address(monitor.id),
        "phases": phases,
        "stacked": _stacked(),
        "compared": compared,
        "changes": markers.changes_since(deployed, buckets, phases),
    }


def _phases(monitor: records.Monitor, buckets: Sequence[charts.Bucket]) -> dict[str, str]:
    """The labels of the phases of the monitor's kind, without phases that never occurred, such as
    TLS of a site without it.
    """
    kind = kind_of(monitor.url)
    words = phase_words(kind.phases if kind else records.PHASES)
    return {
        name: word
        for name, word in words.items()
        if any(bucket["timings"][name] for bucket in buckets)
    }


def _earlier(id: int, first: datetime, last: datetime, seconds: int) -> charts.EarlierSeries | None:
    """The response times of the earlier time that the address names. Raises Invalid."""
    span_name = request.args.get("compare")
    if not span_name:
        return None
    if span_name not in COMPARED:
        raise Invalid({"compare": [one_of(COMPARED)]})
    start = first - (last - first)
    if span_name == "week":
        # The same time of day, although the clocks may have been changed. Buckets of a day are in
        # UTC.
        zone = UTC if seconds >= DAY else times.zone()
        start = (first.astimezone(zone) - WEEK).astimezone(UTC)
    earlier = current_store().results.statistics_between(id, start, start + (last - first))
    return charts.earlier_series(_(COMPARED[span_name]), earlier, first - start, seconds)


def _spans_of(incident: records.Incident) -> Iterator[charts.DrawnIncident]:
    """The spans of an incident. One that was slow before it was down has two."""
    link = url_for("incidents.show", id=incident.id)
    if incident.down_since is not None:
        degraded = records.IncidentSeverity.DEGRADED
        yield incident.started_at, incident.down_since, _("Slow"), link, degraded
    began = incident.down_since or incident.started_at
    yield began, incident.ended_at, incident.cause or _("Incident"), link, incident.severity


def _place_lines(
    monitor: records.Monitor, start: datetime, count: int, seconds: int
) -> Sequence[charts.PlaceSeries]:
    """The lines of the places, if there are several. For buckets of an hour or more, only the sums
    of all places are stored.
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


def _zoom_address(id: int) -> str:
    """The address that shows a part of the chart larger."""
    compare = request.args.get("compare") or None
    phases = 1 if _stacked() else None
    return url_for("monitors.show", id=id, _anchor=zoom.ANCHOR, phases=phases, compare=compare)


def _results(monitor_id: int) -> records.Page[records.Result] | None:
    store = current_store()
    if servers.is_bare():
        return None
    return store.results.list(records.ResultQuery(monitor_id, per_page=CHECKS_SHOWN))


def _pings(monitor: records.Monitor) -> records.Page[records.Ping] | None:
    """The pings of a heartbeat; None for a monitor of another kind."""
    if not records.is_heartbeat(monitor.url) or servers.is_bare():
        return None
    return current_store().heartbeats.list(records.PingQuery(monitor.id, per_page=CHECKS_SHOWN))


def _days(id: int, buckets: Sequence[charts.Bucket]) -> Markup:
    """The bar of days (UTC), oldest first."""
    words = {state: _(word) for state, word in DAY_WORDS.items()}
    # The URL is built once: building 90 of them takes as long as the figures.
    address = url_for("checks.day", id=id, day=ANY_DAY)
    cells = []
    for bucket in buckets:
        state, day = day_state(bucket), bucket["start"][: len(ANY_DAY)]
        facts = [words[state]]
        if bucket["uptime"] is not None:
            facts.append(_("uptime %(percent)s", percent=looks.percent(bucket["uptime"], DAY)))
        if bucket["down"]:
            facts.append(monitor_rows.time_in_state("down", bucket["down"]))
        title = f"{_day(day)}: {', '.join(facts)}"
        cells.append((state, title, address.replace(ANY_DAY, day)))
    return charts.day_links(cells)


@lru_cache(maxsize=512)  # all monitors have the same days
def _day(text: str) -> str:
    return times.plain_day(datetime.fromisoformat(text))
