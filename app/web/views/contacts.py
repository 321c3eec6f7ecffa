"""Contacts: list, show with its monitors and deliveries, new, edit, delete, test."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, current_app, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid, NotFound
from app.forms import binding
from app.forms.browser import BrowserForm, browser
from app.forms.contact import ContactDeletionForm, ContactForm
from app.i18n import _
from app.records import (
    Contact,
    DeliveryQuery,
    MinSeverity,
    MonitorQuery,
)
from app.stores import current_store
from app.web.frame import choices, fragments, links, servers
from app.web.frame.editing import Editing, show_errors
from app.web.frame.session import guarded
from app.web.shown import times
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


class ContactEditing(Editing[Contact, BrowserForm]):
    collection, template, subject = "contacts", "contacts/form.html", "contact"

    def stand_in(self, id: int) -> Contact:
        return Contact(id, request.form.get("name") or _("Contact %(id)s", id=id))

    def bind(self) -> BrowserForm:
        settings = current_app.extensions["wakeful.settings"]
        return browser(ContactForm)(
            record=self.record,
            data=None if self.record else STARTS_WITH | {"quiet_zone": times.zone().key},
            zone=times.zone(),
            telegram_token_set=bool(settings.telegram_token),
        )

    def pressed(self) -> Response | None:
        if self.form.change_rows():
            return self.page(200)
        if channel_tests.BUTTON in request.form:
            return self.page(200, tried=channel_tests.rows(self.form.channels, None))
        return None

    def next(self, record: Contact) -> str:
        return url_for(".show", id=record.id)

    def context(self) -> dict[str, Any]:
        return {"lacking": choices.lacking(self.form)}


@blueprint.route("/new", methods=["GET", "POST"])
def new() -> Response:
    return ContactEditing().answer()


@blueprint.route("/<int:id>/edit", methods=["GET", "POST"])
def edit(id: int) -> Response:
    return ContactEditing(id).answer()


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
    form = browser(ContactDeletionForm)()
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
