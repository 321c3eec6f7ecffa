"""The settings table: what admins set, and what the service stores for itself. Values are
encrypted at rest. Needs an application context.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import bindparam, delete, select

from app.db import cached, db, writing
from app.db.statements import constant, rows_changed
from app.db.tables import SettingRow
from app.db.types import Unreadable, readable
from app.records import Notice

# Built once, and of the table, not of the class: each page runs both.
_SETTING = SettingRow.__table__.c
_VALUE = select(_SETTING.value).where(_SETTING.name == bindparam("name"))
REQUIRED_ROLES = "second_factor_roles"  # the setting of the roles that must have a second factor
_OF_PAGES = select(_SETTING.name, _SETTING.value).where(
    _SETTING.name.in_([*map(constant, Notice), REQUIRED_ROLES])
)


def setting(name: str) -> str | None:
    """The value of a setting, read in a separate transaction. If it cannot be read, it counts as
    not set.
    """
    value = stored_setting(name)
    db.session.rollback()
    return readable(value)


def stored_setting(name: str) -> str | Unreadable | None:
    """The value of a setting as it is stored, in the present transaction."""
    if name == REQUIRED_ROLES:
        return _of_pages().get(name)
    return db.session.scalar(_VALUE, {"name": name})


def _of_pages() -> dict[str, str | Unreadable | None]:
    """The settings that every page needs, in one statement."""
    cache = cached.of_transaction()
    if "settings" not in cache:
        cache["settings"] = dict(db.session.execute(_OF_PAGES).all())
    return cache["settings"]  # type: ignore[no-any-return]


def unreadable_settings() -> frozenset[str]:
    """The names of the settings whose stored value cannot be read."""
    rows = db.session.execute(select(SettingRow.name, SettingRow.value))
    return frozenset(name for name, value in rows if isinstance(value, Unreadable))


def is_notice_set(name: Notice) -> bool:
    """Whether a notice is set, with any value."""
    row = db.session.scalar(select(SettingRow.name).where(SettingRow.name == name))
    db.session.rollback()
    return row is not None


def notices() -> dict[Notice, str]:
    """The notices that every page shows now, with their values."""
    stored = {name: value for name, value in _of_pages().items() if name != REQUIRED_ROLES}
    return {Notice(name): readable(value or "") or "" for name, value in stored.items()}


def store_setting(name: str, value: str | None, now: datetime) -> None:
    """Store a value; None removes it."""
    if value is None:
        remove_setting(name)
    else:
        with writing() as session:
            session.merge(SettingRow(name=name, value=value, updated_at=now))


def remove_setting(name: str) -> bool:
    """Remove a setting; True if it existed. If two processes remove it at the same time, only one
    gets True.
    """
    with writing() as session:
        return rows_changed(session, delete(SettingRow).where(SettingRow.name == name)) > 0


def change_setting(name: str, change: Callable[[str | None], str], now: datetime) -> str:
    """Store what ``change`` returns for the present value (None if not set), and return it."""
    with writing() as session:
        row = session.get(SettingRow, name, with_for_update=True)
        old = readable(row.value) if row is not None else None
        value = change(old)
        if value != old:
            session.merge(SettingRow(name=name, value=value, updated_at=now))
    return value
