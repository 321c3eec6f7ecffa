"""/api/v1/report-mails: monthly reports by email."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.queries import PageForm
from app.forms.report_mail import ReportMailForm

MAILS = "/report-mails"
MAIL = "/report-mails/{id}"
ANSWER = "ReportMail"


@operation("GET", MAILS, "List monthly reports", ANSWER, paged=True, query=PageForm)
def list_(call: Call) -> Response:
    page = call.store.report_mails.list(binding.page_query(call.query))
    return paged(page, json_of, call.query)


@operation("POST", MAILS, "Create a monthly report", ANSWER, status=201, form=ReportMailForm)
def store(call: Call) -> Response:
    return created(json_of(call.store.report_mails.create(call.new(ReportMailForm))))


@operation("GET", MAIL, "Show a monthly report", ANSWER)
def show(call: Call) -> Response:
    record = call.store.report_mails.get(call.id)
    call.without_input()
    return one(json_of(record))


@operation("PUT PATCH", MAIL, "Update a monthly report", ANSWER, form=ReportMailForm, update=True)
def update(call: Call) -> Response:
    fields = call.changes(ReportMailForm, call.store.report_mails.get(call.id))
    return one(json_of(call.store.report_mails.update(call.id, fields)))


@operation("DELETE", MAIL, "Delete a monthly report", "Deleted")
def delete(call: Call) -> Response:
    call.store.report_mails.get(call.id)
    call.without_input()
    call.store.report_mails.delete(call.id)
    return deleted("report-mail", call.id)
