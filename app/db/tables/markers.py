"""Markers."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.tables.columns import NEVER_REUSED, Id
from app.db.types import Moment, NamedMoment


class MarkerRow(Model):
    """``tags`` are stored as a monitor's are: each between line breaks."""

    __tablename__ = "markers"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    link: Mapped[str | None] = mapped_column(Text)
    tags: Mapped[str] = mapped_column(Text, default="")
    time: Mapped[datetime] = mapped_column(NamedMoment, index=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)
