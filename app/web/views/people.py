"""People and their roles, for admins."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid
from app.i18n import _
from app.records import Role
from app.stores import current_access, current_mail
from app.web.forms import DeleteForm, NewPasswordForm, NewPersonForm, PersonForm, show_errors
from app.web.frame import session
from app.web.frame.session import guarded, needs

blueprint = guarded(Blueprint("people", __name__, url_prefix="/people"))

Answer = str | Response | tuple[str, int]


@blueprint.get("")
@needs(Role.ADMIN)
def index() -> str:
    access = current_access()
    return render_template(
        "people/index.html",
        people=access.people(),
        invitations=access.invitations(),
        over=access.is_over,
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
    form = PersonForm(record=person)
    if form.validate_on_submit():
        try:
            changed = current_access().update_person(id, form.fields(), anew=["role"])
        except Invalid as fault:
            show_errors(form, fault)
        except Conflict as fault:
            form.role.fault(str(fault))
        else:
            if id == current_user.person.id:
                session.begin(changed)  # their own change must not log them out
            flash(_("%(name)s saved.", name=changed.email), "success")
            return redirect(url_for(".index"))
    return _person_page(person, form, NewPasswordForm(formdata=None), form.is_submitted())


@blueprint.post("/<int:id>/password")
@needs(Role.ADMIN)
def password(id: int) -> Answer:
    person = current_access().person(id)
    form = NewPasswordForm()
    if form.validate_on_submit():
        try:
            changed = current_access().change_password(id, form.password.data)
        except Invalid as fault:
            show_errors(form, fault)
        else:
            if id == current_user.person.id:
                session.begin(changed)
            flash(
                _("Password of %(email)s changed. Tell them the new one.", email=person.email),
                "success",
            )
            return redirect(url_for(".index"))
    return _person_page(person, PersonForm(formdata=None, record=person), form, True)


def _person_page(
    person: object, form: PersonForm, password: NewPasswordForm, failed: bool
) -> tuple[str, int]:
    page = render_template(
        "people/edit.html",
        person=person,
        form=form,
        password=password,
        mails=current_mail().is_set(),
    )
    return page, 422 if failed else 200


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
