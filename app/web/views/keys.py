"""API keys: made, shown once, revoked. For editors, because a key can do what an editor can."""

from __future__ import annotations

import secrets

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid
from app.i18n import _
from app.records import Role
from app.stores import current_access
from app.web.forms import DeleteForm, KeyForm, show_errors
from app.web.frame.session import guarded, needs
from app.web.shown import times

blueprint = guarded(Blueprint("keys", __name__, url_prefix="/keys"))

Answer = str | Response | tuple[str, int]

TOKEN_BYTES = 16
# How long a form that was sent is known again: longer than one can stand open and still be taken.
# Counts are of windows aligned to the clock, so a long one has fewer ends to slip through at.
ONCE_SECONDS = 12 * 3600


@blueprint.route("", methods=["GET", "POST"])
@needs(Role.EDITOR)
def index() -> Answer:
    form = KeyForm(zone=times.zone())
    if form.validate_on_submit():
        if sent_before(request.form.get("once", "")):
            flash(_("That key was created already. Its secret is shown only once."), "info")
            return redirect(url_for(".index"))
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
    once = secrets.token_urlsafe(TOKEN_BYTES)
    page = render_template("keys/index.html", keys=keys, form=form, once=once)
    return page, 422 if form.is_submitted() else 200


def sent_before(once: str) -> bool:
    """Whether this very form made a key already, as when somebody reloads the page with the secret.
    A form without the token is not known: it may be of a page from before an update.
    """
    name = f"once:{once[:64]}"
    return bool(once) and current_access().count(name, ONCE_SECONDS) > 1


@blueprint.route("/<prefix>/revoke", methods=["GET", "POST"])
@needs(Role.EDITOR)
def revoke(prefix: str) -> Answer:
    keys = current_access().keys()
    key = next((key for key in keys if key.prefix == prefix), None)
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().revoke_key(prefix)
        flash(_("Key revoked. Programs that use it get an error from now on."), "success")
        return redirect(url_for(".index"))
    return render_template("keys/revoke.html", key=key, prefix=prefix, form=form)
