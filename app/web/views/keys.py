"""API keys: made, shown once, changed, handed over, revoked. For editors, because a key can do what
an editor can. An editor manages their own keys, an admin those of everybody.
"""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access.keys import manages
from app.errors import Conflict, Denied, Invalid
from app.i18n import N_, _
from app.records import ApiKey, Role, Scope
from app.stores import current_access
from app.web.forms import KeyEditForm, KeyForm
from app.web.frame.editing import DeleteForm, show_errors
from app.web.frame.repeated import shown_once
from app.web.frame.session import guarded, needs
from app.web.shown import times

blueprint = guarded(Blueprint("keys", __name__, url_prefix="/keys"))

Answer = str | Response | tuple[str, int]

NOT_YOURS = N_("This is somebody else's key. Only its owner and admins can change it.")
ADOPTED = N_("The key “%(name)s” is yours now. It does at most what you may do.")


@blueprint.route("", methods=["GET", "POST"])
@needs(Role.EDITOR)
def index() -> Answer:
    form = KeyForm(zone=times.zone())
    if not current_user.is_admin:
        form.scope.leave_out(Scope.ADMIN)
    if form.validate_on_submit():
        try:
            key, secret = _made(form)
        except Invalid as fault:
            show_errors(form, fault)
        else:
            return shown_once("keys/made.html", url_for(".index"), key=key, secret=secret)
    page = render_template(
        "keys/index.html",
        keys=current_access().keys.all(),
        form=form,
        manages=lambda key: manages(current_user.person, key),
    )
    return page, 422 if form.is_submitted() else 200


def _made(form: KeyForm) -> tuple[ApiKey, str]:
    return current_access().keys.create(
        form.name.data,
        form.scope.data,
        form.expires_at.data,
        owner_id=current_user.person.id,
        networks=form.networks.data or "",
        tag=form.tag.data,
    )


@blueprint.route("/<prefix>", methods=["GET", "POST"])
@needs(Role.EDITOR)
def edit(prefix: str) -> Answer:
    key = _managed(prefix)
    data = {"name": key.name, "expires_at": key.expires_at, "networks": ", ".join(key.networks)}
    form = KeyEditForm(zone=times.zone(), data=data)
    if form.validate_on_submit():
        try:
            current_access().keys.change(
                prefix,
                name=form.name.data,
                expires_at=form.expires_at.data,
                networks=form.networks.data or "",
            )
        except Invalid as fault:
            show_errors(form, fault)
        except Conflict as fault:
            form.trouble = str(fault)
        else:
            flash(_("%(name)s saved.", name=form.name.data), "success")
            return redirect(url_for(".index"))
    page = render_template("keys/edit.html", key=key, form=form)
    return page, 422 if form.is_submitted() else 200


@blueprint.route("/<prefix>/adopt", methods=["GET", "POST"])
@needs(Role.ADMIN)
def adopt(prefix: str) -> Answer:
    """Become the owner of somebody else's key, or of one that has no owner."""
    key = current_access().keys.get(prefix)
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().keys.adopt(prefix, current_user.person.id)
        flash(_(ADOPTED, name=key.name), "success")
        return redirect(url_for(".index"))
    return render_template("keys/adopt.html", key=key)


@blueprint.route("/<prefix>/revoke", methods=["GET", "POST"])
@needs(Role.EDITOR)
def revoke(prefix: str) -> Answer:
    key = _managed(prefix)
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().keys.revoke(prefix)
        flash(_("Key revoked. Programs that use it get an error from now on."), "success")
        return redirect(url_for(".index"))
    return render_template("keys/revoke.html", key=key, form=form)


def _managed(prefix: str) -> ApiKey:
    """Raises NotFound, and Denied for a key of somebody else."""
    key = current_access().keys.get(prefix)
    if not manages(current_user.person, key):
        raise Denied(_(NOT_YOURS))
    return key
