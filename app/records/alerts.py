"""Alerts: channels, events, deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, TypedDict

from app.i18n import N_
from app.records.marks import Id, Mark, TextOrDefault, TimeText
from app.records.paging import DEFAULT_PAGE_SIZE


class Channel(StrEnum):
    """How an alert reaches people. The base API lacks ``ADDED_CHANNELS`` (decision 5)."""

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


# The services of these channels have an alert for each incident, so messages are not grouped.
BY_INCIDENT = frozenset({Channel.PAGERDUTY, Channel.OPSGENIE})
ADDED_CHANNELS = BY_INCIDENT | {Channel.APPRISE, Channel.NTFY, Channel.GOTIFY, Channel.PUSHOVER}


class Event(StrEnum):
    """The events that people are notified of (decision 5)."""

    INCIDENT_OPENED = "incident.opened"
    INCIDENT_ACKNOWLEDGED = "incident.acknowledged"
    INCIDENT_RESOLVED = "incident.resolved"
    INCIDENT_REMINDER = "incident.reminder"  # ours: off unless the monitor asks for reminders
    INCIDENTS_OPENED = "incidents.opened"  # a burst in one message
    INCIDENTS_ACKNOWLEDGED = "incidents.acknowledged"  # by one person together, in one message
    INCIDENTS_RESOLVED = "incidents.resolved"
    INCIDENTS_DIGEST = "incidents.digest"  # the alerts that quiet hours deferred, in one message
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


# The reason of a delivery that was given up without an attempt begins with this: the message is
# lost, although the channel may work. This and the two reasons below are stored in English, and
# code compares with them, so they must never change.
NOT_SENT = N_("Not sent") + ": "
# Reasons of deliveries on hold:
QUIET_HOURS = N_("quiet hours")  # it waits, or waited, for their end
RESTORED = N_("restored")  # it is older than a restored backup: a person decides (decision 16)


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
    target: TextOrDefault
    status: Annotated[str, DeliveryStatus]
    reason: str | None = None
    attempts: tuple[Attempt, ...] = ()
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None
    covers: tuple[int, ...] = ()
    contacts: tuple[str, ...] = ()  # the names of the contacts that it was for
    location: str | None = None  # the name of the place that it is about
    unreadable: tuple[str, ...] = ()  # ``target``, ``message``: if the stored one cannot be read
    # The text that was sent, without tokens. Lists leave it out
    message: str | None = None

    @property
    def last_answer(self) -> str | None:
        """The answer of the channel's service, or Wakeful's reason, at the last attempt."""
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
