"""People: accounts, roles, log-in."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import delete, select, update

from app.access import passwords, security_log
from app.access.actors import acting_as
from app.access.counters import (
    LOGIN_WINDOW_SECONDS,
    LOGINS_PER_ACCOUNT,
    LOGINS_PER_ADDRESS,
    LOGINS_PER_DEVICE,
    Counters,
    Limit,
    counted_address,
)
from app.access.keys import transfer_or_revoke_keys
from app.access.security_log import SecurityEvent
from app.access.settings import StoredSettings
from app.access.tokens import digest_of, make_token
from app.db import AnySession, DbSession, db, schema, writing
from app.db.settings import remove_setting
from app.db.statements import count_of, delete_all_but_newest, delete_rows
from app.db.tables import (
    DeviceRow,
    InvitationRow,
    PendingLoginRow,
    PersonRow,
    RecoveryRow,
    SessionRow,
)
from app.db.types import record_of
from app.errors import Conflict, Denied, Invalid, Throttled, existing
from app.i18n import N_, _
from app.records import MAX_PERSON_NAME, Client, Person, Role
from app.rules import addresses, text
from app.rules.time import is_zone

THEMES = ("auto", "light", "dark")
ENDS_SESSIONS = ("email", "role", "disabled")  # fields whose change ends the person's sessions
EDITABLE = {"email", "name", "role", "time_zone", "theme", "disabled", "first_steps_away"}
TOO_MANY_LOGINS = N_("Too many attempts to log in. Wait a few minutes and try again.")

UNKNOWN_CLIENT = Client()


class People:
    def __init__(self, clock: Callable[[], datetime], counters: Counters) -> None:
        self.clock, self.counters = clock, counters

    def create(self, email: str, password: str, role: str) -> Person:
        """A new account. Raises Invalid, also when the email address is taken."""
        check_account(email, role, password)
        hash_ = passwords.hashed(password)
        with writing() as session:
            return self.add(session, email, hash_, role)

    def all(self) -> list[Person]:
        """All people, in the order of their email addresses."""
        rows = db.session.execute(select(PersonRow).order_by(PersonRow.email_folded)).scalars()
        return [person_record(row) for row in rows]

    def get(self, id: int) -> Person:
        """Raises NotFound."""
        return person_record(_person_row(db.session, id))

    def by_email(self, email: str) -> Person | None:
        """The person with this email address, ignoring case."""
        row = row_of_email(email)
        return None if row is None else person_record(row)

    def update(
        self,
        id: int,
        fields: Mapping[str, Any],
        *,
        rewritten: Collection[str] = (),
        hand_over_keys: bool = False,
        heir_id: int | None = None,
    ) -> Person:
        """Change some of ``EDITABLE``. A new email address or role, and a change of ``disabled``,
        end the person's sessions. ``rewritten``: fields whose stored value cannot be read. The form
        showed a default for them, which is stored even if nobody changed it. ``hand_over_keys``:
        the person's API keys go to ``heir_id``; without an heir they are revoked.

        Raises NotFound, Invalid, and Conflict for the last admin.
        """
        _check(fields)
        with writing() as session:
            row = _person_row(session, id)
            is_admin = fields.get("role", row.role) == Role.ADMIN
            if not is_admin or fields.get("disabled", row.disabled):
                _refuse_last_admin(session, row)
            if "email" in fields:
                refuse_taken(session, fields["email"], except_id=id)
                row.email_folded = fields["email"].casefold()
            if any(name in fields and fields[name] != getattr(row, name) for name in ENDS_SESSIONS):
                end_sessions(session, id)
            for name, value in fields.items():
                setattr(row, name, value)
            for name in rewritten:
                # The default has a subclass of str, so SQLAlchemy sees a change to a plain str.
                setattr(row, name, str(getattr(row, name)))
            session.flush()
            if hand_over_keys:
                transfer_or_revoke_keys(session, id, heir_id, self.clock())
            return person_record(row)

    def delete(self, id: int, *, heir_id: int | None = None) -> None:
        """Delete a person. ``heir_id``: the person who gets the API keys; without an heir they are
        revoked. Raises NotFound, and Conflict for the last admin.
        """
        with writing() as session:
            row = _person_row(session, id)
            _refuse_last_admin(session, row)
            transfer_or_revoke_keys(session, id, heir_id, self.clock())
            session.delete(row)

    def change_password(self, id: int, password: str, *, current: str | None = None) -> Person:
        """Set a new password; all sessions end. ``current``, if given, must be the present one.

        Raises NotFound and Invalid (``current_password``, ``password``).
        """
        if current is not None:
            self.confirm(id, current)
        person = _person_row(db.session, id)
        if sentence := passwords.fault_of(password, person.email):
            raise Invalid({"password": [sentence]})
        hash_ = passwords.hashed(password, trusted=True)
        with writing() as session:
            row = _person_row(session, id)
            row.password_hash = hash_
            end_sessions(session, id)
            forget_devices(session, id)
            session.flush()
            changed = person_record(row)
            security_log.log_event(SecurityEvent.PASSWORD_CHANGED, changed)
        return changed

    def confirm(self, id: int, password: str) -> None:
        """Raises Invalid (``current_password``) if the password is not the person's, and Throttled
        after as many wrong passwords as a login may have: nobody may guess the password in a
        browser that was left open. Failed logins of strangers are not counted here.
        """
        row = _person_row(db.session, id)
        person, hash_ = person_record(row), row.password_hash
        limit = Limit(f"confirm:person:{id}", LOGIN_WINDOW_SECONDS, LOGINS_PER_ACCOUNT)
        try:
            matches = self._password_matches([limit], hash_, password, trusted=True)
        except Throttled:
            security_log.log_event(SecurityEvent.PASSWORD_THROTTLED, person)
            raise
        if not matches:
            security_log.log_event(SecurityEvent.PASSWORD_WRONG, person)
            raise Invalid({"current_password": [_("The current password is wrong.")]})
        self.counters.reset(limit)

    def has_logged_in(self, email: str) -> bool:
        """Whether somebody with this email address has ever logged in."""
        row = row_of_email(email)
        return row is not None and row.last_login_at is not None

    def login(self, email: str, password: str, client: Client = UNKNOWN_CLIENT) -> Person | None:
        """The person with this email address and password, whose login is recorded; None if one of
        them is wrong or the account is disabled. A person with a ``second_factor`` needs it too
        (``PendingLogins``).

        Raises Throttled after too many failed attempts, and when too many people log in at the same
        time.
        """
        row = row_of_email(email)
        # The device is looked up even if no account has the address: the time must not reveal that.
        device = device_of(client.device, 0 if row is None else row.id, self.clock())
        hash_ = None if row is None else row.password_hash
        person = None if row is None else person_record(row)
        log_event = partial(security_log.log_event, address=client.address)
        address_limit = _limit(f"address:{counted_address(client.address)}", LOGINS_PER_ADDRESS)
        limits = [logins_of(email), address_limit]
        if device is not None:
            limits = [_limit(f"device:{device}", LOGINS_PER_DEVICE)]
        try:
            matches = self._password_matches(limits, hash_, password, trusted=device is not None)
        except Throttled:
            log_event(SecurityEvent.LOGIN_THROTTLED, person, typed=email)
            raise
        if person is None or person.disabled or hash_ is None or not matches:
            log_event(SecurityEvent.LOGIN_FAILED, person, typed=email)
            return None
        for limit in limits:
            if limit == address_limit:  # others may share it, so their attempts stay counted
                self.counters.take_back_attempt(limit)
            else:
                self.counters.reset(limit)
        new_hash = passwords.hashed(password) if passwords.is_outdated(hash_) else hash_
        # Without a line in the audit log: only the parameters of the hash change.
        with acting_as(None), writing() as session:
            row = session.get(PersonRow, person.id, with_for_update=True, populate_existing=True)
            # The password may have been replaced while it was compared, which takes a while.
            if row is not None and row.password_hash == hash_:
                row.password_hash = new_hash
                return self.record_login(person.id)
        log_event(SecurityEvent.LOGIN_FAILED, person)
        return None

    def _password_matches(
        self, limits: Sequence[Limit], hash_: str | None, password: str, *, trusted: bool
    ) -> bool:
        """Whether the password is right. The attempt counts in each limit. Raises Throttled."""
        self.counters.refuse(TOO_MANY_LOGINS, *limits)
        # A login that waits must not keep a connection.
        db.session.rollback()
        count = partial(self.counters.count_attempt, TOO_MANY_LOGINS, *limits)
        return passwords.matches(hash_, password, count=count, trusted=trusted)

    def record_login(self, id: int) -> Person:
        """Store the time of a login, unless a second factor is still needed."""
        with acting_as(None), writing() as session:
            row = _person_row(session, id)
            if not row.second_factor:
                row.last_login_at = self.clock()
            session.flush()
            return person_record(row)

    def add(
        self,
        session: DbSession,
        email: str,
        hash_: str,
        role: str,
        *,
        name: str | None = None,
        time_zone: str = "UTC",
    ) -> Person:
        """A new account, in the caller's transaction. Raises Invalid if the address is taken."""
        refuse_taken(session, email)
        # Somebody who has an account needs no invitation.
        session.execute(delete(InvitationRow).where(InvitationRow.email_folded == email.casefold()))
        row = PersonRow(
            email=email,
            email_folded=email.casefold(),
            name=name or None,
            password_hash=hash_,
            role=role,
            time_zone=time_zone,
            created_at=self.clock(),
        )
        session.add(row)
        session.flush()
        return person_record(row)


def person_record(row: PersonRow) -> Person:
    return record_of(Person, row)


def row_of_email(email: str) -> PersonRow | None:
    """The row of the person with this email address, ignoring case."""
    return db.session.scalar(select(PersonRow).where(PersonRow.email_folded == email.casefold()))


def end_sessions(session: DbSession, id: int, keep: int | None = None) -> None:
    """End a person's sessions, pending logins, and links to set a new password. ``keep``: the id of
    a session that stays.
    """
    conditions = () if keep is None else (SessionRow.id != keep,)
    session.execute(delete(SessionRow).where(SessionRow.person_id == id, *conditions))
    for table in (PendingLoginRow, RecoveryRow):
        session.execute(delete(table).where(table.person_id == id))


def _person_row(session: DbSession, id: int) -> PersonRow:
    return existing(session.get(PersonRow, id), "person", id)


def check_account(
    email: str, role: str, password: str, *, name: str | None = None, time_zone: str = "UTC"
) -> None:
    """Raises Invalid if these cannot make an account."""
    _check({"email": email, "role": role, "name": name, "time_zone": time_zone}, password)


def check_invitation(email: str, role: str) -> None:
    """Raises Invalid if nobody can be invited with this address and role."""
    _check({"email": email, "role": role})


def _check(fields: Mapping[str, Any], password: str | None = None) -> None:
    unknown = set(fields) - EDITABLE
    errors = {name: [_("This cannot be changed.")] for name in sorted(unknown)}
    for name, value in fields.items():
        if sentence := _fault(name, value):
            errors[name] = [sentence]
    if password is not None and (sentence := passwords.fault_of(password, fields.get("email", ""))):
        errors["password"] = [sentence]
    if errors:
        raise Invalid(errors)


def _fault(name: str, value: Any) -> str | None:
    if name == "email":
        return text.fault_of(lambda: addresses.check(value))
    if name == "name" and value is not None:
        return text.fault_of(lambda: text.length(value, MAX_PERSON_NAME))
    if name == "role" and value not in list(Role):
        return text.one_of(Role)
    if name == "theme" and value not in THEMES:
        return text.one_of(THEMES)
    if name == "time_zone" and not is_zone(value):
        return _("This time zone is not known. Use a name such as Europe/Berlin.")
    return None


def refuse_taken(session: DbSession, email: str, except_id: int | None = None) -> None:
    statement = select(PersonRow.id).where(PersonRow.email_folded == email.casefold())
    holder = session.execute(statement).scalar_one_or_none()
    if holder is not None and holder != except_id:
        raise Invalid({"email": [_(text.TAKEN)]})


def _refuse_last_admin(session: DbSession, row: PersonRow) -> None:
    if row.role != Role.ADMIN or row.disabled:
        return
    # The lock makes two removals at the same time wait for each other; without it, PostgreSQL would
    # let both admins be removed.
    admins = select(PersonRow.id).where(PersonRow.role == Role.ADMIN, PersonRow.disabled.is_(False))
    if len(session.execute(admins.with_for_update()).all()) <= 1:
        raise Conflict(_("This is the last admin. Make another person an admin first."))


def logins_of(email: str) -> Limit:
    """The limit for an account's wrong passwords."""
    # A hash: people type passwords into the email field, and these must not be stored in a table.
    return _limit(f"account:{digest_of(email.casefold())[:32]}", LOGINS_PER_ACCOUNT)


def _limit(name: str, max_attempts: int) -> Limit:
    return Limit(f"login:{name}", LOGIN_WINDOW_SECONDS, max_attempts)


# --- The first account ----------------------------------------------------------------------------
#
# It is created on the first visit, with a one-time link that the server prints (decision 6).

SETUP_TOKEN = "setup_token"  # noqa: S105 - the setting's name
VOID = N_("This set-up link is no longer valid. Log in, or ask an admin for an account.")


class Setup:
    def __init__(self, people: People, settings: StoredSettings) -> None:
        self.people, self.settings = people, settings

    def needed(self) -> bool:
        """Whether there is no account yet."""
        return count_of(db.session, PersonRow) == 0

    def database(self) -> str:
        """The location of the database, so that people notice a wrong one."""
        return schema.location()

    def token(self) -> str:
        """The token of the set-up link, which stays the same until the first account exists. An
        unreadable token is replaced, because the link is printed at each start.
        """
        if self.settings.is_unreadable(SETUP_TOKEN):
            self.settings.set(SETUP_TOKEN, None)
        return self.settings.get_or_make(SETUP_TOKEN, lambda: secrets.token_urlsafe(24))

    def is_token(self, token: str) -> bool:
        """Whether ``token`` is valid now."""
        stored = self.settings.get(SETUP_TOKEN)
        same = hmac.compare_digest((stored or "").encode(), token.encode("utf-8", "surrogatepass"))
        return stored is not None and same and self.needed()

    def use(self, token: str, email: str, password: str, *, time_zone: str = "UTC") -> Person:
        """Create the first account, an admin, and record its login. Raises Denied if the token is
        wrong or used up, and Invalid.
        """
        if not self.is_token(token):
            raise Denied(_(VOID))
        check_account(email, Role.ADMIN, password, time_zone=time_zone)
        hash_ = passwords.hashed(password)
        with writing() as session:
            # The token is removed first: the second of two visitors at the same time finds no row.
            if not remove_setting(SETUP_TOKEN) or not self.needed():
                raise Denied(_(VOID))
            person = self.people.add(session, email, hash_, Role.ADMIN, time_zone=time_zone)
        return self.people.record_login(person.id)


# --- Devices --------------------------------------------------------------------------------------
#
# A device is a browser in which a person has logged in before. Strangers who type wrong passwords
# do not lock it out, because its attempts are counted separately (``People.login``).
#
# A cookie has the token of the device. Only the hash of the token is stored, in a row for each
# person who has logged in there. Each login replaces the token, so an old copy of the cookie is
# worth nothing.

DEVICE_RETENTION = timedelta(days=180)  # since the last login
DEVICES_PER_PERSON = 20  # of more, the longest unused are forgotten


def device_of(token: str | None, person_id: int, now: datetime) -> int | None:
    """The id of the device with this token, if the person has logged in there before."""
    if not token:
        return None
    row = _device_row(db.session, token, person_id)
    return None if row is None or now - row.last_used_at >= DEVICE_RETENTION else row.id


def forget_old_devices(now: datetime) -> None:
    delete_rows(DeviceRow, DeviceRow.last_used_at <= now - DEVICE_RETENTION)


def remember_device(
    session: DbSession, token: str | None, person_id: int, now: datetime
) -> tuple[int, str]:
    """Note that the person logs in on the device with this token. Returns the id of the device and
    its new token. Call this inside ``writing()``.
    """
    new = make_token()
    if token:
        # A browser has one cookie, so this changes the rows of all people who share the browser.
        session.execute(
            update(DeviceRow)
            .where(DeviceRow.digest == digest_of(token))
            .values(digest=digest_of(new))
        )
    row = _device_row(session, new, person_id)
    if row is None:
        row = DeviceRow(digest=digest_of(new), person_id=person_id)
        session.add(row)
    row.last_used_at = now
    session.flush()
    theirs = DeviceRow.person_id == person_id
    delete_all_but_newest(session, DeviceRow.id, theirs, DeviceRow.last_used_at, DEVICES_PER_PERSON)
    return row.id, new


def _device_row(session: AnySession, token: str, person_id: int) -> DeviceRow | None:
    query = select(DeviceRow).where(DeviceRow.digest == digest_of(token))
    return session.scalar(query.where(DeviceRow.person_id == person_id))


def forget_devices(session: DbSession, person_id: int, keep: int | None = None) -> None:
    """Forget all devices of the person but ``keep`` (an id)."""
    others = () if keep is None else (DeviceRow.id != keep,)
    session.execute(delete(DeviceRow).where(DeviceRow.person_id == person_id, *others))
