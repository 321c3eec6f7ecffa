"""People and their roles, for admins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access.invitations import INVITED_DAYS
from app.errors import Invalid
from app.i18n import N_, _
from app.records import Invitation, Person, Role
from app.stores import current_access, current_mail
from app.web.forms import (
    InviteForm,
    KeysOf,
    NewPasswordForm,
    NewPersonForm,
    PersonDeletionForm,
    PersonForm,
)
from app.web.frame import links, session
from app.web.frame.editing import DeleteForm, Editing, confirmed, faults_shown, form_page
from app.web.frame.repeated import shown_once
from app.web.frame.session import Answer, guarded

blueprint = guarded("people", __name__, "/people", Role.ADMIN)

CURRENT = "current_password"
HANDED_OVER = N_("Their API keys are yours now.")
ALL_REVOKED = N_("Their API keys are revoked. Programs that use them get an error from now on.")
FACTOR_RESET = N_("An admin removed the second factor. Your password alone logs you in.")


@blueprint.get("")
def index() -> str:
    access = current_access()
    return render_template(
        "people/index.html",
        people=access.people.all(),
        invitations=access.invitations.all(),
        over=access.invitations.is_over,
        required=access.factors.required_roles(),
    )


class PersonAdding(Editing[Person, NewPersonForm]):
    template = "people/new.html"

    def bind(self) -> NewPersonForm:
        return NewPersonForm()

    def save(self) -> Person:
        email, password, role = (self.form[name].data for name in ("email", "password", "role"))
        return current_access().people.create(email, password, role)

    def notice(self, record: Person) -> str:
        return _("%(email)s can log in now.", email=record.email)


class PersonEditing(Editing[Person, PersonForm]):
    template, subject, conflict_field = "people/edit.html", "person", "role"
    keys_to: Mapping[str, Any] = {}  # the arguments of ``people.update`` about their keys

    def load(self) -> Person:
        return current_access().people.get(self.id)

    def stand_in(self, id: int) -> Person:
        return Person(id, request.form.get("email", ""), Role.VIEWER)

    def bind(self, **options: Any) -> PersonForm:
        """To change their own email address, people type their password: a browser that was left
        open must not be enough to take an account over.
        """
        form = PersonForm(record=self.record, **options)
        oneself = self.id == current_user.person.id
        if not oneself:
            del form[CURRENT]
        if oneself or not current_access().keys.of(self.id):
            del form.keys
        return form

    def question(self) -> Response | None:
        """Ask what becomes of the API keys, if the person loses access and has some."""
        form, person = self.form, self.record
        loses_access = form.disabled.data and person is not None and not person.disabled
        if not loses_access or "keys" not in form or form.keys.data is not None:
            return None
        form.keys.add_fault(_("Choose what becomes of their API keys."))
        return self.page(422)

    def save(self) -> Person:
        form, people = self.form, current_access().people
        if CURRENT in form and self.record and form.email.data != self.record.email:
            people.confirm(self.id, form[CURRENT].data or "")
        if "keys" in form and form.disabled.data and (keys_of := form.keys.data) is not None:
            # Only the admin who acts can take over the keys.
            heir = current_user.person.id if keys_of == KeysOf.MINE else None
            self.keys_to = {"hand_over_keys": True, "heir_id": heir}
        return people.update(self.id, form.fields(), rewritten=["role"], **self.keys_to)

    def finish(self, record: Person) -> Response:
        if self.id == current_user.person.id:
            # Their own change must not log them out, nor count as typing the password.
            session.begin(record, password_at=current_user.session.password_at)
        response = super().finish(record)
        if self.keys_to:
            flash(_(HANDED_OVER if self.keys_to["heir_id"] else ALL_REVOKED), "info")
        return response

    def name_of(self, record: Person) -> str:
        return record.email

    def context(self) -> dict[str, Any]:
        return {
            "password": NewPasswordForm(formdata=None),
            "oneself": self.id == current_user.person.id,
            "mails": current_mail().is_set(),
            "required": current_access().factors.required_roles(),
        }


PersonAdding.register(blueprint, "new")
PersonEditing.register(blueprint, edit="/<int:id>")


@blueprint.post("/<int:id>/password")
def password(id: int) -> Answer:
    person = current_access().people.get(id)
    if id == current_user.person.id:
        flash(_("Change your own password here: it asks for the current one."), "info")
        return redirect(url_for("profile.show"))
    form = NewPasswordForm()
    if form.validate_on_submit():
        with faults_shown(form):
            current_access().people.change_password(id, form.password.data)
            notice = _("Password of %(email)s changed. Tell them the new one.", email=person.email)
            flash(notice, "success")
            return redirect(url_for(".index"))
    editing = PersonEditing(id)
    editing.record, editing.form = person, editing.bind(formdata=None)
    return editing.page(422, password=form)


@blueprint.route("/<int:id>/second-factor/reset", methods=["GET", "POST"])
def reset_second_factor(id: int) -> Answer:
    person = current_access().people.get(id)
    if id == current_user.person.id:
        flash(_("Change your own second factor here: it asks for the current password."), "info")
        return redirect(url_for("two_factor.show"))

    def reset() -> None:
        current_access().factors.reset(id)
        current_mail().notify_of_second_factor(person.email, FACTOR_RESET)

    notice = _("Second factor of %(email)s reset.", email=person.email)
    back = url_for(".edit", id=id)
    return confirmed("people/reset_second_factor.html", reset, notice, back, person=person)


@blueprint.post("/<int:id>/sessions/end")
def end_sessions(id: int) -> Response:
    """Log somebody out of every browser."""
    person = current_access().people.get(id)
    if id == current_user.person.id:
        return redirect(url_for("sessions.index"))
    current_access().sessions.end_all(id)
    flash(_("%(email)s is logged out everywhere.", email=person.email), "success")
    return redirect(url_for(".edit", id=id))


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
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
    return form_page("people/delete.html", form, person=person, keys=keys)


# --- Invitations, and links to set a new password: each is shown once -----------------------------


invitations_blueprint = guarded("invitations", __name__, "/people", Role.ADMIN)


class Inviting(Editing[tuple[Invitation, str], InviteForm]):
    """``record``: the invitation and the token of its link."""

    template = "people/invite.html"

    def bind(self) -> InviteForm:
        return InviteForm()

    def save(self) -> tuple[Invitation, str]:
        return current_access().invitations.invite(self.form.email.data, self.form.role.data)

    def finish(self, record: tuple[Invitation, str]) -> Response:
        return _show_link(*record)

    def context(self) -> dict[str, Any]:
        return {"mails": current_mail().is_set()}


Inviting.register(invitations_blueprint, new="/invite")


@invitations_blueprint.post("/invitations/<int:id>/renew")
def renew(id: int) -> Answer:
    try:
        return _show_link(*current_access().invitations.renew(id))
    except Invalid as fault:  # the address has an account now
        flash(str(fault), "warning")
        return redirect(url_for("people.index"))


@invitations_blueprint.post("/invitations/<int:id>/revoke")
def revoke(id: int) -> Answer:
    revoked = current_access().invitations.revoke(id)
    notice = _("Invitation of %(email)s revoked. Its link no longer works.", email=revoked.email)
    flash(notice, "success")
    return redirect(url_for("people.index"))


@invitations_blueprint.post("/<int:id>/password-link")
def password_link(id: int) -> Answer:
    """Show a link with which the person sets a new password, for the admin to hand over."""
    person = current_access().people.get(id)
    token = current_access().recovery.make_link(id)
    link = links.absolute(f"/new-password/{token}")
    back = url_for("people.edit", id=id)
    return shown_once("people/password_link.html", back, person=person, link=link)


def _show_link(invitation: Invitation, token: str) -> Response:
    """Send the new link by mail, if mail is set up, and show it."""
    link = links.absolute(f"/invitation/{token}")
    mail, inviter, answer = current_mail(), current_user.person.label, None
    if mail.is_set():
        answer = mail.send_invitation(invitation.email, link, inviter, INVITED_DAYS)
    back = url_for("people.index")
    return shown_once("people/invited.html", back, invitation=invitation, link=link, sent=answer)
