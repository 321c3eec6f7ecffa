"""/api/v1/report-mails: monthly reports by email."""

from __future__ import annotations

from app.api.resource import Resource, register
from app.forms.report_mail import ReportMailForm

REPORT_MAILS = Resource(
    name="report_mails",
    path="/report-mails",
    one="a monthly report",
    many="monthly reports",
    answer="ReportMail",
    form=ReportMailForm,
    records=lambda store: store.report_mails,
    about={
        "list": "Who gets a report by email each month.",
        "store": "Sends a contact the report of each month when it is over.",
        "show": "Returns one monthly report.",
        "update": "Changes what is sent.",
        "delete": "Sends this report no more.",
    },
)
register(REPORT_MAILS)
