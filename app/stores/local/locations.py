"""Places in the local database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError

from app.access.agents import give_token
from app.db import DbSession, db, heartbeats, places, writing
from app.db.tables import AssignmentRow, HeartbeatRow, LocationRow
from app.errors import Conflict, Invalid, NotFound
from app.records import Carrier, Location, Page, PageQuery, Place
from app.stores import base
from app.stores.base import Fields
from app.stores.local.part import Part
from app.stores.local.search import fits, ids_of_page

NAME_TAKEN = "Another place has this name."
NAME_STAYS = "The name of a place cannot be changed. Change its label."
DEFAULT_STAYS = "The place default cannot be deleted: checkers without a LOCATION check from it."
DEFAULT_HAS_NO_AGENT = "Only other places than default can have an agent."
NOT_AN_AGENT = "Only a place with the carrier agent has a token."
IN_USE = "Monitors are checked from this place. Remove it from them first."
CHECKER_RUNS = "A checker runs in this place and would make it again. Stop it first."


class Locations(Part, base.Locations):
    def list(self, query: PageQuery) -> Page[Place]:
        """The default place first, then by creation."""
        ids, total = ids_of_page(
            select(LocationRow.id), (LocationRow.id,), query.page, query.per_page
        )
        return Page(self._records(ids), query.page, query.per_page, total)

    def get(self, id: int) -> Place:
        found = self._records([id]) if fits(id) else []
        if not found:
            raise NotFound("location", id)
        return found[0]

    def create(self, fields: Fields) -> Place:
        return self._whole(*_named_once(lambda: self._create(fields)))

    def update(self, id: int, fields: Fields) -> Place:
        with writing() as session:
            row = _locked(session, id)
            if fields.get("name", row.name) != row.name:
                raise Invalid({"name": [NAME_STAYS]})
            carrier = fields.get("carrier", row.carrier)
            _check_carrier(row.id, carrier)
            if carrier != Carrier.AGENT:
                row.token_digest = row.public_key = None
            row.carrier = carrier
            row.label = fields.get("label", row.label)
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            row = _locked(session, id)
            if row.id == Location.DEFAULT:
                raise Conflict(DEFAULT_STAYS, monitors=_users(session, id))
            if users := _users(session, id):
                raise Conflict(IN_USE, monitors=users)
            if heartbeats.names_alive(row.name, self.now(), places.ALIVE):
                raise Conflict(CHECKER_RUNS, monitors=[])
            session.execute(delete(HeartbeatRow).where(HeartbeatRow.location == row.name))
            session.delete(row)

    def new_token(self, id: int) -> Place:
        with writing() as session:
            row = _locked(session, id)
            if row.carrier != Carrier.AGENT:
                raise Conflict(NOT_AN_AGENT)
            # The next agent has a key of its own.
            row.public_key = None
            token = give_token(row)
        return self._whole(id, token)

    def _create(self, fields: Fields) -> tuple[int, str | None]:
        with writing() as session:
            row = LocationRow(**fields, created_at=self.now())
            session.add(row)
            session.flush()
            token = give_token(row) if row.carrier == Carrier.AGENT else None
            return row.id, token

    def _whole(self, id: int, token: str | None) -> Place:
        return self._records([id], {id: token})[0]

    def _records(
        self, ids: Sequence[int], tokens: Mapping[int, str | None] | None = None
    ) -> Sequence[Place]:
        now = self.now()
        rows = db.session.scalars(
            select(LocationRow)
            .where(LocationRow.id.in_(ids))
            .order_by(LocationRow.id)
            .execution_options(populate_existing=True)
        ).all()
        signs = places.signs_of(rows, now)
        states = places.states_of(signs, now)
        counts = _counts(ids)
        return [
            _record(row, signs[row.id], states[row.id], counts.get(row.id, 0), tokens)
            for row in rows
        ]


def _record(
    row: LocationRow,
    signs: places.Signs,
    state: str,
    monitors: int,
    tokens: Mapping[int, str | None] | None,
) -> Place:
    return Place(
        id=row.id,
        name=row.name,
        label=row.label,
        carrier=row.carrier,
        state=state,
        last_seen_at=signs.seen_at,
        version=signs.version,
        clock_offset_ms=signs.clock_offset_ms,
        checks_per_minute=signs.checks_per_minute,
        monitors=monitors,
        created_at=row.created_at,
        token=(tokens or {}).get(row.id),
    )


def _locked(session: DbSession, id: int) -> LocationRow:
    """Nobody gives the place to a monitor until the transaction ends."""
    row = None
    if fits(id):
        row = session.scalar(
            select(LocationRow)
            .where(LocationRow.id == id)
            .with_for_update()
            .execution_options(populate_existing=True)
        )
    if row is None:
        raise NotFound("location", id)
    return row


def _check_carrier(id: int, carrier: str) -> None:
    if id == Location.DEFAULT and carrier == Carrier.AGENT:
        raise Invalid({"carrier": [DEFAULT_HAS_NO_AGENT]})


def _users(session: DbSession, id: int) -> list[int]:
    """The ids of the monitors that are checked from a place."""
    query = select(AssignmentRow.monitor_id).where(AssignmentRow.location_id == id)
    return list(session.scalars(query.order_by(AssignmentRow.monitor_id)))


def _counts(ids: Collection[int]) -> Mapping[int, int]:
    counted = (
        select(AssignmentRow.location_id, func.count())
        .where(AssignmentRow.location_id.in_(ids))
        .group_by(AssignmentRow.location_id)
    )
    return {row[0]: row[1] for row in db.session.execute(counted)}


def _named_once(write: Callable[[], Any]) -> Any:
    """``write``, where another place may have the name already."""
    try:
        return write()
    except IntegrityError:
        db.session.rollback()
        raise Invalid({"name": [NAME_TAKEN]}) from None
