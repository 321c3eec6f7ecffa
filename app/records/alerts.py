"""Alerts: channels, events, deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, TypedDict

from app.i18n import N_
from app.records.marks import Id, Mark, TextOrNone, TimeText
from app.records.paging import DEFAULT_PAGE_SIZE


class Channel(StrEnum):
    """How an alert reaches people. ``OWN_CHANNELS`` are our addition (decision 5)."""

    EMAIL = "email"
    WEBHOOK = "webhook"
    SLACK = "slack"
    TEAMS = "teams"
    DISCORD = "discord"
    FLOCK = "flock"
    TELEGRAM = "telegram"
    SMS = "sms"
    APPRISE = "apprise"
    NTFY = "ntfy"
    GOTIFY = "gotify"
    PUSHOVER = "pushover"
    PAGERDUTY = "pagerduty"
    OPSGENIE = "opsgenie"


# Their services have an alert for each incident, so nothing is grouped for them.
BY_INCIDENT = frozenset({Channel.PAGERDUTY, Channel.OPSGENIE})
OWN_CHANNELS = BY_INCIDENT | {Channel.APPRISE, Channel.NTFY, Channel.GOTIFY, Channel.PUSHOVER}


class Event(StrEnum):
    """The events that people are notified of (decision 5)."""

    INCIDENT_OPENED = "incident.opened"
    INCIDENT_ACKNOWLEDGED = "incident.acknowledged"
    INCIDENT_RESOLVED = "incident.resolved"
    INCIDENT_REMINDER = "incident.reminder"  # ours: off unless the monitor asks for reminders
    INCIDENTS_OPENED = "incidents.opened"  # a burst in one message
    INCIDENTS_ACKNOWLEDGED = "incidents.acknowledged"  # by one person at once, in one message
    INCIDENTS_RESOLVED = "incidents.resolved"
    INCIDENTS_DIGEST = "incidents.digest"  # what quiet hours deferred, in one message
    CERTIFICATE_EXPIRING = "certificate.expiring"
    DOMAIN_EXPIRING = "domain.expiring"
    LOCATION_SILENT = "location.silent"  # to the default contacts, once
    LOCATION_ONLINE = "location.online"
    REPORT_MONTHLY = "report.monthly"  # ours: an availability report, to a contact
    TEST = "test"


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    HELD = "held"


# The beginning of the reason of a delivery that was given up without an attempt: the message is
# lost, and the channel may work. It is stored in English and compared, like the two below: never
# change it.
NOT_SENT = N_("Not sent") + ": "
# Reasons of deliveries on hold:
QUIET_HOURS = N_("quiet hours")  # it waits for their end, or waited
RESTORED = N_("restored")  # it is older than a restored backup, and a person decides (decisions 16)


class Attempt(TypedDict):
    """One attempt to send a message."""

    at: Annotated[TimeText | None, Mark.PROMISED]
    ok: bool
    answer: str | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one channel, with its attempts (decision 11). ``target`` is masked."""

    id: Id
    event: Annotated[str, Event]
    monitor_id: int | None
    incident_id: int | None
    channel: Annotated[str, Channel]
    target: TextOrNone
    status: Annotated[str, DeliveryStatus]
    reason: str | None = None
    attempts: tuple[Attempt, ...] = ()
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None
    covers: tuple[int, ...] = ()
    contacts: tuple[str, ...] = ()  # the names of those that it was for
    location: str | None = None  # the name of the place that it is about
    unreadable: tuple[str, ...] = ()  # ``target``, ``message``: stored so that nobody can read it
    # What was sent, as text and without tokens. Lists have none
    message: str | None = None

    @property
    def last_answer(self) -> str | None:
        """The answer of the channel's service, or of Wakeful, at the last attempt."""
        return self.attempts[-1]["answer"] if self.attempts else None

    @property
    def is_lost(self) -> bool:
        """Whether it is not sent unless a person retries it. The channel itself may work."""
        if self.awaits_release:
            return True
        return self.status == DeliveryStatus.FAILED and (self.reason or "").startswith(NOT_SENT)

    @property
    def awaits_release(self) -> bool:
        """Whether it is on hold since the restore of a backup, until a person decides."""
        return self.status == DeliveryStatus.HELD and self.reason == RESTORED

    @property
    def in_digest(self) -> bool:
        """Whether it was on hold in quiet hours, and is part of their digest."""
        on_hold = self.status == DeliveryStatus.HELD and self.reason == QUIET_HOURS
        return on_hold and self.next_attempt_at is None


@dataclass(frozen=True, slots=True)
class DeliveryQuery:
    monitor_id: int | None = None
    incident_id: int | None = None
    channel: str | None = None
    status: str | None = None
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
    contact_id: int | None = None
    bound_tag: str | None = None  # the tag that a key is bound to
