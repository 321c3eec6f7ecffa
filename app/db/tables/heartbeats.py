"""Heartbeats: the state that their pings lead to, and the pings. (When processes of Wakeful wrote
that they are alive is in ``service``.)
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.contents import is_runs
from app.db.tables.columns import NEVER_REUSED, Numbered, belongs_to
from app.db.types import CheckedJson, Encrypted, Moment, Unreadable, Word
from app.records import MAX_HEARTBEAT_SLUG, PingKind


class HeartbeatStateRow(Model):
    """The state of a heartbeat for ``app/judge/heartbeat``, and its secret."""

    __tablename__ = "heartbeat_states"

    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True)
    token: Mapped[str | Unreadable] = mapped_column(Encrypted)
    # A keyed hash, by which the heartbeat of a ping is found
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    slug: Mapped[str | None] = mapped_column(String(MAX_HEARTBEAT_SLUG), index=True)
    last_ping_at: Mapped[datetime | None] = mapped_column(Moment)
    # The last success or failure since watching began
    ended_at: Mapped[datetime | None] = mapped_column(Moment)
    expected_at: Mapped[datetime | None] = mapped_column(Moment)
    unknown_until: Mapped[datetime | None] = mapped_column(Moment)
    # [[run id, start in ms, until in ms], ...]
    runs: Mapped[Any] = mapped_column(CheckedJson(is_runs, list))
    fault_code: Mapped[str | None] = mapped_column(String(32))
    fault: Mapped[str | None] = mapped_column(Text)
    fault_since: Mapped[datetime | None] = mapped_column(Moment)
    # The time of its last result, and when the next one is due without a ping
    result_at: Mapped[datetime | None] = mapped_column(Moment)
    due_at: Mapped[datetime | None] = mapped_column(Moment, index=True)


class PingRow(Numbered, Model):
    __tablename__ = "pings"
    __table_args__ = (Index("ix_pings_monitor_id_id", "monitor_id", "id"), NEVER_REUSED)

    monitor_id: Mapped[int] = belongs_to("monitors")
    at: Mapped[datetime] = mapped_column(Moment, index=True)
    kind: Mapped[str] = mapped_column(Word(8, PingKind, PingKind.LOG))
    exit_status: Mapped[int | None] = mapped_column(BigInteger)
    rid: Mapped[str | None] = mapped_column(String(36))
    duration: Mapped[int | None] = mapped_column(BigInteger)  # ms
    method: Mapped[str] = mapped_column(String(16))
    address: Mapped[str | None] = mapped_column(String(64))
    body: Mapped[str | Unreadable | None] = mapped_column(Encrypted)
