"""Contacts: list, show with its monitors and deliveries, new, edit, delete, test."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, current_app, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid, NotFound, WakefulError
from app.forms import binding
from app.forms.browser import BrowserContactDeletionForm, BrowserContactForm
from app.i18n import _
from app.records import (
    Contact,
    DeliveryQuery,
    MinSeverity,
    MonitorQuery,
)
from app.stores import current_store
from app.web.forms import not_read, not_saved, saved, show_errors
from app.web.frame import choices, fragments, links, servers
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.frame.store_errors import NOT_TAKEN
from app.web.shown import channel_setup, times
from app.web.views import channel_tests
from app.web.views.deliveries import names_of

blueprint = guarded(Blueprint("contacts", __name__, url_prefix="/contacts"))

Answer = str | Response | tuple[str, int]

SHOWN_MONITORS = 100
SHOWN_DELIVERIES = 10
STARTS_WITH = {"acknowledgements": True, "min_severity": MinSeverity.ALL}


@blueprint.get("")
def index() -> Response:
    servers.refuse_bare()
    page = current_store().contacts.list(binding.page_query(links.pairs()))
    return fragments.page(
        "contacts/index.html", "contacts/_list.html", page=page, link=links.page_link
    )


@blueprint.get("/<int:id>")
def show(id: int) -> Response:
    store = current_store()
    contact = store.contacts.get(id)
    query = MonitorQuery(
        contact_id=id, sort_by="name", sort="asc", per_page=SHOWN_MONITORS, uptime=()
    )
    deliveries = store.deliveries.list(DeliveryQuery(contact_id=id, per_page=SHOWN_DELIVERIES))
    return fragments.page(
        "contacts/show.html",
        "contacts/_shown.html",
        contact=contact,
        monitors=store.monitors.list(query),
        deliveries=deliveries,
        names=names_of(deliveries.items),
        tried=channel_tests.shown(None),
    )


@blueprint.get("/named")
def named() -> Response:
    """The page of the contact with this name: a monitor's alerts know no more of it."""
    name = request.args.get("name", "")
    id = current_store().contacts.id_of(name)
    if id is None:
        raise NotFound("contact", name)
    return redirect(url_for(".show", id=id))


@blueprint.route("/new", methods=["GET", "POST"])
def new() -> Answer:
    if request.method in SAFE_METHODS:
        servers.refuse_bare()
    first = STARTS_WITH | {"quiet_zone": times.zone().key}
    return _edited(_form(data=first), None)


@blueprint.route("/<int:id>/edit", methods=["GET", "POST"])
def edit(id: int) -> Answer:
    try:
        contact = current_store().contacts.get(id)
    except NOT_TAKEN as fault:
        return _unread(fault, id)
    return _edited(_form(record=contact), contact)


def _form(**kwargs: Any) -> BrowserContactForm:
    settings = current_app.extensions["wakeful.settings"]
    return BrowserContactForm(
        zone=times.zone(), telegram_token_set=bool(settings.telegram_token), **kwargs
    )


def _unread(fault: WakefulError, id: int) -> Answer:
    """What was typed into the form of a contact that cannot be read now."""
    if request.method in SAFE_METHODS:
        raise fault
    contact = Contact(id, request.form.get("name") or _("Contact %(id)s", id=id))
    form = _form(record=contact)
    return _form_page(form, contact, not_read(form, fault))


def _edited(form: BrowserContactForm, contact: Contact | None) -> Answer:
    if form.change_rows():
        return _form_page(form, contact, 200)
    if form.is_submitted() and channel_tests.BUTTON in request.form:
        tried = channel_tests.rows(form.channels, None)
        return _form_page(form, contact, 200, tried=tried)
    if form.validate_on_submit():
        try:
            record = _save(form, contact)
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            return _form_page(form, contact, not_saved(form, fault))
        else:
            saved(form, _("%(name)s saved.", name=record.name))
            return redirect(url_for(".show", id=record.id))
    return _form_page(form, contact, 422 if form.is_submitted() else 200)


def _save(form: BrowserContactForm, contact: Contact | None) -> Contact:
    store = current_store()
    if contact is None:
        return store.contacts.create(form.fields())
    return store.contacts.update(contact.id, form.fields())


def _form_page(
    form: BrowserContactForm, contact: Contact | None, status: int, **more: Any
) -> Answer:
    page = render_template(
        "contacts/form.html",
        form=form,
        contact=contact,
        lacking=channel_setup.lacking(form),
        **more,
    )
    # What was typed comes back, secrets of channels too: nothing may keep a copy.
    headers = {"Cache-Control": "no-store"} if form.is_submitted() else {}
    return Response(page, status, headers, mimetype="text/html")


@blueprint.post("/<int:id>/test")
def test(id: int) -> Response:
    store = current_store()
    ids = store.contacts.test(id)
    store.deliveries.answers(ids, channel_tests.WAIT_SECONDS)
    tried = ",".join(str(one) for one in ids)
    return redirect(url_for(".show", id=id, tried=tried, _anchor="channels"))


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(id: int) -> Answer:
    contact = current_store().contacts.get(id)
    form = BrowserContactDeletionForm()
    if form.validate_on_submit():
        try:
            current_store().contacts.remove(
                id, replace_with=form.replace_with.data, force=bool(form.force.data)
            )
        except (Invalid, Conflict) as fault:
            if isinstance(fault, Invalid):
                show_errors(form, fault)
            else:
                form.trouble = str(fault)
        else:
            flash(_("%(name)s deleted.", name=contact.name), "success")
            return redirect(url_for(".index"))
    others = [name for name in choices.contacts(form, ()) if name != contact.name]
    page = render_template("contacts/delete.html", form=form, contact=contact, others=others)
    return page, 422 if form.is_submitted() else 200
