"""What admins set for the whole installation: open networks, and the secret that signs webhooks."""

from __future__ import annotations

import base64
import secrets

from flask import Blueprint, current_app, flash, redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.checks.policy import Policy
from app.config import Settings
from app.records import Role
from app.stores import current_access
from app.web.forms import DeleteForm, NetworksForm
from app.web.session import guarded, needs

blueprint = guarded(Blueprint("settings", __name__, url_prefix="/settings"))

ALLOW_NETWORKS = "allow_networks"
WEBHOOK_SECRET = "webhook_secret"  # noqa: S105 - a setting's name
SECRET_BYTES = 32

Answer = str | Response | tuple[str, int]


@blueprint.route("", methods=["GET", "POST"])
@needs(Role.ADMIN)
def show() -> Answer:
    settings = _settings()
    kept = current_access().setting(ALLOW_NETWORKS) or ""
    form = NetworksForm(data={ALLOW_NETWORKS: settings.allow_networks or kept})
    if form.validate_on_submit() and settings.allow_networks is None:
        try:
            Policy.parse(form.allow_networks.data)
        except ValueError as fault:
            form.allow_networks.fault(str(fault))
        else:
            current_access().set_setting(ALLOW_NETWORKS, form.allow_networks.data.strip() or None)
            flash("Saved. The next checks and alerts follow it.", "success")
            return redirect(url_for(".show"))
    return _page(form)


def _page(form: NetworksForm, secret: str | None = None) -> tuple[str, int]:
    settings = _settings()
    page = render_template(
        "settings/show.html",
        form=form,
        networks_locked=settings.allow_networks is not None,
        secret_locked=settings.webhook_secret is not None,
        secret=secret,
        settings=settings,
    )
    return page, 422 if form.is_submitted() and secret is None else 200


@blueprint.post("/webhook-secret/show")
@needs(Role.ADMIN)
def show_secret() -> Answer:
    """The present secret, made where there is none. A POST, so that no history keeps it."""
    settings, access = _settings(), current_access()
    secret = settings.webhook_secret or access.setting_or_make(WEBHOOK_SECRET, new_secret)
    kept = access.setting(ALLOW_NETWORKS) or ""
    form = NetworksForm(formdata=None, data={ALLOW_NETWORKS: settings.allow_networks or kept})
    page, _ = _page(form, secret)
    return Response(page, 200, {"Cache-Control": "no-store"}, mimetype="text/html")


@blueprint.route("/webhook-secret/change", methods=["GET", "POST"])
@needs(Role.ADMIN)
def change_secret() -> Answer:
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().set_setting(WEBHOOK_SECRET, new_secret())
        flash("The webhook secret is changed. Give the new one to your receivers.", "success")
        return redirect(url_for(".show"))
    return render_template("settings/change_secret.html", form=form)


def new_secret() -> str:
    """As Standard Webhooks writes them: ``whsec_`` and base64."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def _settings() -> Settings:
    settings: Settings = current_app.extensions["wakeful.settings"]
    return settings
