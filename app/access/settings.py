"""What is set on the settings page, or made once by the service and kept. Values are encrypted at
rest.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import delete, select

from app.db import db, writing
from app.db.tables import SettingRow
from app.db.types import Unreadable, readable
from app.errors import Conflict
from app.records import Notice


class SettingsTable:
    clock: Callable[[], datetime]

    def setting(self, name: str) -> str | None:
        """The value kept under ``name``; None when there is none. One that cannot be read counts as
        not set: ``unreadable_settings`` names it.
        """
        return readable(self._kept(name))

    def _kept(self, name: str) -> str | Unreadable | None:
        return db.session.execute(
            select(SettingRow.value).where(SettingRow.name == name)
        ).scalar_one_or_none()

    def unreadable_settings(self) -> frozenset[str]:
        """The names of the settings whose stored value cannot be read."""
        rows = db.session.execute(select(SettingRow.name, SettingRow.value))
        return frozenset(name for name, value in rows if isinstance(value, Unreadable))

    def notices(self) -> dict[Notice, str]:
        """What every page has to say now, with the value kept under each."""
        rows = db.session.execute(
            select(SettingRow.name, SettingRow.value).where(SettingRow.name.in_(list(Notice)))
        )
        return {Notice(name): readable(value or "") or "" for name, value in rows}

    def set_setting(self, name: str, value: str | None) -> None:
        """Keep ``value`` under ``name``; None removes it."""
        with writing() as session:
            if value is None:
                session.execute(delete(SettingRow).where(SettingRow.name == name))
            else:
                session.merge(SettingRow(name=name, value=value, updated_at=self.clock()))

    def setting_or_make(self, name: str, make: Callable[[], str]) -> str:
        """The value kept under ``name``, made once where it is missing, also when several processes
        ask at once. Raises Conflict for one that cannot be read: what it was is in use elsewhere.
        """
        known = self._usable(name)
        if known is not None:
            return known
        with writing():
            known = self._usable(name)
            if known is not None:
                return known
            value = make()
            self.set_setting(name, value)
            return value

    def _usable(self, name: str) -> str | None:
        kept = self._kept(name)
        if isinstance(kept, Unreadable):
            raise Conflict(f"The stored setting {name} cannot be read, because {kept.why}.")
        return kept
