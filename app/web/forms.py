"""Forms about people, keys and this installation. Monitors, incidents and windows are in
``app/forms``, because the API takes them too; these are the dashboard's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flask import flash
from wtforms import widgets

from app.errors import Invalid, Unavailable, WakefulError
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
from app.forms.monitor import RULE_LABELS, interval_label
from app.imports.candidates import FORMATS
from app.records import (
    INTERVALS,
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
from app.rules import text
from app.web.frame.store_errors import outlook, status_of
from app.web.shown.looks import ROLES

Rule = Callable[[str], object]  # raises ValueError with a sentence

THEMES = {"auto": "Same as system", "light": "Light", "dark": "Dark"}
SCOPES = {
    Scope.READ: "Read: view only, secrets masked",
    Scope.WRITE: "Write: full access",
}
OVERWRITTEN = "Somebody else changed this after you opened the page. Your values replaced theirs:"
NOT_THE_SAME = "The two passwords are not the same."


def email_field(autocomplete: str, *, rule: Rule | None = text.email) -> Any:
    return Text(
        "Email",
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


def new_password_field(label: str, description: str = "") -> Any:
    hint = f"{MIN_PASSWORD} characters or more. {description}".strip()
    return password_field(label, "new-password", description=hint, rule=text.new_password)


def show_errors(form: BrowserForm, fault: Invalid) -> None:
    """Put what a store found beside the fields, where only the stored data shows the fault; what
    no field of the form can show, another server's bare "no" too, stands above them.
    """
    fields = {field.short_name: field for field in form.schema_fields()}
    left = [] if fault.errors else [str(fault)]
    for name, sentences in fault.errors.items():
        field = fields.get(name.partition(".")[0])
        for sentence in sentences:
            if field is None:
                left.append(f"{name}: {sentence}")
            else:
                field.fault(sentence)
    form.trouble = " ".join(left)


def saved(form: BrowserForm, sentence: str) -> None:
    """Tell, on the next page, that ``form`` was saved, and what of somebody else's that undid."""
    flash(sentence, "success")
    if labels := form.overwritten():
        flash(f"{OVERWRITTEN} {', '.join(labels)}.", "warning")


def not_saved(form: BrowserForm, fault: WakefulError) -> int:
    """Say in ``form`` why the store did not take it (``refusals.NOT_TAKEN``), with everything typed
    in place; the status.
    """
    form.trouble = f"{fault} {outlook(fault)}"
    form.unanswered = isinstance(fault, Unavailable)
    return status_of(fault)


def not_read(form: BrowserForm, fault: WakefulError) -> int:
    """As ``not_saved``, where not even the record could be read that ``form`` is about. What was
    typed is not judged: a mask has nothing behind it now, and that is no fault of whoever typed.
    """
    for rows in form.pair_lists():
        rows.forget_errors()
    return not_saved(form, fault)


class LoginForm(BrowserForm):
    email = email_field("username", rule=None)
    password = password_field("Password", "current-password")


class PasswordTwiceForm(BrowserForm):
    """The base of forms in which a password is typed twice."""

    password: Any
    password_again: Any

    def check_together(self) -> None:
        first, again = self.password, self.password_again
        if self.flawless(first, again) and first.data != again.data:
            again.fault(NOT_THE_SAME)


OWN_ZONE = {"data-own-zone": ""}  # static/js/zone.js chooses the browser's


def own_zone_field() -> Any:
    """The time zone of a new account: with a script the browser's, and always to be changed."""
    return Zone(
        "Time zone",
        required=True,
        default="UTC",
        description="Times are shown and entered in this zone.",
        render_kw=OWN_ZONE,
    )


def person_name_field() -> Any:
    return Text(
        "Name",
        most=MAX_PERSON_NAME,
        description="Others see it, such as beside an incident that you acknowledge. Empty: your"
        " email address.",
        render_kw={"autocomplete": "name"},
    )


class SetupForm(PasswordTwiceForm):
    """The first account."""

    email = email_field("username")
    password = new_password_field("Password")
    password_again = password_field("Password again", "new-password")
    time_zone = own_zone_field()


class NewPersonForm(BrowserForm):
    email = email_field("off")
    password = new_password_field("First password", "They can change it in their profile.")
    role = Word("Role", words=Role, labels=ROLES.__getitem__, default=Role.EDITOR)


class PersonForm(BrowserForm):
    email = email_field("off")
    name = Text("Name", most=MAX_PERSON_NAME, description="As others see them.")
    role = Word("Role", words=Role, labels=ROLES.__getitem__, required=True)
    disabled = Switch(
        "No access", default=False, description="They cannot log in, and are logged out at once."
    )


class NewPasswordForm(BrowserForm):
    """An admin gives somebody a new password."""

    password = new_password_field("New password", "It logs them out everywhere.")


class ProfileForm(BrowserForm):
    name = person_name_field()
    time_zone = Zone(
        "Time zone", required=True, description="Times are shown and entered in this zone."
    )
    theme = Options("Colours", required=True, labels=list(THEMES.items()))


class PasswordForm(PasswordTwiceForm):
    current_password = password_field("Current password", "current-password")
    password = new_password_field("New password")
    password_again = password_field("New password again", "new-password")


class KeyForm(BrowserForm):
    name = Text(
        "Name",
        required=True,
        most=MAX_NAME,
        description="What uses the key, such as CI or Terraform.",
    )
    scope = Word("Scope", words=Scope, labels=SCOPES.__getitem__, default=Scope.READ)
    expires_at = Moment("Expires", description="Empty: never.")


class WallLinkForm(BrowserForm):
    name = Text(
        "Name", required=True, most=MAX_NAME, description="Where the screen is, such as Lobby."
    )
    tag = Text("Tag", most=MAX_TAG, description="Only the monitors with this tag. Empty: all.")
    zone = Zone("Time zone", required=True)


class NetworksForm(BrowserForm):
    allow_networks = Text(
        "Networks that checks and alerts may reach",
        most=2000,
        default="",
        description="Besides public addresses. The words private and loopback, and networks such "
        "as 10.0.0.0/8, comma-separated.",
        render_kw={"spellcheck": "false", "autocapitalize": "none"},
    )


class DeleteForm(BrowserForm):
    """Nothing to type: the button is the answer."""


class AcknowledgeForm(BrowserForm):
    name = Text(
        "Your name (optional)",
        most=MAX_OWN_NAME,
        description="Others see who acknowledged it. This device remembers the name.",
        render_kw={"autocomplete": "name"},
    )


class CommentForm(BrowserForm):
    text = Text(
        "Add a comment", required=True, most=MAX_COMMENT, lines=True, render_kw={"rows": "3"}
    )


BULK_ACTIONS = {
    "pause": "Pause",
    "resume": "Resume",
    "interval": "Change interval",
    "tag": "Add a tag",
    "untag": "Remove a tag",
    "contact": "Add a contact",
    "uncontact": "Remove a contact",
    "recontact": "Replace all alerts with a contact",
    "place": "Add a place",
    "unplace": "Remove a place",
    "rule": "Change the rule of places",
    "maintenance": "Schedule maintenance",
    "delete": "Delete",
}
CONTACT_ACTIONS = ("contact", "uncontact", "recontact")
PLACE_ACTIONS = ("place", "unplace")
INTERVAL_CHOICES = [(seconds, interval_label(seconds)) for seconds in INTERVALS]


class BulkForm(BrowserForm):
    """What to do with the ticked monitors."""

    ids = IdList("Monitors")
    everything = Switch("All that were found", default=False)
    rest = Text("What is left", default="", most=1_000_000)
    action = Options("Action", required=True, labels=list(BULK_ACTIONS.items()))
    tag = Text("Tag", most=MAX_TAG)
    interval = NumberChoice("Interval", labels=INTERVAL_CHOICES, none="Choose…")
    contact = Text("Contact", most=MAX_CONTACT_NAME)
    contacts: Sequence[tuple[str, str]] = ()  # those that can be chosen: name and label

    place = Text("Place", most=MAX_LOCATION)
    places: Sequence[str] = ()  # those that can be chosen
    rule = Word("Rule", words=LocationRule, labels=RULE_LABELS.__getitem__, none="Rule…")

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
            self.ids.fault("Select the monitors first.")
        if self.action.data in ("tag", "untag") and self.flawless(self.tag) and not self.tag.data:
            self.tag.fault("Enter the tag.")
        if self.action.data in CONTACT_ACTIONS and not self.contact.data:
            self.contact.fault("Choose the contact.")
        if self.action.data in PLACE_ACTIONS and not self.place.data:
            self.place.fault("Choose the place.")
        if self.action.data == "rule" and not self.rule.data:
            self.rule.fault("Choose the rule.")
        if self.action.data == "interval" and self.interval.data is None:
            self.interval.fault("Choose the new interval.")


class Upload(OneValue):
    """A file that a person chose: its bytes; none if they chose none."""

    widget = widgets.FileInput()

    def process_formdata(self, valuelist: list[Any]) -> None:
        chosen = [one for one in valuelist if getattr(one, "filename", "")]
        self.sent, self.data = bool(chosen), chosen[0].read() if chosen else None


class ImportForm(BrowserForm):
    """Many monitors: lines, or a file."""

    urls = Text(
        "Lines",
        default="",
        most=1_000_000,
        lines=True,
        description="One monitor a line: the URL alone, or name, URL, tags, contact.",
        render_kw={"rows": "8", "spellcheck": "false"},
    )
    file: Any = Upload("File")
    format = Options("Format", labels=list(FORMATS.items()), none="Detect automatically")
    interval = NumberChoice(
        "Check every",
        required=True,
        labels=INTERVAL_CHOICES,
        default=60,
        description="For entries without an interval.",
    )
    tags = Tags("Tags", description="Comma-separated, added to every monitor.")
    contacts: Any = Names("Contacts", most=MAX_CONTACT_NAME)

    def check_together(self) -> None:
        lines = bool((self.urls.data or "").strip())
        if lines and self.sends_file():
            self.file.fault("Enter lines or choose a file, not both.")
        elif not lines and not self.sends_file() and self.flawless(self.urls):
            self.urls.fault("Enter at least one line, or choose a file.")

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
