"""Contacts, and the monthly reports that they get."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.contents import is_pairs
from app.db.tables.columns import NEVER_REUSED, Clock, Folded, Id, belongs_to
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
    """A contact among a monitor's alerts. ``position``: its index in that list."""

    __tablename__ = "monitor_contacts"

    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True)
    contact_id: Mapped[int] = belongs_to("contacts", primary_key=True, index=True)
    position: Mapped[int] = mapped_column(Bounded(0, 32_767, 0, small=True))


class ReportMailRow(Model):
    __tablename__ = "report_mails"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    contact_id: Mapped[int] = belongs_to("contacts", index=True)
    tag: Mapped[str | None] = mapped_column(Text)  # null: all monitors
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class ReportMailSentRow(Model):
    """A month whose report was sent. Its key is the lock: whoever inserts the row sends the report,
    in the same transaction, once, whatever the clock does.
    """

    __tablename__ = "report_mails_sent"

    report_mail_id: Mapped[int] = belongs_to("report_mails", primary_key=True)
    month: Mapped[str] = mapped_column(String(7), primary_key=True)  # 2026-11
    at: Mapped[datetime] = mapped_column(Moment)
