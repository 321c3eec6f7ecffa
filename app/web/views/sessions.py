"""The browsers in which a person is logged in: seen, and logged out."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.i18n import _
from app.records import Role, Session
from app.stores import current_access
from app.web.frame import session
from app.web.frame.session import guarded, needs

blueprint = guarded(Blueprint("sessions", __name__, url_prefix="/profile/sessions"))


@blueprint.get("")
@needs(Role.VIEWER)
def index() -> str:
    own = current_user.session.id
    found = current_access().sessions.of(current_user.person.id)
    return render_template(
        "sessions/index.html",
        sessions=sorted(found, key=lambda one: one.id != own),
        own=own,
        browser=browser,
    )


def browser(one: Session) -> str:
    """``Firefox on Linux``, as far as it is known."""
    if one.browser and one.system:
        return _("%(browser)s on %(system)s", browser=one.browser, system=one.system)
    return one.browser or one.system or _("Unknown browser")


@blueprint.post("/<int:id>/end")
@needs(Role.VIEWER)
def end(id: int) -> Response:
    if id == current_user.session.id:
        return forget()
    current_access().sessions.end_one(current_user.person.id, id)
    flash(_("Session ended. That browser has to log in again."), "success")
    return redirect(url_for(".index"))


@blueprint.post("/others/end")
@needs(Role.VIEWER)
def end_others() -> Response:
    current_access().sessions.end_all(current_user.person.id, but=current_user.session.id)
    flash(_("You are logged out everywhere else."), "success")
    return redirect(url_for(".index"))


@blueprint.post("/forget")
@needs(Role.VIEWER)
def forget() -> Response:
    """For a computer that others use: it is a stranger's from now on."""
    session.end(forget=True)
    flash(_("You are logged out, and this browser is forgotten."), "info")
    return redirect(url_for("auth.login"))
