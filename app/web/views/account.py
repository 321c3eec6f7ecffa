"""Pages behind one-time links, for people who cannot log in yet: invitations and new passwords.

Nothing here tells whether an address has an account, in words or in time: what a request for a new
password does is the same for every address, and the rest is done after the answer.
"""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.access import actors
from app.errors import Denied, Invalid, Throttled
from app.i18n import _
from app.records import Actor
from app.stores import current_access, current_mail
from app.stores.mail import BUSY
from app.web.account_forms import ForgottenForm, JoinForm, RecoveryForm
from app.web.frame import session as sessions
from app.web.frame.editing import show_errors
from app.web.frame.store_errors import throttled, too_often

blueprint = Blueprint("account", __name__)

FULL_SECONDS = 60  # so many mails wait that some time passes before one more can

Answer = str | Response | tuple[str, int]


@blueprint.route("/login/forgotten", methods=["GET", "POST"])
def forgotten() -> Answer:
    mails = current_mail().is_set()
    form = ForgottenForm()
    if mails and form.validate_on_submit():
        email = form.email.data
        try:
            if (
                current_mail().recoveries.is_full
            ):  # before it is counted, for known and unknown addresses
                raise Throttled(_(BUSY), FULL_SECONDS)
            if current_access().recovery.count(email, request.remote_addr):
                who = actors.actor()
                current_mail().recoveries.put(lambda: _send_link(email, who))
        except Throttled as fault:
            return _throttled(form, fault)
        return render_template("account/asked.html", email=email)
    page = render_template("account/forgotten.html", form=form, mails=mails)
    return page, 422 if mails and form.is_submitted() else 200


def _send_link(email: str, who: Actor | None) -> None:
    """After the answer, on a thread of its own."""
    with actors.acting_as(who):
        found = current_access().recovery.mailed_to(email)
    if found is not None:
        person, token = found
        current_mail().send_recovery(person.email, f"/new-password/{token}")


def _throttled(form: ForgottenForm, fault: Throttled) -> Response:
    form.email.fault(too_often(fault))
    page = render_template("account/forgotten.html", form=form, mails=True)
    return throttled(page, fault)


@blueprint.route("/new-password/<token>", methods=["GET", "POST"])
def recover(token: str) -> Answer:
    """Opening it changes nothing: mail scanners follow links."""
    access = current_access()
    person = access.recovery.person(token)
    form = RecoveryForm()
    if person is not None and form.validate_on_submit():
        try:
            access.recovery.use(token, form.password.data)
        except Invalid as fault:
            show_errors(form, fault)
        except Denied:
            person = None
        else:
            sessions.end()
            # They log in as always: a new password alone must not pass by what else is asked there.
            flash(_("Password changed. Log in with the new one."), "success")
            return redirect(url_for("auth.login"))
    if person is None:
        return render_template("account/void.html", what="password"), 404
    page = render_template("account/recover.html", form=form, person=person)
    return page, 422 if form.is_submitted() else 200


@blueprint.route("/invitation/<token>", methods=["GET", "POST"])
def join(token: str) -> Answer:
    access = current_access()
    invitation = access.invitations.of_token(token)
    form = JoinForm()
    if invitation is not None and form.validate_on_submit():
        try:
            person = access.invitations.accept(
                token,
                form.password.data,
                name=form.name.data,
                time_zone=form.time_zone.data,
            )
        except Invalid as fault:
            show_errors(form, fault)
        except Denied:
            invitation = None
        else:
            sessions.begin(person)
            flash(_("Account created. You are logged in."), "success")
            return redirect(url_for("home.show"))
    if invitation is None:
        return render_template("account/void.html", what="invitation"), 404
    page = render_template("account/join.html", form=form, invitation=invitation)
    return page, 422 if form.is_submitted() else 200
