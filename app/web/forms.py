"""Forms about people, keys and this installation. Monitors, incidents and windows are in
``app/forms``, because the API takes them too; these are the dashboard's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from wtforms import widgets

from app.forms.browser import BrowserForm
from app.forms.fields import (
    Moment,
    NumberChoice,
    OneValue,
    Options,
    Password,
    Switch,
    Text,
    Word,
    Zone,
)
from app.forms.imported import Shared
from app.forms.lists import IdList, Names, Tags
from app.forms.monitor import RULE_LABELS, interval_labels
from app.i18n import N_, _
from app.imports.candidates import FORMATS
from app.records import (
    MAX_COMMENT,
    MAX_CONTACT_NAME,
    MAX_CREDENTIAL,
    MAX_LOCATION,
    MAX_NAME,
    MAX_OWN_NAME,
    MAX_PERSON_NAME,
    MAX_TAG,
    MIN_PASSWORD,
    LocationRule,
    Role,
    Scope,
)
from app.rules import addresses, text
from app.web.shown.looks import ROLES

Rule = Callable[[str], object]  # raises ValueError with a sentence

THEMES = {"auto": N_("Same as system"), "light": N_("Light"), "dark": N_("Dark")}
SCOPES = {
    Scope.READ: N_("Read: view only, secrets masked"),
    Scope.WRITE: N_("Write: full access, but to places with an agent"),
    Scope.ADMIN: N_("Admin: also places with an agent and their tokens"),
}


class KeysOf(StrEnum):
    """What becomes of the API keys of somebody who loses access."""

    REVOKE = "revoke"
    MINE = "mine"


KEYS_OF = {
    KeysOf.REVOKE: N_("Revoke them: programs that use them get an error"),
    KeysOf.MINE: N_("Hand them over to me: they go on working"),
}
PASSWORD_HINT = N_("%(least)s characters or more.", least=MIN_PASSWORD)
NOT_THE_SAME = N_("The two passwords are not the same.")


def email_field(autocomplete: str, *, rule: Rule | None = addresses.check) -> Any:
    return Text(
        N_("Email"),
        required=True,
        most=MAX_NAME,
        rule=rule,
        widget=widgets.EmailInput(),
        render_kw={"autocomplete": autocomplete, "autocapitalize": "none", "spellcheck": "false"},
    )


def password_field(label: str, autocomplete: str, **more: Any) -> Any:
    return Password(
        label,
        required=True,
        most=MAX_CREDENTIAL,
        render_kw={"autocomplete": autocomplete},
        **more,
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

    def check_together(self) -> None:
        first, again = self.password, self.password_again
        if self.flawless(first, again) and first.data != again.data:
            again.fault(_(NOT_THE_SAME))


OWN_ZONE = {"data-own-zone": ""}  # static/js/zone.js chooses the browser's


def own_zone_field() -> Any:
    """The time zone of a new account: with a script the browser's, and always to be changed."""
    return Zone(
        _("Time zone"),
        required=True,
        default="UTC",
        description=_("Times are shown and entered in this zone."),
        render_kw=OWN_ZONE,
    )


def person_name_field() -> Any:
    return Text(
        N_("Name"),
        most=MAX_PERSON_NAME,
        description=_(
            "Others see it, such as beside an incident that you acknowledge. Empty: your"
            " email address."
        ),
        render_kw={"autocomplete": "name"},
    )


class SetupForm(PasswordTwiceForm):
    """The first account."""

    email = email_field("username")
    password = new_password_field(N_("Password"))
    password_again = password_field(N_("Password again"), "new-password")
    time_zone = own_zone_field()


class NewPersonForm(BrowserForm):
    email = email_field("off")
    password = new_password_field(N_("First password"), N_("They can change it in their profile."))
    role = Word(N_("Role"), words=Role, labels=ROLES.__getitem__, default=Role.EDITOR)


class PersonForm(BrowserForm):
    email = email_field("off")
    current_password = Password(
        N_("Current password"),
        most=MAX_CREDENTIAL,
        description=N_("Needed to change your own email address."),
        render_kw={"autocomplete": "current-password"},
    )
    name = Text(N_("Name"), most=MAX_PERSON_NAME, description=N_("As others see them."))
    role = Word(N_("Role"), words=Role, labels=ROLES.__getitem__, required=True)
    disabled = Switch(
        N_("No access"),
        default=False,
        description=N_("They cannot log in, and are logged out at once."),
    )
    keys = Word(N_("Their API keys"), words=KeysOf, labels=KEYS_OF.__getitem__, none=N_("Choose"))

    def fields(self) -> dict[str, Any]:
        fields = super().fields()
        fields.pop("current_password", None)
        fields.pop("keys", None)
        return fields


class PersonDeletionForm(BrowserForm):
    keys = Word(
        N_("Their API keys"),
        words=KeysOf,
        labels=KEYS_OF.__getitem__,
        none=N_("Choose"),
        required=True,
    )


class NewPasswordForm(BrowserForm):
    """An admin gives somebody a new password."""

    password = new_password_field(N_("New password"), N_("It logs them out everywhere."))


class ProfileForm(BrowserForm):
    name = person_name_field()
    time_zone = Zone(
        N_("Time zone"), required=True, description=N_("Times are shown and entered in this zone.")
    )
    theme = Options(N_("Colours"), required=True, labels=list(THEMES.items()))


class PasswordForm(PasswordTwiceForm):
    current_password = password_field(N_("Current password"), "current-password")
    password = new_password_field(N_("New password"))
    password_again = password_field(N_("New password again"), "new-password")


class KeyEditForm(BrowserForm):
    """What of a key can be changed. Its tag cannot: whoever has the key would reach more."""

    name = Text(
        N_("Name"),
        required=True,
        most=MAX_NAME,
        description=N_("What uses the key, such as CI or Terraform."),
    )
    expires_at = Moment(N_("Expires"), description=N_("Empty: never."))
    networks = Text(
        N_("Networks"),
        most=2000,
        default="",
        description=N_(
            "Addresses or networks such as 203.0.113.0/24, separated by commas, that it may be used"
            " from. Empty: all."
        ),
    )


class KeyForm(KeyEditForm):
    scope = Word(N_("Scope"), words=Scope, labels=SCOPES.__getitem__, default=Scope.READ)
    tag = Text(
        N_("Tag"),
        most=MAX_TAG,
        description=N_(
            "It sees and changes only the monitors with this tag, their incidents, results and"
            " messages. Empty: everything."
        ),
    )


class WallLinkForm(BrowserForm):
    name = Text(
        N_("Name"),
        required=True,
        most=MAX_NAME,
        description=N_("Where the screen is, such as Lobby."),
    )
    tag = Text(
        N_("Tag"), most=MAX_TAG, description=N_("Only the monitors with this tag. Empty: all.")
    )
    zone = Zone(N_("Time zone"), required=True)


class NetworksForm(BrowserForm):
    allow_networks = Text(
        N_("Networks that checks and alerts may reach"),
        most=2000,
        default="",
        description=N_(
            "Besides public addresses. The words private and loopback, and networks such "
            "as 10.0.0.0/8, comma-separated."
        ),
        render_kw={"spellcheck": "false", "autocapitalize": "none"},
    )


class AcknowledgeForm(BrowserForm):
    name = Text(
        N_("Your name (optional)"),
        most=MAX_OWN_NAME,
        description=N_("Others see who acknowledged it. This device remembers the name."),
        render_kw={"autocomplete": "name"},
    )


class CommentForm(BrowserForm):
    """``unknown``: why the comment that is stored is not known, if it is not."""

    replace = Switch(N_("Replace the stored comment"), default=False)
    unknown = ""

    text = Text(
        N_("Add a comment"), required=True, most=MAX_COMMENT, lines=True, render_kw={"rows": "3"}
    )


BULK_ACTIONS = {
    "pause": N_("Pause"),
    "resume": N_("Resume"),
    "interval": N_("Change interval"),
    "tag": N_("Add a tag"),
    "untag": N_("Remove a tag"),
    "contact": N_("Add a contact"),
    "uncontact": N_("Remove a contact"),
    "recontact": N_("Replace all alerts with a contact"),
    "place": N_("Add a place"),
    "unplace": N_("Remove a place"),
    "rule": N_("Change the rule of places"),
    "maintenance": N_("Plan maintenance"),
    "delete": N_("Delete"),
}
CONTACT_ACTIONS = ("contact", "uncontact", "recontact")
PLACE_ACTIONS = ("place", "unplace")


class BulkForm(BrowserForm):
    """What to do with the ticked monitors."""

    ids = IdList(N_("Monitors"))
    everything = Switch(N_("All that match"), default=False)
    rest = Text(N_("What is left"), default="", most=1_000_000)
    action = Options(N_("Action"), required=True, labels=list(BULK_ACTIONS.items()))
    tag = Text(N_("Tag"), most=MAX_TAG)
    interval = NumberChoice(N_("Interval"), labels=interval_labels, none=N_("Choose…"))
    contact = Text(N_("Contact"), most=MAX_CONTACT_NAME)
    contacts: Sequence[tuple[str, str]] = ()  # those that can be chosen: name and label

    place = Text(N_("Place"), most=MAX_LOCATION)
    places: Mapping[str, str]  # those that can be chosen: what people call each, by its name
    rule = Word(N_("Rule"), words=LocationRule, labels=RULE_LABELS.__getitem__, none=N_("Rule…"))

    def leave_out_places(self) -> None:
        """For a server that has none, or where there is only one."""
        self.action.leave_out(*PLACE_ACTIONS, "rule")

    def leave_out_contacts(self) -> None:
        """For a server that has none, or where there are none yet."""
        self.action.leave_out(*CONTACT_ACTIONS)

    def leave_out_tags(self) -> None:
        """For a server that has none."""
        self.action.leave_out("tag", "untag")

    def leave_out_maintenance(self) -> None:
        """For a server that has none."""
        self.action.leave_out("maintenance")

    def check_together(self) -> None:
        if not self.ids.data and not self.everything.data and not self.rest.data:
            self.ids.fault(_("Select the monitors first."))
        if self.action.data in ("tag", "untag") and self.flawless(self.tag) and not self.tag.data:
            self.tag.fault(_("Enter the tag."))
        if self.action.data in CONTACT_ACTIONS and not self.contact.data:
            self.contact.fault(_("Choose the contact."))
        if self.action.data in PLACE_ACTIONS and not self.place.data:
            self.place.fault(_("Choose the place."))
        if self.action.data == "rule" and not self.rule.data:
            self.rule.fault(_("Choose the rule."))
        if self.action.data == "interval" and self.interval.data is None:
            self.interval.fault(_("Choose the new interval."))


class Upload(OneValue):
    """A file that a person chose: its bytes; none if they chose none."""

    widget = widgets.FileInput()

    def process_formdata(self, valuelist: list[Any]) -> None:
        chosen = [one for one in valuelist if getattr(one, "filename", "")]
        self.sent, self.data = bool(chosen), chosen[0].read() if chosen else None


class ImportForm(BrowserForm):
    """Many monitors: lines, or a file."""

    urls = Text(
        N_("Lines"),
        default="",
        most=1_000_000,
        lines=True,
        description=N_("One monitor a line: the URL alone, or name, URL, tags, contact."),
        render_kw={"rows": "8", "spellcheck": "false"},
    )
    file: Any = Upload(N_("File"))
    format = Options(N_("Format"), labels=list(FORMATS.items()), none=N_("Detect automatically"))
    interval = NumberChoice(
        N_("Interval"),
        required=True,
        labels=interval_labels,
        default=60,
        description=N_("For entries without an interval."),
    )
    tags = Tags(N_("Tags"), description=N_("Comma-separated, added to every monitor."))
    contacts: Any = Names(N_("Contacts"), most=MAX_CONTACT_NAME)

    def check_together(self) -> None:
        lines = bool((self.urls.data or "").strip())
        if lines and self.sends_file():
            self.file.fault(_("Enter lines or choose a file, not both."))
        elif not lines and not self.sends_file() and self.flawless(self.urls):
            self.urls.fault(_("Enter at least one line, or choose a file."))

    def content(self) -> bytes:
        """The bytes of the file, or of the lines."""
        return bytes(self.file.data or b"") if self.sends_file() else self.urls.data.encode()

    def sends_file(self) -> bool:
        return self.file.data is not None

    def source(self) -> Any:
        """The field that ``content`` comes from."""
        return self.file if self.sends_file() else self.urls

    def shared(self) -> Shared:
        """What every monitor gets."""
        tags = self.tags.data if "tags" in self else ()
        return Shared(self.interval.data, tags, self.ticked())

    def ticked(self) -> Sequence[str]:
        return self.contacts.data if "contacts" in self else ()
