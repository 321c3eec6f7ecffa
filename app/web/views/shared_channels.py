"""Offer to make a contact of a channel that several monitors have, and do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Blueprint, flash, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response

from app.errors import Invalid, WakefulError
from app.forms.browser import BrowserForm, browser
from app.forms.contact import SharedChannelForm
from app.i18n import N_, _, _n
from app.records import Channel, Contact, Monitor, Pair, SharedChannel, own_alerts
from app.rules.channel_values import CHANNELS
from app.stores import current_store
from app.web.frame.editing import Editing, show_errors
from app.web.frame.session import guarded
from app.web.frame.store_errors import NOT_TAKEN

blueprint = guarded(Blueprint("shared_channels", __name__, url_prefix="/contacts"))

Answer = str | Response | tuple[str, int]

WHAT = {
    Channel.EMAIL: N_("email address"),
    Channel.WEBHOOK: N_("webhook"),
    Channel.TELEGRAM: N_("Telegram chat"),
    Channel.SMS: N_("phone number"),
    Channel.APPRISE: N_("Apprise URL"),
}


def offer(monitor: Monitor, before: Sequence[Pair]) -> None:
    """After saving: say which of the channels that are new to the monitor others have too. It says
    nothing where the store cannot tell now: the monitor is saved.
    """
    own = own_alerts(monitor.alerts)
    if not set(own) - set(before):
        return
    try:
        found = current_store().contacts.shared(monitor.id)
    except NOT_TAKEN:
        return
    for channel in found:
        if channel.place < len(own) and own[channel.place] not in before:
            _offer(monitor, channel)


def _offer(monitor: Monitor, channel: SharedChannel) -> None:
    address = url_for("shared_channels.make", monitor=monitor.id, mark=channel.mark)
    said = _n(
        "%(num)s monitor uses this %(channel)s.",
        "%(num)s monitors use this %(channel)s.",
        channel.monitors,
        num=f"{channel.monitors:,}",
        channel=what(channel.key),
    )
    link = Markup('<a href="{}">{}</a>').format(address, _("Create a contact from it"))
    flash(Markup("{} {}").format(said, link), "info")


def what(key: str) -> str:
    """``Slack webhook``."""
    if key not in CHANNELS:
        return key
    if key in WHAT:
        return _(WHAT[Channel(key)])
    return _("%(service)s webhook", service=_(CHANNELS[Channel(key)].label))


class ContactFromChannel(Editing[Contact, BrowserForm]):
    collection, template = "contacts", "contacts/from_channel.html"
    on_bare_servers = True

    def bind(self) -> BrowserForm:
        args = request.args
        first = {"monitor_id": args.get("monitor", type=int), "mark": args.get("mark")}
        return browser(SharedChannelForm)(data=first)

    def save(self) -> Contact:
        form = self.form
        return current_store().contacts.from_channel(
            form.name.data, form.monitor_id.data, form.mark.data
        )

    def refuse(self, fault: WakefulError) -> Response:
        if not isinstance(fault, Invalid):
            return super().refuse(fault)
        gone = fault.errors.pop("mark", ())  # no field of the page: it names the channel
        show_errors(self.form, fault)
        self.form.trouble = " ".join(gone) or self.form.trouble
        return self.page(422)

    def notice(self, record: Contact) -> str:
        created = _("%(name)s created.", name=record.name)
        uses = _n(
            "%(num)s monitor uses it in place of the channel.",
            "%(num)s monitors use it in place of the channel.",
            record.monitors,
            num=f"{record.monitors:,}",
        )
        return f"{created} {uses}"

    def next(self, record: Contact) -> str:
        return url_for("contacts.show", id=record.id)

    def page(self, status: int, **more: Any) -> Response:
        channel = self._channel() if status in (200, 422) else None
        return super().page(status, channel=channel, what=what)

    def _channel(self) -> SharedChannel | None:
        id, mark = self.form.monitor_id.data, self.form.mark.data
        shared = current_store().contacts.shared(id) if id else ()
        return next((channel for channel in shared if channel.mark == mark), None)


@blueprint.route("/from-channel", methods=["GET", "POST"])
def make() -> Response:
    return ContactFromChannel().answer()
