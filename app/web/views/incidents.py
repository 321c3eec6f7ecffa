"""Incidents: list, show, report by hand, acknowledge, resolve, comment, edit, delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid, WakefulError
from app.forms.browser import BrowserForm, BrowserIncidentForm, browser
from app.forms.fields import Switch, Text
from app.forms.incident import AcknowledgeAllForm, IncidentStoreForm, IncidentUpdateForm
from app.forms.queries import IncidentQueryForm
from app.forms.schema import overlay, why_not_shown
from app.i18n import N_, _, _n
from app.records import (
    LIKELY_CAUSE_WITHIN,
    MAX_COMMENT,
    Classification,
    Delivery,
    DeliveryQuery,
    Incident,
    IncidentSortBy,
    IncidentStatus,
    Sort,
)
from app.rules import comments
from app.rules.text import digits
from app.rules.what_changed import compared_with
from app.rules.who_saw import places_of, title_of, who_saw
from app.stores import current_store
from app.web.frame import choices, fragments, links, remembered, servers
from app.web.frame.editing import Editing, flash_if_kept, show_failure
from app.web.frame.session import Answer, guarded
from app.web.frame.store_errors import CHANGED_NOTHING, STORE_REFUSALS
from app.web.shown import hour, markers, timeline, times
from app.web.views import deliveries

OPENS_AGAIN = N_("Resolved. If checks still fail, a new incident opens.")
blueprint = guarded("incidents", __name__, "/incidents")

PAGE = 100
PAGES = 20  # of deliveries that a timeline reads
COMMENT_TRIES = 10
REPLACES_COMMENT = N_(
    "This would replace the comment that this server has stored, which is not known here. Select"
    " the box to replace it."
)
# A sentence for each classification: how it changed the figures.
CLASSIFIED: Mapping[str | None, str] = {
    Classification.MAINTENANCE: N_(
        "Its time counts as maintenance now: neither as up nor as down."
    ),
    Classification.FALSE_ALARM: N_("Its time counts as up now. The figures are corrected."),
    None: N_("It is a real incident again. Its time counts as down."),
}


class CommentForm(BrowserForm):
    """``comment_not_shown``: why the stored comment could not be loaded, if it could not."""

    replace = Switch(N_("Replace the stored comment"), default=False)
    comment_not_shown = ""

    text = Text(
        N_("Add a comment"), required=True, limit=MAX_COMMENT, lines=True, render_kw={"rows": "3"}
    )


@blueprint.get("")
def index() -> Response:
    query = remembered.list_query(IncidentQueryForm, links.pairs(), "incidents")
    query = replace(query, brief=True)
    page = current_store().incidents.list(query)
    answer = fragments.page(
        "incidents/index.html",
        "incidents/_list.html",
        page=page,
        query=query,
        statuses=list(IncidentStatus),
        order=links.order(query, dict.fromkeys(IncidentSortBy, Sort.DESC)),
    )
    return remembered.remember(answer, "incidents")


@blueprint.get("/<int:id>")
def show(id: int) -> Response:
    return _page(current_store().incidents.get(id), CommentForm(formdata=None))


def _page(incident: Incident, form: CommentForm) -> Response:
    form.comment_not_shown = why_not_shown(incident, "comment")
    end = incident.ended_at or times.now()
    deploys = markers.between(incident.monitor_id, incident.started_at - LIKELY_CAUSE_WITHIN, end)
    places, good = places_of(incident.evidence), compared_with(incident.evidence)
    return fragments.page(
        "incidents/show.html",
        "incidents/_parts.html",
        incident=incident,
        steps=timeline.steps(
            incident,
            _deliveries(incident.id),
            deploys,
            unalerted=incident.is_open and bool(deliveries.unalerted([incident])),
        ),
        deployed=markers.shortly_before(incident, deploys),
        failing=timeline.failing(incident.evidence),
        last_good=timeline.last_good(incident.evidence),
        with_all_fields=timeline.with_all_fields,
        compared_with=good.words(times.clock) if good else None,
        seen_from=who_saw(incident.evidence, is_open=incident.is_open)
        or ", ".join(incident.seen_by),
        places=places,
        notes=current_store().monitors.notes(incident.monitor_id),
        affected=current_store().monitors.refs(ids=incident.affected) if incident.affected else (),
        titles={place.get("name"): title_of(place) for place in places},
        hour=hour.chart_of(incident, deploys),
        classifications=list(Classification),
        # For people who may post on them.
        pages=current_store().status_pages.of_monitor(incident.monitor_id)
        if current_user.may_edit
        else (),
        form=form,
    )


def _deliveries(id: int) -> Sequence[Delivery]:
    if servers.is_bare():
        return ()
    query = DeliveryQuery(incident_id=id, per_page=PAGE)
    return list(current_store().deliveries.every(query, PAGES))


class IncidentReporting(Editing[Incident, BrowserForm]):
    """An incident that checks did not find."""

    collection, template, subject = "incidents", "incidents/new.html", "incident"
    on_bare_servers = True

    def bind(self) -> BrowserForm:
        now, monitor_id = current_store().now(), digits(request.args.get("monitor_id", ""))
        first = {"monitor_id": monitor_id, "started_at": now}
        return browser(IncidentStoreForm)(zone=times.zone(), now=now, data=first)

    def save(self) -> Incident:
        fields = comments.opening(self.form.fields(), _author(), times.now())
        return current_store().incidents.create(fields)

    def refuse(self, fault: WakefulError) -> Response:
        if not isinstance(fault, Conflict):
            return super().refuse(fault)
        self.form.monitor_id.add_fault(str(fault))
        return self.page(409, already=fault.details.get("open_incident_id"))

    def finish(self, record: Incident) -> Response:
        flash(_("Incident reported."), "success")
        return redirect(url_for(".show", id=record.id))

    def context(self) -> dict[str, Any]:
        id = self.form.monitor_id.data
        return {
            "monitors": choices.monitors(self.form, [id] if isinstance(id, int) else []),
            "already": None,
        }


class IncidentEditing(Editing[Incident, BrowserIncidentForm]):
    collection, template, subject = "incidents", "incidents/edit.html", "incident"
    delete_title, delete_button = N_("Delete this incident?"), N_("Delete this incident")
    deletion = N_(
        "Statistics no longer count it, and its deliveries are deleted too. If checks still fail, a"
        " new incident opens. This cannot be undone."
    )
    saved, deleted = N_("Incident saved."), N_("Incident deleted.")
    on_bare_servers, is_read, leads_to, conflict_field = True, True, ".show", "ended_at"

    def stand_in(self, id: int) -> Incident:
        self.is_read = False
        return Incident(id, 0, current_store().now())

    def bind(self) -> BrowserIncidentForm:
        now = current_store().now()
        return BrowserIncidentForm(record=self.record, zone=times.zone(), now=now)

    def save(self) -> Incident:
        return current_store().incidents.update(self.id or 0, self.form.fields(), by=_author())

    def context(self) -> dict[str, Any]:
        return {"unread": not self.is_read}


IncidentReporting.register(blueprint, "new")
IncidentEditing.register(blueprint, "edit", "delete")


@blueprint.post("/<int:id>/acknowledge")
def acknowledge(id: int) -> Response:
    incident = current_store().incidents.get(id)
    if incident.status == IncidentStatus.UNRESOLVED:
        at = current_store().now()
        sentence = _("Acknowledged. Others can see that you are on it.")
        flash_if_kept("acknowledged_at", at, _update(id, {"acknowledged_at": at}), sentence)
    return redirect(url_for(".show", id=id))


@blueprint.post("/acknowledge")
def acknowledge_all() -> Response:
    """Acknowledge the incidents of one card on the home page."""
    form = browser(AcknowledgeAllForm)()
    if form.validate():
        answers = current_store().incidents.acknowledge(form.ids.data, by=_author())
        incidents = [answer for answer in answers if isinstance(answer, Incident)]
        acknowledged = sum(incident.acknowledged_at is not None for incident in incidents)
        if acknowledged:
            flash(
                _n("%(num)s incident acknowledged. Others can see that you are on it.",
                   "%(num)s incidents acknowledged. Others can see that you are on it.",
                   acknowledged),
                "success",
            )  # fmt: skip
        if over := len(answers) - len(incidents):
            flash(_n("%(num)s was over already.", "%(num)s were over already.", over), "info")
        if acknowledged < len(incidents):
            flash(_(CHANGED_NOTHING), "warning")
    return redirect(url_for("home.show"))


@blueprint.post("/<int:id>/resolve")
def resolve(id: int) -> Response:
    if current_store().incidents.get(id).is_open:
        at = current_store().now()
        sentence = _("Incident resolved") if servers.is_bare() else _(OPENS_AGAIN)
        flash_if_kept("ended_at", at, _update(id, {"ended_at": at}), sentence)
    return redirect(url_for(".show", id=id))


@blueprint.post("/<int:id>/reopen")
def reopen(id: int) -> Response:
    _update(id, {"ended_at": None})
    flash(_("The incident is open again."), "success")
    return redirect(url_for(".show", id=id))


@blueprint.post("/<int:id>/classify")
def classify(id: int) -> Response:
    """Classify an incident; the uptime figures depend on this."""
    classification = request.form.get("as") or None
    _update(id, {"classification": classification})
    flash(_(CLASSIFIED[classification]), "success")
    return redirect(url_for(".show", id=id))


@blueprint.post("/<int:id>/comment")
def comment(id: int) -> Answer:
    form, status = CommentForm(), 422
    try:
        incident = current_store().incidents.get(id)
        valid = form.validate_on_submit()
        if valid and why_not_shown(incident, "comment") and not form.replace.data:
            form.text.add_fault(_(REPLACES_COMMENT))
        elif valid:
            _comment(incident, form.text.data)
            flash(_("Comment added."), "success")
            return redirect(url_for(".show", id=id, _anchor="timeline"))
    except Invalid as fault:
        form.text.errors = [*form.text.errors, *fault.errors.get("comment", [str(fault)])]
    except Conflict as fault:
        form.text.add_fault(str(fault))
        status = 409
    except STORE_REFUSALS as fault:
        # The form without the incident around it, which would have to be read.
        status = show_failure(form, fault)
        return render_template("incidents/comment.html", form=form, id=id), status
    answer = _page(incident, form)
    answer.status_code = status
    return answer


def _comment(incident: Incident, text: str) -> None:
    """Add to the comments. If somebody else adds one at the same moment, both are kept."""
    store = current_store()
    for tries_left in reversed(range(COMMENT_TRIES)):
        comment = comments.add(incident.comment, text, _author(), store.now())
        checked = overlay(IncidentUpdateForm, incident, [("comment", comment)])
        try:
            store.incidents.update(
                incident.id, checked, by=_author(), expected={"comment": incident.comment}
            )
            return
        except Conflict:
            if not tries_left:
                raise
        incident = store.incidents.get(incident.id)


def _update(id: int, fields: dict[str, Any]) -> Incident:
    return current_store().incidents.update(id, fields, by=_author())


def _author() -> str:
    label: str = current_user.person.label
    return label
