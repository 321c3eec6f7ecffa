"""The monthly availability report: for reading, for printing and for a spreadsheet.

A report is handed to others, so its months are those of UTC: it says the same to everybody.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid, Unsupported
from app.records import MAX_REPORT_MONITORS, MonitorRef
from app.rules.text import record_id
from app.stats.report import ALL
from app.stores import Feature, current_store
from app.web.frame import servers
from app.web.frame.session import guarded
from app.web.shown import months, times
from app.web.shown.cells import plain
from app.web.shown.months import Month

blueprint = guarded(Blueprint("reports", __name__, url_prefix="/reports"))

# What a line of the file says, and what it calls it.
COLUMNS = {
    "uptime": "uptime_percent",
    "downtime": "downtime_seconds",
    "incidents": "incidents",
    "mttr": "mean_time_to_recovery_seconds",
    "longest": "longest_outage_seconds",
    "avg": "response_average_ms",
    "p95": "response_p95_ms",
    "watched": "watched_seconds",
    "maintenance": "maintenance_seconds",
    "unknown": "unknown_seconds",
    "gaps": "gap_seconds",
}


@dataclass(frozen=True, slots=True)
class Report:
    """``chosen``: the ids in the address, none for all. ``figures`` by id, those of all together
    in ``total``. ``cut``: there are more monitors than fit.
    """

    month: Month
    chosen: Sequence[int]
    monitors: Sequence[MonitorRef]
    figures: Mapping[int, Mapping[str, Any]]
    cut: bool

    @property
    def total(self) -> Mapping[str, Any]:
        return self.figures[ALL]

    @property
    def begun(self) -> bool:
        return self.month.span()[0] < times.now()

    @property
    def over(self) -> bool:
        return self.month.span()[1] <= times.now()


@blueprint.get("")
def show() -> str:
    report = _asked()
    return render_template(
        "reports/show.html",
        report=report,
        choices=_choices(report),
        address=lambda month: _address(".show", month, report.chosen),
        csv=_address(".download", report.month, report.chosen),
    )


@blueprint.get("/csv")
def download() -> Response:
    report = _asked()
    name = f"availability-{report.month}.csv"
    return Response(
        _csv(report),
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
        content_type="text/csv; charset=utf-8",
    )


def _asked() -> Report:
    """The report that the address asks for. Raises Invalid and Unsupported."""
    if not servers.offers(Feature.REPORTS):
        raise Unsupported("The server behind this dashboard has no monthly figures.")
    this = months.month_of(times.now())
    chosen = _chosen()
    if request.args.get("month"):
        return _report(months.read(request.args["month"], this), chosen)
    last = _report(this.plus(-1) or this, chosen)
    # A new installation has nothing to say about last month.
    return last if last.total["checks"] else _report(this, chosen)


def _chosen() -> list[int]:
    texts = request.args.getlist("monitors")
    try:
        return list(dict.fromkeys(record_id(text) for text in texts))
    except ValueError:
        raise Invalid({"monitors": ["Choose monitors by their ids."]}) from None


def _report(month: Month, chosen: Sequence[int]) -> Report:
    store = current_store()
    found = store.monitors.refs(ids=chosen or None, limit=MAX_REPORT_MONITORS + 1)
    monitors = found[:MAX_REPORT_MONITORS]
    start, end = month.span()
    figures = store.results.report([one.id for one in monitors], start, end)
    return Report(month, chosen, monitors, figures, len(found) > MAX_REPORT_MONITORS)


def _choices(report: Report) -> Sequence[MonitorRef]:
    if not report.chosen:
        return report.monitors
    return current_store().monitors.refs(limit=MAX_REPORT_MONITORS)


def _address(endpoint: str, month: Month, chosen: Sequence[int]) -> str:
    return url_for(endpoint, month=str(month), monitors=list(chosen))


def _csv(report: Report) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["month", "monitor", "url", *COLUMNS.values()])
    for monitor in report.monitors:
        figures = report.figures.get(monitor.id)
        if figures is not None:  # deleted in between
            names = [plain(monitor.name), plain(monitor.url)]
            writer.writerow([str(report.month), *names, *_cells(figures)])
    writer.writerow([str(report.month), "All together", "", *_cells(report.total)])
    return out.getvalue()


def _cells(figures: Mapping[str, Any]) -> list[Any]:
    return ["" if figures[name] is None else figures[name] for name in COLUMNS]
