"""The audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.tables.columns import NEVER_REUSED, Folded, Id
from app.db.types import CheckedJson, Moment, Word
from app.records import ActorKind


class AuditRow(Model):
    """One line: who did what to what, and what it changed. It refers to nothing: what it names may
    be deleted, and the line stays.
    """

    __tablename__ = "audit"
    __table_args__ = (
        Index("ix_audit_at_id", "at", "id"),
        Index("ix_audit_action_at_id", "action", "at", "id"),
        Index("ix_audit_actor_kind_at_id", "actor_kind", "at", "id"),
        Index("ix_audit_object_kind_at_id", "object_kind", "at", "id"),
        Index("ix_audit_actor", "actor_kind", "actor_id", "at", "id"),
        Index("ix_audit_object", "object_kind", "object_id", "at", "id"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    at: Mapped[datetime] = mapped_column(Moment)
    actor_kind: Mapped[str] = mapped_column(Word(16, ActorKind, ActorKind.WAKEFUL))
    actor_id: Mapped[int | None] = mapped_column(Id)
    actor_name: Mapped[str] = mapped_column(Text)
    address: Mapped[str | None] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(32))
    object_kind: Mapped[str | None] = mapped_column(String(32))
    object_id: Mapped[int | None] = mapped_column(Id)
    object_name: Mapped[str | None] = mapped_column(Text)
    changes: Mapped[Any] = mapped_column(
        CheckedJson(lambda data: isinstance(data, dict), dict, none_as_null=True)
    )
    # What a search looks in: the names and the address
    words_folded: Mapped[str] = mapped_column(Folded)
