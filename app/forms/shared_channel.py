"""The schema of a contact that takes the place of a channel of several monitors."""

from __future__ import annotations

from app.forms.contact import check_name
from app.forms.fields import RecordId, Text
from app.forms.schema import SchemaForm
from app.i18n import N_
from app.records import MAX_CONTACT_NAME


class SharedChannelForm(SchemaForm):
    """``monitor_id`` and ``mark`` name the channel: its value is a secret."""

    name = Text(
        N_("Name"),
        required=True,
        most=MAX_CONTACT_NAME,
        rule=check_name,
        description=N_("A team or a person, such as Shop team."),
    )
    monitor_id = RecordId(
        N_("Monitor"), required=True, description=N_("A monitor that has the channel.")
    )
    mark = Text(
        N_("Channel"),
        required=True,
        most=64,
        description=N_("Which of its channels, as the monitor's shared-channels name it."),
    )
