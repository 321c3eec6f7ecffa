"""The audit log: who changed what, for admins. Nobody changes it.

People, keys, settings and log-ins are always of this installation. Over another server, changes of
monitors and of all else that it keeps are in the log of that server.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from flask import Response, render_template, request, stream_with_context, url_for

from app.errors import Invalid
from app.forms.browser import BrowserForm
from app.forms.fields import RecordId, Text, WordChoice
from app.i18n import N_, _
from app.records import (
    MAX_SEARCH,
    Action,
    AuditPage,
    AuditQuery,
    ObjectKind,
    Role,
    Thing,
)
from app.stores import current_access
from app.web.frame import links, servers
from app.web.frame.session import guarded
from app.web.shown import audit, times
from app.web.shown.audit import field_name
from app.web.shown.zoom import Instant

blueprint = guarded("audit", __name__, role=Role.ADMIN)

NO_STORE = {"Cache-Control": "no-store"}
BROKEN_LINK = N_("This link is not complete. Open the audit log again.")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class AuditForm(BrowserForm):
    search = Text(N_("Search"), most=MAX_SEARCH, description=N_("Names and addresses."))
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
        return AuditQuery(
            search=self.search.data,
            actor_kind=self.actor_kind.data,
            actor_id=self.actor_id.data,
            action=self.action.data,
            object_kind=self.object_kind.data,
            object_id=self.object_id.data,
            start=self.from_.data,
            end=self.to.data,
            before=_before(request.args.get("before")),
        )


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
        shown=audit,
        field_name=field_name,
        names=current_access().audit.names(audit.things_in(lines_page.lines)),
        of=_subject(form, lines_page),
        older=lines_page.older and links.here(before=_cursor(*lines_page.older)),
        export=_export_address(),
        one_object=_one_object(form) is not None,
        elsewhere=servers.servers() is not None,
    )
    return Response(page, status, NO_STORE, mimetype="text/html")


def _one_object(form: AuditForm) -> tuple[ObjectKind, int] | None:
    kind, id = form.object_kind.data, form.object_id.data
    return None if id is None or not kind else (ObjectKind(kind), id)


def _subject(form: AuditForm, page: AuditPage) -> str:
    """What the page shows, if it is of one object or one actor: "Changes to Shop team"."""
    if thing := _one_object(form):
        names = current_access().audit.names({thing})
        return _("Changes to %(name)s", name=names.get(thing) or f"#{thing[1]}")
    if form.actor_id.data is None:
        return ""
    name = audit.who(page.lines[0].actor) if page.lines else f"#{form.actor_id.data}"
    return _("What %(name)s has done", name=name)


@blueprint.get("/audit.jsonl")
def export() -> Response:
    """All lines that the filters find, one JSON object a line, as they are read."""
    form = AuditForm(formdata=request.args, zone=times.zone())
    query = form.query()
    access = current_access()
    access.audit.record(Action.EXPORTED, Thing(ObjectKind.AUDIT_LOG), _filters())

    def lines() -> Iterator[str]:
        for line in access.audit.lines(query):
            yield audit.json_line(line)

    headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"', **NO_STORE}
    return Response(stream_with_context(lines()), 200, headers, mimetype="application/jsonl")


def _filters() -> dict[str, Any]:
    """The filters of an export, for its own line."""
    return {
        name: (None, value)
        for name, value in request.args.items()
        if value and name in ("search", "actor_kind", "action", "object_kind", "from", "to")
    }


def _export_address() -> str:
    query = urlencode([(name, value) for name, value in links.pairs("before") if value])
    return f"{url_for('.export')}?{query}" if query else url_for(".export")


def _cursor(at: datetime, id: int) -> str:
    return f"{(at - _EPOCH) // _MS}.{id}"


def _before(text: str | None) -> tuple[datetime, int] | None:
    if not text:
        return None
    ms, dot, id = text.partition(".")
    if not (dot and ms.isascii() and ms.isdigit() and id.isascii() and id.isdigit()):
        raise Invalid({"before": [_(BROKEN_LINK)]})
    if len(ms) > 14 or len(id) > 18:
        raise Invalid({"before": [_(BROKEN_LINK)]})
    return _EPOCH + int(ms) * _MS, int(id)
