"""Forms about many monitors at once: the bar below their list, and imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wtforms import widgets

from app.forms.browser import BrowserForm
from app.forms.fields import OneValue, Options, Switch, Text, WordChoice
from app.forms.imported import ImportDefaults
from app.forms.lists import ContactNames, IdList, Tags
from app.forms.monitor_choices import RULE_LABELS, IntervalChoice
from app.i18n import N_, _
from app.imports.candidates import FORMATS
from app.records import MAX_CONTACT_NAME, MAX_LOCATION, MAX_NAME, MAX_TAG
from app.rules.text import REQUIRED

BULK_ACTIONS = {
    "pause": N_("Pause"), "resume": N_("Resume"), "interval": N_("Change interval"),
    "tag": N_("Add a tag"), "untag": N_("Remove a tag"), "note": N_("Add to the notes"),
    "contact": N_("Add a contact"), "uncontact": N_("Remove a contact"),
    "recontact": N_("Replace all alerts with a contact"), "place": N_("Add a place"),
    "unplace": N_("Remove a place"), "rule": N_("Change the rule of places"),
    "parent": N_("Add what they are reached through"),
    "unparent": N_("Remove what they are reached through"), "maintenance": N_("Plan maintenance"),
    "delete": N_("Delete"),
}  # fmt: skip
CONTACT_ACTIONS = ("contact", "uncontact", "recontact")
PLACE_ACTIONS = ("place", "unplace")
PARENT_ACTIONS = ("parent", "unparent")
# The field that an action needs besides the monitors.
_NEEDED = (
    {"interval": "interval", "rule": "rule", "tag": "tag", "untag": "tag", "note": "note"}
    | dict.fromkeys(CONTACT_ACTIONS, "contact")
    | dict.fromkeys(PLACE_ACTIONS, "place")
    | dict.fromkeys(PARENT_ACTIONS, "parent")
)


class BulkForm(BrowserForm):
    """An action on the selected monitors."""

    ids = IdList(N_("Monitors"))
    everything = Switch(N_("All that match"), default=False)
    rest = Text(N_("What is left"), default="", limit=1_000_000)
    action = Options(N_("Action"), BULK_ACTIONS, required=True)
    tag = Text(N_("Tag"), limit=MAX_TAG)
    note = Text(N_("Note"), limit=MAX_NAME)
    interval = IntervalChoice(N_("Interval"), none=N_("Choose…"))
    contact = Text(N_("Contact"), limit=MAX_CONTACT_NAME)
    contacts: Sequence[tuple[str, str]] = ()  # the choices: name and label

    parent_id = 0  # of the monitor that ``parent`` names
    parent = Text(N_("Name of a monitor"), limit=MAX_NAME)
    place = Text(N_("Place"), limit=MAX_LOCATION)
    places: Mapping[str, str]  # the choices: titles by name
    rule = WordChoice(N_("Rule"), RULE_LABELS, none=N_("Rule"))

    def check_cross_field(self) -> None:
        if not self.ids.data and not self.everything.data and not self.rest.data:
            self.ids.add_fault(_("Select the monitors first."))
        name = _NEEDED.get(self.action.data or "")
        needed: Any = self[name] if name else None
        if needed and self.flawless(needed) and needed.data in (None, ""):
            needed.add_fault(_(REQUIRED))


class Upload(OneValue):
    """The bytes of an uploaded file; None without a file."""

    widget = widgets.FileInput()

    def process_formdata(self, valuelist: list[Any]) -> None:
        uploads = [upload for upload in valuelist if getattr(upload, "filename", "")]
        self.sent, self.data = bool(uploads), uploads[0].read() if uploads else None


class ImportForm(BrowserForm):
    """Many monitors, from lines or a file. ``sealed``: the previewed file, which the page contains
    encrypted.
    """

    sealed = ""

    urls = Text(
        N_("Lines"),
        default="",
        limit=1_000_000,
        lines=True,
        description=N_("One monitor a line: the URL alone, or name, URL, tags, contact."),
        render_kw={"rows": "8", "spellcheck": "false"},
    )
    file: Any = Upload(N_("File"))
    format = Options(N_("Format"), FORMATS, none=N_("Detect automatically"))
    interval = IntervalChoice(
        N_("Interval"), required=True, default=60,
        description=N_("For entries without an interval."),
    )  # fmt: skip
    tags = Tags(N_("Tags"), description=N_("Comma-separated, added to every monitor."))
    contacts: Any = ContactNames(N_("Contacts"))

    def check_cross_field(self) -> None:
        lines = bool((self.urls.data or "").strip())
        if lines and self.sends_file():
            self.file.add_fault(_("Enter lines or choose a file, not both."))
        elif not lines and not self.sends_file() and not self.sealed and self.flawless(self.urls):
            self.urls.add_fault(_("Enter at least one line, or choose a file."))

    def content(self) -> bytes:
        """The bytes of the file, or of the lines."""
        return bytes(self.file.data or b"") if self.sends_file() else self.urls.data.encode()

    def sends_file(self) -> bool:
        return self.file.data is not None

    def uses_sealed_file(self) -> bool:
        """Whether to import the previewed file, because no other file and no lines were sent."""
        return bool(self.sealed) and not self.sends_file() and not (self.urls.data or "").strip()

    def source(self) -> Any:
        """The field that ``content`` comes from."""
        return self.file if self.sends_file() else self.urls

    def shared(self) -> ImportDefaults:
        """The values that every monitor gets."""
        tags = self.tags.data if "tags" in self else ()
        return ImportDefaults(self.interval.data, tags, self.chosen_contacts())

    def chosen_contacts(self) -> Sequence[str]:
        return self.contacts.data if "contacts" in self else ()
