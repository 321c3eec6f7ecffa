"""Maintenance windows."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.tables.columns import NEVER_REUSED, Id, belongs_to
from app.db.types import Moment, NamedMoment, Word
from app.records import DEFAULT_WINDOW_ZONE
from app.rules.recurrence import ONCE, is_repeat
from app.rules.time import is_zone


class MaintenanceWindowRow(Model):
    __tablename__ = "maintenance_windows"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    start_at: Mapped[datetime] = mapped_column(NamedMoment)
    end_at: Mapped[datetime] = mapped_column(NamedMoment)
    repeat: Mapped[str] = mapped_column(Word(None, is_repeat, ONCE), default=ONCE)
    repeat_until: Mapped[datetime | None] = mapped_column(NamedMoment)
    zone: Mapped[str] = mapped_column(
        Word(64, is_zone, DEFAULT_WINDOW_ZONE),
        default=DEFAULT_WINDOW_ZONE,
        server_default=DEFAULT_WINDOW_ZONE,
    )
    # As a monitor's: "\nprod\napi\n". The window is for the monitors that have one of them now.
    tags: Mapped[str] = mapped_column(Text, default="", server_default="")
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class MaintenanceWindowMonitorRow(Model):
    __tablename__ = "maintenance_window_monitors"

    window_id: Mapped[int] = belongs_to("maintenance_windows", primary_key=True)
    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True, index=True)
