"""Markers: list, add, delete."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid
from app.forms import binding
from app.forms.browser import BrowserMarkerForm
from app.i18n import _
from app.stores import current_store
from app.web.frame import links, servers
from app.web.frame.editing import DeleteForm, not_saved, show_errors
from app.web.frame.session import guarded
from app.web.frame.store_errors import NOT_TAKEN
from app.web.shown import times

blueprint = guarded(Blueprint("markers", __name__, url_prefix="/markers"))

Answer = str | Response | tuple[str, int]


@blueprint.get("")
def index() -> Answer:
    return _page(BrowserMarkerForm(formdata=None, zone=times.zone()), 200)


@blueprint.post("")
def add() -> Answer:
    form, status = BrowserMarkerForm(zone=times.zone()), 422
    if form.validate_on_submit():
        try:
            marker = current_store().markers.create(form.fields())
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            status = not_saved(form, fault)
        else:
            flash(_("%(name)s added.", name=marker.name), "success")
            return redirect(url_for(".index"))
    return _page(form, status)


def _page(form: BrowserMarkerForm, status: int) -> Answer:
    if form.unanswered:
        return render_template("markers/index.html", form=form, page=None), status
    servers.refuse_bare()
    found = current_store().markers.list(binding.marker_query(links.pairs()))
    page = render_template("markers/index.html", form=form, page=found, link=links.page_link)
    return page, status


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(id: int) -> Answer:
    marker = current_store().markers.get(id)
    form = DeleteForm()
    if form.validate_on_submit():
        current_store().markers.delete(id)
        flash(_("%(name)s deleted.", name=marker.name), "success")
        return redirect(url_for(".index"))
    return render_template("markers/delete.html", marker=marker)
