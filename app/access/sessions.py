"""Sessions of people in browsers. Each session has a record; the cookie has a token that names it.

A cookie cannot be revoked, so the record decides whether a session is valid, for every copy of its
cookie. A session ends after 12 hours without use, after 30 days, at a logout, when somebody ends it
in the list, and when the person's email address, role, access, password or second factor changes
(decision 15).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import bindparam, or_, select, update

from app.access import dashboard_hosts, people, security_log
from app.access.people import UNKNOWN_CLIENT, end_sessions, person_record
from app.access.security_log import SecurityEvent
from app.access.tokens import digest_of, make_token
from app.config import SESSION_SECONDS
from app.db import DbSession, best_effort, db, writing
from app.db.statements import delete_all_but_newest, delete_rows
from app.db.tables import DeviceRow, PersonRow, SessionRow
from app.db.types import record_of
from app.errors import NotFound
from app.records import Client, Person, Session
from app.rules.clocks import believable, is_due, runs

MAX_IDLE = timedelta(hours=12)
MAX_AGE = timedelta(seconds=SESSION_SECONDS)
TOUCH_AFTER = timedelta(minutes=3)  # a busy browser must not cost a write for each request
RECENT = timedelta(minutes=10)  # how long a typed password is enough to change access
MAX_OF_PERSON = 100  # a script that logs in each minute must not fill the list
GRACE = timedelta(seconds=30)  # requests with the former token are accepted for this long
# Built once, because each page runs it.
_CURRENT = select(SessionRow).where(SessionRow.digest == bindparam("digest"))
_FORMER = select(SessionRow).where(
    SessionRow.former_digest == bindparam("digest"),
    SessionRow.password_at > bindparam("after"),
    SessionRow.password_at <= bindparam("until"),
)
# These read the session and its person in one statement.
_WITH_PERSON = [
    query.join(PersonRow, PersonRow.id == SessionRow.person_id).add_columns(PersonRow)
    for query in (_CURRENT, _FORMER)
]


@dataclass(frozen=True, slots=True)
class SessionTokens:
    """The tokens of a session and of its device (``people``). Only the browser gets them."""

    session: str
    device: str


class LoginSessions:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def begin(
        self,
        person_id: int,
        client: Client = UNKNOWN_CLIENT,
        *,
        password_at: datetime | None = None,
    ) -> SessionTokens:
        """Start a session of this person in the browser of ``client``, and remember the browser as
        a device. ``password_at``: when the password was last typed, if this is no login.
        """
        token, now = make_token(), self.clock()
        row = SessionRow(
            digest=digest_of(token),
            person_id=person_id,
            created_at=now,
            last_used_at=now,
            password_at=password_at or now,
            address=client.address,
            browser=first_word(BROWSERS, client.user_agent),
            system=first_word(SYSTEMS, client.user_agent),
        )
        is_new = people.device_of(client.device, person_id, now) is None
        with writing() as session:
            row.device_id, device = people.remember_device(session, client.device, person_id, now)
            session.add(row)
            session.flush()
            of_person = SessionRow.person_id == person_id
            delete_all_but_newest(
                session, SessionRow.id, of_person, SessionRow.last_used_at, MAX_OF_PERSON
            )
            dashboard_hosts.remember(session, person_id, client.host, now)
            if password_at is None:
                _log_event(session, SecurityEvent.LOGIN_OK, person_id, client.address)
            if password_at is None and is_new:
                _log_event(session, SecurityEvent.LOGIN_NEW_DEVICE, person_id, client.address)
        return SessionTokens(token, device)

    def person(self, token: str) -> Person | None:
        """The person of this session; None if it does not exist or is over."""
        opened = self.open(token)
        return None if opened is None else opened[0]

    def open(self, token: str, client: Client = UNKNOWN_CLIENT) -> tuple[Person, Session] | None:
        """The person of this session, and its record; None if it does not exist or is over. Notes
        that ``client`` uses it.
        """
        now = self.clock()
        values = _parameters(token, now)
        rows = (db.session.execute(query, values).first() for query in _WITH_PERSON)
        row, owner = next((row for row in rows if row is not None), (None, None))
        if row is None or owner is None or _is_over(row, now) or owner.disabled:
            return None
        person, record = person_record(owner), record_of(Session, row)
        if row.digest != digest_of(token):  # the former token has no rights of a recent password
            record = replace(record, password_at=None)
        if is_due(record.last_used_at, now, TOUCH_AFTER):
            best_effort("The last use of a session", lambda: _touch(record, now, client))
        return person, record

    def of(self, person_id: int) -> list[Session]:
        """The sessions that are not over, the last used first."""
        rows = db.session.scalars(
            select(SessionRow)
            .where(SessionRow.person_id == person_id)
            .order_by(SessionRow.last_used_at.desc(), SessionRow.id.desc())
        )
        now = self.clock()
        return [record_of(Session, row) for row in rows if not _is_over(row, now)]

    def password_is_recent(self, record: Session) -> bool:
        """Whether the password was typed in this session within ``RECENT``."""
        at = record.password_at
        return at is not None and runs(at, self.clock(), RECENT)

    def password_typed(self, token: str) -> str | None:
        """Note that the person of this session has typed their password. Returns a new token of the
        session, because a copy of the old cookie must not get the rights that the password gives.
        Returns None if the session is over.
        """
        new, now = make_token(), self.clock()
        with writing() as session:
            row = _with_token(session, token, now, lock=True)
            if row is None:
                return None
            row.former_digest, row.digest, row.password_at = row.digest, digest_of(new), now
        return new

    def end(self, token: str) -> None:
        """End a session. Ending it twice changes nothing."""
        with writing() as session:
            if row := _with_token(session, token, self.clock()):
                session.delete(row)

    def log_out(self, token: str, *, forget: bool = False) -> None:
        """End a session. Ending it twice changes nothing. ``forget``: forget the device too."""
        with writing() as session:
            if row := _with_token(session, token, self.clock()):
                _log_event(session, SecurityEvent.LOGOUT, row.person_id)
                _end(session, row, forget=forget)

    def end_other(self, person_id: int, id: int) -> None:
        """End a session in another browser, and forget that device. Raises NotFound if the person
        has no such session.
        """
        with writing() as session:
            row = session.get(SessionRow, id)
            if row is None or row.person_id != person_id:
                raise NotFound("session", id)
            _end(session, row, forget=True)
            _log_event(session, SecurityEvent.SESSIONS_ENDED, person_id)

    def end_all(self, person_id: int, *, keep: int | None = None) -> None:
        """End all sessions of a person, pending logins, and links to set a new password, and forget
        the devices. ``keep``: the id of a session that stays, with its device.
        """
        with writing() as session:
            kept_session = None if keep is None else session.get(SessionRow, keep)
            end_sessions(session, person_id, keep=keep)
            people.forget_devices(
                session, person_id, keep=None if kept_session is None else kept_session.device_id
            )
            _log_event(session, SecurityEvent.SESSIONS_ENDED, person_id)

    def forget_old(self) -> None:
        """Delete sessions that are over. The engine's housekeeping calls it."""
        now = self.clock()
        expired = or_(
            SessionRow.last_used_at <= now - MAX_IDLE,
            ~SessionRow.created_at.between(now - MAX_AGE, believable(now)),
        )
        delete_rows(SessionRow, expired)


def _with_token(
    session: DbSession, token: str, now: datetime, *, lock: bool = False
) -> SessionRow | None:
    """The session that has this token, or had it within ``GRACE``. ``lock``: lock its row, so that
    a second change waits for this one.
    """
    values = _parameters(token, now)
    for query in (_CURRENT, _FORMER):
        if row := session.scalar(query.with_for_update() if lock else query, values):
            return row
    return None


def _parameters(token: str, now: datetime) -> dict[str, object]:
    return {"digest": digest_of(token), "after": now - GRACE, "until": believable(now)}


def _log_event(
    session: DbSession, event: SecurityEvent, person_id: int, address: str | None = None
) -> None:
    row = session.get_one(PersonRow, person_id)
    security_log.log_event(event, person_record(row), address=address)


def _touch(record: Session, now: datetime, client: Client) -> None:
    values: dict[str, object] = {"last_used_at": now}
    values |= {} if client.address is None else {"address": client.address}
    with writing() as session:
        session.execute(update(SessionRow).where(SessionRow.id == record.id).values(values))
        # The host is written after the session, as in ``begin``: in another order, two requests
        # could wait for each other.
        dashboard_hosts.remember(session, record.person_id, client.host, now)


def _end(session: DbSession, row: SessionRow, *, forget: bool) -> None:
    if forget and row.device_id is not None:
        delete_rows(DeviceRow, DeviceRow.id == row.device_id)
    session.delete(row)


def _is_over(row: SessionRow, now: datetime) -> bool:
    """Whether a session is over. A session from the future is: otherwise it would last until its
    time comes, and 30 days more.
    """
    return now - row.last_used_at >= MAX_IDLE or not runs(row.created_at, now, MAX_AGE)


# The words for a browser and its system, from a ``User-Agent`` header.
#
# A stranger chooses the header, so only the words of these tables are stored.

HEADER_READ = 512  # characters; real headers are shorter

# The first mark in the table that the header contains decides, because most browsers also name the
# browsers that they imitate.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
SYSTEMS = (
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def first_word(table: tuple[tuple[str, str], ...], header: str | None) -> str | None:
    """The word of the table for a ``User-Agent`` header, such as ``Firefox``; None if no mark is in
    the header.
    """
    text = (header or "")[:HEADER_READ]
    return next((word for mark, word in table if mark in text), None)
