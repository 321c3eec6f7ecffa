"""Pending logins: the password was right, and the second factor is missing.

Only the browser in which the password was typed has the token of a pending login, in a cookie. A
pending login is valid for ten minutes and for one login. Whatever ends the person's sessions ends
it too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import delete, or_, select, update

from app.access import actors, audit, security_log
from app.access.counters import LOGIN_WINDOW_SECONDS, LOGINS_PER_ACCOUNT, Counters, Limit
from app.access.passkeys import CREDENTIAL, NOT_PROVEN, Passkeys, PasskeySignature, Site, count_use
from app.access.people import TOO_MANY_LOGINS, UNKNOWN_CLIENT, People, device_of, person_record
from app.access.second_factor import (
    CODE,
    DRIFT,
    WRONG_CODE,
    digest_of_code,
    locked_person,
    object_of,
    step_at,
    step_of,
)
from app.access.security_log import SecurityEvent
from app.access.tokens import digest_of, make_token
from app.db import DbSession, db, writing
from app.db.statements import delete_rows, rows_changed
from app.db.tables import AuthenticatorAppRow, PendingLoginRow, PersonRow, RecoveryCodeRow
from app.db.types import Unreadable
from app.errors import Denied, Invalid, Throttled
from app.i18n import N_, _
from app.records import Action, Client, Person
from app.rules.clocks import believable, runs

# A function that checks a second factor in the transaction of the login, and uses it up. Raises
# Invalid.
Proof = Callable[[DbSession, Person], None]

LIFETIME = timedelta(minutes=10)
# Somebody who knows passwords may guess codes for days. With the limit of ten in five minutes
# alone, the guesses would find the code of one of a hundred accounts in a day.
LONG_WINDOW_SECONDS = 12 * 3600
LONG_WINDOW_MAX = 50
LOGIN_ENDED = N_("The login took too long, or was ended. Log in again.")
UNREADABLE = N_(
    "The secret of the authenticator app cannot be read on the server. Use a passkey or a recovery "
    "code, or ask an admin to reset the second factor."
)


class PendingLogins:
    def __init__(
        self, clock: Callable[[], datetime], counters: Counters, people: People, passkeys: Passkeys
    ) -> None:
        self.clock, self.counters, self.people, self.passkeys = clock, counters, people, passkeys

    def begin(self, person_id: int) -> str:
        """Start a pending login after the right password. Returns its token."""
        token = make_token()
        row = PendingLoginRow(digest=digest_of(token), person_id=person_id, created_at=self.clock())
        with writing() as session:
            session.add(row)
        # Somebody who knows the password and stops here leaves no other trace.
        security_log.log_event(SecurityEvent.SECOND_FACTOR_ASKED, self.people.get(person_id))
        return token

    def person(self, token: str) -> Person | None:
        """The person who typed the password; None if the pending login is over."""
        row = db.session.execute(
            select(PendingLoginRow.created_at, PersonRow)
            .join(PersonRow, PersonRow.id == PendingLoginRow.person_id)
            .where(PendingLoginRow.digest == digest_of(token), PersonRow.disabled.is_(False))
        ).one_or_none()
        if row is None or not runs(row.created_at, self.clock(), LIFETIME):
            return None
        return person_record(row.PersonRow)

    def end(self, token: str) -> None:
        delete_rows(PendingLoginRow, PendingLoginRow.digest == digest_of(token))

    def by_code(self, token: str, code: str, client: Client = UNKNOWN_CLIENT) -> Person:
        """Complete a login with a code of the app. Raises Invalid (``second_code``), Denied if the
        pending login is over, and Throttled.
        """
        return self._log_in(token, client, lambda _person: partial(self._use_code, code))

    def by_recovery_code(self, token: str, code: str, client: Client = UNKNOWN_CLIENT) -> Person:
        """Complete a login with a recovery code, which is used up. Raises as ``by_code`` does, with
        Invalid for ``recovery_code``.
        """

        def prove(person: Person) -> Proof:
            return partial(_use_recovery_code, digest_of_code(code, person.id))

        return self._log_in(token, client, prove)

    def by_passkey(
        self, token: str, site: Site, credential: str, client: Client = UNKNOWN_CLIENT
    ) -> Person:
        """Complete a login with a passkey. Raises as ``by_code`` does, with Invalid for
        ``credential``.
        """

        def prove(person: Person) -> Proof:
            signature = self.passkeys.signature(person.id, site, token, credential)
            return partial(self._use_signature, signature)

        return self._log_in(token, client, prove)

    def forget_old(self) -> None:
        """Delete pending logins that are over. The engine's housekeeping calls it."""
        now, created_at = self.clock(), PendingLoginRow.created_at
        delete_rows(PendingLoginRow, ~created_at.between(now - LIFETIME, believable(now)))

    def _pending_person(self, token: str) -> Person:
        person = self.person(token)
        if person is None:
            raise Denied(_(LOGIN_ENDED))
        return person

    def _log_in(self, token: str, client: Client, prove: Callable[[Person], Proof]) -> Person:
        """Count the attempt, and complete the login with the proof that ``prove`` returns. A wrong
        proof and a reached limit are logged.
        """
        person = self._pending_person(token)
        device = device_of(client.device, person.id, self.clock())
        limits = _limits(person.id, device)
        try:
            self.counters.attempt(TOO_MANY_LOGINS, *limits)
            logged_in_person = self._complete(token, prove(person))
        except (Throttled, Invalid) as fault:
            throttled = isinstance(fault, Throttled)
            event = SecurityEvent.SECOND_FACTOR_WRONG
            event = SecurityEvent.SECOND_FACTOR_THROTTLED if throttled else event
            security_log.log_event(event, person, address=client.address)
            raise
        for limit in limits:
            self.counters.reset(limit)
        return logged_in_person

    def _complete(self, token: str, proof: Proof) -> Person:
        """End the pending login and use the proof, in one transaction. If two requests come at the
        same time with the same proof or token, one of them logs in.
        """
        deletion = delete(PendingLoginRow).where(PendingLoginRow.digest == digest_of(token))
        person = self._pending_person(token)
        with writing() as session:
            row = locked_person(session, person.id)
            if row.disabled or not rows_changed(session, deletion):
                raise Denied(_(LOGIN_ENDED))
            proof(session, person)
            row.last_login_at = self.clock()
            session.flush()
            return person_record(row)

    def _use_code(self, code: str, session: DbSession, person: Person) -> None:
        app = session.get(AuthenticatorAppRow, person.id, populate_existing=True)
        if app is not None and isinstance(app.secret, Unreadable):
            raise Invalid({CODE: [_(UNREADABLE)]})
        now = self.clock()
        step = None if app is None else step_of(app.secret, code, now)
        if step is None or not _use_step(session, person.id, step, step_at(now)):
            raise Invalid({CODE: [_(WRONG_CODE)]})

    def _use_signature(
        self, signature: PasskeySignature, session: DbSession, _person: Person
    ) -> None:
        if not count_use(session, signature, self.clock()):
            raise Invalid({CREDENTIAL: [_(NOT_PROVEN)]})


def _use_recovery_code(digest: str, session: DbSession, person: Person) -> None:
    row = RecoveryCodeRow
    deletion = delete(row).where(row.person_id == person.id, row.digest == digest)
    if not rows_changed(session, deletion):
        raise Invalid({"recovery_code": [_("This recovery code is wrong or was used already.")]})
    change = {"recovery_codes": (None, _("one used"))}
    # The login is not complete, so the actor is a visitor who has typed the person's password.
    actor = actors.named(person.email)
    audit.note(session, Action.USED, object_of(person), change, actor=actor)


def _use_step(session: DbSession, id: int, step: int, current: int) -> bool:
    """Note that the code of ``step`` is used. Returns whether it was unused. A stored step in the
    future is from before the clock was set back. It does not count: otherwise nobody could log in
    until that time comes again.
    """
    used_step = AuthenticatorAppRow.used_step
    unused = or_(used_step < step, used_step > current + DRIFT)
    change = update(AuthenticatorAppRow).where(AuthenticatorAppRow.person_id == id, unused)
    return rows_changed(session, change.values(used_step=step)) > 0


def _limits(id: int, device: int | None) -> tuple[Limit, Limit]:
    """The limits for wrong codes. A device of the person has separate limits, so that others who
    know the password cannot lock it out.
    """
    name = f"second:{id}" if device is None else f"second:{id}:device:{device}"
    return (
        Limit(name, LOGIN_WINDOW_SECONDS, LOGINS_PER_ACCOUNT),
        Limit(f"{name}:long", LONG_WINDOW_SECONDS, LONG_WINDOW_MAX),
    )
