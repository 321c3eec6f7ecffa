"""Values of the settings table, for the engine, which runs without the stores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import select

from app.db import db, writing
from app.db.tables import SettingRow
from app.db.types import readable
from app.records import Notice


def setting(name: str) -> str | None:
    """One that cannot be read counts as not set."""
    found = db.session.scalar(select(SettingRow.value).where(SettingRow.name == name))
    db.session.rollback()
    return readable(found)


def noticed(name: Notice) -> bool:
    """Whether a notice stands, whatever it says."""
    found = db.session.scalar(select(SettingRow.name).where(SettingRow.name == name))
    db.session.rollback()
    return found is not None


def keep_setting(name: str, value: str | None, now: datetime) -> None:
    """Keep a value in the settings table; None removes it."""
    with writing() as session:
        row = session.get(SettingRow, name)
        if value is None:
            if row is not None:
                session.delete(row)
        else:
            session.merge(SettingRow(name=name, value=value, updated_at=now))


def change_setting(name: str, change: Callable[[str | None], str], now: datetime) -> str:
    """Keep what ``change`` makes of a value in the settings table, and return it."""
    with writing() as session:
        row = session.get(SettingRow, name, with_for_update=True)
        before = readable(row.value) if row is not None else None
        value = change(before)
        if value != before:
            session.merge(SettingRow(name=name, value=value, updated_at=now))
    return value
