"""The admins' settings of the installation: open networks, and the secret that signs webhooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from flask import flash, redirect, render_template, send_file, url_for
from werkzeug.wrappers import Response

from app.access import webhook_secret
from app.access.settings import (
    ALLOW_NETWORKS,
    allowed_networks,
    can_mail,
    mail_is_unreadable,
    networks_are_locked,
    smtp_url,
)
from app.errors import Conflict, Throttled, WakefulError
from app.forms.browser import BrowserForm
from app.forms.fields import Switch
from app.i18n import N_, _, _n, join_words
from app.net.canary import MEMORY, name_of, only_refuse, parse_canaries, read_memory
from app.net.policy import Policy
from app.records import LAST_BACKUP, PageQuery, PlaceState, Role
from app.rules.smtp import parse
from app.slots import BUSY_SECONDS, LONG_WAITS, ONE_DOWNLOAD
from app.stores import Extent, current_access, current_settings, current_store
from app.web.forms import NetworksForm
from app.web.frame import servers
from app.web.frame.editing import DeleteForm
from app.web.frame.session import Answer, guarded
from app.web.frame.store_errors import if_answered
from app.web.shown import times

blueprint = guarded("settings", __name__, "/settings", Role.ADMIN)

CHANGED = N_(
    "Webhook secret changed. Show the new one below and give it to your receivers within 24"
    " hours: until then the old one also signs."
)
# If the old secret is unreadable, nothing can be signed with it.
CHANGED_ALONE = N_(
    "Webhook secret changed. Show the new one below and give it to your receivers now: they reject "
    "messages until they have it."
)

BUSY = N_("A backup is being made at this moment. Try again when it is there.")


class RequiredForm(BrowserForm):
    """The roles that must have a second factor."""

    admin = Switch(N_("Admins"), default=False)
    editor = Switch(N_("Editors"), default=False)
    viewer = Switch(N_("Viewers"), default=False)


@blueprint.route("", methods=["GET", "POST"])
def show() -> Answer:
    settings = current_settings()
    form = NetworksForm(data={ALLOW_NETWORKS: allowed_networks(settings)})
    if form.validate_on_submit() and not networks_are_locked(settings):
        try:
            Policy.parse(form.allow_networks.data)
        except ValueError as fault:
            form.allow_networks.add_fault(str(fault))
        else:
            current_access().settings.set(ALLOW_NETWORKS, form.allow_networks.data.strip() or None)
            flash(_("Networks saved. They apply to the next checks and alerts."), "success")
            return redirect(url_for(".show"))
    return _page(form)


@blueprint.post("/second-factor")
def require_second_factor() -> Response:
    form = RequiredForm()
    if form.validate_on_submit():
        current_access().factors.set_required_roles([role for role in Role if form[role].data])
        notice = _("Saved. People without a second factor must set it up before they can continue.")
        flash(notice, "success")
    return redirect(url_for(".show", _anchor="people"))


def _page(form: NetworksForm, secret: str | None = None) -> tuple[str, int]:
    settings, access = current_settings(), current_access()
    canaries = parse_canaries(settings.canaries)
    memory = read_memory(access.settings.get(MEMORY), settings.location)
    required = access.factors.required_roles()
    enabled = (person for person in access.people.all() if not person.disabled)
    page = render_template(
        "settings/show.html",
        form=form,
        rows=list(_rows()),
        networks_locked=networks_are_locked(settings),
        secret_locked=settings.webhook_secret is not None,
        secret=secret,
        shown_at=webhook_secret.shown_at(settings, access.settings),
        overlap_until=webhook_secret.overlap_until(settings, access.settings, datetime.now(UTC)),
        unreadable=access.settings.unreadable(),
        settings=settings,
        canaries=[name_of(canary) for canary in canaries],
        only_refuse=only_refuse(canaries, memory),
        required=RequiredForm(formdata=None, data={role.value: role in required for role in Role}),
        without=sum(person.role in required and not person.second_factor for person in enabled),
    )
    return page, 422 if form.is_submitted() and secret is None else 200


# --- The rows of the page: each setting with its present state, and a link


def _mail_state() -> str:
    settings = current_settings()
    if mail_is_unreadable(settings):
        return _("cannot be read")
    try:
        return parse(smtp_url(settings) or "").host
    except ValueError:
        return _("cannot be read") if can_mail(settings) else _("not set up")


def _contacts_state() -> str:
    count = len(current_store().contacts.names())
    return _n("%(num)s contact", "%(num)s contacts", count) if count else _("none yet")


def _status_pages_state() -> str:
    count = current_store().status_pages.list(PageQuery()).total
    return _n("%(num)s page", "%(num)s pages", count) if count else _("none yet")


def _people_state() -> str:
    return _n("%(num)s account", "%(num)s accounts", len(current_access().people.all()))


def _backup_state() -> str:
    last = current_access().settings.get(LAST_BACKUP)
    return _ago(datetime.fromisoformat(last)) if last else _("none has been made yet")


def _places_state() -> str:
    places = current_store().locations.list(PageQuery())
    count = _n("%(num)s place", "%(num)s places", places.total)
    silent = sum(place.state == PlaceState.SILENT for place in places.items)
    if not silent:
        return count
    return _n("%(places)s, %(num)s silent", "%(places)s, %(num)s silent", silent, places=count)


def _wall_links_state() -> str:
    count = len(current_access().wall_links.all())
    return _n("%(num)s link", "%(num)s links", count) if count else _("none")


def _keys_state() -> str:
    now = times.now()
    keys = [key for key in current_access().keys.all() if not key.revoked_at]
    count = sum(key.expires_at is None or key.expires_at > now for key in keys)
    return _n("%(num)s key", "%(num)s keys", count) if count else _("none")


def _second_factor_state() -> str:
    roles = current_access().factors.required_roles()
    words = {Role.ADMIN: _("admins"), Role.EDITOR: _("editors"), Role.VIEWER: _("viewers")}
    if not roles:
        return _("required for nobody")
    return _(
        "required for %(roles)s", roles=join_words(words[role] for role in Role if role in roles)
    )


def _canaries_state() -> str:
    count = len(parse_canaries(current_settings().canaries))
    return _n("%(num)s host", "%(num)s hosts", count) if count else _("not set up")


def _secret_state() -> str:
    settings, access = current_settings(), current_access()
    if webhook_secret.is_unreadable(settings, access.settings):
        return _("cannot be read")
    shown_at = webhook_secret.shown_at(settings, access.settings)
    return _("shown %(when)s", when=_ago(shown_at)) if shown_at else _("not shown yet")


def _ago(moment: datetime) -> str:
    """Without markup: a state is a plain sentence."""
    return times.relative(moment, times.now().astimezone(times.zone()))


# Label, state (or a sentence in place of one), and endpoint, with the part of the page.
ROWS: tuple[tuple[str, Callable[[], str] | str, str], ...] = (
    (N_("Email"), _mail_state, "mail_settings.show"),
    (N_("Contacts"), _contacts_state, "contacts.index"),
    (N_("Status pages"), _status_pages_state, "status_pages.index"),
    (N_("People"), _people_state, "people.index"),
    (N_("Second factor"), _second_factor_state, "settings.show#people"),
    (N_("Import"),
     N_("from Uptime Kuma, UptimeRobot, Better Stack, healthchecks, Gatus, other tools, or CSV"),
     "imports.start"),
    (N_("Backup"), _backup_state, "backups.show"),
    (N_("Audit log"), N_("who changed what, and who logged in"), "audit.index"),
    (N_("Places"), _places_state, "locations.index"),
    (N_("Links to the wall"), _wall_links_state, "wall_links.index"),
    (N_("API keys"), _keys_state, "keys.index"),
    (N_("Networks"), lambda: allowed_networks(current_settings()) or _("public addresses only"),
     "settings.show#networks"),
    (N_("Network self-check"), _canaries_state, "settings.show#canaries"),
    (N_("Webhook secret"), _secret_state, "settings.show#webhooks"),
)  # fmt: skip
OF_WHOLE_SERVERS = ("contacts.index", "status_pages.index", "locations.index")


def _rows() -> Iterator[tuple[str, str, str]]:
    for label, state, address in ROWS:
        endpoint, _hash, part = address.partition("#")
        if endpoint not in OF_WHOLE_SERVERS or servers.extent() == Extent.WHOLE:
            sentence = _(state) if isinstance(state, str) else if_answered(state, "")
            yield _(label), sentence, url_for(endpoint, _anchor=part or None)


@blueprint.post("/webhook-secret/show")
def show_secret() -> Answer:
    """Show the present secret, once; make one if there is none. It is a POST, so that the browser's
    history does not contain it.
    """
    settings, access = current_settings(), current_access()
    try:
        secret = webhook_secret.show_once(settings, access.settings, datetime.now(UTC))
    except Conflict as fault:
        flash(str(fault), "warning")
        return redirect(url_for(".show", _anchor="webhooks"))
    allowed = allowed_networks(settings)
    form = NetworksForm(formdata=None, data={ALLOW_NETWORKS: allowed})
    page, _status = _page(form, secret)
    return Response(page, mimetype="text/html")


@blueprint.route("/webhook-secret/change", methods=["GET", "POST"])
def change_secret() -> Answer:
    settings, access, now = current_settings(), current_access(), datetime.now(UTC)
    unreadable = webhook_secret.is_unreadable(settings, access.settings)
    if DeleteForm().validate_on_submit():
        try:
            webhook_secret.rotate(settings, access.settings, now)
            flash(_(CHANGED_ALONE if unreadable else CHANGED), "success")
        except Conflict as fault:
            flash(str(fault), "warning")
        return redirect(url_for(".show", _anchor="webhooks"))
    until = webhook_secret.overlap_until(settings, access.settings, now)
    return render_template(
        "settings/change_secret.html", overlap_until=until, unreadable=unreadable
    )


@blueprint.app_template_global()
def webhooks_unsigned() -> bool:
    """Whether webhooks cannot be signed, because this installation's secret is unreadable. For a
    notice on the dashboard.
    """
    settings = current_settings()
    return settings.store == "local" and webhook_secret.is_unreadable(
        settings, current_access().settings
    )


# --- How to back up -------------------------------------------------------------------------------


backups_blueprint = guarded("backups", __name__, "/settings/backup", Role.ADMIN)


@backups_blueprint.get("", endpoint="show")
def show_backups() -> str:
    last = current_access().settings.get(LAST_BACKUP)
    return render_template(
        "settings/backup.html",
        last=datetime.fromisoformat(last) if last else None,
        command=_program(),
        instance=current_settings().instance,
    )


def _program() -> str:
    """The beginning of a command that runs this installation's program from any folder."""
    program = Path(sys.executable).with_name("wakeful")
    called = str(program) if program.exists() else "wakeful"
    return f"WAKEFUL_INSTANCE={quote(str(current_settings().instance))} {quote(called)}"


@backups_blueprint.post("/download")
def download() -> Response:
    """Make a backup, which contains the secret key. Checks go on meanwhile."""
    # Imported here, because it takes long and few people need it.
    from app.stores.keeping import backup

    try:
        with LONG_WAITS.taken() as free, ONE_DOWNLOAD.taken() as alone:
            if not (free and alone):
                raise Throttled(_(BUSY), BUSY_SECONDS)
            file = backup.open_new(current_settings())
    except WakefulError as fault:
        flash(str(fault), "error")
        return redirect(url_for(".show"))
    name = f"wakeful-{times.now():%Y-%m-%d}.backup"
    answer = send_file(file, "application/octet-stream", as_attachment=True, download_name=name)
    answer.content_length = os.fstat(file.fileno()).st_size
    answer.headers["Cache-Control"] = "no-store"  # in place of that of send_file
    return answer
