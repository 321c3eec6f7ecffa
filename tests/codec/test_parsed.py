"""JSON of a stranger takes no more memory than a few times its length."""

import json
import tracemalloc

import pytest

from app.codec.values import MalformedData, parse_json

BOMBS = {
    "lists": b"[" + b"[]," * 1_000_000 + b"[]]",
    "objects": b"[" + b"{}," * 1_000_000 + b"{}]",
    "numbers": b"[" + b"1," * 1_000_000 + b"1]",
    "strings": b'["' + b'","' * 1_000_000 + b'"]',
    "quotes": b'"' * 3_000_000,
    "behind a string with a quote": rb'["\\\"",' + b"[]," * 1_000_000 + b"[]]",
    "behind a string with a backslash": rb'["\\",' + b"[]," * 1_000_000 + b"[]]",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_many_values_are_refused_before_they_are_made(bomb):
    text = BOMBS[bomb]
    tracemalloc.start()
    try:
        with pytest.raises(MalformedData, match="too many values"):
            parse_json(text, 100_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * len(text)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 99_000, b"nonsense"])
def test_what_is_no_json_is_odd(text):
    with pytest.raises(MalformedData):
        parse_json(text, 100_000)


@pytest.mark.parametrize(
    "data",
    [
        {"body": "," * 1_000, "other": "[{" * 1_000},
        {"body": '{"a": [1, 2, {"b": "\\\\"}]}' * 100},
        {"body": "\\" * 1_001, "quotes": '"' * 1_001},
        [1, [2, {"a": None}]],
    ],
)
def test_what_is_in_strings_counts_as_no_value(data):
    assert parse_json(json.dumps(data).encode(), 10) == data
