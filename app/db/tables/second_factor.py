"""What people show besides their password, and log-ins that wait for it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, String, Text, exists, or_
from sqlalchemy.orm import Mapped, column_property, mapped_column

from app.db import Model
from app.db.tables.access import PersonRow
from app.db.tables.columns import NEVER_REUSED, Id, belongs_to
from app.db.types import Encrypted, Moment


class AuthenticatorAppRow(Model):
    """The app of a person that shows a code every 30 seconds (TOTP)."""

    __tablename__ = "authenticator_apps"

    person_id: Mapped[int] = belongs_to("people", primary_key=True, autoincrement=False)
    secret: Mapped[Any] = mapped_column(Encrypted)
    # The period whose code was used last: neither it nor an earlier one is accepted again
    used_step: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(Moment)


class PasskeyRow(Model):
    __tablename__ = "passkeys"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    person_id: Mapped[int] = belongs_to("people", index=True)
    name: Mapped[str] = mapped_column(Text)
    host: Mapped[str] = mapped_column(Text)  # the browser offers it at this host alone
    credential: Mapped[str] = mapped_column(Text, unique=True)  # its id, in base64url
    public_key: Mapped[str] = mapped_column(Text)  # in base64url
    sign_count: Mapped[int] = mapped_column(BigInteger)
    # Whether it asked for a PIN or a finger when it was added; then it must each time
    verifies: Mapped[bool] = mapped_column()
    created_at: Mapped[datetime] = mapped_column(Moment)
    last_used_at: Mapped[datetime | None] = mapped_column(Moment)


class RecoveryCodeRow(Model):
    __tablename__ = "recovery_codes"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    person_id: Mapped[int] = belongs_to("people", index=True)
    # SHA-256 of the code: it has 140 random bits
    digest: Mapped[str] = mapped_column(String(64))


class HalfLoginRow(Model):
    """A browser in which a person has typed their password, and not shown the second factor."""

    __tablename__ = "half_logins"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # SHA-256 of the token in the cookie: it has 192 random bits
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    person_id: Mapped[int] = belongs_to("people", index=True)
    created_at: Mapped[datetime] = mapped_column(Moment)


class PasskeyChallengeRow(Model):
    """What a passkey is to sign, for one browser. Asking again replaces it."""

    __tablename__ = "passkey_challenges"

    # SHA-256 of the token of the session or of the half login
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    person_id: Mapped[int] = belongs_to("people", index=True)
    challenge: Mapped[str] = mapped_column(Text)  # in base64url
    created_at: Mapped[datetime] = mapped_column(Moment)


def _has(table: type[AuthenticatorAppRow | PasskeyRow]) -> ColumnElement[bool]:
    return exists().where(table.person_id == PersonRow.id).correlate_except(table)


# Read with each person, so that nobody who decides about access can forget to ask.
PersonRow.second_factor = column_property(or_(_has(AuthenticatorAppRow), _has(PasskeyRow)))
