"""Contacts, and the monitors that use them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.contents import is_pairs
from app.db.tables.columns import NEVER_REUSED, Clock, Folded, Id
from app.db.types import Bounded, EncryptedJson, Moment, Unreadable, Word
from app.records import DEFAULT_QUIET_ZONE, MinSeverity


class ContactRow(Model):
    __tablename__ = "contacts"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_folded: Mapped[str] = mapped_column(Folded, unique=True)
    # [[channel, value], ...]
    channels: Mapped[list[list[str]] | Unreadable | None] = mapped_column(EncryptedJson(is_pairs))
    quiet_start: Mapped[str | None] = mapped_column(Clock)  # HH:MM
    quiet_end: Mapped[str | None] = mapped_column(Clock)
    quiet_zone: Mapped[str] = mapped_column(String(64), default=DEFAULT_QUIET_ZONE)
    default: Mapped[bool] = mapped_column("is_default", default=False)
    min_severity: Mapped[str] = mapped_column(
        Word(8, MinSeverity, MinSeverity.ALL), default=MinSeverity.ALL.value
    )
    acknowledgements: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class MonitorContactRow(Model):
    """A contact among a monitor's alerts. ``position``: its place in that list."""

    __tablename__ = "monitor_contacts"

    monitor_id: Mapped[int] = mapped_column(
        Id, ForeignKey("monitors.id", ondelete="CASCADE"), primary_key=True
    )
    contact_id: Mapped[int] = mapped_column(
        Id, ForeignKey("contacts.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    position: Mapped[int] = mapped_column(Bounded(0, 32_767, 0, small=True))
