"""People and their roles, for admins."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, flash, redirect, render_template, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid
from app.i18n import N_, _
from app.records import Person, Role
from app.stores import current_access, current_mail
from app.web.forms import DeleteForm, NewPasswordForm, NewPersonForm, PersonForm, show_errors
from app.web.frame import session
from app.web.frame.session import guarded, needs

blueprint = guarded(Blueprint("people", __name__, url_prefix="/people"))

Answer = str | Response | tuple[str, int]

CURRENT = "current_password"
FACTOR_RESET = N_("An admin removed the second factor. Your password alone logs you in.")


@blueprint.get("")
@needs(Role.ADMIN)
def index() -> str:
    access = current_access()
    return render_template(
        "people/index.html",
        people=access.people(),
        invitations=access.invitations(),
        over=access.is_over,
        required=access.required_roles(),
    )


@blueprint.route("/new", methods=["GET", "POST"])
@needs(Role.ADMIN)
def new() -> Answer:
    form = NewPersonForm()
    if form.validate_on_submit():
        try:
            person = current_access().create_person(
                form.email.data, form.password.data, form.role.data
            )
        except Invalid as fault:
            show_errors(form, fault)
        else:
            flash(_("%(email)s can log in now.", email=person.email), "success")
            return redirect(url_for(".index"))
    return render_template("people/new.html", form=form), 422 if form.is_submitted() else 200


@blueprint.route("/<int:id>", methods=["GET", "POST"])
@needs(Role.ADMIN)
def edit(id: int) -> Answer:
    person = current_access().person(id)
    form = _person_form(person)
    if form.validate_on_submit():
        try:
            if CURRENT in form and form.email.data != person.email:
                current_access().confirm(id, form[CURRENT].data or "")
            changed = current_access().update_person(id, form.fields(), anew=["role"])
        except Invalid as fault:
            show_errors(form, fault)
        except Conflict as fault:
            form.role.fault(str(fault))
        else:
            if id == current_user.person.id:
                # Their own change must not log them out, nor count as typing the password.
                session.begin(changed, password_at=current_user.session.password_at)
            flash(_("%(name)s saved.", name=changed.email), "success")
            return redirect(url_for(".index"))
    return _person_page(person, form, NewPasswordForm(formdata=None), form.is_submitted())


def _person_form(person: Person, **options: Any) -> PersonForm:
    """Whoever changes their own email address types their password: a browser that was left open
    must not be enough to take an account over.
    """
    form = PersonForm(record=person, **options)
    if person.id != current_user.person.id:
        del form[CURRENT]
    return form


@blueprint.post("/<int:id>/password")
@needs(Role.ADMIN)
def password(id: int) -> Answer:
    person = current_access().person(id)
    if id == current_user.person.id:
        flash(_("Change your own password here: it asks for the current one."), "info")
        return redirect(url_for("profile.show"))
    form = NewPasswordForm()
    if form.validate_on_submit():
        try:
            current_access().change_password(id, form.password.data)
        except Invalid as fault:
            show_errors(form, fault)
        else:
            flash(
                _("Password of %(email)s changed. Tell them the new one.", email=person.email),
                "success",
            )
            return redirect(url_for(".index"))
    return _person_page(person, _person_form(person, formdata=None), form, True)


def _person_page(
    person: Person, form: PersonForm, password: NewPasswordForm, failed: bool
) -> tuple[str, int]:
    page = render_template(
        "people/edit.html",
        person=person,
        form=form,
        password=password,
        oneself=person.id == current_user.person.id,
        mails=current_mail().is_set(),
        required=current_access().required_roles(),
    )
    return page, 422 if failed else 200


@blueprint.route("/<int:id>/second-factor/reset", methods=["GET", "POST"])
@needs(Role.ADMIN)
def reset_second_factor(id: int) -> Answer:
    person = current_access().person(id)
    if id == current_user.person.id:
        flash(_("Change your own second factor here: it asks for the current password."), "info")
        return redirect(url_for("two_factor.show"))
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().reset_second_factor(id)
        current_mail().tell_of_second_factor(person.email, FACTOR_RESET)
        flash(_("Second factor of %(email)s reset.", email=person.email), "success")
        return redirect(url_for(".edit", id=id))
    return render_template("people/reset_second_factor.html", person=person, form=form)


@blueprint.post("/<int:id>/sessions/end")
@needs(Role.ADMIN)
def end_sessions(id: int) -> Response:
    """Log somebody out of every browser."""
    person = current_access().person(id)
    if id == current_user.person.id:
        return redirect(url_for("sessions.index"))
    current_access().end_sessions_of(id)
    flash(_("%(email)s is logged out everywhere.", email=person.email), "success")
    return redirect(url_for(".edit", id=id))


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
@needs(Role.ADMIN)
def delete(id: int) -> Answer:
    person = current_access().person(id)
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().delete_person(id)
        flash(_("%(name)s deleted.", name=person.email), "success")
        return redirect(url_for(".index"))
    return render_template("people/delete.html", person=person, form=form)
