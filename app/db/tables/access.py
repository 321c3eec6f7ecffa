"""People, their second factors, API keys, sessions, and links that let people in."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, ColumnElement, String, Text, UniqueConstraint, exists, or_, text
from sqlalchemy.orm import Mapped, column_property, mapped_column

from app.db import Model
from app.db.contents import is_networks
from app.db.tables.columns import NEVER_REUSED, UNSEEN, Folded, Id, Numbered, belongs_to, secret
from app.db.types import Encrypted, EnteredMoment, Moment, Word
from app.records import Role, Scope
from app.rules.time import is_zone

if TYPE_CHECKING:
    from sqlalchemy.orm import MappedSQLExpression


class PersonRow(Numbered, Model):
    __tablename__ = "people"

    email: Mapped[str] = mapped_column(Text)
    email_folded: Mapped[str] = mapped_column(Folded, unique=True)
    password_hash: Mapped[str] = mapped_column(Text, info=secret("password"))
    name: Mapped[str | None] = mapped_column(Text)
    # In place of a damaged value: the role with the fewest rights
    role: Mapped[str] = mapped_column(Word(16, Role, Role.VIEWER))
    time_zone: Mapped[str] = mapped_column(Word(64, is_zone, "UTC"), default="UTC")
    theme: Mapped[str] = mapped_column(String(8), default="auto")
    first_steps_away: Mapped[bool] = mapped_column(
        default=False, server_default=text("false"), info=UNSEEN
    )
    disabled: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = mapped_column(Moment)
    last_login_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    if TYPE_CHECKING:  # whether the person has one; set below
        second_factor: MappedSQLExpression[bool]


class ApiKeyRow(Numbered, Model):
    __tablename__ = "api_keys"

    prefix: Mapped[str] = mapped_column(String(16), unique=True, info=UNSEEN)
    # SHA-256 of the whole key: it has 128 random bits or more
    digest: Mapped[str] = mapped_column(String(64), index=True, info=UNSEEN)
    name: Mapped[str] = mapped_column(Text)
    scope: Mapped[str] = mapped_column(Word(8, Scope, Scope.READ))
    created_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime | None] = mapped_column(EnteredMoment)
    last_used_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    revoked_at: Mapped[datetime | None] = mapped_column(Moment)
    # Null: no owner, as for keys from before there were owners; no role limits such a key.
    # Therefore a key that was not handed over is deleted with its owner.
    owner_id: Mapped[int | None] = belongs_to("people", index=True, info={"audit_name": "owner"})
    # CIDRs, separated by commas; in place of a damaged value, a network without clients
    networks: Mapped[str] = mapped_column(
        Word(None, is_networks, "0.0.0.0/32"), default="", server_default=""
    )
    tag: Mapped[str | None] = mapped_column(Text)  # only monitors with it

    @property
    def label(self) -> str:
        return f"{self.name} ({self.prefix})"


class WallLinkRow(Numbered, Model):
    """A link for a screen. It shows its holder the wall, and nothing else."""

    __tablename__ = "wall_links"

    name: Mapped[str] = mapped_column(Text)
    # SHA-256 of the token in the link: it has 192 random bits
    digest: Mapped[str] = mapped_column(String(64), unique=True, info=UNSEEN)
    tag: Mapped[str | None] = mapped_column(Text)  # only its monitors
    zone: Mapped[str] = mapped_column(Word(64, is_zone, "UTC"))  # of the clock on the wall
    server: Mapped[str | None] = mapped_column(Text)  # which of several remote servers, by name
    created_by: Mapped[str | None] = mapped_column(Text, info=UNSEEN)
    created_at: Mapped[datetime] = mapped_column(Moment)
    last_used_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)


class SessionRow(Numbered, Model):
    """A browser in which a person is logged in. Its cookie is valid while the row exists."""

    __tablename__ = "sessions"

    # SHA-256 of the token in the cookie: it has 192 random bits
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    person_id: Mapped[int] = belongs_to("people", index=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    last_used_at: Mapped[datetime] = mapped_column(Moment)
    password_at: Mapped[datetime | None] = mapped_column(Moment)  # when it was last typed here
    # The digest of the token before that: requests that were already on their way still send it.
    former_digest: Mapped[str | None] = mapped_column(String(64), index=True)
    address: Mapped[str | None] = mapped_column(String(64))
    # Words of app.access.sessions
    browser: Mapped[str | None] = mapped_column(String(32))
    system: Mapped[str | None] = mapped_column(String(32))
    device_id: Mapped[int | None] = mapped_column(Id)  # its row may be deleted


class DeviceRow(Numbered, Model):
    """A browser in which a person has logged in before: wrong passwords in other browsers do not
    lock it out. People who share a browser have a row each, with the same digest.
    """

    __tablename__ = "devices"
    __table_args__ = (UniqueConstraint("digest", "person_id"), NEVER_REUSED)

    # SHA-256 of the token in the cookie: it has 192 random bits
    digest: Mapped[str] = mapped_column(String(64))
    person_id: Mapped[int] = belongs_to("people", index=True)
    last_used_at: Mapped[datetime] = mapped_column(Moment)


class InvitationRow(Numbered, Model):
    """A link with which a person creates their account. Each address has at most one."""

    __tablename__ = "invitations"

    # SHA-256 of the token in the link: it has 192 random bits
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    email: Mapped[str] = mapped_column(Text)
    email_folded: Mapped[str] = mapped_column(Folded, unique=True)
    role: Mapped[str] = mapped_column(Word(16, Role, Role.VIEWER))
    created_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime] = mapped_column(Moment)


class RecoveryRow(Numbered, Model):
    """A link with which a person sets a new password."""

    __tablename__ = "recoveries"

    # SHA-256 of the token in the link: it has 192 random bits
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    person_id: Mapped[int] = belongs_to("people", index=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime] = mapped_column(Moment)


class EndedTokenRow(Model):
    """The last token of each agent's place that was replaced or ended: the log can name the place
    of an agent that still has it. The place may have been deleted.
    """

    __tablename__ = "ended_agent_tokens"

    place: Mapped[str] = mapped_column(String(64), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), index=True)
    ended_at: Mapped[datetime] = mapped_column(Moment)


class AuthenticatorAppRow(Model):
    """The app of a person that shows a code every 30 seconds (TOTP)."""

    __tablename__ = "authenticator_apps"

    person_id: Mapped[int] = belongs_to("people", primary_key=True, autoincrement=False)
    secret: Mapped[Any] = mapped_column(Encrypted)
    # The period whose code was used last: neither it nor an earlier one is accepted again
    used_step: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(Moment)


class PasskeyRow(Numbered, Model):
    __tablename__ = "passkeys"

    person_id: Mapped[int] = belongs_to("people", index=True)
    name: Mapped[str] = mapped_column(Text)
    host: Mapped[str] = mapped_column(Text)  # the browser offers it at this host alone
    credential: Mapped[str] = mapped_column(Text, unique=True)  # its id, in base64url
    public_key: Mapped[str] = mapped_column(Text)  # in base64url
    sign_count: Mapped[int] = mapped_column(BigInteger)
    # Whether it verified the person, by PIN or fingerprint, when it was added; then it must each
    # time
    verifies: Mapped[bool] = mapped_column()
    created_at: Mapped[datetime] = mapped_column(Moment)
    last_used_at: Mapped[datetime | None] = mapped_column(Moment)


class RecoveryCodeRow(Numbered, Model):
    __tablename__ = "recovery_codes"

    person_id: Mapped[int] = belongs_to("people", index=True)
    # A slow hash of the code, which has 80 random bits; SHA-256 of those with 140 of older versions
    digest: Mapped[str] = mapped_column(String(64))


class PendingLoginRow(Numbered, Model):
    """A browser in which a person has typed their password, and not shown the second factor."""

    __tablename__ = "half_logins"

    # SHA-256 of the token in the cookie: it has 192 random bits
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    person_id: Mapped[int] = belongs_to("people", index=True)
    created_at: Mapped[datetime] = mapped_column(Moment)


class PasskeyChallengeRow(Model):
    """The challenge that a passkey is to sign, for one browser. Asking again replaces it."""

    __tablename__ = "passkey_challenges"

    # SHA-256 of the token of the session or of the pending login
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    person_id: Mapped[int] = belongs_to("people", index=True)
    challenge: Mapped[str] = mapped_column(Text)  # in base64url
    created_at: Mapped[datetime] = mapped_column(Moment)


def _has(table: type[AuthenticatorAppRow | PasskeyRow]) -> ColumnElement[bool]:
    return exists().where(table.person_id == PersonRow.id).correlate_except(table)


# Read with each person, so that no code that decides about access can omit it.
PersonRow.second_factor = column_property(or_(_has(AuthenticatorAppRow), _has(PasskeyRow)))
