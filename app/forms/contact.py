"""The schemas of a contact, its deletion, and a shared channel that becomes one (decision 13)."""

from __future__ import annotations

from app.forms.alert_lists import channel_list, quiet_hours_fields
from app.forms.fields import RecordId, Switch, Text, WordChoice, Zone, looks_masked
from app.forms.schema import SchemaForm, defaults_of
from app.i18n import N_, _
from app.records import MAX_CONTACT_NAME, Contact, MinSeverity
from app.rules.cross_field import quiet_hours

DIGITS_ALONE = N_("A name of digits alone could be mistaken for an id. Add a letter.")
LIKE_A_MASK = N_("This looks like a masked value. Choose another name.")
NO_CHANNEL = N_("Add at least one channel.")


def check_name(value: str) -> None:
    if value.strip().isdecimal():
        raise ValueError(_(DIGITS_ALONE))
    if looks_masked(value.strip()):
        raise ValueError(_(LIKE_A_MASK))


@defaults_of(Contact)
class ContactForm(SchemaForm):
    """A named set of channels."""

    name = Text(
        N_("Name"), required=True, limit=MAX_CONTACT_NAME, rule=check_name,
        description=N_("A team or a person, such as Shop team."),
    )  # fmt: skip
    channels = channel_list(N_("Channels"), N_("Stored values are shown masked."), required=True)
    min_severity = WordChoice(
        N_("Alerts about"),
        {
            MinSeverity.ALL: N_("Everything"),
            MinSeverity.DOWN: N_("Outages only: no slowness, no expiring certificates and domains"),
        },
    )
    acknowledgements = Switch(
        N_("Alert when somebody acknowledges an incident"),
        description=N_("So that others know that it is being handled."),
    )
    time_zone = Zone(
        N_("Time zone of messages"), none=N_("The installation's zone"),
        description=N_("Emails and chat messages to this contact have their times in it."),
    )  # fmt: skip
    default = Switch(
        N_("Add to new monitors"),
        description=N_(
            "Monitors that are created on the dashboard start with this contact. It is also"
            " notified when a place that checks run from falls silent."
        ),
    )
    quiet_start, quiet_end, quiet_zone = quiet_hours_fields()

    def check_cross_field(self) -> None:
        # Unreadable channels stay as they are until somebody enters them again.
        unreadable = "channels" in getattr(self.record, "unreadable", ())
        if self.flawless(self.channels) and not self.channels.data and not unreadable:
            self.channels.add_fault(_(NO_CHANNEL))
        if self.flawless(self.quiet_start, self.quiet_end):
            self.add_faults(quiet_hours(self.quiet_start.data, self.quiet_end.data))


class ContactDeletionForm(SchemaForm):
    replace_with = Text(
        N_("Replace with"), limit=MAX_CONTACT_NAME,
        description=N_("The name or id of the contact that takes its place."),
    )  # fmt: skip
    force = Switch(N_("Delete anyway"), default=False, description=N_("Even if monitors use it."))

    def check_cross_field(self) -> None:
        if self.replace_with.data is not None and self.force.data:
            self.force.add_fault(_("Send either force or replace_with, not both."))


class SharedChannelForm(SchemaForm):
    """``monitor_id`` and ``mark`` identify the channel, because its value is a secret."""

    name = ContactForm.name
    monitor_id = RecordId(
        N_("Monitor"), required=True, description=N_("A monitor that has the channel.")
    )
    mark = Text(
        N_("Channel"), required=True, limit=64,
        description=N_("Which of its channels, as the monitor's shared-channels name it."),
    )  # fmt: skip
