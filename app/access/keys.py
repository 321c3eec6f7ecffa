"""API keys, ping keys and the tokens of agents. Only their hashes are stored.

An API key is ``wk_<prefix>_<secret>`` and is found by its prefix. A ping key has 22 characters and
is found by its hash (decision 6). A key may do at most what its owner may do now (decision 15). A
key without an owner (``wakeful key create`` without ``--owner``) may do what it was created for.
"""

from __future__ import annotations

import hmac
import re
import secrets
import string
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, delete, or_, outerjoin, select, update

from app import proxies
from app.access.tokens import digest_of, make_token
from app.db import AnySession, DbSession, best_effort, db, writing
from app.db.statements import inserting, locked
from app.db.tables import ApiKeyRow, EndedTokenRow, PersonRow, PlaceRow
from app.db.types import record_of
from app.errors import Conflict, Denied, Invalid, existing
from app.i18n import N_, _
from app.records import MAX_NAME, MAX_TAG, ApiKey, Carrier, Person, Role, Scope
from app.rules.clocks import is_due
from app.rules.text import TAKEN, one_of

PREFIX_LENGTH = 8
PREFIX_ALPHABET = string.ascii_lowercase + string.digits
PING_KEY_BYTES = 16  # 128 bits, in 22 characters, as in healthchecks
_PING_KEY = re.compile(r"[A-Za-z0-9_-]{22}")
TOUCH_AFTER = timedelta(minutes=1)  # a busy key must not cost a write for each request
MAX_NETWORKS = 50
TOO_MANY = N_("At most %(most)s networks.", most=MAX_NETWORKS)
NOT_A_TAG = N_("One tag of at most %(most)s characters, without a comma.", most=MAX_TAG)
BOUND = N_(
    "This API key is bound to the tag %(tag)s. It sees and changes the monitors with this tag,"
    " their incidents, results and deliveries, and nothing else."
)
READ_ONLY = N_("This key is read-only. Use a key with the scope write.")
ONLY_PINGS = N_("This key only calls heartbeats. Use a key with the scope read.")
NOT_ADMIN = N_("This key has the scope %(scope)s. Use a key with the scope admin.")


class ApiKeys:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def create(
        self,
        name: str,
        scope: str,
        expires_at: datetime | None = None,
        *,
        owner_id: int | None = None,
        networks: str = "",
        tag: str | None = None,
        own_secret: str | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key and its whole text, which cannot be read again. ``networks``: the networks from
        which it may be used, as CIDRs with commas. ``tag``: the key is only for monitors with this
        tag. ``own_secret``: the text of a key of scope ``ping`` that jobs have already. Raises
        Invalid.
        """
        tag = (tag or "").strip() or None
        _check(name, scope, expires_at, self.clock(), networks, tag)
        prefix = "".join(secrets.choice(PREFIX_ALPHABET) for _index in range(PREFIX_LENGTH))
        text = f"wk_{prefix}_{make_token()}"
        if scope == Scope.PING:
            text = own_secret or secrets.token_urlsafe(PING_KEY_BYTES)
            self._check_own_secret(text)
        elif own_secret is not None:
            raise Invalid({"own_secret": [_("Only a key of scope ping can be brought along.")]})
        row = ApiKeyRow(
            prefix=prefix,
            digest=digest_of(text),
            name=name,
            scope=scope,
            created_at=self.clock(),
            expires_at=expires_at,
            owner_id=owner_id,
            networks=_normalized(networks),
            tag=tag,
        )
        with writing() as session:
            session.add(row)
            session.flush()
            return _read(session, prefix), text

    def authenticate(self, text: str) -> ApiKey | None:
        """The key with this text, or None if it is unknown, expired or revoked, or its owner has no
        access. Its scope is at most what the owner may do now.
        """
        row = None
        parts = text.split("_", 2)
        if len(parts) == 3 and parts[0] == "wk" and len(parts[1]) == PREFIX_LENGTH:
            row = db.session.execute(_WITH_PREFIX, {"prefix": parts[1]}).first()
        # Compare for an unknown prefix too, so that the time does not reveal which prefixes exist.
        digest = row.digest if row else "0" * 64  # in bytes: a damaged one need not be ASCII
        matches = hmac.compare_digest(digest.encode(), digest_of(text).encode())
        key = self._usable_key(row) if matches else None
        return key and self._note_use(key)

    def _usable_key(self, row: Any) -> ApiKey | None:
        """The key of this row; None if it is revoked or expired, or its owner is disabled."""
        if row is None or row.revoked_at is not None or row.disabled:
            return None
        is_expired = row.expires_at is not None and row.expires_at <= self.clock()
        return None if is_expired else _record(row)

    def _note_use(self, key: ApiKey) -> ApiKey:
        now = self.clock()
        if is_due(key.last_used_at, now, TOUCH_AFTER):
            best_effort("The last use of an API key", lambda: self._touch(key.id, now))
        return key

    def _check_own_secret(self, text: str) -> None:
        """Raises Invalid for a text that is no ping key or is the text of another key."""
        if _PING_KEY.fullmatch(text) is None:
            sentence = _("A ping key has 22 of A to Z, a to z, 0 to 9, - and _.")
            raise Invalid({"own_secret": [sentence]})
        if db.session.execute(_WITH_DIGEST, {"digest": digest_of(text)}).first() is not None:
            raise Invalid({"own_secret": [_(TAKEN)]})

    def ping_key(self, text: str, address: str | None) -> ApiKey | None:
        """The key of scope ``ping`` with this text; None if there is none that a client of this
        ``address`` may use.
        """
        if _PING_KEY.fullmatch(text) is None:
            return None
        row = db.session.execute(_WITH_DIGEST, {"digest": digest_of(text)}).first()
        key = self._usable_key(row) if row is not None and row.scope == Scope.PING else None
        return self._note_use(key) if key is not None and allowed_from(key, address) else None

    def all(self) -> list[ApiKey]:
        """All keys, the newest first, revoked ones too."""
        return [_record(row) for row in db.session.execute(_WITH_OWNERS.order_by(_KEY.id.desc()))]

    def get(self, prefix: str) -> ApiKey:
        """Raises NotFound."""
        return _read(db.session, prefix)

    def of(self, person_id: int) -> list[ApiKey]:
        """The keys of this person that are neither revoked nor expired, the newest first."""
        now = self.clock()
        return [
            key
            for key in self.all()
            if key.owner_id == person_id
            and key.revoked_at is None
            and (key.expires_at is None or key.expires_at > now)
        ]

    def change(
        self, prefix: str, *, name: str, expires_at: datetime | None, networks: str
    ) -> ApiKey:
        """Change a key. Raises NotFound, Invalid, and Conflict for a revoked key."""
        with writing() as session:
            row = _unrevoked_row(session, prefix)
            # Only a new expiry must be in the future.
            new_expiry = None if expires_at == row.expires_at else expires_at
            _check(name, row.scope, new_expiry, self.clock(), networks, row.tag)
            row.name, row.expires_at, row.networks = name, expires_at, _normalized(networks)
            session.flush()
            return _read(session, prefix)

    def adopt(self, prefix: str, person_id: int) -> ApiKey:
        """Make this person the owner of a key. Raises NotFound, and Conflict for a revoked key."""
        with writing() as session:
            row = _unrevoked_row(session, prefix)
            row.owner_id = person_id
            session.flush()
            return _read(session, prefix)

    def revoke(self, prefix: str) -> None:
        """Revoke a key at once. Raises NotFound; revoking twice changes nothing."""
        with writing() as session:
            row = _locked_row(session, prefix)
            row.revoked_at = row.revoked_at or self.clock()

    def _touch(self, id: int, now: datetime) -> None:
        used_at = ApiKeyRow.last_used_at
        is_older = or_(used_at.is_(None), used_at < now, used_at >= now + TOUCH_AFTER)
        touch = update(ApiKeyRow).where(ApiKeyRow.id == id, is_older).values(last_used_at=now)
        with writing() as session:
            session.execute(touch)


# The statement names tables, not classes, because each request of the API runs it, and the ORM
# would double its cost.
_KEY, _PERSON = ApiKeyRow.__table__.c, PersonRow.__table__.c
_WITH_OWNERS = select(*_KEY, _PERSON.email, _PERSON.role, _PERSON.disabled).select_from(
    outerjoin(ApiKeyRow.__table__, PersonRow.__table__, _PERSON.id == _KEY.owner_id)
)
_WITH_PREFIX = _WITH_OWNERS.where(_KEY.prefix == bindparam("prefix"))
_WITH_DIGEST = _WITH_OWNERS.where(_KEY.digest == bindparam("digest"))


def manages(person: Person, key: ApiKey) -> bool:
    """Whether this person may change or revoke this key: its owner, or an admin."""
    return person.role == Role.ADMIN or key.owner_id == person.id


def transfer_or_revoke_keys(
    session: DbSession, owner_id: int, heir_id: int | None, now: datetime
) -> None:
    """Hand the keys of a person over to the heir, or revoke them if there is none. Call this inside
    ``writing()``.
    """
    for row in session.scalars(select(ApiKeyRow).where(ApiKeyRow.owner_id == owner_id)).all():
        if heir_id is None:
            row.revoked_at = row.revoked_at or now
        row.owner_id = heir_id
    session.flush()


_networks_of = lru_cache(maxsize=256)(proxies.read_networks)


def allowed_from(key: ApiKey, address: str | None) -> bool:
    """Whether the key may be used from this address; None: the address of the client is unknown,
    and in no network.
    """
    if not key.networks:
        return True
    ip = proxies.address_of(address or "")
    networks = _networks_of(",".join(key.networks))
    return ip is not None and any(ip in network for network in networks)


def require(key: ApiKey, scope: Scope) -> None:
    """Raises Denied for a key without this scope."""
    if key.may(scope):
        return
    if scope is Scope.ADMIN:
        raise Denied(_(NOT_ADMIN, scope=key.scope))
    raise Denied(_(READ_ONLY if key.may(Scope.READ) else ONLY_PINGS))


def _check(
    name: str,
    scope: str,
    expires_at: datetime | None,
    now: datetime,
    networks: str = "",
    tag: str | None = None,
) -> None:
    errors: dict[str, list[str]] = {}
    if not name.strip() or len(name) > MAX_NAME:
        errors["name"] = [_("Give the key a name of at most %(most)s characters.", most=MAX_NAME)]
    if scope not in list(Scope):
        errors["scope"] = [one_of(Scope)]
    if expires_at is not None and expires_at <= now:
        sentence = _("The key would have expired already. Choose a time in the future.")
        errors["expires_at"] = [sentence]
    try:
        if len(proxies.read_networks(networks)) > MAX_NETWORKS:
            errors["networks"] = [_(TOO_MANY)]
    except ValueError as fault:
        errors["networks"] = [str(fault)]
    if tag is not None and (len(tag) > MAX_TAG or "," in tag or not tag.isprintable()):
        errors["tag"] = [_(NOT_A_TAG)]
    if errors:
        raise Invalid(errors)


def _normalized(networks: str) -> str:
    return ",".join(map(str, proxies.read_networks(networks)))


def _locked_row(session: DbSession, prefix: str) -> ApiKeyRow:
    """Raises NotFound."""
    row = session.scalar(locked(ApiKeyRow).where(ApiKeyRow.prefix == prefix))
    return existing(row, "key", prefix)


def _unrevoked_row(session: DbSession, prefix: str) -> ApiKeyRow:
    """Raises NotFound, and Conflict for a revoked key."""
    row = _locked_row(session, prefix)
    if row.revoked_at is not None:
        raise Conflict(_("This key is revoked, so it cannot be changed."))
    return row


def _read(session: AnySession, prefix: str) -> ApiKey:
    """Raises NotFound."""
    row = session.execute(_WITH_PREFIX, {"prefix": prefix}).first()
    return _record(existing(row, "key", prefix))


def _record(row: Any) -> ApiKey:
    """``row`` is of ``_WITH_OWNERS``: without an owner, the columns of the person are None."""
    scope = Scope(row.scope)
    if row.email is not None:
        highest = Scope.READ if row.disabled else Role(row.role).scope
        scope = min(scope, highest, key=tuple(Scope).index)
    return record_of(
        ApiKey,
        row,
        scope=scope,
        owner=row.email,
        networks=tuple(network for network in row.networks.split(",") if network),
        granted=row.scope,
        owner_disabled=bool(row.disabled),
    )


# --- Tokens of agents -----------------------------------------------------------------------------
#
# ``wa_<secret>``. The place of each agent has one.

AGENT_PREFIX = "wa_"
AGENT_TOKEN_RETENTION = timedelta(days=400)  # as long as the audit log has the line of the change


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """The place of an agent. ``public_key``: the key to which secrets for the agent are encrypted;
    None until an agent has sent one.
    """

    id: int
    name: str
    public_key: str | None
    token_digest: str


def give_token(row: PlaceRow) -> str:
    """Give the place a new token, which ends the old one. Call this inside ``writing()``."""
    token = AGENT_PREFIX + make_token()
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
    session.execute(
        delete(EndedTokenRow).where(EndedTokenRow.ended_at < now - AGENT_TOKEN_RETENTION)
    )
    row.token_digest = None


def ended_place(token: str) -> str | None:
    """The place whose last ended token this is; None for any other token."""
    if not token.startswith(AGENT_PREFIX):
        return None
    query = select(EndedTokenRow.place).where(EndedTokenRow.digest == digest_of(token))
    return db.session.scalars(query).first()


def agent_of(token: str) -> AgentPlace | None:
    """The place whose agent has this token; None for a token that is unknown or has ended."""
    if not token.startswith(AGENT_PREFIX):
        return None
    digest = digest_of(token)
    row = db.session.execute(
        select(PlaceRow.id, PlaceRow.name, PlaceRow.public_key).where(
            PlaceRow.token_digest == digest, PlaceRow.carrier == Carrier.AGENT
        )
    ).first()
    return None if row is None else AgentPlace(*row, digest)


def store_public_key(place: AgentPlace, key: str) -> bool:
    """Store the public key of a place's agent, unless the place has another one. Returns whether it
    has this key now. Call this inside ``writing()``.

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
