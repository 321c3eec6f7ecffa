"""Write unreadable values directly into the database, as a broken disk would."""

from __future__ import annotations

from typing import Any

from cryptography.fernet import Fernet
from flask import Flask
from sqlalchemy import Text, cast, select, type_coerce, update

from app.db import db, writing
from app.db.types import cipher_of_database

# Each kind, as what it makes of the stored token. The last four hold valid tokens.
KINDS = {
    "another key": lambda token: Fernet(Fernet.generate_key()).encrypt(b"secret").decode(),
    "truncated": lambda token: token[:-7],
    "garbled": lambda token: "%%%" + token[3:],
    "not UTF-8": lambda token: _token(b"\xff\xfe"),
    "broken JSON": lambda token: _token(b'{"event": '),
    "null": lambda token: _token(b"null"),
    "another shape": lambda token: _token(b"[1, null]"),
    "missing keys": lambda token: _token(b'{"event": "incident.opened"}'),
}


def _token(plain: bytes) -> str:
    return cipher_of_database().encrypt(plain).decode()


def corrupt(app: Flask, column: Any, id: Any, kind: str = "another key") -> None:
    """Make the stored value of ``column`` unreadable in the row ``id``."""
    table = column.class_.__table__
    (key,) = table.primary_key.columns
    with app.app_context(), writing() as session:
        raw = cast(type_coerce(table.c[column.key], Text), Text)
        stored = session.scalar(select(raw).where(key == id)) or _token(b"[]")
        broken = type_coerce(KINDS[kind](stored), Text)
        session.execute(update(table).where(key == id).values({column.key: broken}))


def raw_value(app: Flask, column: Any, id: Any) -> str | None:
    """The stored values, not decrypted."""
    table = column.class_.__table__
    (key,) = table.primary_key.columns
    with app.app_context():
        stored: str | None = db.session.scalar(
            select(type_coerce(table.c[column.key], Text)).where(key == id)
        )
        return stored
