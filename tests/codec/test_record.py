"""A mistake in a record stops the program when it is started or tested: it never shows a secret,
nor leaves a field out of the API's description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from app.codec.record import json_of, reader, schema_of
from app.records import Mark


@dataclass(frozen=True)
class _Key:
    name: str
    number: Annotated[int, Mark.SECRET]


@dataclass(frozen=True)
class _Door:
    name: str
    width: int


@dataclass(frozen=True)
class _House:
    door: _Door | None


@dataclass(frozen=True)
class _Blob:
    data: bytes


def test_a_secret_without_a_mask_is_never_written_for_those_who_only_read():
    assert json_of(_Key("door", 7)) == {"name": "door", "number": 7}
    with pytest.raises(TypeError, match="number: nothing says how to mask"):
        json_of(_Key("door", 7), masked=True)


def test_a_record_within_another_that_lacks_a_part_is_left_out():
    read = reader(_House, "house")
    assert read({"door": {"name": "front", "width": 90}}).door == _Door("front", 90)
    assert read({"door": {"name": "front"}}).door is None


def test_a_field_needs_a_type_that_the_codec_can_write():
    with pytest.raises(TypeError, match="cannot read and write <class 'bytes'>"):
        schema_of(_Blob)


def test_a_rule_for_a_field_that_was_renamed_is_refused():
    with pytest.raises(TypeError, match="_Key has no field count"):
        schema_of(_Key, count={"type": "integer"})
    with pytest.raises(TypeError, match="_Key has no field count"):
        reader(_Key, "key", count=int)
