"""Forms of second factors."""

from __future__ import annotations

from typing import Any

from wtforms import widgets

from app.access.passkeys import CREDENTIAL
from app.errors import Invalid
from app.forms.browser import BrowserForm
from app.forms.fields import Switch, Text
from app.i18n import N_
from app.records import MAX_PASSKEY_NAME, Role
from app.web.forms import password_field
from app.web.frame.editing import show_errors

MAX_CREDENTIAL_JSON = 100_000  # what a browser says of a passkey


def code_field(description: str = "") -> Any:
    return Text(
        N_("Code"),
        required=True,
        most=20,
        description=description,
        render_kw={"inputmode": "numeric", "autocomplete": "one-time-code", "spellcheck": "false"},
    )


def _hidden(most: int) -> Any:
    return Text("", default="", most=most, widget=widgets.HiddenInput())


def _present_password() -> Any:
    return password_field(N_("Current password"), "current-password")


class CodeForm(BrowserForm):
    second_code = code_field(N_("The 6 digits that your authenticator app shows now."))


class RecoveryCodeForm(BrowserForm):
    recovery_code = Text(
        N_("Recovery code"),
        required=True,
        most=100,
        description=N_("Each works once."),
        render_kw={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"},
    )


class SignedForm(BrowserForm):
    """What a passkey signed. A script fills it in."""

    credential = _hidden(MAX_CREDENTIAL_JSON)


class ConfirmedForm(BrowserForm):
    """Whoever changes a second factor types the present password."""

    current_password = _present_password()


# In the order of their pages: faults are listed in it.
class AppForm(BrowserForm):
    second_code = code_field(N_("The 6 digits that the app shows now."))
    current_password = _present_password()
    sealed = _hidden(2000)


class PasskeyForm(BrowserForm):
    name = Text(
        N_("Name"),
        required=True,
        most=MAX_PASSKEY_NAME,
        description=N_("To tell it from others, such as Laptop or Blue key."),
    )
    current_password = _present_password()
    credential = _hidden(MAX_CREDENTIAL_JSON)


class RequiredForm(BrowserForm):
    """The roles that must have a second factor."""

    admin = Switch(N_("Admins"), default=False)
    editor = Switch(N_("Editors"), default=False)
    viewer = Switch(N_("Viewers"), default=False)

    def roles(self) -> list[Role]:
        return [role for role in Role if self[role].data]


def show_faults(form: BrowserForm, fault: Invalid) -> None:
    """As ``show_errors``. What is wrong with a passkey stands above: its field is hidden."""
    of_passkey = fault.errors.pop(CREDENTIAL, [])
    if fault.errors:
        show_errors(form, fault)
    if of_passkey:
        form.trouble = " ".join(of_passkey)
