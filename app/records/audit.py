"""The audit log: who changed what, from where and when, and who logged in (decision 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.records.resources import ObjectKind

AUDIT_DAYS = 400  # a line is kept
AUDIT_PER_PAGE = 50


class ActorKind(StrEnum):
    """Who acts."""

    PERSON = "person"  # logged in to the dashboard
    KEY = "key"  # an API key
    LINK = "link"  # whoever has the link of an alert
    VISITOR = "visitor"  # whoever is not logged in
    COMMAND = "command"  # the command line on the server
    AGENT = "agent"
    WAKEFUL = "wakeful"  # the service itself


class Action(StrEnum):
    """The actions of the log. A new word here needs its label in ``app/web/shown/audit.py``."""

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
    """Who acts, and from which address. ``name`` is kept with each line: a line must still say who
    it was when the person or the key is gone.
    """

    kind: ActorKind
    name: str = ""
    id: int | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Thing:
    """The kinds of objects of the log."""

    kind: ObjectKind
    id: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line. ``changes``: by field, ``{"old": ..., "new": ...}``, or ``"changed"`` for a secret.
    ``text`` and numbers alone: nothing in it is a secret.
    """

    id: int
    at: datetime
    actor: Actor
    action: str
    thing: Thing | None
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """The lines that are asked for, the newest first. ``before``: the time and the id of the last
    line of the page before this one; ``start`` and ``end`` are included.
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
    """``older``: where the next page begins, None at the end. ``searched_until``: the search read
    so far back and found nothing more; there may be more before it.
    """

    lines: Sequence[AuditLine]
    older: tuple[datetime, int] | None = None
    searched_until: datetime | None = None
