"""Connections to SQLite, as every process of Wakeful opens them."""

import sqlite3
import threading

import pytest
import sqlalchemy as sa

from app.db import prepare_engine


def opened(path):
    engine = sa.create_engine(f"sqlite:///{path}")
    prepare_engine(engine)
    try:
        with engine.connect() as connection:
            return connection.exec_driver_sql("PRAGMA journal_mode").scalar()
    finally:
        engine.dispose()


def test_the_first_connection_waits_for_another_process_that_holds_the_new_file(tmp_path):
    path = tmp_path / "fresh.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.3, other.execute, ["COMMIT"])
    release.start()
    assert opened(path) == "wal"
    release.join()
    other.close()


def test_a_file_that_is_not_a_database_is_reported_at_once(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but longer than the header of one would be" * 20)
    with pytest.raises(sa.exc.DatabaseError, match="not a database"):
        opened(path)
