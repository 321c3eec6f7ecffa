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
        # The guard behind "at most one open incident per monitor": no race between processes gets
        # past it.
        partial_index("uq_incidents_open", "monitor_id", where="ended_at IS NULL", unique=True),
        Index("ix_incidents_monitor_started", "monitor_id", "started_at"),
        # Few: each list of monitors asks for the newest of each.
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
    # When one that was degraded became down; null for any other
    down_since: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    by_hand: Mapped[bool] = mapped_column(default=False, info=UNSEEN)
    # only results that came late show it: it opened as one that has ended
    found_late: Mapped[bool] = mapped_column(default=False, server_default=false(), info=UNSEEN)
    # null, "maintenance", "false_alarm"
    classification: Mapped[str | None] = mapped_column(String(16))
    # "recovered", "silence", "person", "pause"; null while open, of one that ended before 0030, and
    # of one found late whose end nobody has set
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
#
# Markers.


class MarkerRow(Numbered, Model):
    """``tags`` are stored as a monitor's are: each between line breaks."""

    __tablename__ = "markers"

    name: Mapped[str] = mapped_column(Text)
    link: Mapped[str | None] = mapped_column(Text)
    tags: Mapped[str] = mapped_column(Text, default="")
    time: Mapped[datetime] = mapped_column(EnteredMoment, index=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)
