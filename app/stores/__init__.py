"""Stores of records, behind one interface (``base.Store``).

``current_store()`` is the store behind this request: the local database, or one of the remote
servers. ``current_access()`` manages people and API keys, and ``current_mail()`` writes to people;
both are always local.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from flask import current_app

from app.stores.base import ADDED_TO_API, Feature, Store

if TYPE_CHECKING:
    from app.access import Access
    from app.stores.mail import Mail

__all__ = ["ADDED_TO_API", "Feature", "Store", "current_access", "current_mail", "current_store"]


def current_store() -> Store:
    """The store that views and API handlers work on."""
    store = current_app.extensions["wakeful.store"]
    # With several remote servers: the one that was chosen for this request.
    return cast(Store, getattr(store, "chosen", store))


def current_access() -> Access:
    """People, roles and API keys of this installation."""
    return cast("Access", current_app.extensions["wakeful.access"])


def current_mail() -> Mail:
    """Mails about accounts of this installation."""
    return cast("Mail", current_app.extensions["wakeful.mail"])
