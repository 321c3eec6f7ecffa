"""Places that checks run from: ``location`` in the API."""

from __future__ import annotations

from enum import IntEnum


class Location(IntEnum):
    """Row ids of the ``locations`` table that always exist."""

    DEFAULT = 1


DEFAULT_LOCATIONS = ("default",)  # names, of a monitor that names none
MAX_LOCATIONS = 50  # of one monitor
MAX_LOCATION = 64  # characters of a name
