"""/api/v1/report: figures of monitors between two times, an addition to the base API."""

from __future__ import annotations

from flask import Response

from app.api.envelope import record_answer
from app.api.operations import Call, operation
from app.errors import Invalid
from app.forms.queries import ReportQueryForm
from app.i18n import _
from app.records import MAX_REPORT_MONITORS
from app.rules.time import iso
from app.stats.report import ALL


@operation(
    "GET", "/report", "Report on monitors between two times", "Report", query=ReportQueryForm
)
def show(call: Call) -> Response:
    """Availability, downtime and response times of each monitor and of all, in whole hours."""
    parameters = call.parameters(ReportQueryForm)
    ids = parameters["monitors"]
    if not ids:
        ids = [monitor.id for monitor in call.store.monitors.refs(limit=MAX_REPORT_MONITORS + 1)]
        if len(ids) > MAX_REPORT_MONITORS:
            raise Invalid(
                {
                    "monitors": [
                        _("There are more than %(most)s. Name some.", most=MAX_REPORT_MONITORS)
                    ]
                }
            )
    figures = call.store.results.report(
        ids, parameters["from"], parameters["to"], days=parameters["days"]
    )
    return record_answer(
        {
            "from": iso(parameters["from"]),
            "to": iso(parameters["to"]),
            "all": figures[ALL],
            "monitors": [{"id": id, **figures[id]} for id in ids if id in figures],
        }
    )
