"""Which markers concern a monitor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, func, or_, select

from app.db import AnySession
from app.db.tables import MarkerRow
from app.records import MARKERS_NAMED, SUSPECTED


def concerns(tags: str) -> ColumnElement[bool]:
    """SQL condition: the marker has no tags, or one of ``tags``, stored as a monitor's are."""
    return or_(MarkerRow.tags == "", *(_has(tag) for tag in tags.split("\n") if tag))


def _has(tag: str) -> ColumnElement[bool]:
    """``replace`` and not LIKE, which ignores case in SQLite and not in PostgreSQL."""
    return func.replace(MarkerRow.tags, f"\n{tag}\n", "") != MarkerRow.tags


def shortly_before(session: AnySession, tags: str, moment: datetime) -> Sequence[MarkerRow]:
    """The markers that may have to do with what began at ``moment``, the nearest first."""
    return session.scalars(
        select(MarkerRow)
        .where(MarkerRow.time >= moment - SUSPECTED, MarkerRow.time <= moment, concerns(tags))
        .order_by(MarkerRow.time.desc(), MarkerRow.id.desc())
        .limit(MARKERS_NAMED)
    ).all()
