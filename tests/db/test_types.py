"""Stored values as they are read, and damaged ones: one table for all column types. The effects of
a damaged value on pages, checks and alerts are in tests/faults/test_unreadable_*.py.
"""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from sqlalchemy.dialects import sqlite

from app.db.contents import is_ids, is_texts
from app.db.types import (
    Bounded,
    CheckedJson,
    EnteredMoment,
    Moment,
    Replaced,
    Unreadable,
    Why,
    Word,
    checked_numbers,
    is_same,
    readable,
    unreadable_in,
)
from app.records import Role, Scope

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp()) * 1000
FAR = 900_000_000_000_000_000
NUMBER, ROLE, IDS = Bounded(1, 60, 30), Word(16, Role, Role.VIEWER), Word(None, is_ids, "")
TEXTS = CheckedJson(is_texts, list)
WHOLE = [
    (Moment(), NOON_MS, NOON),
    (Moment(), None, None),
    (EnteredMoment(), 253_402_300_799_000, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    (NUMBER, 1, 1),
    (NUMBER, None, None),
    (ROLE, "admin", "admin"),
    (IDS, ",0,7,", ",0,7,"),
    (TEXTS, '["a"]', ["a"]),
]
# The value that is read in place of a damaged one.
DAMAGED = [
    (Moment(), FAR, datetime(9000, 1, 1, tzinfo=UTC)),
    (Moment(), -FAR, datetime(1900, 1, 1, tzinfo=UTC)),
    (Moment(), "yesterday", datetime(9000, 1, 1, tzinfo=UTC)),
    (Moment(), b"\xff", datetime(9000, 1, 1, tzinfo=UTC)),
    (NUMBER, 0, 30),
    (NUMBER, 61, 30),
    (NUMBER, "often", 30),
    (ROLE, "owner", "viewer"),
    (ROLE, "", "viewer"),
    (ROLE, b"\xff", "viewer"),
    (Word(8, Scope, Scope.READ), "all", "read"),
    (IDS, "7;DROP", ""),
    (IDS, f",{'9' * 30},", ""),
    (TEXTS, "{broken", []),
    (TEXTS, "[1]", []),
    (TEXTS, "[" * 100_000, []),
]


def read(type_, stored):
    own = type_.dialect_impl(sqlite.dialect())
    return own.result_processor(sqlite.dialect(), None)(stored)


def parsed(type_, stored):
    own = type_.dialect_impl(sqlite.dialect())
    return None if stored is None else own.parser(sqlite.dialect(), None)(stored)


@pytest.mark.parametrize(("type_", "stored", "value"), WHOLE)
def test_a_whole_value_is_read_as_it_is(type_, stored, value):
    assert read(type_, stored) == value
    assert not isinstance(parsed(type_, stored), Unreadable)


@pytest.mark.parametrize(("type_", "stored", "instead"), DAMAGED)
def test_a_damaged_value_is_replaced_and_found(type_, stored, instead):
    value = read(type_, stored)
    assert value == instead
    assert isinstance(parsed(type_, stored), Unreadable)
    if type_ is not TEXTS:
        assert isinstance(value, Replaced)
        assert readable(value) is None
        assert not is_same(value, instead), "storing what is shown mends it"


def test_a_row_names_its_fields_that_cannot_be_read():
    row = SimpleNamespace(role=read(ROLE, "owner"), name="Ada", secret=Unreadable(Why.OTHER_KEY))
    damages = unreadable_in(row, ("name", "role", "secret"))
    assert damages == {"role": Why.UNEXPECTED, "secret": Why.OTHER_KEY}


def test_rows_of_results_have_numbers_or_nothing():
    whole = [(7, True, None, "a cause"), (8, False, 120, None)]
    assert checked_numbers(whole, texts=1) is whole
    damaged = [(7, b"\xff", "junk", "a cause"), (8, 1.5, 120, None)]
    assert checked_numbers(damaged, texts=1) == [(7, None, None, "a cause"), (8, None, 120, None)]
    assert checked_numbers([(7, "junk")]) == [(7, None)]
    assert checked_numbers([]) == []
