"""Contacts in the local database, and the monitors that use them (decision 13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import bindparam, delete, func, select

from app.access import audit
from app.alerts import by_hand
from app.alerts.outbox import has_own_channel, lane_of, lanes_text
from app.alerts.targets import contact_positions, contacts_of, merge_contacts
from app.db import DbSession, db, locks, writing
from app.db.statements import bulk_insert, pieces, select_fresh
from app.db.tables import ContactRow, MonitorContactRow, MonitorRow, ReportMailRow
from app.db.types import Unreadable, readable, record_of, unreadable_in
from app.errors import Conflict, Invalid, NotFound
from app.forms.alert_lists import no_contact
from app.i18n import N_, _
from app.records import CONTACT, Contact, PageQuery, Pair, SharedChannel
from app.rules.cross_field import quiet_hours
from app.stores import base
from app.stores.base import Fields
from app.stores.local.part import (
    LocalCollection,
    counted_by,
    fits,
    fitting,
    lock_row,
    refusing_taken_name,
)

IN_USE = N_(
    "Monitors use this contact. Replace it with another one (replace_with), or delete it anyway "
    "(force)."
)
ITSELF = N_("This is the contact that is to be deleted. Name another one.")
MAX_NAMED = 500  # monitors that a refusal names


_CONTACT = ContactRow.__table__
# Built once, and of the table, because each list of monitors runs it.
_NAMES = select(_CONTACT.c.name).order_by(_CONTACT.c.name_natural, _CONTACT.c.id)


class LocalContacts(LocalCollection[Contact, PageQuery], base.Contacts):
    order = (ContactRow.name_natural, ContactRow.id)

    def records(self, ids: Sequence[int]) -> Sequence[Contact]:
        counts = counted_by(MonitorContactRow.contact_id, ids)
        return [
            record_of(
                Contact,
                row,
                channels=pairs_of(readable(row.channels)),
                monitors=counts[row.id],
                unreadable=tuple(unreadable_in(row, ("channels",))),
            )
            for row in self.rows(ids)
        ]

    def columns(self, session: DbSession, id: int | None, fields: Fields) -> dict[str, Any]:
        columns = dict(fields)
        if "name" in columns:
            columns["name"] = columns["name"].strip()
        if "channels" in columns:
            columns["channels"] = [[pair.key, pair.value] for pair in columns["channels"]]
        return columns

    def check(self, session: DbSession, row: ContactRow) -> None:
        """Validate the row again, because two valid updates may combine into an invalid contact."""
        if faults := quiet_hours(row.quiet_start, row.quiet_end):
            raise Invalid({name: [sentence] for name, sentence in faults})

    @refusing_taken_name()
    def create(self, fields: Fields) -> Contact:
        return super().create(fields)

    @refusing_taken_name()
    def update(self, id: int, fields: Fields) -> Contact:
        return super().update(id, fields)

    def delete(self, id: int) -> None:
        self.remove(id)

    def remove(self, id: int, *, replace_with: str | None = None, force: bool = False) -> None:
        with writing() as session:
            _lock_contacts(session)
            row = lock_row(session, ContactRow, "contact", id)
            users = _users(session, id)
            if replace_with is not None:
                other = _replace(session, row.id, replace_with)
                audit.note_change(session, row, {"replaced_with": (None, other)})
            elif users and not force:
                raise Conflict(_(IN_USE), monitors=users[:MAX_NAMED])
            session.delete(row)

    def test(self, id: int) -> tuple[int, ...]:
        if not fits(id):
            raise NotFound("contact", id)
        return by_hand.send_test_to_contact(id, self.now())

    def shared(self, monitor_id: int) -> Sequence[SharedChannel]:
        return channels_shared_by(monitor_id) if fits(monitor_id) else ()

    def from_channel(self, name: str, monitor_id: int, mark: str) -> Contact:
        now = self.now()
        with refusing_taken_name(), writing() as session:
            target, ids = locked_channel(session, fitting(monitor_id), mark)
            _lock_contacts(session)
            columns = self.columns(session, None, {"name": name, "channels": (Pair(*target),)})
            row = ContactRow(**columns, created_at=now, updated_at=now)
            session.add(row)
            session.flush()
            replace_channel(session, row, target, ids, now)
            return self.get(row.id)

    def id_of(self, value: str) -> int | None:
        return _find(db.session, value)

    def names(self) -> Sequence[str]:
        return [row.name for row in db.session.execute(_NAMES)]

    def defaults(self) -> Sequence[str]:
        names = select(ContactRow.name).where(ContactRow.default)
        return list(db.session.scalars(names.order_by(ContactRow.name_natural, ContactRow.id)))


# --- The contacts of monitors ---------------------------------------------------------------------


_MEMBER = MonitorContactRow.__table__
# Built once, because each list of monitors runs it.
_OF_MONITORS = (
    select(_MEMBER.c.monitor_id, _MEMBER.c.position, ContactRow.__table__.c.name)
    .join(ContactRow.__table__, ContactRow.__table__.c.id == _MEMBER.c.contact_id)
    .where(_MEMBER.c.monitor_id.in_(bindparam("ids", expanding=True)))
    .order_by(_MEMBER.c.monitor_id, _MEMBER.c.position, _MEMBER.c.contact_id)
)


def alerts_with_contacts(own: Mapping[int, Sequence[Pair]]) -> Mapping[int, tuple[Pair, ...]]:
    """The alerts of monitors by id, with their contacts. ``own``: their own alerts by id."""
    contacts: dict[int, list[tuple[int, Pair]]] = defaultdict(list)
    rows = db.session.execute(_OF_MONITORS, {"ids": list(own)})
    for monitor_id, position, name in rows:
        contacts[monitor_id].append((position, Pair(CONTACT, name)))
    return {id: tuple(merge_contacts(pairs, contacts[id])) for id, pairs in own.items()}


def contact_finder(session: DbSession) -> Callable[[str], int | None]:
    """A function that returns the id of the contact with a name or an id, cached. It locks the
    contact, so that nobody deletes it before the transaction ends.
    """

    @cache
    def find(value: str) -> int | None:
        _lock_contacts(session)
        return _find(session, value, lock=True)

    return find


def positions_of(find: Callable[[str], int | None], alerts: Sequence[Pair]) -> dict[int, int]:
    """The contacts in alerts, each with its index. Raises Invalid."""
    positions: dict[int, int] = {}
    for position in contact_positions(alerts):
        id = find(alerts[position].value)
        if id is None:
            raise Invalid({"alerts": [no_contact(alerts[position].value)]})
        positions.setdefault(id, position)
    return positions


def set_contacts(session: DbSession, monitor_id: int, alerts: Sequence[Pair]) -> None:
    """Set the contacts of a monitor to those in its alerts. Raises Invalid."""
    member = MonitorContactRow
    used = select(member.contact_id).where(member.monitor_id == monitor_id)
    if contact_positions(alerts) or session.scalar(used.limit(1)) is not None:
        _lock_contacts(session)
    positions = positions_of(contact_finder(session), alerts)
    old_ids = session.scalars(used).all()
    session.execute(delete(member).where(member.monitor_id == monitor_id))
    store_members(session, {monitor_id: positions}, {monitor_id: old_ids})


def store_members(
    session: DbSession,
    positions: Mapping[int, Mapping[int, int]],
    old_ids: Mapping[int, Collection[int]],
) -> None:
    """Store the contacts of monitors that have none in the database, and note the changes in the
    audit log. ``positions``: by monitor, from ``positions_of``. ``old_ids``: the contacts that each
    monitor had before.
    """
    rows = [(id, *entry) for id, contacts in positions.items() for entry in contacts.items()]
    bulk_insert(session, MonitorContactRow, ("monitor_id", "contact_id", "position"), rows)
    pairs = {id: (set(old_ids.get(id, ())), set(new_ids)) for id, new_ids in positions.items()}
    changes = {id: pair for id, pair in pairs.items() if pair[0] != pair[1]}
    if not changes:
        return
    ids = {id for pair in changes.values() for id in pair[0] | pair[1]}
    query = select(ContactRow.id, ContactRow.name).where(ContactRow.id.in_(ids))
    names = {row.id: row.name for row in session.execute(query)}
    for monitor_id, pair in changes.items():
        row = session.get(MonitorRow, monitor_id)
        old, new = (sorted(names[id] for id in ids) for ids in pair)
        audit.note_change(session, row, {"contacts": (old, new)})


def _lock_contacts(session: DbSession) -> None:
    """Lock the contacts of all monitors until the transaction ends: otherwise two transactions that
    replace each other's contacts could deadlock in PostgreSQL.
    """
    locks.take_lock(session, locks.Lock.CONTACTS)


# --- Rows -----------------------------------------------------------------------------------------


def _find(session: Any, value: str, *, lock: bool = False) -> int | None:
    """The id of the contact with this name, ignoring case, or with this id."""
    conditions = [ContactRow.name_folded == value.strip().casefold()]
    if value.isascii() and value.isdigit() and len(value) < 19:
        conditions.append(ContactRow.id == int(value))
    for condition in conditions:
        query = select(ContactRow.id).where(condition)
        # A transaction that uses a contact and one that deletes it wait for each other.
        id = session.scalar(query.with_for_update(read=True, key_share=True) if lock else query)
        if id is not None:
            return int(id)
    return None


def _users(session: DbSession, id: int) -> list[int]:
    """The ids of the monitors that use a contact."""
    member = MonitorContactRow
    query = select(member.monitor_id).where(member.contact_id == id)
    return list(session.scalars(query.order_by(member.monitor_id)))


def _replace(session: DbSession, id: int, value: str) -> str:
    """Replace this contact with another one, and return the other's name. Raises Invalid."""
    other_id = _find(session, value, lock=True)
    if other_id is None:
        raise Invalid({"replace_with": [no_contact(value)]})
    if other_id == id:
        raise Invalid({"replace_with": [_(ITSELF)]})
    _replace_in_reports(session, id, other_id)
    member = MonitorContactRow
    # Wait for monitors that are being deleted. All transactions lock monitors in this order.
    users = select(member.monitor_id).where(member.contact_id == id)
    session.execute(
        select(MonitorRow.id)
        .where(MonitorRow.id.in_(users))
        .order_by(MonitorRow.id)
        .with_for_update(read=True, key_share=True)
    ).all()
    with_other = select(member.monitor_id).where(member.contact_id == other_id)
    monitor_ids = set(session.scalars(with_other))
    for row in session.scalars(select(member).where(member.contact_id == id)).all():
        if row.monitor_id not in monitor_ids:
            new = {"monitor_id": row.monitor_id, "contact_id": other_id, "position": row.position}
            session.add(MonitorContactRow(**new))
    session.flush()
    return session.get_one(ContactRow, other_id).name


def _replace_in_reports(session: DbSession, id: int, other_id: int) -> None:
    """Give the reports to the other contact. A report that the other contact gets already is
    deleted with this contact.
    """
    contact_id = ReportMailRow.contact_id
    tags = set(session.scalars(select(ReportMailRow.tag).where(contact_id == other_id)))
    for row in session.scalars(select(ReportMailRow).where(contact_id == id)).all():
        if row.tag not in tags:
            row.contact_id = other_id
            tags.add(row.tag)
    session.flush()


def pairs_of(pairs: list[list[str]] | Unreadable | None) -> tuple[Pair, ...]:
    return tuple(Pair(key, value) for key, value in readable(pairs) or ())


# --- Channels that several monitors have as their own ---------------------------------------------
#
# Values are encrypted, each with another salt, so equal values differ in the database. To decrypt
# the channels of 10,000 monitors takes a second. Therefore a column has the lanes of a monitor's
# own channels, which are keyed hashes.

SEVERAL = 3
MARK = 16  # characters of a lane: enough to identify a channel of one monitor
IDS_PER_STATEMENT = 500
CHANGED = N_("This channel was changed or removed meanwhile. Open the monitor again.")


def channels_shared_by(monitor_id: int) -> Sequence[SharedChannel]:
    """The monitor's own channels that ``SEVERAL`` monitors or more have, itself among them."""
    row = db.session.get(MonitorRow, monitor_id)
    if row is None or isinstance(row.alerts, Unreadable):
        return ()
    channels = []
    for position, (channel, value) in enumerate(row.alerts or ()):
        name = lane_of(channel, value)
        count = (
            db.session.scalar(select(func.count(MonitorRow.id)).where(has_own_channel(name))) or 0
        )
        if count >= SEVERAL:
            masked = Pair(channel, value).masked().value
            channels.append(SharedChannel(position, channel, masked, name[:MARK], count))
    return channels


def locked_channel(
    session: DbSession, monitor_id: int, mark: str
) -> tuple[list[str], Sequence[int]]:
    """The monitor's own channel with this mark, and the ids of the monitors that have the channel.
    They are locked until the transaction ends. Raises Invalid if there is no such channel any more.

    Call this before ``_lock_contacts``: a change of a monitor locks in this order too, and in
    another order the two would wait for each other.
    """
    target = _channel(session.get(MonitorRow, monitor_id), mark)
    ids: Sequence[int] = ()
    if target is not None:
        having = (
            select(MonitorRow.id).where(has_own_channel(lane_of(*target))).order_by(MonitorRow.id)
        )
        ids = session.scalars(having.with_for_update(key_share=True)).all()
    if target is None or not ids:
        raise Invalid({"mark": [_(CHANGED)]})
    return target, ids


def replace_channel(
    session: DbSession, contact: ContactRow, target: list[str], ids: Sequence[int], now: datetime
) -> None:
    """Replace this channel with ``contact``, which is new, in these monitors."""
    for part in pieces(ids, IDS_PER_STATEMENT):
        _replace_in(session, contact, target, part, now)


def _replace_in(
    session: DbSession, contact: ContactRow, target: list[str], ids: Sequence[int], now: datetime
) -> None:
    rows = session.scalars(
        select_fresh(MonitorRow).where(MonitorRow.id.in_(ids)).order_by(MonitorRow.id)
    ).all()
    contacts = contacts_of(session, ids)
    session.execute(delete(MonitorContactRow).where(MonitorContactRow.monitor_id.in_(ids)))
    for row in rows:
        own = [] if isinstance(row.alerts, Unreadable) else list(row.alerts or ())
        # A monitor whose channel was changed before the lock keeps its alerts.
        merged: list[Any] = merge_contacts(own, contacts.get(row.id, ()))
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
    return next((pair for pair in alerts if lane_of(*pair)[:MARK] == mark), None)
