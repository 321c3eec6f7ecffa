"""The tables of the service itself, and the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.tables.columns import NEVER_REUSED, Folded, Id, Numbered
from app.db.types import CheckedJson, Encrypted, Moment, Unreadable, Word
from app.records import ActorKind


class CounterRow(Model):
    """Counts within a time window (requests of a key, failed logins), shared by all processes."""

    __tablename__ = "counters"

    name: Mapped[str] = mapped_column(String(96), primary_key=True)
    # s since 1970
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    count: Mapped[int]


class SentFormRow(Model):
    """A form that somebody sent, stored so that it is not carried out twice."""

    __tablename__ = "sent_forms"

    # A keyed hash of person, address and fields
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    sent_at: Mapped[datetime] = mapped_column(Moment)
    # It is None while the form is being carried out
    ended_at: Mapped[datetime | None] = mapped_column(Moment)
    # The page to which the answer redirected
    location: Mapped[str | None] = mapped_column(Text)


class CountedFailuresRow(Model):
    """A count of failures to log in that have no line in the audit log yet."""

    __tablename__ = "left_out_failures"

    # s since 1970
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    event: Mapped[str] = mapped_column(String(32), primary_key=True)
    # The account, or the address of the client
    source: Mapped[str] = mapped_column("who", String(64), primary_key=True)
    number: Mapped[int]
    first_at: Mapped[datetime] = mapped_column(Moment)
    last_at: Mapped[datetime] = mapped_column(Moment)
    actor_kind: Mapped[str] = mapped_column(String(16))
    # It is None if they differ
    address: Mapped[str | None] = mapped_column(String(64))
    object_name: Mapped[str | None] = mapped_column(Text)
    # It is None if the account does not exist
    object_id: Mapped[int | None] = mapped_column(Id)


class DashboardHostRow(Model):
    """A host name of the dashboard, at which this person was logged in."""

    __tablename__ = "used_hosts"

    host: Mapped[str] = mapped_column(String(255), primary_key=True)
    # Not a foreign key: the row stays when the person is deleted.
    person_id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    used_at: Mapped[datetime] = mapped_column(Moment)


class SettingRow(Model):
    """Values that are set on the settings page or made once by the service (webhook secret, set-up
    token, notices).
    """

    __tablename__ = "settings"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str | Unreadable | None] = mapped_column(Encrypted)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class SignOfLifeRow(Model):
    """When a process last wrote that it is alive, and its report. ``/readyz`` and the list of
    places read it.
    """

    __tablename__ = "heartbeats"

    # "checker:hostname:token of the process"
    name: Mapped[str] = mapped_column(String(96), primary_key=True)
    location: Mapped[str | None] = mapped_column(String(64))  # where a checker checks from
    at: Mapped[datetime] = mapped_column(Moment)
    last_check_at: Mapped[datetime | None] = mapped_column(Moment)
    # Null: it runs, or nobody noticed its end
    ended_at: Mapped[datetime | None] = mapped_column(Moment)
    version: Mapped[str | None] = mapped_column(String(32))
    # By how much its clock is ahead of the server's, if it is on another machine
    clock_offset_ms: Mapped[int | None] = mapped_column(BigInteger)
    checks_per_minute: Mapped[int | None]
    # The names of the secret keys that it has (app/secret_keys.py), separated by commas
    keys: Mapped[str | None] = mapped_column(Text)


class AuditRow(Numbered, Model):
    """A line of the audit log: who did what to which object, and what changed. It has no foreign
    keys: the line stays when the person or the object is deleted.
    """

    __tablename__ = "audit"
    __table_args__ = (
        Index("ix_audit_at_id", "at", "id"),
        Index("ix_audit_action_at_id", "action", "at", "id"),
        Index("ix_audit_actor_kind_at_id", "actor_kind", "at", "id"),
        Index("ix_audit_object_kind_at_id", "object_kind", "at", "id"),
        Index("ix_audit_actor", "actor_kind", "actor_id", "at", "id"),
        Index("ix_audit_object", "object_kind", "object_id", "at", "id"),
        NEVER_REUSED,
    )

    at: Mapped[datetime] = mapped_column(Moment)
    actor_kind: Mapped[str] = mapped_column(Word(16, ActorKind, ActorKind.WAKEFUL))
    actor_id: Mapped[int | None] = mapped_column(Id)
    actor_name: Mapped[str] = mapped_column(Text)
    address: Mapped[str | None] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(32))
    object_kind: Mapped[str | None] = mapped_column(String(32))
    object_id: Mapped[int | None] = mapped_column(Id)
    object_name: Mapped[str | None] = mapped_column(Text)
    changes: Mapped[Any] = mapped_column(
        CheckedJson(lambda data: isinstance(data, dict), dict, none_as_null=True)
    )
    # The text that is searched: the names and the address
    words_folded: Mapped[str] = mapped_column(Folded)
