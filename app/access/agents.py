"""Tokens of agents: ``wa_<secret>``. Each agent's place has one; only its hash is stored."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from app.access.one_time import digest_of, make_token
from app.db import db
from app.db.tables import LocationRow
from app.records import Carrier

PREFIX = "wa_"


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """The place of an agent. ``public_key``: what its secrets are sealed to, once it is known."""

    id: int
    name: str
    public_key: str | None


def give_token(row: LocationRow) -> str:
    """Give the place a new token, which ends the old one. To be called while writing."""
    token = PREFIX + make_token()
    row.token_digest = digest_of(token)
    return token


def agent_of(token: str) -> AgentPlace | None:
    """The place whose agent has this token; None for a token that is unknown or has ended."""
    if not token.startswith(PREFIX):
        return None
    found = db.session.execute(
        select(LocationRow.id, LocationRow.name, LocationRow.public_key).where(
            LocationRow.token_digest == digest_of(token), LocationRow.carrier == Carrier.AGENT
        )
    ).first()
    return None if found is None else AgentPlace(*found)


def keep_public_key(place_id: int, key: str) -> None:
    """Store the key to which the secrets of an agent's monitors are sealed. To be called while
    writing.
    """
    db.session.get_one(LocationRow, place_id).public_key = key
