"""What admins set for the whole installation: open networks, and the secret that signs webhooks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from flask import current_app, flash, redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.access import webhook_secret
from app.access.settings import ALLOW_NETWORKS, allowed_networks, networks_are_locked
from app.config import Settings
from app.errors import Conflict
from app.forms.browser import BrowserForm
from app.forms.fields import (
    Switch,
)
from app.i18n import N_, _
from app.net.canary import MEMORY, name_of, only_refuse, parse_canaries, read_memory
from app.net.policy import Policy
from app.records import (
    LAST_BACKUP,
    Role,
)
from app.stores import Extent, current_access
from app.web.forms import NetworksForm
from app.web.frame import servers
from app.web.frame.editing import DeleteForm
from app.web.frame.session import guarded

blueprint = guarded("settings", __name__, "/settings", Role.ADMIN)

CHANGED = N_(
    "Webhook secret changed. Show the new one below and give it to your receivers within 24"
    " hours: until then the old one also signs."
)
# For an unreadable old secret: nothing can be signed with it.
CHANGED_ALONE = N_(
    "Webhook secret changed. Show the new one below and give it to your receivers now: they reject "
    "messages until they have it."
)


class RequiredForm(BrowserForm):
    """The roles that must have a second factor."""

    admin = Switch(N_("Admins"), default=False)
    editor = Switch(N_("Editors"), default=False)
    viewer = Switch(N_("Viewers"), default=False)

    def roles(self) -> list[Role]:
        return [role for role in Role if self[role].data]


# Pages of their own: label, what for, endpoint, and how much the store must have. Pages that
# are not registered are left out.
ENTRIES: tuple[tuple[str, str, str, Extent], ...] = (
    (N_("Email"), N_("The mail server, and a test of it."), "mail_settings.show", Extent.BARE),
    (
        N_("Contacts"),
        N_("The people that monitors alert, and how."),
        "contacts.index",
        Extent.WHOLE,
    ),
    (
        N_("Status pages"),
        N_("What the public sees of your monitors."),
        "status_pages.index",
        Extent.WHOLE,
    ),
    (N_("People"), N_("Accounts, roles and invitations."), "people.index", Extent.BARE),
    (
        N_("Import"),
        N_(
            "From Uptime Kuma, UptimeRobot, Better Stack, healthchecks, Gatus, other tools, or CSV."
        ),
        "imports.start",
        Extent.BARE,
    ),
    (N_("Backup"), N_("How to back up, and when that was last done."), "backups.show", Extent.BARE),
    (
        N_("Audit log"),
        N_("Who changed what, and who logged in."),
        "audit.index",
        Extent.BARE,
    ),
    (
        N_("Places"),
        N_("Where checks run from, and their agents."),
        "locations.index",
        Extent.WHOLE,
    ),
    (
        N_("Links to the wall"),
        N_("For screens without an account."),
        "wall_links.index",
        Extent.BARE,
    ),
    (N_("API keys"), N_("For programs, and for other dashboards."), "keys.index", Extent.BARE),
)

Answer = str | Response | tuple[str, int]


@blueprint.route("", methods=["GET", "POST"])
def show() -> Answer:
    settings = _settings()
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
        current_access().factors.require(form.roles())
        flash(
            _("Saved. People without a second factor must set it up before they can continue."),
            "success",
        )
    return redirect(url_for(".show", _anchor="people"))


def _page(form: NetworksForm, shown: str | None = None) -> tuple[str, int]:
    settings = _settings()
    canaries = parse_canaries(settings.canaries)
    memory = read_memory(current_access().settings.get(MEMORY), settings.location)
    page = render_template(
        "settings/show.html",
        form=form,
        entries=_entries(),
        networks_locked=networks_are_locked(settings),
        secret_locked=settings.webhook_secret is not None,
        secret=shown,
        shown_at=webhook_secret.shown_at(settings, current_access().settings),
        overlap_until=webhook_secret.overlap_until(
            settings, current_access().settings, datetime.now(UTC)
        ),
        unreadable=current_access().settings.unreadable(),
        settings=settings,
        canaries=[name_of(canary) for canary in canaries],
        only_refuse=only_refuse(canaries, memory),
        required=_required_form(),
        without=_without_factor(),
    )
    return page, 422 if form.is_submitted() and shown is None else 200


def _required_form() -> RequiredForm:
    required = current_access().factors.required_roles()
    return RequiredForm(formdata=None, data={role.value: role in required for role in Role})


def _without_factor() -> int:
    """How many people are still to set up the second factor that their role requires."""
    access = current_access()
    required = access.factors.required_roles()  # once: with a thousand people, a query each
    enabled = (person for person in access.people.all() if not person.disabled)
    return sum(person.role in required and not person.second_factor for person in enabled)


def _entries() -> list[tuple[str, str, str]]:
    return [
        (_(label), _(note), url_for(endpoint))
        for label, note, endpoint, needs in ENTRIES
        if endpoint in current_app.view_functions and servers.extent() >= needs
    ]


@blueprint.post("/webhook-secret/show")
def show_secret() -> Answer:
    """The present secret, once, made where there is none. A POST, so that no history keeps it."""
    settings, access = _settings(), current_access()
    try:
        shown = webhook_secret.show_once(settings, access.settings, datetime.now(UTC))
    except Conflict as fault:
        flash(str(fault), "warning")
        return redirect(url_for(".show", _anchor="webhooks"))
    allowed = allowed_networks(settings)
    form = NetworksForm(formdata=None, data={ALLOW_NETWORKS: allowed})
    page, _status = _page(form, shown)
    return Response(page, 200, {"Cache-Control": "no-store"}, mimetype="text/html")


@blueprint.route("/webhook-secret/change", methods=["GET", "POST"])
def change_secret() -> Answer:
    form = DeleteForm()
    if form.validate_on_submit():
        try:
            lost = webhook_secret.is_unreadable(_settings(), current_access().settings)
            webhook_secret.rotate(_settings(), current_access().settings, datetime.now(UTC))
        except Conflict as fault:
            flash(str(fault), "warning")
        else:
            flash(_(CHANGED_ALONE if lost else CHANGED), "success")
        return redirect(url_for(".show", _anchor="webhooks"))
    until = webhook_secret.overlap_until(_settings(), current_access().settings, datetime.now(UTC))
    unreadable = webhook_secret.is_unreadable(_settings(), current_access().settings)
    return render_template(
        "settings/change_secret.html", form=form, overlap_until=until, unreadable=unreadable
    )


@blueprint.app_context_processor
def _helper() -> dict[str, Callable[[], bool]]:
    return {"webhooks_wait": webhooks_wait}


def webhooks_wait() -> bool:
    """Whether no webhook can be signed, for the notice on the dashboard: the alerts of this
    installation are sent with a secret that cannot be read.
    """
    settings = _settings()
    return settings.store == "local" and webhook_secret.is_unreadable(
        settings, current_access().settings
    )


def _settings() -> Settings:
    settings: Settings = current_app.extensions["wakeful.settings"]
    return settings


# --- How to back up -------------------------------------------------------------------------------


backups_blueprint = guarded("backups", __name__, "/settings/backup", Role.ADMIN)


@backups_blueprint.get("", endpoint="show")
def show_backups() -> str:
    last = current_access().settings.get(LAST_BACKUP)
    return render_template(
        "settings/backup.html",
        last=datetime.fromisoformat(last) if last else None,
        instance=current_app.extensions["wakeful.settings"].instance,
    )
