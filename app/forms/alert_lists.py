"""The fields for alerts and quiet hours of monitors and contacts. An alert is a pair: a channel
with its value, or ``contact`` with a name.
"""

from __future__ import annotations

from collections.abc import Iterable

from wtforms.fields.core import Field

from app import records
from app.forms.fields import ClockTime, RecordId, Zone, form_of
from app.forms.lists import Faults, PairList
from app.forms.schema import SchemaForm
from app.i18n import N_, _
from app.rules import text
from app.rules.channel_values import CHANNELS, check_value


def check_alert(field: Field, pair: records.Pair) -> Faults:
    if pair.key == records.CONTACT:
        return None, text.fault_of(lambda: _check_contact(field, pair.value))
    return check_channel(field, pair, [*CHANNELS, records.CONTACT])


def _check_contact(field: Field, value: str) -> None:
    text.characters(text.length(value, records.MAX_CONTACT_NAME))
    exists = form_of(field).context.contact_exists
    if exists is not None and not exists(value):
        raise ValueError(no_contact(value))


def no_contact(value: str) -> str:
    return _('There is no contact "%(value)s".', value=value[: records.MAX_CONTACT_NAME])


def check_channel(field: Field, pair: records.Pair, keys: Iterable[str] = CHANNELS) -> Faults:
    if form_of(field).context.bare:
        return _check_foreign(field, pair)
    if pair.key not in CHANNELS:
        return text.one_of(keys), None
    fault = text.fault_of(lambda: text.characters(pair.value))
    token_set = form_of(field).context.telegram_token_set
    return None, fault or check_value(str(pair.key), str(pair.value), telegram_token_set=token_set)


def _check_foreign(field: Field, pair: records.Pair) -> Faults:
    """Check a channel for a server with the base API alone, which does not define the values."""
    stored_keys = [other.key for other in field.object_data]
    keys = [*(str(channel) for channel in BASE_API_CHANNELS), *stored_keys]
    fault = None if pair.key in keys else text.one_of(dict.fromkeys(keys))
    return fault, text.fault_of(
        lambda: text.characters(text.length(pair.value, records.MAX_ALERT_VALUE))
    )


BASE_API_CHANNELS = [channel for channel in CHANNELS if channel not in records.ADDED_CHANNELS]
CHANNEL_CHOICES = [(str(channel), shown.label) for channel, shown in CHANNELS.items()]


WHO_IS_ALERTED = N_("Who is alerted when it fails and recovers. Stored values are shown masked.")


def channel_list(
    label: str, description: str, *, contacts: bool = False, required: bool = False
) -> PairList:
    return PairList(
        label,
        limit=records.MAX_ALERTS,
        labels={"key": N_("Channel"), "value": N_("Address or key")},
        choices={
            "key": [*CHANNEL_CHOICES, *([(records.CONTACT, N_("Contact"))] if contacts else [])]
        },
        check=check_alert if contacts else check_channel,
        required=required,
        description=description,
        hide=records.masked_alert,
    )


def quiet_hours_fields() -> tuple[ClockTime, ClockTime, Zone]:
    """The fields of quiet hours, in the order of the form."""
    start = ClockTime(
        N_("Quiet from"),
        description=N_("During quiet hours, alerts are held and sent as one summary at the end."),
    )
    end = ClockTime(N_("Quiet until"))
    zone = Zone(N_("Time zone of quiet hours"), description=N_("Example: Europe/Berlin"))
    return start, end, zone


class AlertTestForm(SchemaForm):
    """Channels for a test message, stored or not. ``monitor_id``: the monitor that has them."""

    alerts = channel_list(N_("Alerts"), WHO_IS_ALERTED)
    monitor_id = RecordId(N_("Monitor"), description=N_("Whose alerts they are."))

    def check_cross_field(self) -> None:
        if self.flawless(self.alerts) and not self.alerts.data:
            self.alerts.add_fault(_("Send at least one alert to test."))
