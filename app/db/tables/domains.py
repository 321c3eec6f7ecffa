"""Registrable domains."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.types import Moment, NamedMoment


class DomainRow(Model):
    """A registrable domain's expiry, asked at most once a day however many monitors share it."""

    __tablename__ = "domains"

    domain: Mapped[str] = mapped_column(Text, primary_key=True)
    expires_at: Mapped[datetime | None] = mapped_column(NamedMoment)
    asked_at: Mapped[datetime | None] = mapped_column(Moment)
    source: Mapped[str | None] = mapped_column(String(8))
    note: Mapped[str | None] = mapped_column(Text)
