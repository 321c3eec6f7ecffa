"""Values that an admin sets on the settings page, or that the service creates once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from app.access import actors, audit, audited
from app.db import settings, writing
from app.db.types import Unreadable, readable
from app.errors import Conflict
from app.i18n import _
from app.records import Notice, ObjectKind, Thing


class StoredSettings:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def get(self, name: str) -> str | None:
        """The value stored under ``name``, or None. An unreadable value counts as not set:
        ``unreadable`` names it.
        """
        return readable(settings.stored_setting(name))

    def unreadable(self) -> frozenset[str]:
        """The names of the settings whose stored value cannot be read."""
        return settings.unreadable_settings()

    def notices(self) -> dict[Notice, str]:
        """The notices that every page shows now, with the value stored under each."""
        return settings.notices()

    def set(self, name: str, value: str | None) -> None:
        """Store ``value`` under ``name``; None removes it."""
        with writing() as session:
            before = self.get(name)
            settings.keep_setting(name, value, self.clock())
            if name in audited.SETTINGS and actors.actor() is not None:
                changes = audited.SETTINGS[name](before, value)
                audit.changed(session, Thing(ObjectKind.SETTING, None, name), changes)

    def get_or_make(self, name: str, make: Callable[[], str]) -> str:
        """The value stored under ``name``. If there is none it is made, once, even if several
        processes ask at the same time. Raises Conflict for an unreadable value, because it
        is in use elsewhere.
        """
        stored = _usable(name)
        if stored is not None:
            return stored
        with writing():
            stored = _usable(name)
            if stored is not None:
                return stored
            value = make()
            self.set(name, value)
            return value


def _usable(name: str) -> str | None:
    kept = settings.stored_setting(name)
    if isinstance(kept, Unreadable):
        raise Conflict(
            _(
                "The stored setting %(name)s cannot be read, because %(why)s.",
                name=name,
                why=_(kept.why),
            )
        )
    return kept
