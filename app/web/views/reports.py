"""The monthly availability report: as a page, for printing and for a spreadsheet.

A report is handed to others, so its months are in UTC: everybody sees the same figures.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Invalid
from app.forms.browser import browser
from app.forms.resources import ReportMailForm
from app.i18n import N_, _
from app.records import MAX_REPORT_MONITORS, PAGE_SIZES, MonitorRef, PageQuery
from app.stores import current_store
from app.web.frame import tags
from app.web.frame.session import guarded
from app.web.shown import report
from app.web.shown.months import Month
from app.web.shown.report import Report, plain

blueprint = guarded("reports", __name__, "/reports")

# The columns of the file: the field of a report line, and the column's name.
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
MAILS_SHOWN = PAGE_SIZES[-1]
FORMATS = ("", "html", "pdf")


@blueprint.get("")
def show() -> Response | str:
    if request.args.get("format", "") not in FORMATS:
        raise Invalid({"format": [_("Choose html or pdf.")]})
    availability = report.requested()
    if request.args.get("format") == "pdf":
        file = report.pdf(availability, current_user.person.email)
        return _file(file, f"{availability.file_name}.pdf", "application/pdf")
    return render_template(
        "reports/show.html",
        report=availability,
        most_incidents=report.INCIDENTS_SHOWN,
        choices=_choices(availability),
        address=lambda month: _address(".show", availability, month),
        csv=_address(".download", availability),
        mails=current_store().report_mails.list(PageQuery(per_page=MAILS_SHOWN)).items,
        counts=tags.counts() or {},
        contacts=current_store().contacts.names(),
        pdf=_address(".show", availability, format="pdf") if report.can_make_pdf() else None,
    )


@blueprint.post("/mails")
def send_monthly() -> Response:
    """Order a report, each month by email."""
    form = browser(ReportMailForm)()
    if not form.validate_on_submit():
        raise Invalid(form.named_errors())
    if form.tag.data and not tags.reached([form.tag.data]):
        raise Invalid({"tag": [tags.sentence([form.tag.data])]})
    mail = current_store().report_mails.create(form.fields())
    notice = N_("On the first of each month, %(contact)s gets this report by email.")
    flash(_(notice, contact=mail.contact), "success")
    return _back(mail.tag)


@blueprint.post("/mails/<int:id>/delete")
def stop_monthly(id: int) -> Response:
    mail = current_store().report_mails.get(id)
    current_store().report_mails.delete(id)
    flash(_("%(contact)s no longer gets this monthly report.", contact=mail.contact), "success")
    return _back(mail.tag)


def _back(tag: str | None) -> Response:
    return redirect(url_for(".show", tag=tag, _anchor="mails"))


@blueprint.get("/csv")
def download() -> Response:
    availability = report.requested()
    return _file(_csv(availability), f"{availability.file_name}.csv", "text/csv; charset=utf-8")


def _file(content: str | bytes, name: str, content_type: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, headers=headers, content_type=content_type)


def _choices(availability: Report) -> Sequence[MonitorRef]:
    if not availability.chosen and not availability.tag:
        return availability.monitors
    return current_store().monitors.refs(limit=MAX_REPORT_MONITORS)


def _address(endpoint: str, availability: Report, month: Month | None = None, **more: str) -> str:
    return url_for(
        endpoint,
        month=str(month or availability.month),
        tag=availability.tag,
        monitors=list(availability.chosen),
        **more,  # type: ignore[arg-type] # words of the query, none of Flask's own
    )


def _csv(availability: Report) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["month", "monitor", "url", *COLUMNS.values()])
    for monitor in availability.monitors:
        figures = availability.figures.get(monitor.id)
        if figures is not None:  # deleted in between
            names = [plain(monitor.name), plain(monitor.url)]
            writer.writerow([str(availability.month), *names, *_cells(figures)])
    writer.writerow([str(availability.month), _("Total"), "", *_cells(availability.total)])
    return out.getvalue()


def _cells(figures: Mapping[str, Any]) -> list[Any]:
    return ["" if figures[name] is None else figures[name] for name in COLUMNS]
