"""Links to set a new password, for people who have lost theirs. A link is mailed to them, or an
admin hands it over. Using a link ends every session and every other link of the person.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from app.access import actors, audit, passwords, security_log
from app.access.counters import Counters, Limit, counted_address
from app.access.people import end_sessions, forget_devices, logins_of, person_record, row_of_email
from app.access.security_log import SecurityEvent
from app.access.tokens import digest_of, make_token
from app.db import db, writing
from app.db.statements import delete_rows, rows_changed
from app.db.tables import PersonRow, RecoveryRow
from app.errors import Denied, Invalid, existing
from app.i18n import N_, _
from app.records import Action, Actor, ActorKind, AuditedObject, ObjectKind, Person
from app.rules.clocks import believable

BY_MAIL = timedelta(hours=1)
BY_ADMIN = timedelta(hours=24)  # longer, because the admin has to reach the person
REQUEST_WINDOW_SECONDS = 3600
REQUESTS_PER_ADDRESS = 10  # of a client
MAILS_PER_ACCOUNT = 3  # so that strangers cannot fill a mailbox
VOID = N_("This link is no longer valid. Ask for a new one.")
TOO_MANY = N_("Too many requests for a new password. Wait and try again.")


class Recovery:
    def __init__(self, clock: Callable[[], datetime], counters: Counters) -> None:
        self.clock, self.counters = clock, counters

    def count(self, email: str, address: str | None) -> bool:
        """Count a request from ``address`` for a link to ``email``. Returns whether a link may be
        mailed. The work is the same whether or not an account has the email address. Raises
        Throttled.
        """
        name = f"recovery:address:{counted_address(address)}"
        self.counters.attempt(TOO_MANY, Limit(name, REQUEST_WINDOW_SECONDS, REQUESTS_PER_ADDRESS))
        account = digest_of(email.casefold())[:32]
        requests = self.counters.count(f"recovery:account:{account}", REQUEST_WINDOW_SECONDS)
        return requests <= MAILS_PER_ACCOUNT

    def make_link_by_email(self, email: str) -> tuple[Person, str] | None:
        """Make a link for the person with this email address, which is valid for an hour. Returns
        the person and the token of the link; None if no account that may log in has the address.
        """
        row = row_of_email(email)
        if row is None or row.disabled:
            return None
        person = person_record(row)
        return person, self._store_recovery(person, BY_MAIL)

    def make_link(self, id: int) -> str:
        """Make a link that an admin hands over. Returns its token. Raises NotFound."""
        row = existing(db.session.get(PersonRow, id), "person", id)
        return self._store_recovery(person_record(row), BY_ADMIN)

    def person(self, token: str) -> Person | None:
        """The person whose password this link sets; None if the link is not valid."""
        row = db.session.execute(
            select(RecoveryRow, PersonRow)
            .join(PersonRow, PersonRow.id == RecoveryRow.person_id)
            .where(RecoveryRow.digest == digest_of(token), PersonRow.disabled.is_(False))
        ).one_or_none()
        if row is None:
            return None
        link, now = row.RecoveryRow, self.clock()
        if now >= link.expires_at or link.created_at > believable(now):
            return None
        return person_record(row.PersonRow)

    def use(self, token: str, password: str) -> Person:
        """Set the password, and end every session and every link of the person. Raises Denied if
        the link is not valid, and Invalid.
        """
        person = self.person(token)
        if person is None:
            raise Denied(_(VOID))
        if sentence := passwords.fault_of(password, person.email):
            raise Invalid({"password": [sentence]})
        hash_ = passwords.hashed(password)
        # The actor is the holder of the link, not somebody who is logged in in the same browser.
        address = (actors.actor() or actors.WAKEFUL).address
        actor = Actor(ActorKind.LINK, person.email, address=address)
        with actors.acting_as(actor), writing() as session:
            # If the link is used twice at the same time, the second use finds no row.
            deletion = delete(RecoveryRow).where(RecoveryRow.digest == digest_of(token))
            row = session.get(PersonRow, person.id, with_for_update=True)
            if not rows_changed(session, deletion) or row is None:
                raise Denied(_(VOID))
            row.password_hash = hash_
            end_sessions(session, person.id)
            forget_devices(session, person.id)
            link = AuditedObject(ObjectKind.RECOVERY_LINK, person.id, person.email)
            audit.note(session, Action.USED, link)
            security_log.log_event(SecurityEvent.PASSWORD_CHANGED, person)
        # A guesser's wrong passwords must not lock the owner out.
        self.counters.reset(logins_of(person.email))
        return person

    def forget_old(self) -> None:
        """Delete links that have expired. The engine's housekeeping calls it."""
        delete_rows(RecoveryRow, RecoveryRow.expires_at <= self.clock())

    def _store_recovery(self, person: Person, lasts: timedelta) -> str:
        token, now = make_token(), self.clock()
        row = RecoveryRow(
            digest=digest_of(token), person_id=person.id, created_at=now, expires_at=now + lasts
        )
        with writing() as session:
            session.add(row)
            link = AuditedObject(ObjectKind.RECOVERY_LINK, person.id, person.email)
            audit.note(session, Action.CREATED, link)
        return token
