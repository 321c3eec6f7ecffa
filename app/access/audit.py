"""Write the audit log: one line for each changed object, in the transaction of the change.

Event handlers of the session write the lines for rows that the session stores, changes or deletes,
if somebody acts (``app/access/actors.py``). Resources and columns say what is recorded
(``BY_TABLE``, and ``info`` of a column). A view or a store that changes such a row needs no call.

No library does this: those that version rows store the rows, secrets included. A line must name the
person or key, leave secrets out, and be written in the transaction of the change.

Call this module for other events, always inside ``writing()``:

    with writing() as session:
        ...
        note(session, Action.LOGGED_IN, AuditedObject(ObjectKind.PERSON, person.id, person.email))

``note_change`` adds fields that are no columns of the row, such as the contacts of a monitor, to
the line of that object. ``note_deletion`` is for a row that a statement deletes, because the
session does not see it. A secret is passed as ``CHANGED``, never with its values.

The lines of a transaction are inserted together, at its commit, and are lost with its rollback.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, event, insert, inspect
from sqlalchemy.orm import object_session

from app.access import actors
from app.codec.value_types import plain
from app.db import AnySession, Model, db
from app.db.tables import AuditRow, PersonRow, PostUpdateRow
from app.db.tags import tags_of
from app.db.types import Encrypted
from app.records import KIND_OPTIONS, Action, Actor, AuditedObject, ObjectKind
from app.records.resources import BY_TABLE, POSTS
from app.rules import smtp

__all__ = ["CHANGED", "Changes", "note", "note_change", "note_deletion"]

# By field: the old and the new value, or CHANGED for a secret.
Changes = Mapping[str, Any]

MAX_TEXT = 1000  # characters of a value that are kept
MAX_NAME = 255
_PENDING = "wakeful.audit"
# The statement names the table: one that named the class would go through the ORM.
_INSERT = insert(AuditRow.__table__)  # type: ignore[arg-type]
# Fields with such a name are recorded as CHANGED, even if a caller gives their values.
_SECRET = re.compile(r"password(?!_set)|secret|token|digest|hash|recovery_code")
# A line names one action. If a transaction has several on one object, the line names the strongest:
# deleted, created, any other.
_STRONGEST = (Action.DELETED, Action.CREATED)


@dataclass(slots=True)
class _AuditLine:
    actor: Actor
    action: Action
    object: AuditedObject | None
    changes: dict[str, Any] = field(default_factory=dict)


def clock() -> datetime:
    return datetime.now(UTC)


def note(
    session: AnySession,
    action: Action,
    audited: AuditedObject | None = None,
    changes: Changes | None = None,
    *,
    actor: Actor | None = None,
) -> None:
    """Write a separate line. ``changes``: by field a pair of the old and the new value, or
    ``CHANGED``. ``actor``: who did it, if not the present actor. Call this inside ``writing()``.
    """
    actor = actor or actors.actor() or actors.WAKEFUL
    line = _AuditLine(actor, action, audited, dict(changes or {}))
    _lines(session)[(action, len(_lines(session)))] = line


def note_change(session: AnySession, row: Any, changes: Changes) -> None:
    """Add ``changes`` to the line of an object in this transaction: fields that are no columns of
    its row. ``row``: the row, or an ``AuditedObject`` without one. Pairs of equal values are left
    out. Call this inside ``writing()``.
    """
    real = {name: pair for name, pair in changes.items() if pair is CHANGED or pair[0] != pair[1]}
    if real:
        audited = row if isinstance(row, AuditedObject) else TABLES[type(row)].object_of(row)
        _add(session, Action.CHANGED, audited, real)


def note_deletion(session: AnySession, row: Any) -> None:
    """Note that a statement deletes this row. Call this inside ``writing()``."""
    table = TABLES[type(row)]
    _add(session, Action.DELETED, table.object_of(row), _deleted_values(table, row))


# --- What the session sees ------------------------------------------------------------------------


def _after_flush(session: Any, _context: object) -> None:
    """Collect lines from the rows of this flush, which have ids and their old values."""
    if actors.actor() is None:
        return
    # Copies, because reading the name of a row may load others into the session.
    for rows, action, values_of in (
        (list(session.new), Action.CREATED, _new_values),
        (list(session.dirty), Action.CHANGED, _changed_values),
        (list(session.deleted), Action.DELETED, _deleted_values),
    ):
        for row in rows:
            if (table := TABLES.get(type(row))) is None:
                continue
            changes = values_of(table, row)
            line_action = Action.CHANGED if table.is_part else action
            if changes or line_action != Action.CHANGED:
                _add(session, line_action, table.object_of(row), changes)


def _before_commit(session: Any) -> None:
    """Insert the lines, including those of the last flush."""
    session.flush()
    lines: dict[Any, _AuditLine] = session.info.pop(_PENDING, {})
    if lines:
        now = clock()
        session.execute(_INSERT, [_columns(line, now) for line in lines.values()])


def _after_rollback(session: Any, transaction: Any) -> None:
    if not transaction.nested:  # a savepoint: the changes before it may still be committed
        session.info.pop(_PENDING, None)


event.listen(db.session, "after_flush", _after_flush)
event.listen(db.session, "before_commit", _before_commit)
event.listen(db.session, "after_soft_rollback", _after_rollback)


def _new_values(table: AuditedTable, row: Any) -> dict[str, Any]:
    """The values of a new row, without empty ones."""
    return _values(table, row, lambda value: (None, value))


def _deleted_values(table: AuditedTable, row: Any) -> dict[str, Any]:
    return _values(table, row, lambda value: (value, None))


def _values(table: AuditedTable, row: Any, pair: Callable[[Any], Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for column, name in table.columns.items():
        value = value_of(row, column, getattr(row, column))
        if value not in (None, "", [], ()):
            changes[name] = CHANGED if column in table.secret else pair(value)
    return _by_option(changes)


def _changed_values(table: AuditedTable, row: Any) -> dict[str, Any]:
    state = inspect(row)
    changes: dict[str, Any] = {}
    for column, name in table.columns.items():
        history = state.attrs[column].history
        if not history.added or history.added == history.deleted:
            continue
        old = history.deleted[0] if history.deleted else None
        pair = (value_of(row, column, old), value_of(row, column, history.added[0]))
        changes[name] = CHANGED if column in table.secret else pair
    return _by_option(changes)


def _by_option(changes: dict[str, Any]) -> dict[str, Any]:
    """Replace the column ``options`` of a monitor by a field for each option of its kind."""
    old, new = changes.pop("options", ({}, {}))
    for name, default in KIND_OPTIONS.items():
        pair = (old or {}).get(name, default), (new or {}).get(name, default)
        if pair[0] != pair[1]:
            changes[name] = pair
    return changes


# --- Lines ----------------------------------------------------------------------------------------


def _lines(session: AnySession) -> dict[Any, _AuditLine]:
    if not session.info.get("writing"):
        raise RuntimeError("A line of the audit log is written with its change: inside writing().")
    pending: dict[Any, _AuditLine] = session.info.setdefault(_PENDING, {})
    return pending


def _add(session: AnySession, action: Action, audited: AuditedObject, changes: Changes) -> None:
    """Add to the line of this object, if somebody acts."""
    actor = actors.actor()
    if actor is None:
        return
    key = (audited.kind, audited.id if audited.id is not None else audited.name)
    line = _lines(session).setdefault(key, _AuditLine(actor, action, audited))
    if action in _STRONGEST and line.action != Action.DELETED:
        line.action = action
    if line.object is None or line.object.name is None:
        line.object = audited
    for name, pair in changes.items():
        earlier = line.changes.get(name)
        are_pairs = isinstance(earlier, tuple) and isinstance(pair, tuple)
        line.changes[name] = (earlier[0], pair[1]) if earlier and are_pairs else pair


def _columns(line: _AuditLine, now: datetime) -> dict[str, Any]:
    actor, audited = line.actor, line.object
    changes = {name: _stored_change(name, value) for name, value in line.changes.items()}
    name = None if audited is None or audited.name is None else audited.name[:MAX_NAME]
    words = (actor.name[:MAX_NAME], name or "", actor.address or "")
    return {
        "at": now,
        "actor_kind": actor.kind.value,
        "actor_id": actor.id,
        "actor_name": actor.name[:MAX_NAME],
        "address": actor.address,
        "action": _precise_action(line).value,
        "object_kind": None if audited is None else audited.kind.value,
        "object_id": None if audited is None else audited.id,
        "object_name": name,
        "changes": changes,
        "words_folded": "\n".join(words).casefold(),
    }


def _stored_change(name: str, value: Any) -> Any:
    if value is CHANGED or _SECRET.search(name):
        return CHANGED
    old, new = value
    return {"old": _cut(plain(old)), "new": _cut(plain(new))}


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]}…"
    return value


def _precise_action(line: _AuditLine) -> Action:
    """The action of a line; for some changes a more precise one than ``CHANGED``."""
    if line.action != Action.CHANGED or line.object is None:
        return line.action
    for name, action_of in _PRECISE_ACTIONS.get(line.object.kind, {}).items():
        if isinstance(pair := line.changes.get(name), tuple):
            return action_of(pair[1])
    return line.action


_PRECISE_ACTIONS: Mapping[ObjectKind, Mapping[str, Callable[[Any], Action]]] = {
    ObjectKind.MONITOR: {"paused": lambda new: Action.PAUSED if new else Action.RESUMED},
    ObjectKind.INCIDENT: {
        "ended_at": lambda new: Action.RESOLVED if new else Action.REOPENED,
        "acknowledged_at": lambda new: Action.ACKNOWLEDGED if new else Action.CHANGED,
    },
    ObjectKind.KEY: {"revoked_at": lambda new: Action.REVOKED if new else Action.CHANGED},
}


CHANGED = "changed"
# No line shows these columns, nor the folded form of another column.
NEVER_AUDITED = ("id", "created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class AuditedTable:
    """``columns``: the columns that are recorded, with their names in the log. ``secret``: columns
    whose values are not recorded. ``named_by``: the column with the name of the object. ``id``: the
    column with its id. ``is_part``: a row is a part of that object, so a new row is a change of it.
    """

    kind: ObjectKind
    columns: Mapping[str, str]
    secret: frozenset[str]
    named_by: str | None
    id: str = "id"
    is_part: bool = False

    def object_of(self, row: Any) -> AuditedObject:
        name = None if self.named_by is None else getattr(row, self.named_by)
        return AuditedObject(self.kind, getattr(row, self.id), name)


def _audited_columns(columns: Any) -> tuple[Mapping[str, str], frozenset[str]]:
    names, secret = {}, set()
    for key, column in columns.items():
        marking = column.info.get("audit") if isinstance(column, Column) else "unseen"
        if marking != "unseen" and key not in NEVER_AUDITED and not key.endswith("_folded"):
            names[key] = column.info.get("audit_name", key)
            if marking == "secret" or isinstance(column.type, Encrypted):
                secret.add(key)
    return names, frozenset(secret)


TABLES: Mapping[type[Any], AuditedTable] = {
    mapper.class_: AuditedTable(resource.kind, *_audited_columns(mapper.columns), resource.named_by)
    for mapper in Model.registry.mappers
    if (resource := BY_TABLE.get(mapper.class_.__tablename__)) and resource.by_row
} | {
    PostUpdateRow: AuditedTable(
        POSTS.kind,
        *_audited_columns(PostUpdateRow.__mapper__.columns),
        "title",
        "post_id",
        is_part=True,
    )
}


def value_of(row: Any, column: str, value: Any) -> Any:
    """The value of a row's column as the log shows it. An owner is shown by email address, because
    an id says nothing once the person is deleted.
    """
    if column == "owner_id" and value is not None:
        session = object_session(row)
        owner = session and session.get(PersonRow, value)
        return owner.email if owner else value
    return tags_of(value or "") if column == "tags" else value


def _plain_setting(old: str | None, new: str | None) -> dict[str, Any]:
    return {"value": (old, new)}


def _secret_setting(old: str | None, new: str | None) -> dict[str, Any]:
    return {} if old == new else {"value": CHANGED}


def _mail_server(old: str | None, new: str | None) -> dict[str, Any]:
    """The changes of server, account and sender, and whether the password changed."""
    old_server, new_server = _server(old), _server(new)
    names = ("host", "port", "tls", "user", "sender")
    changes: dict[str, Any] = {
        name: (getattr(old_server, name, None), getattr(new_server, name, None)) for name in names
    }
    if getattr(old_server, "password", None) != getattr(new_server, "password", None):
        changes["password"] = CHANGED
    return changes


def _server(url: str | None) -> smtp.Server | None:
    try:
        return None if url is None else smtp.parse(url)
    except ValueError:
        return None


# The settings that people change, each with the function that makes the changes for the log.
# Wakeful itself sets all others, or they have lines of ``note``.
SETTINGS: Mapping[str, Callable[[str | None, str | None], dict[str, Any]]] = {
    "allow_networks": _plain_setting,
    "smtp_url": _mail_server,
    "webhook_secret": _secret_setting,
    "webhook_secret_shown": _secret_setting,
}
