"""The audit log, for admins: who changed what. It cannot be edited.

If the dashboard shows a remote server, this log has only people, keys, settings and log-ins.
Changes of monitors and of other records are in the log of that server.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from flask import Response, render_template, request, stream_with_context, url_for

from app.errors import Invalid
from app.forms.browser import BrowserForm
from app.forms.fields import RecordId, Text, WordChoice
from app.i18n import N_, _
from app.records import MAX_SEARCH, Action, AuditedObject, AuditPage, AuditQuery, ObjectKind, Role
from app.stores import current_access
from app.web.frame import links, servers
from app.web.frame.session import guarded
from app.web.shown import audit, times
from app.web.shown.audit import field_name
from app.web.shown.zoom import Instant

blueprint = guarded("audit", __name__, role=Role.ADMIN)

EXPORTED_BY = ("search", "actor_kind", "action", "object_kind", "from", "to")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_CURSOR = re.compile(r"(\d{1,14})\.(\d{1,18})", re.ASCII)


class AuditForm(BrowserForm):
    search = Text(N_("Search"), limit=MAX_SEARCH, description=N_("Names and addresses."))
    actor_kind = WordChoice(N_("Who"), audit.ACTORS, none=N_("All"))
    actor_id = RecordId(N_("Number"))
    action = WordChoice(N_("Action"), audit.ACTIONS, none=N_("All"))
    object_kind = WordChoice(N_("Object"), audit.OBJECTS, none=N_("All"))
    object_id = RecordId(N_("Number"))
    from_ = Instant(N_("From"), name="from")
    to = Instant(N_("To"))

    class Meta:
        csrf = False  # the form changes nothing

    def query(self) -> AuditQuery:
        """Raises Invalid."""
        if not self.validate():
            raise Invalid(self.named_errors())
        names = ("search", "actor_kind", "actor_id", "action", "object_kind", "object_id")
        filters = {name: self[name].data for name in names}
        before = _before(request.args.get("before"))
        return AuditQuery(**filters, start=self.from_.data, end=self.to.data, before=before)


@blueprint.get("/audit")
def index() -> Response:
    form = AuditForm(formdata=request.args, zone=times.zone())
    status = 200
    try:
        lines_page = current_access().audit.page(form.query())
    except Invalid:
        lines_page, status = AuditPage([]), 422
    page = render_template(
        "audit/index.html",
        form=form,
        lines_page=lines_page,
        audit=audit,
        field_name=field_name,
        names=current_access().audit.names(audit.objects_in(lines_page.lines)),
        of=_subject(form, lines_page),
        older=lines_page.older and links.here(before=_cursor(*lines_page.older)),
        export=_export_address(),
        one_object=_one_object(form) is not None,
        elsewhere=servers.servers() is not None,
    )
    return Response(page, status, mimetype="text/html")


def _one_object(form: AuditForm) -> tuple[ObjectKind, int] | None:
    kind, id = form.object_kind.data, form.object_id.data
    return None if id is None or not kind else (ObjectKind(kind), id)


def _subject(form: AuditForm, page: AuditPage) -> str:
    """The title of the log of one object or one actor: "Changes to Shop team"."""
    if audited := _one_object(form):
        names = current_access().audit.names({audited})
        return _("Changes to %(name)s", name=names.get(audited) or f"#{audited[1]}")
    if form.actor_id.data is None:
        return ""
    name = audit.who(page.lines[0].actor) if page.lines else f"#{form.actor_id.data}"
    return _("What %(name)s has done", name=name)


@blueprint.get("/audit.jsonl")
def export() -> Response:
    """Stream all lines that match the filters, as one JSON object a line."""
    form = AuditForm(formdata=request.args, zone=times.zone())
    query = form.query()
    log = current_access().audit
    filter_names = [name for name in EXPORTED_BY if request.args.get(name)]
    filters = {name: (None, request.args[name]) for name in filter_names}
    log.record(Action.EXPORTED, AuditedObject(ObjectKind.AUDIT_LOG), filters)
    lines = stream_with_context(map(audit.json_line, log.lines(query)))
    headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
    return Response(lines, 200, headers, mimetype="application/jsonl")


def _export_address() -> str:
    query = urlencode([(name, value) for name, value in links.pairs("before") if value])
    return f"{url_for('.export')}?{query}" if query else url_for(".export")


def _cursor(at: datetime, id: int) -> str:
    return f"{(at - _EPOCH) // _MS}.{id}"


def _before(text: str | None) -> tuple[datetime, int] | None:
    if not text:
        return None
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise Invalid({"before": [_("This link is not complete. Open the audit log again.")]})
    return _EPOCH + int(match[1]) * _MS, int(match[2])
