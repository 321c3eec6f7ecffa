"""Maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from app.records.marks import Id, Mark, TextOrNone

DEFAULT_WINDOW_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """A planned maintenance of some monitors: those listed, and those that have one of ``tags``
    when it is asked; neither listed nor tagged: all.

    ``repeat`` is a word or a cron line, in the time zone ``zone`` (an IANA name).
    """

    id: Id
    name: TextOrNone
    start_at: datetime
    end_at: datetime
    monitors: tuple[int, ...] = ()
    repeat: TextOrNone = "none"
    repeat_until: datetime | None = None
    zone: TextOrNone = DEFAULT_WINDOW_ZONE
    tags: tuple[str, ...] = ()
    public: bool = False  # status pages show it, by these two and its times
    public_name: str | None = None
    public_text: str | None = None
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
    unreadable: tuple[str, ...] = ()  # fields stored so that nobody can read them: it never applies
