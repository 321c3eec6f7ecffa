"""What is set on the settings page, or made once by the service and kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from app.db import settings, writing
from app.db.types import Unreadable, readable
from app.errors import Conflict
from app.records import Notice


class SettingsTable:
    clock: Callable[[], datetime]

    def setting(self, name: str) -> str | None:
        """The value kept under ``name``; None when there is none. One that cannot be read counts as
        not set: ``unreadable_settings`` names it.
        """
        return readable(settings.stored_setting(name))

    def unreadable_settings(self) -> frozenset[str]:
        """The names of the settings whose stored value cannot be read."""
        return settings.unreadable_settings()

    def notices(self) -> dict[Notice, str]:
        """What every page has to say now, with the value kept under each."""
        return settings.notices()

    def set_setting(self, name: str, value: str | None) -> None:
        """Keep ``value`` under ``name``; None removes it."""
        settings.keep_setting(name, value, self.clock())

    def setting_or_make(self, name: str, make: Callable[[], str]) -> str:
        """The value kept under ``name``, made once where it is missing, also when several processes
        ask at once. Raises Conflict for one that cannot be read: what it was is in use elsewhere.
        """
        known = _usable(name)
        if known is not None:
            return known
        with writing():
            known = _usable(name)
            if known is not None:
                return known
            value = make()
            self.set_setting(name, value)
            return value


def _usable(name: str) -> str | None:
    kept = settings.stored_setting(name)
    if isinstance(kept, Unreadable):
        raise Conflict(f"The stored setting {name} cannot be read, because {kept.why}.")
    return kept
