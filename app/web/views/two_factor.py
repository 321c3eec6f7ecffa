"""A person's second factor: an authenticator app, passkeys and recovery codes. Each change asks for
the password and logs the person out everywhere else.
"""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, url_for
from flask_login import current_user
from markupsafe import Markup

from app.access.passkeys import Site
from app.access.second_factor import app_uri
from app.errors import Conflict, Denied, Invalid, NotFound
from app.i18n import N_, _
from app.records import Person, Role
from app.stores import current_access, current_mail
from app.web.frame import session
from app.web.frame.editing import faults_shown, form_page
from app.web.frame.repeated import shown_once
from app.web.frame.session import Answer, for_set_up, guarded
from app.web.views.second import (
    NEEDS_SCRIPT,
    AppForm,
    ConfirmedForm,
    PasskeyForm,
    for_browser,
    no_options,
    passkey_site,
)

blueprint = guarded("two_factor", __name__, "/profile/two-factor", Role.VIEWER)


@blueprint.get("")
@for_set_up
def show() -> str:
    site, why_not = passkey_site()
    return render_template(
        "two_factor/show.html",
        has=current_access().factors.of(_id()),
        host=None if site is None else site.host,
        why_not=why_not,
    )


@blueprint.route("/app", methods=["GET", "POST"])
@for_set_up
def app() -> Answer:
    access, form = current_access(), AppForm()
    secret, form.sealed.data = _app_secret(form)
    if form.validate_on_submit() and not form.fault:
        with faults_shown(form):
            person, codes = access.factors.add_app(
                _id(), form.sealed.data, form.second_code.data, current=form.current_password.data
            )
            return _begin_new_session(person, codes, notice=N_("An authenticator app was set up."))
    uri = app_uri(secret, current_user.person.email)
    return form_page(
        "two_factor/app.html",
        form,
        has=access.factors.of(_id()),
        secret=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        picture=_qr_code(uri, _("QR code for your authenticator app")),
    )


def _app_secret(form: AppForm) -> tuple[str, str]:
    """The secret of the app that is set up, and the secret sealed: those of the sent form, or new
    ones.
    """
    access = current_access()
    if form.is_submitted():
        try:
            sealed = form.sealed.data or ""
            return access.factors.started_app(_id(), sealed), sealed
        except Denied as fault:
            form.fault = str(fault)
    return access.factors.start_app(_id())


@blueprint.route("/app/remove", methods=["GET", "POST"])
def remove_app() -> Answer:
    return _confirmed(
        "two_factor/remove_app.html",
        lambda password: current_access().factors.remove_app(_id(), current=password),
        N_("The authenticator app was removed."),
    )


@blueprint.route("/passkeys/new", methods=["GET", "POST"])
@for_set_up
def new_passkey() -> Answer:
    site, why_not = passkey_site()
    form = PasskeyForm()
    if site is None:
        flash(why_not, "warning")
        return redirect(url_for(".show"))
    if form.validate_on_submit():
        with faults_shown(form):
            return _begin_new_session(*_add_passkey(form, site), notice=N_("A passkey was added."))
    form.credential.data = ""
    return form_page("two_factor/new_passkey.html", form)


def _add_passkey(form: PasskeyForm, site: Site) -> tuple[Person, list[str]]:
    access, password = current_access(), form.current_password.data
    if not form.credential.data:  # the script could not get one, or there is no script
        access.passkeys.creation_options(_id(), site, current_user.token, current=password)
        raise Conflict(_(NEEDS_SCRIPT))
    return access.passkeys.add(
        _id(), site, current_user.token, form.credential.data, form.name.data, current=password
    )


@blueprint.post("/passkeys/options")
@for_set_up
def passkey_options() -> Answer:
    """The options with which the browser creates the passkey, for the script. If the form has a
    fault, the script submits the form, so that the page shows the fault.
    """
    site, _why_not = passkey_site()
    form = PasskeyForm()
    if site is None or not form.validate_on_submit():
        return no_options()
    try:
        options = current_access().passkeys.creation_options(
            _id(), site, current_user.token, current=form.current_password.data
        )
    except (Invalid, Conflict):
        return no_options()
    return for_browser(options)


@blueprint.route("/passkeys/<int:id>/remove", methods=["GET", "POST"])
def remove_passkey(id: int) -> Answer:
    passkeys = current_access().factors.of(_id()).passkeys
    passkey = next((passkey for passkey in passkeys if passkey.id == id), None)
    if passkey is None:
        raise NotFound(N_("passkey"), id)
    return _confirmed(
        "two_factor/remove_passkey.html",
        lambda password: current_access().factors.remove_passkey(_id(), id, current=password),
        N_("A passkey was removed."),
        passkey=passkey,
    )


@blueprint.route("/codes", methods=["GET", "POST"])
def codes() -> Answer:
    if not current_access().factors.of(_id()).is_set:
        flash(_("Set up an authenticator app or a passkey first."), "info")
        return redirect(url_for(".show"))
    return _confirmed(
        "two_factor/codes.html",
        lambda password: current_access().factors.renew_codes(_id(), current=password),
        N_("New recovery codes were made. The old ones no longer work."),
    )


def _confirmed(template: str, act: Any, notice: str, **context: Any) -> Answer:
    """A page that asks for the password, and carries out ``act`` if it is right."""
    form = ConfirmedForm()
    if form.validate_on_submit():
        with faults_shown(form):
            outcome = act(form.current_password.data)
            person, codes = outcome if isinstance(outcome, tuple) else (outcome, [])
            return _begin_new_session(person, codes, notice=notice)
    return form_page(template, form, has=current_access().factors.of(_id()), **context)


def _begin_new_session(person: Person, codes: list[str], *, notice: str) -> Answer:
    """Begin a new session, because the change has ended all sessions of the person."""
    session.begin(person, password_at=current_access().clock())
    current_mail().notify_of_second_factor(person.email, notice)
    if not codes:
        elsewhere = _("You are logged out everywhere else.")
        flash(f"{_(notice)} {elsewhere}", "success")
        return redirect(url_for(".show"))
    return shown_once("two_factor/codes_made.html", url_for(".show"), notice=_(notice), codes=codes)


def _id() -> int:
    id: int = current_user.person.id
    return id


BORDER = 4  # in modules of the QR code; scanners need it


def _qr_code(text: str, title: str) -> Markup:
    """A QR code. It is dark on light in both themes: many apps cannot read light on dark."""
    import segno  # at its first use: few pages need it

    code = segno.make(text, error="m", micro=False)
    svg = code.svg_inline(
        scale=5, border=BORDER, dark="#000", light="#fff", svgclass="qr", lineclass=None,
        omitsize=True, title=title,
    )  # fmt: skip
    return Markup(svg)  # noqa: S704 - the library's own markup, which escapes the title
