"""A person's own settings: time zone, colours, password."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Invalid
from app.i18n import _
from app.records import Role
from app.stores import current_access
from app.web.forms import PasswordForm, ProfileForm
from app.web.frame import session
from app.web.frame.editing import show_errors
from app.web.frame.session import guarded, needs

blueprint = guarded(Blueprint("profile", __name__, url_prefix="/profile"))

Answer = str | Response | tuple[str, int]


@blueprint.route("", methods=["GET", "POST"])
@needs(Role.VIEWER)
def show() -> Answer:
    form = ProfileForm(record=current_user.person)
    if form.validate_on_submit():
        current_access().people.update(current_user.person.id, form.fields(), anew=["time_zone"])
        flash(_("Profile saved."), "success")
        return redirect(url_for(".show"))
    return _page(form, PasswordForm(formdata=None), form.is_submitted())


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
    return _page(ProfileForm(formdata=None, record=current_user.person), form, True)


def _page(form: ProfileForm, password: PasswordForm, failed: bool) -> tuple[str, int]:
    page = render_template("profile/show.html", form=form, password=password)
    return page, 422 if failed else 200
