"""Which markers concern a monitor."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import islice

from sqlalchemy import ColumnElement, bindparam, func, or_, select

from app.db import AnySession
from app.db.tables import MarkerRow
from app.db.tags import tags_of, tags_text
from app.records import MARKERS_NAMED, SUSPECTED

_MOMENT = MarkerRow.time.type
_BETWEEN = (
    select(MarkerRow)
    .where(
        MarkerRow.time >= bindparam("first", type_=_MOMENT),
        MarkerRow.time <= bindparam("last", type_=_MOMENT),
    )
    .order_by(MarkerRow.time.desc(), MarkerRow.id.desc())
)


def concerns(tags: str) -> ColumnElement[bool]:
    """SQL condition: the marker has no tags, or one of ``tags``, stored as a monitor's are."""
    return or_(MarkerRow.tags == "", *(_has(tag) for tag in tags.split("\n") if tag))


def _has(tag: str) -> ColumnElement[bool]:
    """``replace`` and not LIKE, which ignores case in SQLite and not in PostgreSQL."""
    return func.replace(MarkerRow.tags, f"\n{tag}\n", "") != MarkerRow.tags


def suspected(session: AnySession, moments: Collection[datetime]) -> Sequence[MarkerRow]:
    """The markers that may have to do with what began at one of these moments, the newest first."""
    if not moments:
        return ()
    return session.scalars(
        _BETWEEN, {"first": min(moments) - SUSPECTED, "last": max(moments)}
    ).all()


def shortly_before(found: Sequence[MarkerRow], tags: str, moment: datetime) -> Sequence[MarkerRow]:
    """Those of ``suspected`` that may have to do with what began at ``moment`` in a monitor with
    these ``tags``, the nearest first.
    """
    wanted = [tags_text([tag]) for tag in tags_of(tags)]
    near = (
        one
        for one in found
        if moment - SUSPECTED <= one.time <= moment
        and (not one.tags or any(tag in one.tags for tag in wanted))
    )
    return list(islice(near, MARKERS_NAMED))
