"""Names of places. Pure."""

from __future__ import annotations

from app.i18n import N_, _
from app.records import DELETED_LOCATION

NAME_OF_DELETED = N_("Results of deleted places have this name. Choose another one.")


def check_not_deleted(name: str) -> None:
    """Raises ValueError for the name that results of deleted places have."""
    if name == DELETED_LOCATION:
        raise ValueError(_(NAME_OF_DELETED))
