"""Stores of records, behind one interface (``base.Store``).

``current_store()`` is the store of this request: the local database, or one of the remote servers.
``current_access()`` manages people and API keys, and ``current_mail()`` sends mails to people; both
are always local.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from flask import current_app
from sqlalchemy.exc import SQLAlchemyError as DatabaseError

from app.db.faults import log_fault, unavailable
from app.stores.base import API_LEVEL, Extent, Store

if TYPE_CHECKING:
    from app.access import Access
    from app.config import Settings
    from app.records import ApiKey
    from app.stores.mail import Mail

__all__ = [
    "API_LEVEL",
    "DatabaseError",
    "Extent",
    "Store",
    "current_access",
    "current_mail",
    "current_settings",
    "current_store",
    "log_fault",
    "store_of_key",
    "unavailable",
]


def current_store() -> Store:
    """The store that views and API handlers work on."""
    store = current_app.extensions["wakeful.store"]
    # Over remote servers, the server that was chosen for this request.
    return cast(Store, getattr(store, "chosen", store))


def store_of_key(key: ApiKey | None) -> Store:
    """The store for this API key. A key that is bound to a tag gets a part of the store."""
    store = current_store()
    if key is None or key.tag is None:
        return store
    from app.stores.local.bound import BoundStore

    return cast(Store, BoundStore(store, key.tag))


def current_access() -> Access:
    """People, roles and API keys of this installation."""
    return cast("Access", current_app.extensions["wakeful.access"])


def current_settings() -> Settings:
    """The settings of this installation in the environment."""
    return cast("Settings", current_app.extensions["wakeful.settings"])


def current_mail() -> Mail:
    """Mails about accounts of this installation."""
    return cast("Mail", current_app.extensions["wakeful.mail"])
