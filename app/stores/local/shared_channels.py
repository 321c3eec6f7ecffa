"""Channel values that several monitors have as their own, and the contact that replaces them.

Values are encrypted, each with a salt of its own, so equal ones differ in the database. A column
holds the lanes of a monitor's own channels, which are keyed hashes: decrypting the channels of ten
thousand monitors takes a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, select

from app.alerts.outbox import lane, lanes_text, own_channel
from app.alerts.targets import contacts_of, in_order
from app.db import DbSession, db
from app.db.statements import as_stored
from app.db.tables import ContactRow, MonitorContactRow, MonitorRow
from app.db.types import Unreadable
from app.errors import Invalid
from app.i18n import N_, _
from app.records import Pair, SharedChannel

SEVERAL = 3
MARK = 16  # characters of a lane: enough to identify a channel of one monitor
AT_ONCE = 500
CHANGED = N_("This channel was changed or removed meanwhile. Open the monitor again.")


def shared(monitor_id: int) -> Sequence[SharedChannel]:
    """The monitor's own channels that ``SEVERAL`` monitors or more have, itself among them."""
    row = db.session.get(MonitorRow, monitor_id)
    if row is None or isinstance(row.alerts, Unreadable):
        return ()
    channels = []
    for position, (channel, value) in enumerate(row.alerts or ()):
        name = lane(channel, value)
        count = db.session.scalar(select(func.count(MonitorRow.id)).where(own_channel(name))) or 0
        if count >= SEVERAL:
            masked = Pair(channel, value).masked().value
            channels.append(SharedChannel(position, channel, masked, name[:MARK], count))
    return channels


def locked(session: DbSession, monitor_id: int, mark: str) -> tuple[list[str], Sequence[int]]:
    """The monitor's own channel of this mark, and the ids of the monitors that have it, which
    nobody else changes until the transaction ends. Raises Invalid if there is no such channel
    any more.

    To be called before taking turns for contacts, as who changes a monitor does: in another order,
    the two would wait for each other.
    """
    target = _channel(session.get(MonitorRow, monitor_id), mark)
    ids: Sequence[int] = ()
    if target is not None:
        having = select(MonitorRow.id).where(own_channel(lane(*target))).order_by(MonitorRow.id)
        ids = session.scalars(having.with_for_update(key_share=True)).all()
    if target is None or not ids:
        raise Invalid({"mark": [_(CHANGED)]})
    return target, ids


def replace(
    session: DbSession, contact: ContactRow, target: list[str], ids: Sequence[int], now: datetime
) -> None:
    """Replace this channel with ``contact``, which is new, in these monitors."""
    for start in range(0, len(ids), AT_ONCE):
        _replace_in(session, contact, target, ids[start : start + AT_ONCE], now)


def _replace_in(
    session: DbSession, contact: ContactRow, target: list[str], ids: Sequence[int], now: datetime
) -> None:
    rows = session.scalars(
        as_stored(MonitorRow).where(MonitorRow.id.in_(ids)).order_by(MonitorRow.id)
    ).all()
    contacts = contacts_of(session, ids)
    session.execute(delete(MonitorContactRow).where(MonitorContactRow.monitor_id.in_(ids)))
    for row in rows:
        own = [] if isinstance(row.alerts, Unreadable) else list(row.alerts or ())
        # If it was changed before the lock, the monitor keeps what it has.
        merged: list[Any] = in_order(own, contacts.get(row.id, ()))
        if target in merged:
            merged[merged.index(target)] = contact
            merged = [entry for entry in merged if entry != target]
            own = [entry for entry in merged if not isinstance(entry, ContactRow)]
            row.alerts, row.alert_lanes = own or None, lanes_text(own)
            row.updated_at = now
        session.add_all(
            MonitorContactRow(monitor_id=row.id, contact_id=entry.id, position=position)
            for position, entry in enumerate(merged)
            if isinstance(entry, ContactRow)
        )
    session.flush()


def _channel(row: MonitorRow | None, mark: str) -> list[str] | None:
    alerts = () if row is None or isinstance(row.alerts, Unreadable) else row.alerts or ()
    return next((pair for pair in alerts if lane(*pair)[:MARK] == mark), None)
