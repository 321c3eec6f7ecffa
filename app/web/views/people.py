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
from app.web.forms import KeysOf, NewPasswordForm, NewPersonForm, PersonDeletionForm, PersonForm
from app.web.frame import session
from app.web.frame.editing import DeleteForm, show_errors
from app.web.frame.session import guarded, needs

blueprint = guarded(Blueprint("people", __name__, url_prefix="/people"))

Answer = str | Response | tuple[str, int]

CURRENT = "current_password"
UNDECIDED = N_("Choose what becomes of their API keys.")
HANDED_OVER = N_("Their API keys are yours now.")
ALL_REVOKED = N_("Their API keys are revoked. Programs that use them get an error from now on.")
FACTOR_RESET = N_("An admin removed the second factor. Your password alone logs you in.")


@blueprint.get("")
@needs(Role.ADMIN)
def index() -> str:
    access = current_access()
    return render_template(
        "people/index.html",
        people=access.people.all(),
        invitations=access.invitations.all(),
        over=access.invitations.is_over,
        required=access.factors.required_roles(),
    )


@blueprint.route("/new", methods=["GET", "POST"])
@needs(Role.ADMIN)
def new() -> Answer:
    form = NewPersonForm()
    if form.validate_on_submit():
        try:
            person = current_access().people.create(
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
    person = current_access().people.get(id)
    form = _person_form(person)
    if form.validate_on_submit() and _has_decided(person, form):
        try:
            if CURRENT in form and form.email.data != person.email:
                current_access().people.confirm(id, form[CURRENT].data or "")
            settled = _settled(form.keys.data) if "keys" in form and form.disabled.data else {}
            changed = current_access().people.update(id, form.fields(), anew=["role"], **settled)
        except Invalid as fault:
            show_errors(form, fault)
        except Conflict as fault:
            form.role.fault(str(fault))
        else:
            if id == current_user.person.id:
                # Their own change must not log them out, nor count as typing the password.
                session.begin(changed, password_at=current_user.session.password_at)
            flash(_("%(name)s saved.", name=changed.email), "success")
            if settled:
                flash(_(HANDED_OVER if settled["heir_id"] else ALL_REVOKED), "info")
            return redirect(url_for(".index"))
    return _person_page(person, form, NewPasswordForm(formdata=None), form.is_submitted())


def _person_form(person: Person, **options: Any) -> PersonForm:
    """Whoever changes their own email address types their password: a browser that was left open
    must not be enough to take an account over.
    """
    form = PersonForm(record=person, **options)
    if person.id != current_user.person.id:
        del form[CURRENT]
    if person.id == current_user.person.id or not current_access().keys.of(person.id):
        del form.keys
    return form


def _has_decided(person: Person, form: PersonForm) -> bool:
    """Whether it is said what becomes of the API keys of somebody who loses access."""
    loses = form.disabled.data and not person.disabled
    if loses and "keys" in form and form.keys.data is None:
        form.keys.fault(_(UNDECIDED))
        return False
    return True


def _settled(chosen: str | None) -> dict[str, Any]:
    """What a store is told of the keys. The admin who acts is who gets them."""
    if chosen is None:
        return {}
    return {"settle": True, "heir_id": current_user.person.id if chosen == KeysOf.MINE else None}


@blueprint.post("/<int:id>/password")
@needs(Role.ADMIN)
def password(id: int) -> Answer:
    person = current_access().people.get(id)
    if id == current_user.person.id:
        flash(_("Change your own password here: it asks for the current one."), "info")
        return redirect(url_for("profile.show"))
    form = NewPasswordForm()
    if form.validate_on_submit():
        try:
            current_access().people.change_password(id, form.password.data)
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
        required=current_access().factors.required_roles(),
    )
    return page, 422 if failed else 200


@blueprint.route("/<int:id>/second-factor/reset", methods=["GET", "POST"])
@needs(Role.ADMIN)
def reset_second_factor(id: int) -> Answer:
    person = current_access().people.get(id)
    if id == current_user.person.id:
        flash(_("Change your own second factor here: it asks for the current password."), "info")
        return redirect(url_for("two_factor.show"))
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().factors.reset(id)
        current_mail().tell_of_second_factor(person.email, FACTOR_RESET)
        flash(_("Second factor of %(email)s reset.", email=person.email), "success")
        return redirect(url_for(".edit", id=id))
    return render_template("people/reset_second_factor.html", person=person, form=form)


@blueprint.post("/<int:id>/sessions/end")
@needs(Role.ADMIN)
def end_sessions(id: int) -> Response:
    """Log somebody out of every browser."""
    person = current_access().people.get(id)
    if id == current_user.person.id:
        return redirect(url_for("sessions.index"))
    current_access().sessions.end_all(id)
    flash(_("%(email)s is logged out everywhere.", email=person.email), "success")
    return redirect(url_for(".edit", id=id))


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
@needs(Role.ADMIN)
def delete(id: int) -> Answer:
    person = current_access().people.get(id)
    keys = current_access().keys.of(id)
    form = PersonDeletionForm() if keys else DeleteForm()
    if form.validate_on_submit():
        heir = current_user.person.id if keys and form.keys.data == KeysOf.MINE else None
        current_access().people.delete(id, heir_id=heir)
        flash(_("%(name)s deleted.", name=person.email), "success")
        if keys:
            flash(_(HANDED_OVER if heir else ALL_REVOKED), "info")
        return redirect(url_for(".index"))
    page = render_template("people/delete.html", person=person, form=form, keys=keys)
    return page, 422 if form.is_submitted() else 200
