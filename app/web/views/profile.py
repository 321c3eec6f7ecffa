"""A person's own settings: name, time zone, colours, password, and where they are logged in."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.i18n import N_, _
from app.records import Person, Role, Session
from app.stores import current_access
from app.web.forms import PasswordForm, ProfileForm
from app.web.frame import session
from app.web.frame.editing import Editing, faults_shown
from app.web.frame.session import Answer, guarded

blueprint = guarded("profile", __name__, "/profile", Role.VIEWER)


class ProfileEditing(Editing[Person, ProfileForm]):
    template, saved = "profile/show.html", N_("Profile saved.")

    def load(self) -> Person:
        person: Person = current_user.person
        return person

    def bind(self) -> ProfileForm:
        return ProfileForm(record=self.record)

    def save(self) -> Person:
        id, fields = current_user.person.id, self.form.fields()
        return current_access().people.update(id, fields, rewritten=["time_zone"])

    def next_address(self, record: Person) -> str:
        return url_for(".show")

    def context(self) -> dict[str, Any]:
        return {"password": PasswordForm(formdata=None)}


ProfileEditing.register(blueprint, show="")


@blueprint.post("/theme")
def theme() -> Response:
    """Set the theme that was chosen in the menu."""
    current_access().people.update(current_user.person.id, {"theme": request.form.get("theme")})
    return redirect(session.safe_next(request.form.get("next")))


@blueprint.post("/password")
def password() -> Answer:
    form = PasswordForm()
    if form.validate_on_submit():
        with faults_shown(form):
            person = current_access().people.change_password(
                current_user.person.id, form.password.data, current=form.current_password.data
            )
            # Every other session ends, this one goes on.
            session.begin(person, password_at=current_access().clock())
            flash(_("Password changed. You are logged out everywhere else."), "success")
            return redirect(url_for(".show"))
    editing = ProfileEditing()
    editing.form = ProfileForm(formdata=None, record=current_user.person)
    return editing.page(422, password=form)


# --- The browsers in which a person is logged in --------------------------------------------------


sessions_blueprint = guarded("sessions", __name__, "/profile/sessions", Role.VIEWER)


@sessions_blueprint.get("")
def index() -> str:
    current_id = current_user.session.id
    sessions = current_access().sessions.of(current_user.person.id)
    return render_template(
        "sessions/index.html",
        sessions=sorted(sessions, key=lambda session: session.id != current_id),
        current_id=current_id,
        browser=browser,
    )


def browser(session: Session) -> str:
    """``Firefox on Linux``, as far as the browser says."""
    if session.browser and session.system:
        return _("%(browser)s on %(system)s", browser=session.browser, system=session.system)
    return session.browser or session.system or _("Unknown browser")


@sessions_blueprint.post("/<int:id>/end")
def end(id: int) -> Response:
    if id == current_user.session.id:
        return forget()
    current_access().sessions.end_other(current_user.person.id, id)
    flash(_("Session ended. That browser has to log in again."), "success")
    return redirect(url_for(".index"))


@sessions_blueprint.post("/others/end")
def end_others() -> Response:
    current_access().sessions.end_all(current_user.person.id, keep=current_user.session.id)
    flash(_("You are logged out everywhere else."), "success")
    return redirect(url_for(".index"))


@sessions_blueprint.post("/forget")
def forget() -> Response:
    """Log out, and make this browser an unknown device, for a computer that others use."""
    session.end(forget=True)
    flash(_("You are logged out, and this browser is forgotten."), "info")
    return redirect(url_for("auth.login"))
