"""The second step of a login: a code of an app, a passkey, or a recovery code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response
from wtforms import widgets

from app.access.passkeys import CREDENTIAL, Site
from app.access.pending_logins import LOGIN_ENDED
from app.errors import Denied, Invalid, Throttled
from app.forms.browser import BrowserForm
from app.forms.fields import Text
from app.i18n import N_, _, _n
from app.records import MAX_PASSKEY_NAME, Person
from app.rules.url import is_ip_address
from app.stores import current_access, current_mail, current_settings
from app.web.forms import password_field
from app.web.frame import session as sessions
from app.web.frame.editing import show_errors
from app.web.frame.session import Answer
from app.web.frame.store_errors import throttled, too_often

blueprint = Blueprint("second", __name__, url_prefix="/login/second")

MAX_CREDENTIAL_JSON = 100_000  # of a browser's answer about a passkey


def _hidden(limit: int) -> Any:
    return Text("", default="", limit=limit, widget=widgets.HiddenInput())


def _present_password() -> Any:
    return password_field(N_("Current password"), "current-password")


class CodeForm(BrowserForm):
    second_code = Text(
        N_("Code"),
        required=True,
        limit=20,
        description=N_("The 6 digits that the app shows now."),
        render_kw={"inputmode": "numeric", "autocomplete": "one-time-code", "spellcheck": "false"},
    )


class RecoveryCodeForm(BrowserForm):
    recovery_code = Text(
        N_("Recovery code"),
        required=True,
        limit=100,
        description=N_("Each works once."),
        render_kw={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"},
    )


class SignedForm(BrowserForm):
    """The signed answer of a passkey. A script fills it in."""

    credential = _hidden(MAX_CREDENTIAL_JSON)


class ConfirmedForm(BrowserForm):
    """The present password, which every change of a second factor needs."""

    current_password = _present_password()


# The fields have the order of the page, because faults are listed in this order.
class AppForm(BrowserForm):
    second_code: Any = CodeForm.second_code
    current_password = _present_password()
    sealed = _hidden(2000)


class PasskeyForm(BrowserForm):
    name = Text(
        N_("Name"),
        required=True,
        limit=MAX_PASSKEY_NAME,
        description=N_("To tell it from others, such as Laptop or Blue key."),
    )
    current_password = _present_password()
    credential = _hidden(MAX_CREDENTIAL_JSON)


NEEDS_SCRIPT = N_(
    "The browser sent no passkey. Passkeys need JavaScript: allow it for this page, or use an "
    "authenticator app."
)
RECOVERY_USED = N_("Somebody logged in with a recovery code of this account.")
FEW_LEFT = 3  # recovery codes
Forms = CodeForm | RecoveryCodeForm | SignedForm


@blueprint.get("")
def show() -> Answer:
    if current_user.is_authenticated:
        return redirect(_target())
    person = current_access().pending_logins.person(sessions.pending_token())
    return _to_first_step() if person is None else _page(person)


@blueprint.post("")
def code() -> Answer:
    form, logins = CodeForm(), current_access().pending_logins
    return _complete_login(
        form, lambda token: logins.by_code(token, form.second_code.data, sessions.client())
    )


@blueprint.post("/recovery")
def recovery() -> Answer:
    form, log_in = RecoveryCodeForm(), current_access().pending_logins.by_recovery_code
    return _complete_login(
        form, lambda token: log_in(token, form.recovery_code.data, sessions.client())
    )


@blueprint.post("/passkey")
def passkey() -> Answer:
    form = SignedForm()

    def log_in(token: str) -> Person:
        site, why_not = passkey_site()
        if site is None:
            raise Invalid({CREDENTIAL: [why_not]})
        if not form.credential.data:
            raise Invalid({CREDENTIAL: [_(NEEDS_SCRIPT)]})
        by_passkey = current_access().pending_logins.by_passkey
        return by_passkey(token, site, form.credential.data, sessions.client())

    return _complete_login(form, log_in)


@blueprint.post("/passkey/request")
def passkey_request() -> Answer:
    """The options with which the browser asks for the passkey, for the script."""
    access, token = current_access(), sessions.pending_token()
    person = access.pending_logins.person(token)
    if person is None:
        return _to_first_step()
    site, _why_not = passkey_site()
    if site is not None:
        with suppress(Denied):
            return for_browser(access.passkeys.request_options(person.id, site, token))
    return no_options()


def _complete_login(form: Forms, log_in: Callable[[str], Person]) -> Answer:
    token = sessions.pending_token()
    person = current_access().pending_logins.person(token)
    if person is None:
        return _to_first_step()
    if not form.validate_on_submit():
        return _page(person, form), 422
    try:
        person = log_in(token)
    except Invalid as fault:
        show_errors(form, fault)
        return _page(person, form), 422
    except Throttled as fault:
        form.fault = too_often(fault)
        return throttled(_page(person, form), fault)
    except Denied:
        return _to_first_step()
    sessions.begin(person)
    if isinstance(form, RecoveryCodeForm):
        _warn_of_recovery_codes(person)
    return redirect(_target())


def _page(person: Person, failed: Forms | None = None) -> str:
    site, why_not = passkey_site()
    factors = current_access().factors.of(person.id)
    forms = {
        form_class: failed if isinstance(failed, form_class) else form_class(formdata=None)
        for form_class in (CodeForm, RecoveryCodeForm, SignedForm)
    }
    return render_template(
        "auth/second.html",
        person=person,
        has=factors,
        here=[key for key in factors.passkeys if site is not None and key.host == site.host],
        why_not=why_not,
        failed=failed,
        code=forms[CodeForm],
        recovery=forms[RecoveryCodeForm],
        signed=forms[SignedForm],
        next=request.args.get("next"),
    )


def _to_first_step() -> Response:
    """Redirect to the first step, which leads to the same page."""
    sessions.end_pending()
    flash(_(LOGIN_ENDED), "warning")
    return redirect(url_for("auth.login", next=request.args.get("next")))


def _target() -> str:
    return sessions.safe_next(request.args.get("next"))


def _warn_of_recovery_codes(person: Person) -> None:
    codes_left = current_access().factors.of(person.id).codes_left
    current_mail().notify_of_second_factor(person.email, RECOVERY_USED)
    lost = _("If you have lost your app or passkey, remove it under Profile, Second factor.")
    flash(lost, "info")
    if codes_left <= FEW_LEFT:
        few = _n(
            "You have %(num)s recovery code left. Make new ones in your profile.",
            "You have %(num)s recovery codes left. Make new ones in your profile.", codes_left,
        )  # fmt: skip
        flash(few, "warning")


NO_HTTPS = N_(
    "Passkeys do not work here: browsers allow them only over HTTPS, or at http://localhost. Serve "
    "Wakeful over HTTPS, or use an authenticator app."
)
NO_NAME = N_(
    "Passkeys do not work here: browsers do not allow them at an IP address (%(host)s). Open "
    "Wakeful by its host name, or use an authenticator app."
)
ELSEWHERE = N_("Passkeys do not work at this address. Open Wakeful at %(origin)s to use them.")
PORTS = {"http": 80, "https": 443}


def passkey_site() -> tuple[Site | None, str]:
    """The site; or None, and why passkeys do not work at this address."""
    present_origin = _origin(request.host_url)
    public = current_settings().public_url
    origin = _origin(public) if public else present_origin
    host = urlsplit(origin).hostname or ""
    if origin != present_origin:
        return None, _(ELSEWHERE, origin=origin)
    if is_ip_address(host):
        return None, _(NO_NAME, host=host)
    local = host == "localhost" or host.endswith(".localhost")
    if not (local or origin.startswith("https://")):
        return None, _(NO_HTTPS)
    return Site(host, origin), ""


def for_browser(options: str) -> Response:
    """Options that a script passes to the browser's functions for passkeys."""
    return Response(options, mimetype="application/json")


def no_options() -> Response:
    """An answer without options, after which the script sends the form and its page says why."""
    return Response("{}", 422, mimetype="application/json")


def _origin(url: str) -> str:
    """Scheme, host and port, as browsers write them."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    port_part = "" if port in (None, PORTS.get(parts.scheme)) else f":{port}"
    return f"{parts.scheme}://{host}{port_part}"
