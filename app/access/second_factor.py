"""The second factors of a person (an authenticator app, passkeys), their recovery codes, and the
roles that must have a second factor (decision 15).

To add, change or remove a second factor, a person types the present password. All sessions of the
person end, also when an admin resets the second factor.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from textwrap import wrap

from sqlalchemy import delete, select

from app.access import audit, passwords, security_log
from app.access.people import People, end_sessions, person_record
from app.access.security_log import SecurityEvent
from app.access.settings import StoredSettings
from app.access.tokens import digest_of, keyed_hash, seal, unseal
from app.db import DbSession, db, writing
from app.db.settings import REQUIRED_ROLES as REQUIRED_ROLES
from app.db.statements import count_of
from app.db.tables import AuthenticatorAppRow, PasskeyRow, PersonRow, RecoveryCodeRow
from app.db.types import Unreadable, record_of
from app.errors import Conflict, Denied, Invalid, NotFound, existing
from app.i18n import N_, _
from app.records import Action, AuditedObject, ObjectKind, Passkey, Person, Role, SecondFactor

Codes = Mapping[str, str]  # new recovery codes, with their hashes

PURPOSE = "authenticator app"
CODE = "second_code"  # the name of the form's field
WRONG_CODE = N_(
    "This code is wrong or was used already. Wait for the next one, and check the clock of the "
    "device with the app."
)
NEEDED = N_(
    "Your role requires a second factor, and this is your last one. Add another one first, or "
    "change the app."
)
PASSWORD_CHANGED = N_("Your password has changed since. Log in again.")
NO_FACTOR = N_("There is no second factor. Set up an authenticator app or a passkey first.")


class SecondFactors:
    def __init__(
        self, clock: Callable[[], datetime], people: People, settings: StoredSettings
    ) -> None:
        self.clock, self.people, self.settings = clock, people, settings

    def of(self, id: int) -> SecondFactor:
        """The second factors that this person has."""
        app = db.session.get(AuthenticatorAppRow, id)
        passkeys = select(PasskeyRow).where(PasskeyRow.person_id == id).order_by(PasskeyRow.id)
        return SecondFactor(
            app_at=None if app is None else app.created_at,
            app_unreadable=app is not None and isinstance(app.secret, Unreadable),
            passkeys=tuple(record_of(Passkey, row) for row in db.session.scalars(passkeys)),
            codes_left=_codes_left(db.session, id),
        )

    def start_app(self, id: int) -> tuple[str, str]:
        """A new secret for an authenticator app, and the same sealed for ``add_app``. Nothing is
        stored: a login must not ask for the code of an app that was never confirmed.
        """
        secret = make_secret()
        return secret, seal({"person": id, "secret": secret}, PURPOSE)

    def started_app(self, id: int, sealed: str) -> str:
        """The secret that ``start_app`` sealed. Raises Denied."""
        content = unseal(sealed, PURPOSE)
        if content["person"] != id:
            raise Denied(_("This page belongs to another account. Start again."))
        return str(content["secret"])

    def add_app(self, id: int, sealed: str, code: str, *, current: str) -> tuple[Person, list[str]]:
        """Use the app with this secret, in place of an earlier one. ``code`` proves that the app
        has it. Returns new recovery codes if the person has none. Raises Denied, Invalid and
        Throttled.
        """
        secret = self.started_app(id, sealed)
        needs_codes = not _codes_left(db.session, id)
        with self.changing(id, current, make_codes=needs_codes) as (session, row, codes):
            step = step_of(secret, code, self.clock())
            if step is None:
                raise Invalid({CODE: [_(WRONG_CODE)]})
            now = self.clock()
            app = AuthenticatorAppRow(person_id=id, secret=secret, used_step=step, created_at=now)
            is_change = session.get(AuthenticatorAppRow, id) is not None
            session.merge(app)
            note(session, row, Action.CHANGED if is_change else Action.CREATED, "app")
            return self.finish_change(session, row), self.store_first_codes(session, row, codes)

    def remove_app(self, id: int, *, current: str) -> Person:
        """Remove the app. Raises NotFound, Conflict for the last factor of a role that must have
        one, Invalid and Throttled.
        """
        with self.changing(id, current) as (session, row, _codes):
            app = session.get(AuthenticatorAppRow, id)
            if app is None:
                raise NotFound("second factor", id, N_("This was removed already."))
            note(session, row, Action.DELETED, "app")
            return self._remove(session, row, app)

    def remove_passkey(self, id: int, passkey_id: int, *, current: str) -> Person:
        """Remove a passkey. Raises the errors of ``remove_app``."""
        with self.changing(id, current) as (session, row, _codes):
            passkey = session.get(PasskeyRow, passkey_id)
            if passkey is None or passkey.person_id != id:
                raise NotFound(N_("passkey"), passkey_id)
            note(session, row, Action.DELETED, "passkey", passkey.name)
            return self._remove(session, row, passkey)

    def renew_codes(self, id: int, *, current: str) -> tuple[Person, list[str]]:
        """Make ten new recovery codes, which end the old ones. Raises Conflict, Invalid and
        Throttled.
        """
        with self.changing(id, current, make_codes=True) as (session, row, codes):
            if not row.second_factor:
                raise Conflict(_(NO_FACTOR))
            self._store_codes(session, row, codes)
            return self.finish_change(session, row), [*codes]

    def reset(self, id: int) -> Person:
        """Remove all second factors, so that the password alone is enough. Raises NotFound."""
        with writing() as session:
            row = locked_person(session, id)
            note(session, row, Action.DELETED, "second_factor")
            for table in (AuthenticatorAppRow, PasskeyRow, RecoveryCodeRow):
                session.execute(delete(table).where(table.person_id == id))
            return self.finish_change(session, row)

    def required_roles(self) -> frozenset[Role]:
        """The roles that must have a second factor."""
        names = (self.settings.get(REQUIRED_ROLES) or "").split(",")
        return frozenset(role for role in Role if role in names)

    def set_required_roles(self, roles: Collection[Role]) -> None:
        """Set the roles that must have a second factor."""
        names = ",".join(role for role in Role if role in roles)
        with writing() as session:
            old_names = self.settings.get(REQUIRED_ROLES) or ""
            self.settings.set(REQUIRED_ROLES, names or None)
            if names != old_names:
                setting = AuditedObject(ObjectKind.SETTING, name=REQUIRED_ROLES)
                audit.note(session, Action.CHANGED, setting, {"roles": (old_names, names)})

    def must_add(self, person: Person) -> bool:
        """Whether this person must set up a second factor before doing anything else."""
        return not person.second_factor and person.role in self.required_roles()

    @contextmanager
    def changing(
        self, id: int, current: str, *, make_codes: bool = False
    ) -> Iterator[tuple[DbSession, PersonRow, Codes]]:
        """A transaction for a change of a person who typed the present password ``current``. Yields
        it with the person's row and, if ``make_codes``, new recovery codes. Raises the errors of
        ``People.confirm``.
        """
        compared = db.session.scalar(select(PersonRow.password_hash).where(PersonRow.id == id))
        self.people.confirm(id, current)
        # Outside of the transaction: other writers must not wait for ten slow hashes.
        new = make_recovery_codes() if make_codes else []
        codes = {code: digest_of_code(code, id) for code in new}
        with writing() as session:
            row = locked_person(session, id)
            if row.password_hash != compared or row.disabled:
                raise Invalid({"current_password": [_(PASSWORD_CHANGED)]})
            yield session, row, codes

    def finish_change(self, session: DbSession, row: PersonRow) -> Person:
        """End the person's sessions, delete the recovery codes of a person without a second factor,
        and log the change. Returns the person's record now.
        """
        end_sessions(session, row.id)
        session.flush()
        session.expire(row)
        if not row.second_factor:
            session.execute(delete(RecoveryCodeRow).where(RecoveryCodeRow.person_id == row.id))
        person = person_record(row)
        security_log.log_event(SecurityEvent.SECOND_FACTOR_CHANGED, person)
        return person

    def store_first_codes(self, session: DbSession, row: PersonRow, codes: Codes) -> list[str]:
        """Store these recovery codes if the person has none. Returns the stored codes."""
        if not codes or _codes_left(session, row.id):
            return []
        self._store_codes(session, row, codes)
        return [*codes]

    def _store_codes(self, session: DbSession, row: PersonRow, codes: Codes) -> None:
        id = row.id
        note(session, row, Action.CREATED, "recovery_codes")
        session.execute(delete(RecoveryCodeRow).where(RecoveryCodeRow.person_id == id))
        session.add_all(RecoveryCodeRow(person_id=id, digest=digest) for digest in codes.values())

    def _remove(
        self, session: DbSession, row: PersonRow, factor: AuthenticatorAppRow | PasskeyRow
    ) -> Person:
        session.delete(factor)
        person = self.finish_change(session, row)
        if self.must_add(person):
            raise Conflict(_(NEEDED))
        return person


def object_of(person: Person | PersonRow) -> AuditedObject:
    """The second factor of a person in the audit log."""
    return AuditedObject(ObjectKind.SECOND_FACTOR, person.id, person.email)


def note(
    session: DbSession, row: PersonRow, action: Action, part: str, name: str | None = None
) -> None:
    """Write a line of the audit log. ``part``: the word for the factor in the log; ``name``: the
    name of a passkey.
    """
    pair = (name, None) if action == Action.DELETED else (None, name)
    audit.note(session, action, object_of(row), {part: pair if name else audit.CHANGED})


def _codes_left(session: DbSession, id: int) -> int:
    return count_of(session, RecoveryCodeRow, RecoveryCodeRow.person_id == id)


def locked_person(session: DbSession, id: int) -> PersonRow:
    """The row of a person, locked until the transaction ends. Raises NotFound."""
    row = session.get(PersonRow, id, with_for_update=True, populate_existing=True)
    return existing(row, "person", id)


# --- Codes of authenticator apps (TOTP, RFC 6238): 6 digits, one code for each step of 30 seconds

PERIOD_SECONDS = 30
DIGITS = 6
DRIFT = 1  # steps that a phone's clock may be ahead or behind
ISSUER = "Wakeful"


def make_secret() -> str:
    """160 random bits in base32, as RFC 4226 recommends."""
    import pyotp  # here, so that a checker starts faster

    return pyotp.random_base32()


def app_uri(secret: str, email: str) -> str:
    """The text in the QR code, which an app reads."""
    import pyotp

    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER)


def step_at(moment: datetime) -> int:
    """The number of the step at this moment, counted from 1970."""
    return int(moment.timestamp()) // PERIOD_SECONDS


def step_of(secret: str, code: str, now: datetime) -> int | None:
    """The step, within the drift, whose code this is; None for a wrong code."""
    import pyotp

    digits = "".join(code.split())
    if len(digits) != DIGITS or not digits.isascii() or not digits.isdecimal():
        return None
    totp, present = pyotp.TOTP(secret), step_at(now)
    steps = range(present - DRIFT, present + DRIFT + 1)
    # All codes are compared, so that the time reveals nothing. If two steps have the same code, the
    # later step counts.
    matches = [step for step in steps if hmac.compare_digest(totp.generate_otp(step), digits)]
    return matches[-1] if matches else None


# --- Recovery codes: each logs in once, in place of the second factor. Only hashes are stored.
#
# 80 bits are few enough to type, and too few for a fast hash. All codes of a person share a salt,
# which is derived from the installation's key, so that one slow hash is enough to look up a code.

# Crockford's base32: no letter looks like a digit.
CODE_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_ALIKE = str.maketrans("oil", "011")
RECOVERY_CODES = 10
CODE_GROUPS, CODE_GROUP = 4, 4  # 16 letters of 5 bits: 80 bits
OLD_LENGTH = 28  # letters of codes of older versions, with 140 bits: a fast hash is enough


def make_recovery_codes() -> list[str]:
    length = CODE_GROUPS * CODE_GROUP
    codes = [
        "".join(secrets.choice(CODE_LETTERS) for _letter in range(length))
        for _code in range(RECOVERY_CODES)
    ]
    return ["-".join(wrap(letters, CODE_GROUP)) for letters in codes]


def digest_of_code(code: str, person_id: int) -> str:
    """The stored hash of a code. Capitals, spaces, dashes and letters that look like digits make no
    difference. Raises Throttled, as passwords do. It takes long, so call it outside of
    transactions.
    """
    letters = "".join(char for char in code.casefold() if char.isalnum()).translate(_ALIKE)
    if len(letters) == OLD_LENGTH:
        return digest_of(letters)
    encoded = letters.encode("utf-8", "surrogatepass")
    return passwords.slow_digest(encoded, keyed_hash("recovery codes", str(person_id)))
