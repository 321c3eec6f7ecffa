"""Offer to make a contact of a channel that several monitors have, and do it."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Blueprint, flash, redirect, render_template, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response

from app.errors import Invalid
from app.forms.browser import BrowserSharedChannelForm
from app.i18n import N_, _, _n
from app.records import Channel, Monitor, Pair, SharedChannel, own_alerts
from app.rules.channel_values import CHANNELS
from app.stores import current_store
from app.web.frame.editing import not_saved, show_errors
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


@blueprint.route("/from-channel", methods=["GET", "POST"])
def make() -> Answer:
    first = {"monitor_id": request.args.get("monitor", type=int), "mark": request.args.get("mark")}
    form = BrowserSharedChannelForm(data=first)
    if form.validate_on_submit():
        try:
            contact = current_store().contacts.from_channel(
                form.name.data, form.monitor_id.data, form.mark.data
            )
        except Invalid as fault:
            gone = fault.errors.pop("mark", ())  # no field of the page: it names the channel
            show_errors(form, fault)
            form.trouble = " ".join(gone) or form.trouble
        except NOT_TAKEN as fault:
            return _page(form, None, not_saved(form, fault))
        else:
            created = _("%(name)s created.", name=contact.name)
            uses = _n(
                "%(num)s monitor uses it in place of the channel.",
                "%(num)s monitors use it in place of the channel.",
                contact.monitors,
                num=f"{contact.monitors:,}",
            )
            flash(f"{created} {uses}", "success")
            return redirect(url_for("contacts.show", id=contact.id))
    return _page(form, _found(form), 422 if form.is_submitted() else 200)


def _found(form: BrowserSharedChannelForm) -> SharedChannel | None:
    id = form.monitor_id.data
    found = current_store().contacts.shared(id) if id else ()
    return next((one for one in found if one.mark == form.mark.data), None)


def _page(form: BrowserSharedChannelForm, channel: SharedChannel | None, status: int) -> Answer:
    page = render_template("contacts/from_channel.html", form=form, channel=channel, what=what)
    return page, status
