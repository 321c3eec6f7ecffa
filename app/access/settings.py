"""What is set on the settings page, or made once by the service and kept. Values are encrypted at
rest.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import delete, select

from app.db import db, writing
from app.db.tables import SettingRow
from app.records import Notice


class SettingsTable:
    clock: Callable[[], datetime]

    def setting(self, name: str) -> str | None:
        """The value kept under ``name``; None when there is none."""
        return db.session.execute(
            select(SettingRow.value).where(SettingRow.name == name)
        ).scalar_one_or_none()

    def notices(self) -> dict[Notice, str]:
        """What every page has to say now, with the value kept under each."""
        rows = db.session.execute(
            select(SettingRow.name, SettingRow.value).where(SettingRow.name.in_(list(Notice)))
        )
        return {Notice(name): value or "" for name, value in rows}

    def set_setting(self, name: str, value: str | None) -> None:
        """Keep ``value`` under ``name``; None removes it."""
        with writing() as session:
            if value is None:
                session.execute(delete(SettingRow).where(SettingRow.name == name))
            else:
                session.merge(SettingRow(name=name, value=value, updated_at=self.clock()))

    def setting_or_make(self, name: str, make: Callable[[], str]) -> str:
        """The value kept under ``name``, made once where it is missing, also when several processes
        ask at once.
        """
        known = self.setting(name)
        if known is not None:
            return known
        with writing() as session:
            row = session.get(SettingRow, name)
            if row is not None and row.value is not None:
                return row.value
            value = make()
            session.merge(SettingRow(name=name, value=value, updated_at=self.clock()))
            return value
