"""The values of a row that the audit log records, as its table and its columns say.

A table that ``app/records/resources.py`` describes has lines by its rows. A column says on itself
(``mapped_column(info=...)``) that it is not seen, or a secret, which is recorded as ``CHANGED`` and
never with its values; encrypted ones are secrets. All others are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column
from sqlalchemy.orm import object_session

from app.db import Model
from app.db.tables import PersonRow, PostUpdateRow
from app.db.tags import tags_of
from app.db.types import Encrypted
from app.records import AuditedObject, ObjectKind
from app.records.resources import BY_TABLE, POSTS
from app.rules import smtp

CHANGED = "changed"
# Columns that no line shows, as it shows no folded form of another column.
ALWAYS_UNSEEN = ("id", "created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class Table:
    """``columns``: the name in the log of each column that it shows. ``secret``: columns whose
    values are not recorded. ``is_part``: a row is a part of the object whose id is in the column
    ``id``, so a new row is a change of that object.
    """

    kind: ObjectKind
    columns: Mapping[str, str]
    secret: frozenset[str]
    named_by: str | None
    id: str = "id"
    is_part: bool = False

    def thing(self, row: Any) -> AuditedObject:
        name = None if self.named_by is None else getattr(row, self.named_by)
        return AuditedObject(self.kind, getattr(row, self.id), name)


def _columns(columns: Any) -> tuple[Mapping[str, str], frozenset[str]]:
    names, secret = {}, set()
    for key, column in columns.items():
        marking = column.info.get("audit") if isinstance(column, Column) else "unseen"
        if marking != "unseen" and key not in ALWAYS_UNSEEN and not key.endswith("_folded"):
            names[key] = column.info.get("audit_name", key)
            if marking == "secret" or isinstance(column.type, Encrypted):
                secret.add(key)
    return names, frozenset(secret)


TABLES: Mapping[type[Any], Table] = {
    mapper.class_: Table(resource.kind, *_columns(mapper.columns), resource.named_by)
    for mapper in Model.registry.mappers
    if (resource := BY_TABLE.get(mapper.class_.__tablename__)) and resource.by_row
} | {
    PostUpdateRow: Table(
        POSTS.kind, *_columns(PostUpdateRow.__mapper__.columns), "title", "post_id", is_part=True
    )
}


def value_of(row: Any, column: str, value: Any) -> Any:
    """The value of a row's column as the log shows it. An owner is shown by email address: a number
    says nothing once the person is deleted.
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
    """The server, account and sender; of the password, only that it changed."""
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


# The settings that people change, and what is recorded of a change. Wakeful sets all others.
SETTINGS: Mapping[str, Callable[[str | None, str | None], dict[str, Any]]] = {
    "allow_networks": _plain_setting,
    "smtp_url": _mail_server,
    "webhook_secret": _secret_setting,
    "webhook_secret_shown": _secret_setting,
}
