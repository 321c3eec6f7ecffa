"""Maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from app.records.marks import Id, Mark, TextOrDefault

DEFAULT_WINDOW_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """Planned maintenance of ``monitors`` and of the monitors that have one of ``tags`` at the
    time; without both, of all monitors.

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
