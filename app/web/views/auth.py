"""Logging in and out, the first account, invitations, and links for a new password."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access import actors
from app.errors import Denied, Throttled
from app.i18n import N_, _
from app.records import Actor, Person
from app.rules import zones
from app.stores import current_access, current_mail
from app.stores.mail import BUSY
from app.web.forms import ForgottenForm, JoinForm, LoginForm, RecoveryForm, SetupForm
from app.web.frame import session as sessions
from app.web.frame.editing import faults_shown, form_page
from app.web.frame.session import Answer
from app.web.frame.store_errors import throttled, too_often

blueprint = Blueprint("auth", __name__)

WRONG = N_("The email address or the password is wrong.")
ZONE_TAKEN = N_(
    "Times are shown in the time zone of your browser, %(zone)s. You can change it in your profile."
)


@blueprint.route("/login", methods=["GET", "POST"])
def login() -> Answer:
    target = sessions.safe_next(request.args.get("next"))
    if current_user.is_authenticated:
        return redirect(target)
    form = LoginForm()
    if not form.validate_on_submit():
        return _login_page(form)
    email, people = form.email.data, current_access().people
    try:
        has_logged_in = people.has_logged_in(email)
        person = people.login(email, form.password.data, sessions.client())
    except Throttled as fault:
        form.password.add_fault(too_often(fault))
        return throttled(_login_page(form)[0], fault)
    if person is None:
        form.password.add_fault(_(WRONG))
        return _login_page(form)
    if person.second_factor:
        sessions.begin_pending(person)
        return redirect(url_for("second.show", next=request.args.get("next")))
    sessions.begin(person)
    if not has_logged_in:
        _take_zone(person)
    return redirect(target)


def _take_zone(person: Person) -> None:
    """At the first login, give the person the time zone of the browser."""
    zone = zones.present_name(request.form.get("time_zone"))
    if zone not in (None, zones.UTC) and person.time_zone == zones.UTC:
        current_access().people.update(person.id, {"time_zone": zone})
        flash(_(ZONE_TAKEN, zone=str(zone).replace("_", " ")), "info")


def _login_page(form: LoginForm) -> tuple[str, int]:
    needed = current_access().setup.needed()
    return form_page("auth/login.html", form, setup_needed=needed, wrong=_(WRONG))


@blueprint.post("/logout")
def logout() -> Response:
    sessions.end()
    flash(_("You are logged out"), "info")
    return redirect(url_for("auth.login"))


@blueprint.route("/setup/<token>", methods=["GET", "POST"])
def setup(token: str) -> Answer:
    """Create the first account, with the link that the server has printed."""
    access = current_access()
    if not access.setup.is_token(token):
        return render_template("auth/setup_void.html"), 404
    form = SetupForm()
    if form.validate_on_submit():
        email, password, zone = form.email.data, form.password.data, form.time_zone.data
        try:
            with faults_shown(form):
                sessions.begin(access.setup.use(token, email, password, time_zone=zone))
                flash(_("Account created. Add your first monitor."), "success")
                return redirect(url_for("monitors.new"))
        except Denied:
            return render_template("auth/setup_void.html"), 404
    return form_page("auth/setup.html", form, database=access.setup.database())


# --- One-time links: invitations and new passwords ------------------------------------------------


account_blueprint = Blueprint("account", __name__)

FULL_SECONDS = 60  # Retry-After while too many mails wait to be sent


@account_blueprint.route("/login/forgotten", methods=["GET", "POST"])
def forgotten() -> Answer:
    mails = current_mail().is_set()
    form = ForgottenForm()
    if mails and form.validate_on_submit():
        email = form.email.data
        try:
            if current_mail().recoveries.is_full:  # the same for known and unknown addresses
                raise Throttled(_(BUSY), FULL_SECONDS)
            if current_access().recovery.count(email, request.remote_addr):
                who = actors.actor()
                current_mail().recoveries.put(lambda: _send_link(email, who))
        except Throttled as fault:
            form.email.add_fault(too_often(fault))
            page = render_template("account/forgotten.html", form=form, mails=True)
            return throttled(page, fault)
        return render_template("account/asked.html", email=email)
    page = render_template("account/forgotten.html", form=form, mails=mails)
    return page, 422 if mails and form.is_submitted() else 200


def _send_link(email: str, who: Actor | None) -> None:
    """Called in another thread, after the answer."""
    with actors.acting_as(who):
        mailed = current_access().recovery.make_link_by_email(email)
    if mailed is not None:
        person, token = mailed
        current_mail().send_recovery(person.email, f"/new-password/{token}")


@account_blueprint.route("/new-password/<token>", methods=["GET", "POST"])
def recover(token: str) -> Answer:
    """Opening the link changes nothing, because mail scanners follow links."""
    access = current_access()
    person = access.recovery.person(token)
    form = RecoveryForm()
    if person is not None and form.validate_on_submit():
        try:
            with faults_shown(form):
                access.recovery.use(token, form.password.data)
                sessions.end()
                # They must log in afterwards: a new password must not skip the second factor.
                flash(_("Password changed. Log in with the new one."), "success")
                return redirect(url_for("auth.login"))
        except Denied:
            person = None
    if person is None:
        return render_template("account/void.html", what="password"), 404
    return form_page("account/recover.html", form, person=person)


@account_blueprint.route("/invitation/<token>", methods=["GET", "POST"])
def join(token: str) -> Answer:
    access = current_access()
    invitation = access.invitations.of_token(token)
    form = JoinForm()
    if invitation is not None and form.validate_on_submit():
        password, name, zone = form.password.data, form.name.data, form.time_zone.data
        try:
            with faults_shown(form):
                person = access.invitations.accept(token, password, name=name, time_zone=zone)
                sessions.begin(person)
                flash(_("Account created. You are logged in."), "success")
                return redirect(url_for("home.show"))
        except Denied:
            invitation = None
    if invitation is None:
        return render_template("account/void.html", what="invitation"), 404
    return form_page("account/join.html", form, invitation=invitation)
