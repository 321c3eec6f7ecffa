"""Markers: deploys and other moments that charts and incidents show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from app.records.marks import Id, Mark, TextOrNone
from app.records.paging import DEFAULT_PAGE_SIZE

MAX_LINK = 2048
MARKERS_KEPT_DAYS = 400
# A marker earlier than this is no likely cause of an incident, and so many are named.
SUSPECTED = timedelta(hours=1)
MARKERS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Marker:
    """A moment at which something was changed: of the monitors that have one of ``tags``, or of all
    if there are none.
    """

    id: Id
    name: TextOrNone
    time: datetime
    link: str | None = None
    tags: tuple[str, ...] = ()
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None


@dataclass(frozen=True, slots=True)
class MarkerQuery:
    """Markers between two times, newest first. ``monitor_id``: only those that concern it."""

    monitor_id: int | None = None
    from_: datetime | None = None
    to: datetime | None = None
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
