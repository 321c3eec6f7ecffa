"""What stands on every page while it holds."""

from __future__ import annotations

from enum import StrEnum


class Notice(StrEnum):
    """What stands on every page while it holds: names of rows of the ``settings`` table."""

    NETWORK_DOWN = "notice.network_down"  # the value: since when
    DEMO = "notice.demo"


LAST_BACKUP = "backup.last"  # the setting with the time of the last backup, as ISO 8601
