"""Invitations: an admin names an email address and a role. The holder of the link creates the
account, once, within 7 days.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from app.access import actors, audit, passwords
from app.access.people import People, check_account, check_invitation, refuse_taken
from app.access.tokens import digest_of, make_token
from app.db import DbSession, db, writing
from app.db.statements import delete_rows, inserting, rows_changed
from app.db.tables import InvitationRow
from app.db.types import record_of
from app.errors import Denied, existing
from app.i18n import N_, _
from app.records import Action, AuditedObject, Invitation, ObjectKind, Person
from app.rules.clocks import believable

INVITED_DAYS = 7
INVITED_FOR = timedelta(days=INVITED_DAYS)
RETENTION = timedelta(days=30)  # how long an expired invitation can be renewed
VOID = N_("This invitation is no longer valid. Ask an admin for a new one.")


class Invitations:
    def __init__(self, clock: Callable[[], datetime], people: People) -> None:
        self.clock, self.people = clock, people

    def invite(self, email: str, role: str) -> tuple[Invitation, str]:
        """Store an invitation, in place of an earlier one to this address. Returns it, and the
        token of its link. Raises Invalid, also if the address has an account.
        """
        check_invitation(email, role)
        token, now = make_token(), self.clock()
        with writing() as session:
            refuse_taken(session, email)
            invitation = _store(session, email, role, digest_of(token), now)
            audit.note(session, Action.CREATED, _thing(invitation), {"role": (None, role)})
            return invitation, token

    def renew(self, id: int) -> tuple[Invitation, str]:
        """Make a new link for an invitation, valid for 7 days, which ends the earlier one. Raises
        NotFound, and Invalid.
        """
        row = existing(db.session.get(InvitationRow, id), "invitation", id)
        return self.invite(row.email, row.role)

    def revoke(self, id: int) -> Invitation:
        """Delete an invitation. Raises NotFound."""
        with writing() as session:
            row = existing(session.get(InvitationRow, id), "invitation", id)
            session.delete(row)
            audit.note(session, Action.REVOKED, _thing(_record(row)))
            return _record(row)

    def all(self) -> list[Invitation]:
        """All invitations that were not accepted, expired ones too, by address."""
        query = select(InvitationRow).order_by(InvitationRow.email_folded)
        return [_record(row) for row in db.session.scalars(query)]

    def of_token(self, token: str) -> Invitation | None:
        """The invitation of a link; None if it is not valid."""
        query = select(InvitationRow).where(InvitationRow.digest == digest_of(token))
        row = db.session.scalar(query)
        return None if row is None or self.is_over(row) else _record(row)

    def accept(
        self, token: str, password: str, *, name: str | None = None, time_zone: str = "UTC"
    ) -> Person:
        """Create the account, and record its login. Raises Denied if the link is not valid, and
        Invalid.
        """
        invitation = self.of_token(token)
        if invitation is None:
            raise Denied(_(VOID))
        check_account(invitation.email, invitation.role, password, name=name, time_zone=time_zone)
        hash_ = passwords.hashed(password)
        with actors.acting_as(actors.named(invitation.email)), writing() as session:
            # If the invitation was accepted, renewed or revoked meanwhile, there is no such row.
            deletion = delete(InvitationRow).where(InvitationRow.digest == digest_of(token))
            if not rows_changed(session, deletion):
                raise Denied(_(VOID))
            person = self.people.add(
                session, invitation.email, hash_, invitation.role, name=name, time_zone=time_zone
            )
            audit.note(session, Action.ACCEPTED, _thing(invitation))
        return self.people.record_login(person.id)

    def is_over(self, invitation: InvitationRow | Invitation) -> bool:
        """Whether its time has passed. An invitation from the future is over too: the clock was set
        back.
        """
        now = self.clock()
        return now >= invitation.expires_at or invitation.created_at > believable(now)

    def forget_old(self) -> None:
        """Delete invitations that expired long ago. The engine's housekeeping calls it."""
        delete_rows(InvitationRow, InvitationRow.expires_at <= self.clock() - RETENTION)


def _thing(invitation: Invitation) -> AuditedObject:
    return AuditedObject(ObjectKind.INVITATION, invitation.id, invitation.email)


def _store(session: DbSession, email: str, role: str, digest: str, now: datetime) -> Invitation:
    values = {"email": email, "role": role, "created_at": now, "expires_at": now + INVITED_FOR}
    values |= {"digest": digest}
    statement = inserting(InvitationRow).values(email_folded=email.casefold(), **values)
    statement = statement.on_conflict_do_update(
        index_elements=[InvitationRow.email_folded], set_=values
    ).returning(InvitationRow.id)
    return Invitation(session.execute(statement).scalar_one(), email, role, now, now + INVITED_FOR)


def _record(row: InvitationRow) -> Invitation:
    return record_of(Invitation, row)
