"""Places in the local database: the resource, and the places of monitors with their next checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, select

from app.access.keys import end_token, give_token
from app.db import DbSession, by_place, db, latest, liveness, places, writing
from app.db.tables import AssignmentRow, MonitorRow, PlaceRow, SignOfLifeRow
from app.db.types import record_of
from app.engine.schedule import Standing, done_until, due
from app.errors import Conflict, Invalid
from app.forms.lists import NO_SUCH_PLACE
from app.i18n import N_, _, _n
from app.judge.verdict import vote_valid_for
from app.records import DEFAULT_PLACE_ID, Carrier, MonitorRef, PageQuery, Place, PlaceSeen
from app.stores import base
from app.stores.base import Fields
from app.stores.local.part import (
    Rows,
    counted_by,
    fitting,
    get_monitor,
    lock_row,
    refusing_taken_name,
)

NAME_STAYS = N_("The name of a place cannot be changed. Change its label.")
DAY = timedelta(days=1)
REPORTED = ("version", "clock_offset_ms", "checks_per_minute")  # by an agent or a checker
CHECKER_RUNS = N_("A checker runs in this place and would make it again. Stop it first.")


class LocalLocations(Rows[Place, PageQuery], base.Locations):
    order = (PlaceRow.id,)  # the default place is the first row

    def create(self, fields: Fields) -> Place:
        with refusing_taken_name(), writing() as session:
            row = PlaceRow(**fields, created_at=self.now())
            session.add(row)
            session.flush()
            token = give_token(row) if row.carrier == Carrier.AGENT else None
            id = row.id
        return self._record_with(id, token)

    def update(self, id: int, fields: Fields) -> Place:
        with writing() as session:
            row = lock_row(session, PlaceRow, "place", id)
            if fields.get("name", row.name) != row.name:
                raise Invalid({"name": [_(NAME_STAYS)]})
            carrier = fields.get("carrier", row.carrier)
            if row.id == DEFAULT_PLACE_ID and carrier == Carrier.AGENT:
                raise Invalid({"carrier": [_("Only other places than default can have an agent.")]})
            if Carrier.AGENT == row.carrier != carrier:
                self._end_agent(session, row)
            if carrier != row.carrier:
                places.drop_unknown(session, row.id)
            row.carrier = carrier
            row.label = fields.get("label", row.label)
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            row = lock_row(session, PlaceRow, "place", id)
            if row.id == DEFAULT_PLACE_ID:
                raise Conflict(_(base.DEFAULT_STAYS), monitors=_users(session, id))
            if users := _users(session, id):
                raise Conflict(_(base.PLACE_IN_USE), monitors=users)
            if liveness.names_alive(row.name, self.now(), places.ALIVE):
                raise Conflict(_(CHECKER_RUNS), monitors=[])
            session.execute(delete(SignOfLifeRow).where(SignOfLifeRow.location == row.name))
            end_token(session, row, self.now())
            session.delete(row)

    def users(self, id: int, limit: int) -> Sequence[MonitorRef]:
        rows = db.session.execute(
            select(MonitorRow.id, MonitorRow.name, MonitorRow.url)
            .join(AssignmentRow, AssignmentRow.monitor_id == MonitorRow.id)
            .where(AssignmentRow.location_id == fitting(id))
            .order_by(MonitorRow.id)
            .limit(limit)
        )
        return [MonitorRef(*row) for row in rows]

    def new_token(self, id: int) -> Place:
        with writing() as session:
            row = lock_row(session, PlaceRow, "place", id)
            if row.carrier != Carrier.AGENT:
                raise Conflict(_("Only a place with the carrier agent has a token."))
            self._end_agent(session, row)
            token = give_token(row)
        return self._record_with(id, token)

    def _end_agent(self, session: DbSession, row: PlaceRow) -> None:
        """End the token and the key of an agent, and remove its signs of life. The place stores
        when the agent was last seen.
        """
        signs = places.signs_of([row], self.now())[row.id]
        row.seen_at, row.result_at = signs.seen_at, signs.result_at
        end_token(session, row, self.now())
        row.public_key = None  # the next agent has another key
        places.drop_unknown(session, row.id)
        session.execute(
            delete(SignOfLifeRow).where(
                SignOfLifeRow.location == row.name,
                SignOfLifeRow.name.startswith(f"{liveness.AGENT}:"),
            )
        )

    def of_monitor(self, monitor_id: int) -> Sequence[PlaceSeen]:
        monitor, now = get_monitor(db.session, monitor_id), self.now()
        rows = by_place.newest_checks(db.session, monitor_id, now - vote_valid_for(monitor))
        times = by_place.response_times(db.session, monitor_id, now - DAY)
        states = self._states([row.place_id for row in rows])
        return [
            record_of(
                PlaceSeen,
                row,
                id=row.place_id,
                state=states[row.place_id],
                checked_at=row.last_at,
                verdict=row.verdict and str(row.verdict),
                **asdict(times.get(row.place_id, by_place.PlaceTimes())),
            )
            for row in rows
        ]

    def _states(self, ids: Sequence[int]) -> Mapping[int, str]:
        now = self.now()
        rows = db.session.scalars(select(PlaceRow).where(PlaceRow.id.in_(ids))).all()
        return places.states_of(places.signs_of(rows, now), now)

    def _record_with(self, id: int, token: str | None) -> Place:
        return self.records([id], {id: token})[0]

    def records(
        self, ids: Sequence[int], tokens: Mapping[int, str | None] | None = None
    ) -> Sequence[Place]:
        now, rows = self.now(), self.rows(ids)
        signs = places.signs_of(rows, now)
        states, counts = places.states_of(signs, now), counted_by(AssignmentRow.location_id, ids)
        trouble = {
            id: _trouble(count, places.commonest_cause(id))
            for id, count in places.only_unknown(ids).items()
        }
        return [
            record_of(
                Place,
                row,
                state=states[row.id],
                last_seen_at=signs[row.id].seen_at,
                **{name: getattr(signs[row.id], name) for name in REPORTED},
                monitors=counts[row.id],
                trouble=trouble.get(row.id),
                token=(tokens or {}).get(row.id),
            )
            for row in rows
        ]


def _trouble(count: int, cause: str | None) -> str:
    sentence = _n(
        "The last check of its monitor could not be made.",
        "The last checks of all its %(num)s monitors could not be made.",
        count,
        num=f"{count:,}",
    )
    return f"{sentence} {cause}" if cause else sentence


def _users(session: DbSession, id: int) -> list[int]:
    """The ids of the monitors that are checked from a place."""
    query = select(AssignmentRow.monitor_id).where(AssignmentRow.location_id == id)
    return list(session.scalars(query.order_by(AssignmentRow.monitor_id)))


# --- The places of monitors -----------------------------------------------------------------------

_ASSIGNED, _PLACE = AssignmentRow.__table__.c, PlaceRow.__table__.c
# Built once, as in ``app.db.latest``.
_WATCHED = (
    select(
        _ASSIGNED.monitor_id,
        _PLACE.name,
        _ASSIGNED.turn.label("generation"),
        _ASSIGNED.slot.label("scheduled_at"),
        _ASSIGNED.checked_at,
        _ASSIGNED.blind,
        MonitorRow.__table__.c.interval,
        latest.newest("at", _ASSIGNED.monitor_id, latest.UNTIL, _ASSIGNED.location_id).label(
            "newest"
        ),
    )
    .select_from(AssignmentRow.__table__)
    .join(MonitorRow.__table__, MonitorRow.__table__.c.id == _ASSIGNED.monitor_id)
    .join(PlaceRow.__table__, _PLACE.id == _ASSIGNED.location_id)
    .where(_ASSIGNED.monitor_id.in_(bindparam("ids", expanding=True)))
    .order_by(_PLACE.id)
)
_TITLES = select(_PLACE.name, _PLACE.label).order_by(_PLACE.id)


def titles_of_places() -> dict[str, str]:
    """The label of each place, by its name: the default place first, then in order of creation."""
    return {name: label or name for name, label in db.session.execute(_TITLES)}


def names_of(session: DbSession, monitor_id: int) -> list[str]:
    """The names of the places that a monitor is checked from, in their order as text."""
    statement = (
        select(PlaceRow.name)
        .join(AssignmentRow, AssignmentRow.location_id == PlaceRow.id)
        .where(AssignmentRow.monitor_id == monitor_id)
    )
    return sorted(session.scalars(statement))


def places_of(names: Sequence[str], by_name: Mapping[str, int]) -> list[int]:
    """The ids of these places. Raises Invalid for unknown names. ``by_name``: the ids of at least
    these places, from ``assignments.places``.
    """
    unknown = {
        f"locations.{number}": [NO_SUCH_PLACE]
        for number, name in enumerate(names)
        if name not in by_name
    }
    if unknown:
        raise Invalid(unknown)
    return [by_name[name] for name in names]


def watched_from(monitor_ids: Collection[int], now: datetime) -> dict[int, dict[str, Standing]]:
    """The standing of each of these monitors in each of its places, by the name of the place, in
    the order of creation. ``unconfirmed_at``, which belongs to the monitor, is left out.
    """
    places: dict[int, dict[str, Standing]] = {id: {} for id in monitor_ids}
    rows = db.session.execute(
        _WATCHED, {"ids": list(monitor_ids), "until": latest.last_moment(now)}
    )
    for row in rows:
        checked_at = latest.later(row.checked_at, row.newest)
        scheduled_at = done_until(row.monitor_id, row.interval, row.scheduled_at, checked_at)
        standing = Standing(row.generation, scheduled_at, checked_at, None, row.blind)
        places[row.monitor_id][row.name] = standing
    return places


def next_check_at(
    monitor: Any, standings: Iterable[Standing], now: datetime, confirm: timedelta
) -> datetime | None:
    """When the first of its places checks a monitor next; None while it is paused. If a check is
    due at once, this is the time of the change that made it due. ``monitor``: a row with the
    columns of the monitor and its state.
    """
    if monitor.paused:
        return None
    moments = [
        min(now, monitor.updated_at)
        if standing.scheduled_at is None
        else due(
            monitor.id,
            monitor.interval,
            replace(standing, unconfirmed_at=monitor.unconfirmed_at),
            now,
            confirm,
            network=False,  # only the checkers know whether their network works
        )
        for standing in standings
    ]
    return min(moments, default=None)
