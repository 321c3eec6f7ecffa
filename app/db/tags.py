"""Tags of monitors and markers, and notes of monitors.

The tags are in one column, each between line breaks, so that SQL can find a whole tag. They decide
which markers concern a monitor. Notes are read here because no list of monitors loads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, false, func, not_, or_, select

from app.db import AnySession
from app.db.statements import pieces
from app.db.tables import MarkerRow, MonitorRow
from app.records import LIKELY_CAUSE_WITHIN, MAX_MARKERS_NAMED

# The most conditions in one AND or OR: SQLite refuses a thousand.
SIDE_BY_SIDE = 100


def notes_of(session: AnySession, ids: Collection[int]) -> dict[int, str]:
    """The notes of these monitors, by id, empty ones too."""
    columns = MonitorRow.__table__.c
    rows = session.execute(select(columns.id, columns.notes).where(columns.id.in_(ids)))
    return {row.id: row.notes for row in rows}


def tags_text(tags: Iterable[str]) -> str:
    joined = "\n".join(tags)
    return f"\n{joined}\n" if joined else ""


def tags_of(text: str) -> tuple[str, ...]:
    return tuple(tag for tag in text.split("\n") if tag)


def _lacks(column: Any, tag: str) -> ColumnElement[bool]:
    """The condition that the column does not have the tag. ``replace`` is case-sensitive on every
    database; SQLite's LIKE is not, and would find other monitors than Python does.
    """
    condition: ColumnElement[bool] = func.replace(column, f"\n{tag}\n", "") == column
    return condition


def tagged(tags: Iterable[str]) -> ColumnElement[bool]:
    """The condition that a monitor has one of these tags."""
    lacks = [_lacks(MonitorRow.__table__.c.tags, tag) for tag in tags]
    return or_(false(), *(not_(and_(*part)) for part in pieces(lacks, SIDE_BY_SIDE)))


# --- Which markers concern a monitor

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
    """The condition that a marker has no tags, or one of a monitor's ``tags`` (the column)."""
    return or_(MarkerRow.tags == "", *(not_(_lacks(MarkerRow.tags, tag)) for tag in tags_of(tags)))


def suspected(session: AnySession, moments: Collection[datetime]) -> Sequence[MarkerRow]:
    """The possible causes of changes at these moments: markers shortly before, the newest first."""
    if not moments:
        return ()
    return session.scalars(
        _BETWEEN, {"first": min(moments) - LIKELY_CAUSE_WITHIN, "last": max(moments)}
    ).all()


def shortly_before(
    markers: Sequence[MarkerRow], tags: str, moment: datetime
) -> Sequence[MarkerRow]:
    """The markers of ``suspected`` shortly before ``moment`` that concern a monitor with these
    ``tags``, the nearest first.
    """
    texts = [tags_text([tag]) for tag in tags_of(tags)]
    near = (
        marker
        for marker in markers
        if moment - LIKELY_CAUSE_WITHIN <= marker.time <= moment
        and (not marker.tags or any(tag in marker.tags for tag in texts))
    )
    return list(islice(near, MAX_MARKERS_NAMED))
