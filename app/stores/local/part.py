"""The base class of the local store's collections."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from app.db import DbSession, Model, db, rollups
from app.db.tables import MonitorRow
from app.errors import Invalid, NotFound
from app.i18n import _
from app.stores.base import Store
from app.stores.local.search import fits

R = TypeVar("R", bound=Model)


class Part:
    """``store``: the store that the collection belongs to, whose clock it uses."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def now(self) -> datetime:
        return self.store.now()


def found_row(session: DbSession, of: type[R], kind: str, id: int, *, anew: bool = True) -> R:
    """The row with this id. ``anew``: as it is now, also where the session has loaded it before.
    ``kind``: the word of NotFound, which this raises.
    """
    row = session.get(of, id, populate_existing=anew) if fits(id) else None
    if row is None:
        raise NotFound(kind, id)
    return row


def locked_row(
    session: DbSession, of: type[R], kind: str, id: int, *, key_share: bool = False
) -> R:
    """The row with this id as it is now, which nobody else changes until the transaction ends, nor
    refers to unless ``key_share``. Raises NotFound.
    """
    row = None
    if fits(id):
        columns: Any = of
        row = session.scalar(
            select(of)
            .where(columns.id == id)
            .with_for_update(key_share=key_share)
            .execution_options(populate_existing=True)
        )
    if row is None:
        raise NotFound(kind, id)
    return row


def named_once(write: Callable[[], Any], taken: str) -> Any:
    """``write``, where another record may have the name already: Invalid says ``taken`` then."""
    try:
        return write()
    except IntegrityError:
        db.session.rollback()
        raise Invalid({"name": [_(taken)]}) from None


def require_monitor(id: int) -> Any:
    """Raises NotFound; for what needs no more of the monitor than that it is there. The row that
    statistics need of it, so that nothing is read twice where they are asked for next.
    """
    found = rollups.monitor_of(id) if fits(id) else None
    if found is None:
        raise NotFound("monitor", id)
    return found


def found_monitor(session: DbSession, id: int) -> MonitorRow:
    """Raises NotFound."""
    return found_row(session, MonitorRow, "monitor", id, anew=False)


def changing_monitor(session: DbSession, id: int) -> MonitorRow:
    """The monitor as it is now, which nobody else changes until the transaction ends. Raises
    NotFound.

    Whoever changes or deletes a monitor locks its row before its state: in another order, two of
    them would wait for each other. The lock lets others refer to the monitor, as the engine does,
    which has its state locked then.
    """
    return locked_row(session, MonitorRow, "monitor", id, key_share=True)
