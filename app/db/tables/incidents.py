"""Incidents, and the markers that may explain them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column, validates

from app.db import Model
from app.db.contents import is_evidence, is_gaps, is_texts
from app.db.tables.columns import NEVER_REUSED, UNSEEN, Folded, Numbered, belongs_to, partial_index
from app.db.types import CheckedJson, EncryptedJson, EnteredMoment, Moment, Word
from app.records import IncidentSeverity


class IncidentRow(Numbered, Model):
    __tablename__ = "incidents"
    __table_args__ = (
        # A monitor has at most one open incident, even if two processes open one at the same time.
        partial_index("uq_incidents_open", "monitor_id", where="ended_at IS NULL", unique=True),
        Index("ix_incidents_monitor_started", "monitor_id", "started_at"),
        # Each list of monitors reads the newest incident found late of each; there are few.
        partial_index("ix_incidents_found_late", "monitor_id", "ended_at",
                      where="found_late = 1", postgresql="found_late"),
        NEVER_REUSED,
    )  # fmt: skip

    monitor_id: Mapped[int] = belongs_to("monitors")
    started_at: Mapped[datetime] = mapped_column(Moment, index=True)
    acknowledged_at: Mapped[datetime | None] = mapped_column(Moment)
    acknowledged_by: Mapped[str | None] = mapped_column(Text)
    ended_at: Mapped[datetime | None] = mapped_column(Moment, index=True)
    cause: Mapped[str | None] = mapped_column(Text)
    cause_folded: Mapped[str | None] = mapped_column(Folded)
    cause_code: Mapped[str | None] = mapped_column(String(32), info=UNSEEN)
    comment: Mapped[str | None] = mapped_column(Text)
    evidence: Mapped[Any | None] = mapped_column(
        EncryptedJson(is_evidence), deferred=True, info=UNSEEN
    )
    severity: Mapped[str] = mapped_column(
        Word(16, IncidentSeverity, IncidentSeverity.DOWN),
        default=IncidentSeverity.DOWN,
        server_default=IncidentSeverity.DOWN.value,
        info=UNSEEN,
    )
    # When a degraded incident became down; null for any other
    down_since: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    by_hand: Mapped[bool] = mapped_column(default=False, info=UNSEEN)
    # only late results show it: it had ended when it was stored
    found_late: Mapped[bool] = mapped_column(default=False, server_default=false(), info=UNSEEN)
    # null, "maintenance", "false_alarm"
    classification: Mapped[str | None] = mapped_column(String(16))
    # A word of ``records.Ending``. Null while it is open, if it ended before revision 0030, or if
    # it was found late and no person has set its end
    ending: Mapped[str | None] = mapped_column(String(16), info=UNSEEN)
    # [title, ...] of the places in ``evidence`` that saw it, for lists, which do not read evidence
    seen_by: Mapped[Any | None] = mapped_column(
        CheckedJson(is_texts, list, none_as_null=True), info=UNSEEN
    )
    reminded_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    # [{"from": time, "to": time}, ...]: meanwhile nothing was watched
    unwatched: Mapped[Any | None] = mapped_column(
        CheckedJson(is_gaps, list, none_as_null=True), info=UNSEEN
    )
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)

    @validates("cause")
    def _fold(self, _key: str, cause: str | None) -> str | None:
        self.cause_folded = cause and cause.casefold()
        return cause


# --- markers


class MarkerRow(Numbered, Model):
    """``tags`` are stored like those of a monitor: each between line breaks."""

    __tablename__ = "markers"

    name: Mapped[str] = mapped_column(Text)
    link: Mapped[str | None] = mapped_column(Text)
    tags: Mapped[str] = mapped_column(Text, default="")
    time: Mapped[datetime] = mapped_column(EnteredMoment, index=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)
