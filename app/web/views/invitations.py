"""Inviting people, and links to set a new password, for admins. Each link is shown once."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, flash, redirect, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access.invitations import INVITED_DAYS
from app.errors import Invalid
from app.i18n import _
from app.records import Invitation, Role
from app.stores import current_access, current_mail
from app.stores.mail import Sent
from app.web.account_forms import InviteForm
from app.web.frame import links
from app.web.frame.editing import Editing
from app.web.frame.repeated import shown_once
from app.web.frame.session import guarded, needs

blueprint = guarded(Blueprint("invitations", __name__, url_prefix="/people"))

Answer = str | Response | tuple[str, int]


class Inviting(Editing[tuple[Invitation, str], InviteForm]):
    """``record``: the invitation and the token of its link."""

    template = "people/invite.html"

    def bind(self) -> InviteForm:
        return InviteForm()

    def save(self) -> tuple[Invitation, str]:
        return current_access().invitations.invite(self.form.email.data, self.form.role.data)

    def done(self, record: tuple[Invitation, str]) -> Response:
        return _made(*record)

    def context(self) -> dict[str, Any]:
        return {"mails": current_mail().is_set()}


@blueprint.route("/invite", methods=["GET", "POST"])
@needs(Role.ADMIN)
def new() -> Response:
    return Inviting().answer()


@blueprint.post("/invitations/<int:id>/renew")
@needs(Role.ADMIN)
def renew(id: int) -> Answer:
    try:
        return _made(*current_access().invitations.renew(id))
    except Invalid as fault:  # the address has an account now
        flash(str(fault), "warning")
        return redirect(url_for("people.index"))


@blueprint.post("/invitations/<int:id>/revoke")
@needs(Role.ADMIN)
def revoke(id: int) -> Answer:
    revoked = current_access().invitations.revoke(id)
    flash(
        _("Invitation of %(email)s revoked. Its link no longer works.", email=revoked.email),
        "success",
    )
    return redirect(url_for("people.index"))


@blueprint.post("/<int:id>/password-link")
@needs(Role.ADMIN)
def password_link(id: int) -> Answer:
    """A link that the person sets a new password with, for the admin to hand over."""
    person = current_access().people.get(id)
    token = current_access().recovery.make(id)
    link = links.own(f"/new-password/{token}")
    back = url_for("people.edit", id=id)
    return shown_once("people/password_link.html", back, person=person, link=link)


def _made(invitation: Invitation, token: str) -> Response:
    """The new link, mailed where that works, and shown in any case."""
    link = links.own(f"/invitation/{token}")
    sent: Sent | None = None
    if current_mail().is_set():
        inviter = current_user.person.label
        sent = current_mail().send_invitation(invitation.email, link, inviter, INVITED_DAYS)
    back = url_for("people.index")
    return shown_once("people/invited.html", back, invitation=invitation, link=link, sent=sent)
