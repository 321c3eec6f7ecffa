"""What a fault of a database says: the cause, and whether something may have been written."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import exc

from app.db.faults import (
    AT,
    AWAY,
    BUSY,
    DAMAGED,
    FULL,
    READ_ONLY,
    DiskFault,
    cause_of,
    public_cause,
    unavailable,
    with_path,
)
from app.errors import Unavailable


class Refusal(Exception):
    """What PostgreSQL's driver raises."""

    def __init__(self, sqlstate: str | None = None) -> None:
        self.sqlstate = sqlstate


def of_sqlite(code: int) -> sqlite3.OperationalError:
    fault = sqlite3.OperationalError("x")
    fault.sqlite_errorcode = code
    return fault


@pytest.mark.parametrize(
    ("fault", "sentence", "unsent"),
    [
        (exc.TimeoutError(), AWAY, True),
        (exc.OperationalError("INSERT", {}, Refusal()), AWAY, True),
        # A commit that failed may have reached the server.
        (exc.OperationalError(None, None, Refusal()), AWAY, False),
        (exc.InternalError("INSERT", {}, Refusal("25006")), READ_ONLY, True),
        (exc.InternalError(None, None, Refusal("53100")), FULL, False),
        (exc.OperationalError(None, None, of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT)), BUSY, True),
        (exc.OperationalError(None, None, of_sqlite(sqlite3.SQLITE_CORRUPT_INDEX)), DAMAGED, True),
        (exc.ProgrammingError("SELEC", {}, Refusal("42601")), None, None),
        (exc.OperationalError("SELEC", {}, of_sqlite(sqlite3.SQLITE_ERROR)), None, None),
        (ValueError(), None, None),
    ],
)
def test_a_fault_says_why_and_whether_it_may_have_been_written(fault, sentence, unsent):
    cause = unavailable(fault)
    assert (cause and str(cause), cause and cause.unsent) == (sentence, unsent)


def test_operators_see_the_path_of_a_database_whose_disk_is_full_and_the_public_does_not():
    fault = exc.OperationalError("INSERT", {}, of_sqlite(sqlite3.SQLITE_FULL))
    fault.orig.path = "/var/lib/wakeful/wakeful.db"
    assert cause_of(fault) == f"{FULL} The database is /var/lib/wakeful/wakeful.db."
    assert str(public_cause(fault)) == FULL


def test_a_disk_at_fault_is_known_by_its_type_in_every_language():
    assert with_path(DiskFault("Voll."), "/srv/w.db") == f"Voll. {AT % {'path': '/srv/w.db'}}"
    assert with_path(Unavailable(FULL), "/srv/w.db") == FULL
