"""Status pages, what people write on them, and who subscribed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.tables.columns import NEVER_REUSED, Id
from app.db.types import Moment


class StatusPageRow(Model):
    __tablename__ = "status_pages"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    slug: Mapped[str] = mapped_column(String(255), unique=True)
    description: Mapped[str | None] = mapped_column(Text)
    visibility: Mapped[str] = mapped_column(String(16), default="public")
    password_hash: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class StatusPageMonitorRow(Model):
    __tablename__ = "status_page_monitors"

    status_page_id: Mapped[int] = mapped_column(
        Id, ForeignKey("status_pages.id", ondelete="CASCADE"), primary_key=True
    )
    monitor_id: Mapped[int] = mapped_column(
        Id, ForeignKey("monitors.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    position: Mapped[int]
    group: Mapped[str | None] = mapped_column(Text)
