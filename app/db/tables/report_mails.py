"""Monthly reports by email, and which were sent."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.tables.columns import NEVER_REUSED, Id
from app.db.types import Moment


class ReportMailRow(Model):
    __tablename__ = "report_mails"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    contact_id: Mapped[int] = mapped_column(
        Id, ForeignKey("contacts.id", ondelete="CASCADE"), index=True
    )
    tag: Mapped[str | None] = mapped_column(Text)  # null: all monitors
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class ReportMailSentRow(Model):
    """A month whose report was sent. Its key is the lock: whoever inserts the row sends the report,
    in the same transaction, once, whatever the clock does.
    """

    __tablename__ = "report_mails_sent"

    report_mail_id: Mapped[int] = mapped_column(
        Id, ForeignKey("report_mails.id", ondelete="CASCADE"), primary_key=True
    )
    month: Mapped[str] = mapped_column(String(7), primary_key=True)  # 2026-11
    at: Mapped[datetime] = mapped_column(Moment)
