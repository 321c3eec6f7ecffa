"""A person's own settings: time zone, colours, password."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, flash, redirect, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Invalid
from app.i18n import _
from app.records import Person, Role
from app.stores import current_access
from app.web.forms import PasswordForm, ProfileForm
from app.web.frame import session
from app.web.frame.editing import Editing, show_errors
from app.web.frame.session import guarded, needs

blueprint = guarded(Blueprint("profile", __name__, url_prefix="/profile"))

Answer = str | Response | tuple[str, int]


class ProfileEditing(Editing[Person, ProfileForm]):
    template = "profile/show.html"

    def load(self) -> Person:
        person: Person = current_user.person
        return person

    def bind(self) -> ProfileForm:
        return ProfileForm(record=self.record)

    def save(self) -> Person:
        fields = self.form.fields()
        return current_access().people.update(self.id, fields, anew=["time_zone"])

    def notice(self, record: Person) -> str:
        return _("Profile saved.")

    def next(self, record: Person) -> str:
        return url_for(".show")

    def context(self) -> dict[str, Any]:
        return {"password": PasswordForm(formdata=None)}


@blueprint.route("", methods=["GET", "POST"])
@needs(Role.VIEWER)
def show() -> Response:
    return ProfileEditing(current_user.person.id).answer()


@blueprint.post("/password")
@needs(Role.VIEWER)
def password() -> Answer:
    form = PasswordForm()
    if form.validate_on_submit():
        try:
            person = current_access().people.change_password(
                current_user.person.id, form.password.data, current=form.current_password.data
            )
        except Invalid as fault:
            show_errors(form, fault)
        else:
            # Every other session ends, this one goes on.
            session.begin(person, password_at=current_access().clock())
            flash(_("Password changed. You are logged out everywhere else."), "success")
            return redirect(url_for(".show"))
    editing = ProfileEditing(current_user.person.id)
    editing.form = ProfileForm(formdata=None, record=current_user.person)
    return editing.page(422, password=form)
