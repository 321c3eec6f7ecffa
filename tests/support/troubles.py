"""Reasons why an SQLite file cannot be written: locked, full, failing, read-only."""

import os
import resource
import sqlite3
from contextlib import contextmanager

import sqlalchemy as sa

from app.db import db

NOBODY = 65534


@contextmanager
def full(app):
    """Limit the pages of an SQLite file: it then fails with the same error as on a full disk."""
    with app.app_context():
        db.engine.dispose()
        engine = db.engine

        def limit(connection, _record):
            # SQLite raises this to the present size of the file, which then cannot grow.
            connection.execute("PRAGMA max_page_count=1")

        sa.event.listen(engine, "connect", limit)
        try:
            yield
        finally:
            sa.event.remove(engine, "connect", limit)
            engine.dispose()


@contextmanager
def failing(app):
    """No file may grow any more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def locked(app):
    """Somebody else writes and does not end."""
    path = app.config["SQLALCHEMY_DATABASE_URI"].removeprefix("sqlite:///")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@contextmanager
def bound():
    """Run as a user to whom file permissions apply, unlike root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@contextmanager
def read_only(folder):
    for path in (*folder.iterdir(), folder):
        path.chmod(0o444 if path.is_file() else 0o555)
    try:
        yield
    finally:
        for path in (folder, *folder.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
