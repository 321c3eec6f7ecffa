"""Maintenance windows, and markers: deploys and other moments that charts and incidents show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from app.records.marks import Id, Mark, TextOrDefault
from app.records.paging import DEFAULT_PAGE_SIZE

DEFAULT_WINDOW_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """Planned maintenance of ``monitors`` and of the monitors that have one of ``tags`` at the
    time. A window without monitors and tags is for all monitors.

    ``repeat`` is a word or a cron line, in the time zone ``zone`` (an IANA name).
    """

    id: Id
    name: TextOrDefault
    start_at: datetime
    end_at: datetime
    monitors: tuple[int, ...] = ()
    repeat: TextOrDefault = "none"
    repeat_until: datetime | None = None
    zone: TextOrDefault = DEFAULT_WINDOW_ZONE
    tags: tuple[str, ...] = ()
    public: bool = False  # status pages show its times, ``public_name`` and ``public_text``
    public_name: str | None = None
    public_text: str | None = None
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
    unreadable: tuple[str, ...] = ()  # fields that cannot be read; with one, it never applies


# --- Markers

MAX_LINK = 2048
MARKERS_KEPT_DAYS = 400
# A marker within this time before an incident may be its cause. An incident names a few of them.
LIKELY_CAUSE_WITHIN = timedelta(hours=1)
MAX_MARKERS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Marker:
    """The time of a change, such as a deploy, to the monitors with one of ``tags``; without tags,
    to all monitors.
    """

    id: Id
    name: TextOrDefault
    time: datetime
    link: str | None = None
    tags: tuple[str, ...] = ()
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None


@dataclass(frozen=True, slots=True)
class MarkerQuery:
    """Markers between two times, newest first. ``monitor_id``: only markers that concern it."""

    monitor_id: int | None = None
    from_: datetime | None = None
    to: datetime | None = None
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
