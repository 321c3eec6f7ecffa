"""API keys: made, shown once, revoked. For editors, because a key can do what an editor can."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid
from app.records import Role
from app.stores import current_access
from app.web import times
from app.web.forms import DeleteForm, KeyForm, show_errors
from app.web.session import guarded, needs

blueprint = guarded(Blueprint("keys", __name__, url_prefix="/keys"))

Answer = str | Response | tuple[str, int]


@blueprint.route("", methods=["GET", "POST"])
@needs(Role.EDITOR)
def index() -> Answer:
    form = KeyForm(zone=times.zone())
    if form.validate_on_submit():
        try:
            key, secret = current_access().create_key(
                form.name.data, form.scope.data, form.expires_at.data
            )
        except Invalid as fault:
            show_errors(form, fault)
        else:
            # Shown in the answer itself, never after a redirect: it would have to wait in a cookie.
            page = render_template("keys/made.html", key=key, secret=secret)
            return Response(page, 201, {"Cache-Control": "no-store"}, mimetype="text/html")
    keys = current_access().keys()
    page = render_template("keys/index.html", keys=keys, form=form)
    return page, 422 if form.is_submitted() else 200


@blueprint.route("/<prefix>/revoke", methods=["GET", "POST"])
@needs(Role.EDITOR)
def revoke(prefix: str) -> Answer:
    keys = current_access().keys()
    key = next((key for key in keys if key.prefix == prefix), None)
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().revoke_key(prefix)
        flash("The key is revoked. Nothing can use it any more.", "success")
        return redirect(url_for(".index"))
    return render_template("keys/revoke.html", key=key, prefix=prefix, form=form)
