"""The owners of a place's shards: the table, and the lock under which results are recorded.

A place's monitors are divided into shards by their id. PostgreSQL has enough shards for many
checkers; SQLite has one, so one checker does everything and a second one stands by.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, select, text, update

from app.db import DbSession, db
from app.db.connections import IDLE_MS, LIMITED
from app.db.statements import insert_new, updating
from app.db.tables import ShardRow
from app.rules.clocks import believable

LEASE = timedelta(seconds=20)  # how long a shard is owned without renewal
SHARDS_ON_POSTGRESQL = 64


# These statements select from the table, not from the class, and are built once: they run every few
# seconds, and for each batch of results.
_SHARDS: Any = ShardRow.__table__
_IN_PLACE = _SHARDS.c.location_id == bindparam("place")
_OF_PLACE = (
    select(_SHARDS.c.number, _SHARDS.c.owner, _SHARDS.c.until, _SHARDS.c.token)
    .where(_IN_PLACE)
    .order_by(_SHARDS.c.number)
)
_RENEW = (
    update(_SHARDS)
    .where(_IN_PLACE, _SHARDS.c.owner == bindparam("leaseholder"))
    .values(until=bindparam("lease"))
    .returning(_SHARDS.c.number, _SHARDS.c.token)
)
_LOCKED = (
    select(_SHARDS.c.number, _SHARDS.c.token)
    .where(_IN_PLACE, _SHARDS.c.number.in_(bindparam("numbers", expanding=True)))
    .order_by(_SHARDS.c.number)
    .with_for_update(read=True)
)


@dataclass(frozen=True, slots=True)
class Shard:
    number: int
    owner: str | None
    until: datetime | None
    token: int

    def is_owned(self, now: datetime) -> bool:
        """Whether the lease is valid. A lease with an end later than ``LEASE`` from now was written
        before the clock was set back, and counts as ended.
        """
        if self.owner is None or self.until is None:
            return False
        return now < self.until <= believable(now, LEASE)


def count() -> int:
    """The number of shards of a place. Never change it for a database in use."""
    return SHARDS_ON_POSTGRESQL if db.engine.dialect.name == "postgresql" else 1


def of(monitor_id: int) -> int:
    """The shard of a monitor."""
    return monitor_id % count()


def make(place: int) -> None:
    """Create the missing shards of a place in the caller's transaction."""
    insert_new(
        ShardRow,
        [{"location_id": place, "number": number, "token": 0} for number in range(count())],
    )


def read(place: int) -> list[Shard]:
    return [Shard(*row) for row in db.session.execute(_OF_PLACE, {"place": place})]


def take(
    session: DbSession, place: int, free: Sequence[Shard], owner: str, until: datetime
) -> dict[int, int]:
    """Take these shards, except those that another checker has taken since they were read. Returns
    the new tokens, by shard number.

    On PostgreSQL a shard is skipped while a result of its last owner is being recorded.
    """
    tokens = {shard.number: shard.token for shard in free}
    rows = session.execute(
        select(ShardRow.number, ShardRow.token)
        .where(ShardRow.location_id == place, ShardRow.number.in_(tokens))
        .order_by(ShardRow.number)
        .with_for_update(skip_locked=True)
    ).all()
    new_tokens = {row.number: row.token + 1 for row in rows if row.token == tokens[row.number]}
    if new_tokens:
        session.execute(
            updating(ShardRow)
            .where(ShardRow.location_id == place, ShardRow.number.in_(new_tokens))
            .values(owner=owner, until=until, token=ShardRow.token + 1)
        )
    return new_tokens


def renew(session: DbSession, place: int, owner: str, until: datetime) -> dict[int, int]:
    """Renew the leases of an owner; returns the tokens of its shards, by shard number."""
    rows = session.execute(_RENEW, {"place": place, "leaseholder": owner, "lease": until})
    return {row.number: row.token for row in rows}


def release(
    session: DbSession, place: int, numbers: Collection[int], owner: str, now: datetime
) -> None:
    """Give shards up. Their tokens stay valid until another checker takes the shards, so that the
    results of running checks are still recorded.
    """
    session.execute(
        updating(ShardRow)
        .where(ShardRow.location_id == place, ShardRow.number.in_(numbers), ShardRow.owner == owner)
        .values(owner=None, until=now)
    )


def locked(session: DbSession, place: int, numbers: Collection[int]) -> dict[int, int]:
    """The present tokens, by shard number. Nobody can take these shards before the transaction
    ends, so PostgreSQL ends it after IDLE_MS if this process is stopped meanwhile.
    """
    connection = session.connection()
    if connection.dialect.name == "postgresql" and not connection.info.get(LIMITED):
        session.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}"))
    if not numbers:
        return {}
    rows = session.execute(_LOCKED, {"place": place, "numbers": list(numbers)})
    return {row.number: row.token for row in rows}
