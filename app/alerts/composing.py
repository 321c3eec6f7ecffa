"""The message of a row of the outbox. It is made from the facts of the row, the present database
and the settings. The worker sends the message, and the delivery log shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from app.access import tokens
from app.alerts import messages
from app.alerts.channels import text_of
from app.alerts.channels.base import Outgoing
from app.alerts.claims import SENT
from app.alerts.lanes import ClaimedDelivery
from app.alerts.messages.message import Message, MessageContext, base_url
from app.alerts.targets import contact_zones, source_ids
from app.config import Settings
from app.db import AnySession
from app.db.tables import DeliveryRow, IncidentRow, MonitorRow
from app.db.tags import notes_of
from app.db.types import Unreadable
from app.i18n import _, speaking
from app.records import Channel, IncidentSeverity
from app.rules.channel_values import channel_label
from app.rules.time import zone_of
from app.rules.zones import UTC

MAX_OTHERS_DOWN = 200  # monitors that a message may name as down too

Row = ClaimedDelivery | DeliveryRow


class Composer:
    """Composes the messages of ``rows``. Reads the database once for all of them."""

    def __init__(self, session: AnySession, settings: Settings, rows: Sequence[Row]) -> None:
        self._settings = settings
        alerts = [row for row in rows if row.subscriber_id is None]
        self._others_down = _others_down(session) if alerts else {}
        self._zones = contact_zones(session, {_sources(row) for row in rows})
        monitors = [row.facts.get("monitor") or {} for row in alerts]
        self._notes = notes_of(session, {monitor["id"] for monitor in monitors if "id" in monitor})

    def message(self, row: Row) -> Message:
        """Raises any error that incomplete facts cause."""
        zones = (self._zones[id] for id in source_ids(_sources(row)) if id in self._zones)
        zone = next(zones, self._settings.time_zone)
        reader, several = _reader(row), row.id if "deliveries" in row.facts else None
        context = MessageContext(
            base_url=base_url(self._settings.public_url, self._settings.bind),
            acknowledge_token=lambda id: tokens.acknowledgement_token(id, reader, several),
            others_down=self._others_down,
            notes=self._notes,
            zone=None if zone == UTC else zone_of(zone),
        )
        return messages.compose(row.facts, context)


def _sources(row: Row) -> str | None:
    """The contacts that a message is for, in the format of the column. A grouped message has them
    in its facts.
    """
    sources: str | None = row.sources or row.facts.get("sources")
    return sources


def _reader(row: Row) -> str:
    """The name of the channel that has the acknowledge link, without secrets: who acknowledged an
    incident by the link.
    """
    if row.channel == Channel.EMAIL:
        return _("a link in the email to %(address)s", address=row.value)
    return _("a link in %(channel)s", channel=channel_label(row.channel))


def _others_down(session: AnySession) -> dict[int, str]:
    """The names of the monitors that are down now, by id, the longest outage first."""
    query = (
        select(MonitorRow.id, MonitorRow.name)
        .join(IncidentRow, IncidentRow.monitor_id == MonitorRow.id)
        .where(IncidentRow.ended_at.is_(None), IncidentRow.severity == IncidentSeverity.DOWN)
        .order_by(IncidentRow.started_at)
        .limit(MAX_OTHERS_DOWN)
    )
    return {row.id: row.name for row in session.execute(query)}


def message_text(session: AnySession, settings: Settings, row: DeliveryRow) -> str | None:
    """The text that was sent last, or the present text of a message that was not sent. None if the
    row cannot be read.
    """
    if isinstance(row.facts, Unreadable) or isinstance(row.value, Unreadable):
        return None
    if SENT in row.facts:
        return str(row.facts[SENT])
    if not messages.is_complete(row.facts):
        return None  # an older version wrote its facts
    with speaking(None):  # in the language in which it is sent, not in that of the reader
        message = Composer(session, settings, [row]).message(row)
        return text_of(row.channel, Outgoing(row.message_id, row.value, message, row.created_at))
