"""Contacts: named sets of channels for monitors (decision 13), and the monthly reports that they
get by email.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from app.records.marks import ClockTime, Id, Mark, TextOrDefault
from app.records.monitors import DEFAULT_QUIET_ZONE
from app.records.secrets import Pair


class MinSeverity(StrEnum):
    """The events that a contact is notified of."""

    ALL = "all"
    DOWN = "down"  # incidents: no expiry of a certificate or a domain, nothing degraded


# The key of a monitor's alert that names a contact; its value is the contact's name.
CONTACT = "contact"
MAX_CONTACT_NAME = 80


def masked_alert(pair: Pair) -> Pair:
    """An alert as it may be shown: the name of a contact is no secret."""
    return pair if pair.key == CONTACT else pair.masked()


def alerts_without_contacts(alerts: Sequence[Pair]) -> tuple[Pair, ...]:
    return tuple(pair for pair in alerts if pair.key != CONTACT)


@dataclass(frozen=True, slots=True)
class SharedChannel:
    """A channel that several monitors have, without a contact. ``place``, as the API calls it: its
    position among the channels of the monitor. ``value`` is masked; ``mark`` identifies the
    channel. ``monitors``: how many have it.
    """

    place: int
    key: str
    value: TextOrDefault
    mark: str
    monitors: int


@dataclass(frozen=True, slots=True)
class Contact:
    """``channels`` are not masked here. Mask them before you show them."""

    id: Id
    name: TextOrDefault
    channels: Annotated[tuple[Pair, ...], Mark.SECRET] = ()
    quiet_start: ClockTime | None = None  # with ``quiet_end``: its alerts wait until then
    quiet_end: ClockTime | None = None
    quiet_zone: str = DEFAULT_QUIET_ZONE  # IANA name of the zone of ``quiet_start``, ``quiet_end``
    default: bool = False  # new monitors of the dashboard start with it
    min_severity: Annotated[str, MinSeverity] = MinSeverity.ALL
    acknowledgements: bool = True  # whether it is notified that somebody acknowledged an incident
    time_zone: str | None = None  # IANA name, of times in its messages; None: the installation's
    # read only
    monitors: int = 0  # how many use it
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
    unreadable: tuple[str, ...] = ()  # ``channels``, if the stored ones cannot be read


@dataclass(frozen=True, slots=True)
class ReportMail:
    """A report on the monitors with ``tag``, or on all, that is sent on the first of each month to
    the email addresses of a contact. ``contact``: its name.
    """

    id: Id
    contact: str
    tag: str | None = None
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
