"""Places that checks run from. A place is a ``location`` in the API, its columns and its pages
(decision 14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from app.records.marks import Id, Mark, TextOrDefault


class Carrier(StrEnum):
    """How checks get to a place."""

    LOCAL = "local"  # a checker there works on the database
    QUEUE = "queue"
    AGENT = "agent"


def needs_admin(carrier: str, present: str | None) -> bool:
    """Whether only an admin may give a place this carrier: an agent's token opens the secrets of
    the monitors of its place. ``present``: the carrier that it has; None for a new place.
    """
    return carrier == Carrier.AGENT if present is None else carrier != present


class PlaceState(StrEnum):
    ONLINE = "online"
    SILENT = "silent"
    NEVER_SEEN = "never_seen"


class LocationRule(StrEnum):
    """How many places must see a failure for the monitor to be down."""

    ANY = "any"
    MAJORITY = "majority"  # more than half
    ALL = "all"


DEFAULT_PLACE = "default"
DEFAULT_PLACE_ID = 1  # its row always exists
DEFAULT_PLACES = (DEFAULT_PLACE,)  # of a monitor without a choice of places
DELETED_LOCATION = "deleted"  # the place of results whose place is deleted
MAX_LOCATIONS = 50  # of one monitor
MAX_LOCATION = 64  # characters of a name
MAX_LOCATION_LABEL = 80


@dataclass(frozen=True, slots=True)
class Place:
    """A place that checks run from. Only the answer that creates the ``token`` has it."""

    id: Id
    name: TextOrDefault
    label: str | None = None
    carrier: Annotated[str, Carrier] = Carrier.LOCAL
    # read only
    state: Annotated[str, PlaceState] = PlaceState.NEVER_SEEN
    last_seen_at: datetime | None = None
    version: str | None = None
    clock_offset_ms: int | None = None  # how far its clock is ahead of the server's
    checks_per_minute: int | None = None
    monitors: int = 0  # how many are checked from here
    trouble: str | None = None  # why none of its newest checks has a verdict, as a sentence
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    token: Annotated[str | None, Mark.OMIT_EMPTY] = None

    @property
    def title(self) -> str:
        """What people call it."""
        return self.label or self.name


@dataclass(frozen=True, slots=True)
class PlaceSeen:
    """A place of a monitor: its last check, the result of that check while it counts as a vote, and
    the response times of 24 hours, in ms.
    """

    id: Id
    name: TextOrDefault
    label: str | None = None
    state: Annotated[str, PlaceState] = PlaceState.NEVER_SEEN
    checked_at: datetime | None = None
    verdict: str | None = None  # None: no vote
    status_code: int | None = None
    response_time: int | None = None
    cause_code: str | None = None
    cause: str | None = None
    checks: int = 0  # in 24 hours
    average: int | None = None
    slowest: int | None = None

    @property
    def title(self) -> str:
        """What people call it."""
        return self.label or self.name
