"""Heartbeats: their secrets, their pings, and the pings that arrive (decision 18)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from flask import Flask, current_app
from sqlalchemy import bindparam, select

from app.access import Access, audit
from app.access.counters import Limit, counted_address
from app.access.tokens import keyed_hash
from app.db import DbSession, db, writing
from app.db.faults import unavailable
from app.db.statements import count_of
from app.db.tables import ApiKeyRow, HeartbeatStateRow, MonitorRow, PingRow
from app.db.tags import tagged
from app.db.types import from_ms, readable, record_of
from app.engine import recorder
from app.errors import Conflict, Denied, Invalid, NotFound, Throttled
from app.i18n import N_, _
from app.records import (
    CONTACT,
    DEFAULT_HEARTBEAT_INTERVAL,
    HEARTBEAT_URL,
    ApiKey,
    ArrivedPing,
    Monitor,
    Page,
    Pair,
    Ping,
    PingQuery,
)
from app.rules import slugs
from app.rules.slugs import is_token, make_ping_token
from app.rules.text import TAKEN, one_line
from app.stores import base
from app.stores.base import Fields
from app.stores.local.bound import BoundStore
from app.stores.local.part import LocalPart, fits, lock_monitor, require_monitor

AMBIGUOUS = "ambiguous slug"  # the text of healthchecks
# Pings create no heartbeat above this number of heartbeats: somebody with a ping key could fill the
# database.
MAX_CREATED, TOO_MANY = 1_000, "too many heartbeats"
MAX_WRONG, WINDOW_SECONDS = 60, 60  # unknown names in pings of one address
# Pings are stored together. Before, the thread pauses while more pings arrive in each pause.
GATHERING_SECONDS, GATHERING_ROUNDS = 0.002, 10
MAX_BODY_START = 200  # characters of the first line
_STATE: Any = HeartbeatStateRow.__table__
_STATES = select(
    _STATE.c.monitor_id, HeartbeatStateRow.token, _STATE.c.last_ping_at, _STATE.c.expected_at,
    HeartbeatStateRow.runs,
)  # fmt: skip

_WITH_TOKENS = select(_STATE.c.monitor_id, _STATE.c.token_hash).where(
    _STATE.c.token_hash.in_(bindparam("hashes", expanding=True))
)


def token_hash(token: str) -> str:
    """The stored hash of a token."""
    return keyed_hash("ping", token)


def new_token(session: DbSession, token: str | None) -> str:
    """The token of a new heartbeat: ``token``, or a random one. Raises Invalid if another
    heartbeat has it.
    """
    if token is None:
        return make_ping_token()
    state = HeartbeatStateRow
    holder = select(state.monitor_id).where(state.token_hash == token_hash(token))
    if session.scalar(holder) is not None:
        raise Invalid({"heartbeat_token": [_(TAKEN)]})
    return token


def with_slug(fields: Fields) -> dict[str, Any]:
    """The fields of a new heartbeat. Without a slug, they get one made of the name."""
    return {**fields, "slug": fields.get("slug") or slugs.of_heartbeat(str(fields["name"]))}


def add_heartbeat(session: DbSession, row: MonitorRow, token: str) -> None:
    slug: str | None = row.slug  # type: ignore[attr-defined] # a field of the kind
    recorder.add_heartbeat(session, row.id, token, token_hash(token), slug)


def states_of(ids: Iterable[int], base_url: str) -> dict[int, dict[str, Any]]:
    """The fields of these heartbeats that depend on their pings."""
    rows = db.session.execute(_STATES.where(_STATE.c.monitor_id.in_(list(ids))))
    return {row.monitor_id: _fields(row, base_url) for row in rows}


def _fields(row: Any, base_url: str) -> dict[str, Any]:
    token = readable(row.token)
    starts = [start for _rid, start, _until in row.runs]
    return {
        "ping_url": token and f"{base_url}/ping/{token}",
        "last_ping_at": row.last_ping_at,
        "expected_at": row.expected_at,
        "running_since": from_ms(min(starts)) if starts else None,
    }


def _with_slug(slug: str, tag: str | None) -> Sequence[int]:
    """The first two heartbeats with this slug; two mean that it is ambiguous."""
    state = HeartbeatStateRow
    ids = select(state.monitor_id).where(state.slug == slug).limit(2)
    if tag is not None:
        ids = ids.join(MonitorRow, MonitorRow.id == state.monitor_id).where(tagged([tag]))
    return db.session.scalars(ids).all()


class LocalHeartbeats(LocalPart, base.Heartbeats):
    def list(self, query: PingQuery) -> Page[Ping]:
        require_monitor(query.monitor_id)
        of_monitor = PingRow.monitor_id == query.monitor_id
        total, offset = count_of(db.session, PingRow, of_monitor), (query.page - 1) * query.per_page
        newest = select(PingRow).where(of_monitor).order_by(PingRow.id.desc())
        rows = db.session.scalars(newest.offset(offset).limit(query.per_page))
        pings = [replace(_ping(row), body=None) for row in rows]
        return Page(pings, query.page, query.per_page, total)

    def get(self, monitor_id: int, id: int) -> Ping:
        row = db.session.get(PingRow, id) if fits(id) else None
        if row is None or row.monitor_id != monitor_id:
            raise NotFound(N_("ping"), id)
        return _ping(row)

    def new_token(self, monitor_id: int) -> Monitor:
        with writing() as session:
            row = lock_monitor(session, monitor_id)
            state = session.get(HeartbeatStateRow, monitor_id)
            if state is None:
                raise Conflict(_("This monitor is no heartbeat, so it has no ping URL."))
            token = make_ping_token()
            state.token, state.token_hash = token, token_hash(token)
            audit.note_change(session, row, {"heartbeat_token": audit.CHANGED})
        return self.store.monitors.get(monitor_id)


def _ping(row: PingRow) -> Ping:
    body = readable(row.body)
    start = next((line for line in (body or "").splitlines() if line.strip()), "")
    return record_of(Ping, row, body=body, body_start=one_line(start, MAX_BODY_START) or None)


@dataclass(slots=True)
class _Waiting:
    """A ping, of the heartbeat with this id or secret, for whose storing a thread waits."""

    ping: ArrivedPing
    monitor_id: int | None = None
    token_hash: str | None = None
    stored: Future[None] = field(default_factory=Future)


class LocalPings:
    """Stores the pings that arrive. Needs an application context.

    One thread stores them. One transaction stores all pings that have arrived while the previous
    one was stored. At midnight, all jobs call at once, and if each thread wrote to SQLite, they
    would wait for each other ten times as long.
    """

    def __init__(self, access: Access, store: base.Store) -> None:
        self._access, self._store = access, store
        self._waiting: deque[_Waiting] = deque()
        self._slug_lock = threading.Lock()  # one thread at a time asks SQLite for a slug
        self._recorder = ThreadPoolExecutor(1, "ping-recorder")

    def now(self) -> datetime:
        return self._access.clock()

    def find(self, token: str) -> int | None:
        """The heartbeat with this secret."""
        if not is_token(token):
            return None
        id: int | None = db.session.scalar(_WITH_TOKENS, {"hashes": [token_hash(token)]})
        return id

    def by_slug(
        self, text: str, slug: str, address: str | None, *, create: bool
    ) -> tuple[int, bool] | None:
        """The heartbeat with this slug for a ping key, and whether it was created; None if there is
        no such key or no such heartbeat. Raises Conflict if several heartbeats have the slug, and
        Denied if no other may be created.
        """
        with self._slug_lock:
            key = self._access.keys.ping_key(text, address)
            if key is None or not slugs.is_heartbeat_slug(slug):
                return None
            ids = _with_slug(slug, key.tag)
        if not ids and create:
            with writing() as session:
                # The lock makes two first pings at once create one heartbeat.
                own = select(ApiKeyRow.id).where(ApiKeyRow.id == key.id)
                session.execute(own.with_for_update())
                ids = _with_slug(slug, key.tag)
                if not ids:
                    if key.tag is not None and _with_slug(slug, None):
                        # A second heartbeat would make the slug ambiguous for keys without a tag.
                        raise Conflict(AMBIGUOUS)
                    if count_of(session, HeartbeatStateRow) >= MAX_CREATED:
                        raise Denied(TOO_MANY)
                    return self._create(slug, key), True
        db.session.rollback()
        if len(ids) > 1:
            raise Conflict(AMBIGUOUS)
        return (ids[0], False) if ids else None

    def _create(self, slug: str, key: ApiKey) -> int:
        """Create a heartbeat with the defaults of healthchecks: a period of a day, an hour of
        grace, and the default contacts.
        """
        store = self._store if key.tag is None else BoundStore(self._store, key.tag)
        fields = {
            "name": slug,
            "url": HEARTBEAT_URL,
            "interval": DEFAULT_HEARTBEAT_INTERVAL,
            "slug": slug,
            "period": 24 * 3600,
            "grace": 3600,
            "tags": () if key.tag is None else (key.tag,),
            "alerts": tuple(Pair(CONTACT, name) for name in store.contacts.defaults()),
        }
        return store.monitors.create(fields).id

    def take(self, monitor_id: int, ping: ArrivedPing) -> None:
        """Store a ping and the state that it leads to."""
        self._wait_for(_Waiting(ping, monitor_id))

    def take_by_token(self, token: str, ping: ArrivedPing) -> bool:
        """Store a ping of the heartbeat with this secret. Returns whether there is one."""
        if not is_token(token):
            return False
        own = _Waiting(ping, token_hash=token_hash(token))
        self._wait_for(own)
        return own.monitor_id is not None

    def _wait_for(self, own: _Waiting) -> None:
        self._waiting.append(own)
        self._recorder.submit(self._record_waiting, current_app._get_current_object())  # type: ignore[attr-defined]
        own.stored.result()

    def _record_waiting(self, app: Flask) -> None:
        if self._waiting:  # otherwise an earlier call has stored the ping
            self._gather()
            batch = [self._waiting.popleft() for _ping in range(len(self._waiting))]
            with app.app_context():
                self._record(batch)

    def _gather(self) -> None:
        """Wait while more pings arrive: a transaction takes as long for a few as for all."""
        count = 0
        for _wait in range(GATHERING_ROUNDS):
            if count == len(self._waiting):
                return
            count = len(self._waiting)
            time.sleep(GATHERING_SECONDS)

    def _record(self, batch: Sequence[_Waiting]) -> None:
        try:
            self._find_heartbeats(batch)
            pings = [
                (entry.monitor_id, entry.ping) for entry in batch if entry.monitor_id is not None
            ]
            if pings:
                recorder.record_pings(pings, self.now())
        except Exception as fault:
            if len(batch) > 1 and not unavailable(fault):
                for entry in batch:  # one heartbeat that cannot be read must not stop the others
                    self._record([entry])
                return
            for entry in batch:
                entry.stored.set_exception(fault)
        else:
            for entry in batch:
                entry.stored.set_result(None)

    def _find_heartbeats(self, batch: Sequence[_Waiting]) -> None:
        """Find the heartbeats of secrets with one statement. If each thread queried SQLite, they
        would wait for each other more than ten times as long.
        """
        hashes = {entry.token_hash for entry in batch if entry.token_hash is not None}
        rows = db.session.execute(_WITH_TOKENS, {"hashes": list(hashes)}) if hashes else ()
        ids = {hash: id for id, hash in rows}
        for entry in batch:
            if entry.token_hash is not None:
                entry.monitor_id = ids.get(entry.token_hash)

    def count_wrong(self, address: str | None) -> int | None:
        """Count an unknown name in a ping. Return the seconds that an address with too many of them
        must wait; None below the limit.
        """
        limit = Limit(f"pings:{counted_address(address)}", WINDOW_SECONDS, MAX_WRONG)
        try:
            self._access.counters.attempt("", limit)
        except Throttled as fault:
            return fault.retry_after
        return None
