"""Contacts: list, show with its monitors and deliveries, new, edit, delete, test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import flash, redirect, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response

from app.errors import NotFound
from app.forms.browser import BrowserForm, browser
from app.forms.contact import ContactDeletionForm, ContactForm, SharedChannelForm
from app.forms.queries import page_query
from app.i18n import _, _n
from app.records import (
    Channel,
    Contact,
    DeliveryQuery,
    MinSeverity,
    Monitor,
    MonitorQuery,
    MonitorSortBy,
    Pair,
    SharedChannel,
    alerts_without_contacts,
)
from app.rules.channel_values import CHANNELS
from app.stores import current_settings, current_store
from app.web.frame import choices, fragments, links, servers
from app.web.frame.editing import Editing, faults_shown, form_page
from app.web.frame.session import Answer, guarded
from app.web.frame.store_errors import if_answered
from app.web.shown import times
from app.web.views import channel_tests
from app.web.views.deliveries import names_of

blueprint = guarded("contacts", __name__, "/contacts")

SHOWN_MONITORS = 100
SHOWN_DELIVERIES = 10
STARTS_WITH = {"acknowledgements": True, "min_severity": MinSeverity.ALL}


@blueprint.get("")
def index() -> Response:
    servers.refuse_bare()
    page = current_store().contacts.list(page_query(links.pairs()))
    return fragments.page("contacts/index.html", "contacts/_list.html", page=page)


@blueprint.get("/<int:id>")
def show(id: int) -> Response:
    store = current_store()
    contact = store.contacts.get(id)
    query = MonitorQuery(
        contact_id=id, sort_by=MonitorSortBy.NATURAL, sort="asc", per_page=SHOWN_MONITORS, uptime=()
    )
    deliveries = store.deliveries.list(DeliveryQuery(contact_id=id, per_page=SHOWN_DELIVERIES))
    return fragments.page(
        "contacts/show.html",
        "contacts/_shown.html",
        contact=contact,
        monitors=store.monitors.list(query),
        deliveries=deliveries,
        names=names_of(deliveries.items),
        test_alerts=channel_tests.tests_in_address(None),
    )


@blueprint.get("/named")
def named() -> Response:
    """Redirect to the contact with this name: a monitor's alerts contain only the name."""
    name = request.args.get("name", "")
    id = current_store().contacts.id_of(name)
    if id is None:
        raise NotFound("contact", name)
    return redirect(url_for(".show", id=id))


class ContactEditing(Editing[Contact, BrowserForm]):
    collection, template, subject = "contacts", "contacts/form.html", "contact"
    leads_to = ".show"

    def stand_in(self, id: int) -> Contact:
        return Contact(id, request.form.get("name") or _("Contact %(id)s", id=id))

    def bind(self) -> BrowserForm:
        return browser(ContactForm)(
            record=self.record,
            data=None if self.record else STARTS_WITH | {"quiet_zone": times.zone().key},
            zone=times.zone(),
            telegram_token_set=bool(current_settings().telegram_token),
        )

    def answer_button(self) -> Response | None:
        if self.form.change_rows():
            return self.page(200)
        if channel_tests.BUTTON in request.form:
            return self.page(200, test_alerts=channel_tests.send_typed(self.form.channels, None))
        return None

    def context(self) -> dict[str, Any]:
        return {"lacking": choices.channels_not_set_up(self.form), "test_alerts": {}}


ContactEditing.register(blueprint)


@blueprint.post("/<int:id>/test")
def test(id: int) -> Response:
    store = current_store()
    ids = store.contacts.test(id)
    store.deliveries.answers(ids, channel_tests.WAIT_SECONDS)
    test_alerts = ",".join(map(str, ids))
    return redirect(url_for(".show", id=id, test_alerts=test_alerts, _anchor="channels"))


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(id: int) -> Answer:
    contact = current_store().contacts.get(id)
    form = browser(ContactDeletionForm)()
    if form.validate_on_submit():
        with faults_shown(form):
            current_store().contacts.remove(
                id, replace_with=form.replace_with.data, force=bool(form.force.data)
            )
            flash(_("%(name)s deleted.", name=contact.name), "success")
            return redirect(url_for(".index"))
    remaining = [name for name in choices.contacts(form, ()) if name != contact.name]
    return form_page("contacts/delete.html", form, contact=contact, others=remaining)


# --- Make a contact of a channel that several monitors have ---------------------------------------


shared_channels_blueprint = guarded("shared_channels", __name__, "/contacts")


def offer_shared_channels(monitor: Monitor, old_alerts: Sequence[Pair]) -> None:
    """After a monitor is saved, offer to make a contact of each new channel that other monitors
    have too. If the store does not answer, offer nothing. ``old_alerts``: those before the change.
    """
    channels = alerts_without_contacts(monitor.alerts)
    if set(channels) - set(old_alerts):
        for shared in if_answered(lambda: current_store().contacts.shared(monitor.id), ()):
            if shared.place < len(channels) and channels[shared.place] not in old_alerts:
                _flash_offer(monitor, shared)


def _flash_offer(monitor: Monitor, channel: SharedChannel) -> None:
    address = url_for("shared_channels.make", monitor=monitor.id, mark=channel.mark)
    sentence = _n(
        "%(num)s monitor uses this %(channel)s.",
        "%(num)s monitors use this %(channel)s.",
        channel.monitors,
        num=f"{channel.monitors:,}",
        channel=channel_noun(channel.key),
    )
    link = Markup('<a href="{}">{}</a>').format(address, _("Create a contact from it"))
    flash(Markup("{} {}").format(sentence, link), "info")


def channel_noun(key: str) -> str:
    """``Slack webhook``."""
    if key not in CHANNELS:
        return key
    text = CHANNELS[Channel(key)]
    return _(text.noun) if text.noun else _("%(service)s webhook", service=_(text.label))


class ContactFromChannel(Editing[Contact, BrowserForm]):
    collection, template = "contacts", "contacts/from_channel.html"
    on_bare_servers, leads_to = True, "contacts.show"

    def bind(self) -> BrowserForm:
        args = request.args
        first = {"monitor_id": args.get("monitor", type=int), "mark": args.get("mark")}
        return browser(SharedChannelForm)(data=first)

    def save(self) -> Contact:
        name, monitor_id, mark = (self.form[field].data for field in ("name", "monitor_id", "mark"))
        return current_store().contacts.from_channel(name, monitor_id, mark)

    def notice(self, record: Contact) -> str:
        created = _("%(name)s created.", name=record.name)
        uses = _n(
            "%(num)s monitor uses it in place of the channel.",
            "%(num)s monitors use it in place of the channel.",
            record.monitors,
            num=f"{record.monitors:,}",
        )
        return f"{created} {uses}"

    def page(self, status: int, **more: Any) -> Response:
        channel = self._channel() if status in (200, 422) else None
        return super().page(status, channel=channel, channel_noun=channel_noun)

    def _channel(self) -> SharedChannel | None:
        id, mark = self.form.monitor_id.data, self.form.mark.data
        shared = current_store().contacts.shared(id) if id else ()
        return next((channel for channel in shared if channel.mark == mark), None)


ContactFromChannel.register(shared_channels_blueprint, make="/from-channel")
