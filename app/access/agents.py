"""Tokens of agents: ``wa_<secret>``. Each agent's place has one; only its hash is stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from app.access.tokens import digest_of, make_token
from app.db import DbSession, db
from app.db.statements import inserting, locked
from app.db.tables import EndedTokenRow, PlaceRow
from app.records import Carrier

PREFIX = "wa_"
RETENTION = timedelta(days=400)  # as long as the audit log has the line of the change


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """The place of an agent. ``public_key``: the key that its secrets are sealed to; None until an
    agent has sent one.
    """

    id: int
    name: str
    public_key: str | None
    token_digest: str


def give_token(row: PlaceRow) -> str:
    """Give the place a new token, which ends the old one. To be called while writing."""
    token = PREFIX + make_token()
    row.token_digest = digest_of(token)
    return token


def end_token(session: DbSession, row: PlaceRow, now: datetime) -> None:
    """End the token of a place, if it has one, and remember it as the last that has ended."""
    if row.token_digest is None:
        return
    values = {"place": row.name, "digest": row.token_digest, "ended_at": now}
    session.execute(
        inserting(EndedTokenRow)
        .values(values)
        .on_conflict_do_update(index_elements=[EndedTokenRow.place], set_=values)
    )
    session.execute(delete(EndedTokenRow).where(EndedTokenRow.ended_at < now - RETENTION))
    row.token_digest = None


def ended_place(token: str) -> str | None:
    """The place whose last ended token this is; None for any other token."""
    if not token.startswith(PREFIX):
        return None
    query = select(EndedTokenRow.place).where(EndedTokenRow.digest == digest_of(token))
    return db.session.scalars(query).first()


def agent_of(token: str) -> AgentPlace | None:
    """The place whose agent has this token; None for a token that is unknown or has ended."""
    if not token.startswith(PREFIX):
        return None
    digest = digest_of(token)
    row = db.session.execute(
        select(PlaceRow.id, PlaceRow.name, PlaceRow.public_key).where(
            PlaceRow.token_digest == digest, PlaceRow.carrier == Carrier.AGENT
        )
    ).first()
    return None if row is None else AgentPlace(*row, digest)


def store_public_key(place: AgentPlace, key: str) -> bool:
    """Store the key to which the secrets of an agent's monitors are sealed, unless the place has
    another one. Returns whether it has this one now. To be called while writing.

    The row is read again under its lock. Otherwise a second agent with the same token could replace
    the key of the first, and an agent with an ended token the key of the new one.
    """
    row = db.session.scalar(
        locked(PlaceRow).where(PlaceRow.id == place.id, PlaceRow.token_digest == place.token_digest)
    )
    if row is None or row.public_key not in (None, key):
        return False
    row.public_key = key
    return True
