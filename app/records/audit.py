"""The audit log: who changed what, from where and when, and who logged in (decision 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.records.resources import ObjectKind

AUDIT_DAYS = 400  # until a line is deleted
AUDIT_PER_PAGE = 50


class ActorKind(StrEnum):
    PERSON = "person"  # logged in to the dashboard
    KEY = "key"  # an API key
    LINK = "link"  # somebody with the link of an alert
    VISITOR = "visitor"  # somebody who is not logged in
    COMMAND = "command"  # the command line on the server
    AGENT = "agent"
    WAKEFUL = "wakeful"  # the service itself


class Action(StrEnum):
    """The actions of the log. Each needs a label in ``app/web/shown/audit.py``."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    PAUSED = "paused"
    RESUMED = "resumed"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    REOPENED = "reopened"
    REVOKED = "revoked"
    ACCEPTED = "accepted"  # an invitation
    USED = "used"  # a link, a recovery code
    SHOWN = "shown"  # a secret
    IMPORTED = "imported"
    EXPORTED = "exported"
    BACKED_UP = "backed_up"
    RESTORED = "restored"
    ROTATED = "rotated"  # secret keys
    RETRIED = "retried"  # a message
    GIVEN_UP = "given_up"
    LOGGED_IN = "logged_in"
    LOGGED_OUT = "logged_out"
    LOGIN_FAILED = "login_failed"
    SESSION_ENDED = "session_ended"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, and from which address. Each line stores the ``name``: it must still name the actor
    after the person or the key is deleted.
    """

    kind: ActorKind
    name: str = ""
    id: int | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class AuditedObject:
    """The object of a line in the log."""

    kind: ObjectKind
    id: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line. ``changes``: by field, ``{"old": ..., "new": ...}``, or ``"changed"`` for a
    secret.
    """

    id: int
    at: datetime
    actor: Actor
    action: str
    object: AuditedObject | None
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Lines of the log, the newest first. ``before``: the time and the id of the last line on the
    previous page. ``start`` and ``end`` are included.
    """

    search: str | None = None
    actor_kind: str | None = None
    actor_id: int | None = None
    action: str | None = None
    object_kind: str | None = None
    object_id: int | None = None
    start: datetime | None = None
    end: datetime | None = None
    before: tuple[datetime, int] | None = None
    per_page: int = AUDIT_PER_PAGE


@dataclass(frozen=True, slots=True)
class AuditPage:
    """``older``: ``AuditQuery.before`` of the next page; None on the last page. ``searched_until``:
    the time at which the search stopped; older lines were not searched.
    """

    lines: Sequence[AuditLine]
    older: tuple[datetime, int] | None = None
    searched_until: datetime | None = None
