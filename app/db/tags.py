"""Tags in one column, each between line breaks, so that a whole tag can be found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, not_, or_

from app.db.tables import MonitorRow

# Conditions in one list. SQLite refuses a thousand: fifty windows by tag, and no page was shown.
SIDE_BY_SIDE = 100


def tags_text(tags: Iterable[str]) -> str:
    joined = "\n".join(tags)
    return f"\n{joined}\n" if joined else ""


def tags_of(text: str) -> tuple[str, ...]:
    return tuple(tag for tag in text.split("\n") if tag)


def tagged(tags: Iterable[str]) -> ColumnElement[bool]:
    """SQL condition: a monitor has one of these tags.

    By ``replace``, which tells capitals apart on every database: SQLite's LIKE does not, and would
    find other monitors than the rule in Python.
    """
    column: Any = MonitorRow.__table__.c.tags
    lacks = [func.replace(column, f"\n{tag}\n", "") == column for tag in tags]
    parts = (lacks[start : start + SIDE_BY_SIDE] for start in range(0, len(lacks), SIDE_BY_SIDE))
    return or_(false(), *(not_(and_(*part)) for part in parts))
