"""Forms about people, keys and this installation, which only the dashboard has. ``app/forms`` has
the forms that the API has too.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from wtforms import widgets

from app.forms.browser import BrowserForm
from app.forms.fields import (
    DateTime,
    Number,
    Options,
    Password,
    Switch,
    Tag,
    Text,
    WordChoice,
    Zone,
)
from app.i18n import N_, _
from app.records import MAX_CREDENTIAL, MAX_NAME, MAX_PERSON_NAME, MIN_PASSWORD, Role, Scope
from app.rules import addresses, smtp, text
from app.rules.smtp import Server, Tls
from app.web.shown.looks import ROLES

Rule = Callable[[str], object]  # raises ValueError with a sentence

THEMES = {"auto": N_("Same as system"), "light": N_("Light"), "dark": N_("Dark")}
SCOPES = {
    Scope.PING: N_("Ping: call heartbeats by their names, and nothing else"),
    Scope.READ: N_("Read: view only, secrets masked"),
    Scope.WRITE: N_("Write: full access, but to places with an agent"),
    Scope.ADMIN: N_("Admin: also places with an agent and their tokens"),
}


class KeysOf(StrEnum):
    """What happens to the API keys of a person who loses access."""

    REVOKE = "revoke"
    MINE = "mine"


KEYS_OF = {
    KeysOf.REVOKE: N_("Revoke them: programs that use them get an error"),
    KeysOf.MINE: N_("Hand them over to me: they go on working"),
}
PLAIN = {"spellcheck": "false", "autocapitalize": "none", "autocomplete": "off"}
PASSWORD_HINT = N_("%(least)s characters or more.", least=MIN_PASSWORD)


def email_field(autocomplete: str, *, rule: Rule | None = addresses.check) -> Any:
    return Text(
        N_("Email"),
        required=True,
        limit=MAX_NAME,
        rule=rule,
        widget=widgets.EmailInput(),
        render_kw={"autocomplete": autocomplete, "autocapitalize": "none", "spellcheck": "false"},
    )


def password_field(label: str, autocomplete: str, **more: Any) -> Any:
    return Password(
        label, required=True, limit=MAX_CREDENTIAL, render_kw={"autocomplete": autocomplete}, **more
    )


def new_password_field(label: str, hint: str = PASSWORD_HINT) -> Any:
    return password_field(label, "new-password", description=hint, rule=text.new_password)


class LoginForm(BrowserForm):
    email = email_field("username", rule=None)
    password = password_field(N_("Password"), "current-password")


class PasswordTwiceForm(BrowserForm):
    """The base of forms in which a password is typed twice."""

    password: Any
    password_again: Any

    def check_cross_field(self) -> None:
        first, again = self.password, self.password_again
        if self.flawless(first, again) and first.data != again.data:
            again.add_fault(_("The two passwords are not the same."))


def person_name_field() -> Any:
    return Text(
        N_("Name"),
        limit=MAX_PERSON_NAME,
        description=N_(
            "Others see it, such as beside an incident that you acknowledge. Leave empty to show"
            " your email address."
        ),
        render_kw={"autocomplete": "name"},
    )


class NewAccountForm(PasswordTwiceForm):
    """The base of the forms with which people create their account."""

    password = new_password_field(N_("Password"))
    password_again = password_field(N_("Password again"), "new-password")
    # A script (zone.js) selects the browser's zone.
    time_zone = Zone(
        N_("Time zone"),
        required=True,
        default="UTC",
        description=N_("Times are shown and entered in this zone."),
        render_kw={"data-own-zone": ""},
    )


class SetupForm(NewAccountForm):
    """The first account."""

    first = ("email",)
    email = email_field("username")


class NewPersonForm(BrowserForm):
    email = email_field("off")
    password = new_password_field(N_("First password"), N_("They can change it in their profile."))
    role = WordChoice(N_("Role"), ROLES, default=Role.EDITOR)


class PersonForm(BrowserForm):
    email = email_field("off")
    current_password = Password(
        N_("Current password"), limit=MAX_CREDENTIAL,
        render_kw={"autocomplete": "current-password"},
        description=N_("Needed to change your own email address."),
    )  # fmt: skip
    name = Text(N_("Name"), limit=MAX_PERSON_NAME, description=N_("As others see them."))
    role = WordChoice(N_("Role"), ROLES, required=True)
    disabled = Switch(
        N_("No access"), default=False,
        description=N_("Logs this person out at once, and blocks new log-ins."),
    )  # fmt: skip
    keys = WordChoice(N_("Their API keys"), KEYS_OF, none=N_("Choose…"))

    def fields(self) -> dict[str, Any]:
        fields = super().fields()
        fields.pop("current_password", None)
        fields.pop("keys", None)
        return fields


class PersonDeletionForm(BrowserForm):
    keys = WordChoice(N_("Their API keys"), KEYS_OF, none=N_("Choose…"), required=True)


class NewPasswordForm(BrowserForm):
    """An admin gives somebody a new password."""

    password = new_password_field(N_("New password"), N_("This logs them out on all devices."))


class ProfileForm(BrowserForm):
    name = person_name_field()
    time_zone = Zone(
        N_("Time zone"), required=True, description=N_("Times are shown and entered in this zone.")
    )
    theme = Options(N_("Colours"), THEMES, required=True)


class PasswordForm(PasswordTwiceForm):
    current_password = password_field(N_("Current password"), "current-password")
    password = new_password_field(N_("New password"))
    password_again = password_field(N_("New password again"), "new-password")


class KeyEditForm(BrowserForm):
    """The fields of a key that can be changed. The tag cannot: the holder of the key would get
    access to other monitors.
    """

    name = Text(
        N_("Name"), required=True, limit=MAX_NAME,
        description=N_("What uses the key, such as CI or Terraform."),
    )  # fmt: skip
    expires_at = DateTime(N_("Expires"), description=N_("Leave empty for never."))
    networks = Text(
        N_("Networks"), limit=2000, default="",
        description=N_(
            "Addresses or networks such as 203.0.113.0/24, separated by commas, that it may be used"
            " from. Leave empty for all."
        ),
    )  # fmt: skip


class KeyForm(KeyEditForm):
    scope = WordChoice(N_("Scope"), SCOPES, default=Scope.READ)
    tag = Tag(
        N_("Tag"),
        description=N_(
            "Limits the key to the monitors with this tag, their incidents, results and messages. "
            "Leave empty for everything."
        ),
    )
    own_secret = Text(
        N_("Key that jobs have already"), limit=MAX_CREDENTIAL, render_kw=PLAIN,
        description=N_(
            "For the scope Ping: jobs from healthchecks that call by slug keep their ping key. "
            "Leave empty for a new key."
        ),
    )  # fmt: skip


def _from_slash(path: str) -> None:
    if not path.startswith("/"):
        raise ValueError(_("Begin with a slash."))


class TryForm(BrowserForm):
    """A request to the API. The field of the key has "secret" in its name, so that no error page
    shows it.
    """

    api_target = Text(
        N_("Path, with its parameters"),
        required=True,
        limit=2000,
        rule=_from_slash,
        description=N_("Behind /api/v1, such as /monitors?per_page=25. Put your ids in."),
        render_kw=PLAIN,
    )
    api_body = Text(
        N_("Body, in JSON"), lines=True, limit=1_000_000, render_kw={"rows": 8, **PLAIN}
    )
    api_secret = Password(
        N_("API key"), required=True, limit=MAX_CREDENTIAL, render_kw={"autocomplete": "off"}
    )


class WallLinkForm(BrowserForm):
    name = Text(
        N_("Name"), required=True, limit=MAX_NAME,
        description=N_("Where the screen is, such as Lobby."),
    )  # fmt: skip
    tag = Tag(N_("Tag"), description=N_("Only the monitors with this tag. Leave empty for all."))
    zone = Zone(N_("Time zone"), required=True)


class NetworksForm(BrowserForm):
    allow_networks = Text(
        N_("Networks that checks and alerts may reach"),
        limit=2000,
        default="",
        description=N_(
            "Besides public addresses. The words private and loopback, and networks such "
            "as 10.0.0.0/8, comma-separated."
        ),
        render_kw={"spellcheck": "false", "autocapitalize": "none"},
    )


class InviteForm(BrowserForm):
    email = email_field("off")
    role = WordChoice(N_("Role"), ROLES, default=Role.EDITOR)


class JoinForm(NewAccountForm):
    """The account of an invited person."""

    first = ("name",)
    name = person_name_field()


class ForgottenForm(BrowserForm):
    email = email_field("username")


class RecoveryForm(PasswordTwiceForm):
    password = new_password_field(
        N_("New password"),
        N_("%(least)s characters or more. This logs you out on all devices.", least=MIN_PASSWORD),
    )
    password_again = password_field(N_("New password again"), "new-password")


TLS_LABELS = {
    Tls.REQUIRED: N_("STARTTLS (port 587)"),
    Tls.OFFERED: N_("STARTTLS if offered (port 25)"),
    Tls.FROM_START: N_("TLS from the start (port 465)"),
}
SMTP_PORTS = {Tls.REQUIRED: 587, Tls.FROM_START: 465, Tls.OFFERED: 25}


class MailServerForm(BrowserForm):
    host = Text(
        N_("Host"), required=True, limit=MAX_NAME, rule=smtp.check_host, render_kw=PLAIN,
        description=N_("Example: mail.example.com"),
    )  # fmt: skip
    tls = WordChoice(N_("Encryption"), TLS_LABELS, default=Tls.REQUIRED)
    port = Number(N_("Port"), (1, 65535))
    user = Text(N_("User name"), limit=MAX_CREDENTIAL, render_kw=PLAIN)
    password = Password(N_("Password"), limit=MAX_CREDENTIAL, render_kw={"autocomplete": "off"})
    sender = Text(
        N_("Sender"), required=True, limit=MAX_NAME, rule=smtp.check_sender, render_kw=PLAIN,
        description=N_("Example: Wakeful <alerts@example.com>"),
    )  # fmt: skip

    stored: Server | None = None

    @property
    def has_stored_password(self) -> bool:
        return self.stored is not None and self.stored.password is not None

    def check_cross_field(self) -> None:
        login, stored = (self.host.data, self.user.data), self.stored
        if self.password.data and not self.user.data:
            self.password.add_fault(_("A password needs a user name."))
            return
        # The stored password must not be sent to a server that it was not entered for.
        uses_stored = self.has_stored_password and self.user.data and not self.password.data
        if uses_stored and stored and (stored.host, stored.user) != login:
            self.password.add_fault(
                _("Enter the password again: the host or the user name has changed.")
            )

    def server(self) -> Server:
        stored_password = self.stored.password if self.stored is not None else None
        tls = Tls(self.tls.data)
        return Server(
            host=self.host.data,
            port=self.port.data or SMTP_PORTS[tls],
            sender=self.sender.data,
            user=self.user.data or None,
            password=(self.password.data or stored_password) if self.user.data else None,
            tls=tls,
        )


class TestMailForm(BrowserForm):
    address = email_field("email")
