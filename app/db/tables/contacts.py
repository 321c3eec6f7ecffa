"""Contacts, the monthly reports that they get, and the outbox of messages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column, validates

from app.db import Model
from app.db.contents import is_attempts, is_facts, is_ids, is_pairs
from app.db.tables.columns import (
    NEVER_REUSED,
    UNSEEN,
    Clock,
    Folded,
    Id,
    Numbered,
    belongs_to,
    partial_index,
)
from app.db.types import Bounded, CheckedJson, Encrypted, EncryptedJson, Moment, Unreadable, Word
from app.records import DEFAULT_QUIET_ZONE, MinSeverity
from app.rules.natural import natural_key
from app.rules.time import is_zone


class ContactRow(Numbered, Model):
    __tablename__ = "contacts"

    name: Mapped[str] = mapped_column(Text)
    name_folded: Mapped[str] = mapped_column(Folded, unique=True)
    name_natural: Mapped[str] = mapped_column(Folded, server_default="", info=UNSEEN)
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
    time_zone: Mapped[str | None] = mapped_column(Word(64, is_zone, "UTC"))
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)

    @validates("name")
    def _fold(self, _key: str, text: str) -> str:
        self.name_folded, self.name_natural = text.casefold(), natural_key(text)
        return text


class MonitorContactRow(Model):
    """A contact among a monitor's alerts. ``position``: its index in that list."""

    __tablename__ = "monitor_contacts"

    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True)
    contact_id: Mapped[int] = belongs_to("contacts", primary_key=True, index=True)
    position: Mapped[int] = mapped_column(Bounded(0, 32_767, 0, small=True))


class ReportMailRow(Numbered, Model):
    __tablename__ = "report_mails"

    contact_id: Mapped[int] = belongs_to(
        "contacts", fk="fk_report_mails_contact_id_contacts", index=True
    )
    tag: Mapped[str | None] = mapped_column(Text)  # null: all monitors
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class ReportMailSentRow(Model):
    """A month whose report was sent. The process that inserts the row writes the report's messages
    in the same transaction. The key is unique, so the report is sent once, even if the clock is
    set.
    """

    __tablename__ = "report_mails_sent"

    report_mail_id: Mapped[int] = belongs_to(
        "report_mails", fk="fk_report_mails_sent_report_mail_id_report_mails", primary_key=True
    )
    month: Mapped[str] = mapped_column(String(7), primary_key=True)  # 2026-11
    at: Mapped[datetime] = mapped_column(Moment)


class DeliveryRow(Numbered, Model):
    """The outbox and the delivery log in one: a message to one channel value, with its attempts."""

    __tablename__ = "deliveries"
    __table_args__ = (
        partial_index("ix_deliveries_pending", "next_attempt_at", where="status = 'pending'"),
        Index("ix_deliveries_lane", "lane", "status"),
        # Rows that wait for the end of quiet hours, and rows that failed: few among many.
        partial_index("ix_deliveries_waiting", "monitor_id",
                      where="status = 'held' AND next_attempt_at IS NOT NULL"),
        partial_index("ix_deliveries_failed", "lane", "id", where="status = 'failed'"),
        NEVER_REUSED,
    )  # fmt: skip

    message_id: Mapped[str] = mapped_column(String(40), unique=True)  # the same on every attempt
    event: Mapped[str] = mapped_column(String(32))
    monitor_id: Mapped[int | None] = belongs_to("monitors", index=True)
    incident_id: Mapped[int | None] = belongs_to("incidents", index=True)
    # The subscriber, if the message is about a status page's post; null for an alert
    subscriber_id: Mapped[int | None] = mapped_column(Id, index=True)
    channel: Mapped[str] = mapped_column(String(16))
    value: Mapped[str | Unreadable] = mapped_column(Encrypted)
    # The contacts that it is for, and 0 if the monitor's own alerts name the value: ",0,7,". Null:
    # only the monitor's own alerts
    sources: Mapped[str | None] = mapped_column(Word(None, is_ids, ""))
    lane: Mapped[str] = mapped_column(String(32))  # keyed hash of channel and value
    # The facts of the message, as they were when it was written
    facts: Mapped[Any] = mapped_column(EncryptedJson(is_facts))
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str | None] = mapped_column(Text)
    attempts: Mapped[Any] = mapped_column(CheckedJson(is_attempts, list), default=list)
    # The grouped message that contains this one
    covered_by: Mapped[int | None] = mapped_column(Id, index=True)
    lease_until: Mapped[datetime | None] = mapped_column(Moment)
    lease_token: Mapped[str | None] = mapped_column(String(32))
    created_at: Mapped[datetime] = mapped_column(Moment, index=True)
    next_attempt_at: Mapped[datetime | None] = mapped_column(Moment)
    delivered_at: Mapped[datetime | None] = mapped_column(Moment)
