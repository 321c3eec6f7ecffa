"""Read values of imported files as text, numbers and switches. No function here raises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from app.rules.text import one_line
from app.rules.time import UNIT_SECONDS, duration_seconds

# A time limit of this or more is in milliseconds, as Better Stack's for TCP is; no tool allows as
# many seconds.
MIN_MILLISECONDS = 500
MAX_SHOWN = 60  # characters of a file's text within a sentence


class ImportEntry:
    """A record of a file. It notes which keys were read, so that a remark can name the others
    (``unread``). A setting may have several names: the first name that the record has counts.
    """

    def __init__(self, record: object) -> None:
        self.record = mapping(record)
        self._read: set[str] = set()

    def get(self, *names: str) -> Any:
        self._read.update(names)
        return next((self.record[name] for name in names if name in self.record), None)

    def has(self, name: str) -> bool:
        return name in self.record

    def text(self, *names: str) -> str:
        return string(self.get(*names))

    def number(self, *names: str) -> float | None:
        return number(self.get(*names))

    def is_on(self, *names: str) -> bool:
        return truth(self.get(*names))

    def is_off(self, *names: str) -> bool:
        """Whether the record has the switch, and it is off."""
        value = self.get(*names)
        return value is not None and not truth(value)

    def list(self, *names: str) -> Sequence[Any]:
        return as_list(self.get(*names))

    def mapping(self, *names: str) -> Mapping[str, Any]:
        return mapping(self.get(*names))

    def unread(self) -> Iterator[str]:
        """The keys that were not read and have content."""
        for key, value in self.record.items():
            if key not in self._read and has_content(value):
                yield string(key)


def has_content(value: object) -> bool:
    """Whether a value is neither empty nor 0, nor a switch that is off."""
    if isinstance(value, Mapping | list | tuple):
        return bool(value)
    return string(value).strip().lower() not in ("", "0", "false", "none", "null", "[]", "{}")


def records_in(data: object, *keys: str) -> list[Mapping[str, Any]]:
    """The records in the content of a JSON file. It may be a list of records, an object that has
    them under one of ``keys`` or by their ids, or a list of such objects (the pages of an API).
    """
    if isinstance(data, list):
        return [
            record
            for page in data
            if isinstance(page, Mapping)
            for record in records_in(page, *keys)
        ]
    whole = mapping(data)
    for key in keys:
        if isinstance(whole.get(key), Mapping | list):
            return records_in(whole[key], *(name for name in keys if name != key))
    by_id = [record for record in whole.values() if isinstance(record, Mapping)]
    if by_id and len(by_id) == len(whole):
        return by_id
    return [whole] if whole else []


def header_rows(value: object) -> list[tuple[str, str]] | None:
    """The headers in ``{"X-A": "b"}``, ``[{"name": "X-A", "value": "b"}]`` or ``["X-A: b"]``, also
    as a JSON text; None for any other value.
    """
    value = from_json(value)
    if not has_content(value):
        return []
    rows: list[tuple[object, object]] = []
    if isinstance(value, Mapping):
        rows += value.items()
    for item in as_list(value):
        if isinstance(item, Mapping):
            rows.append((item.get("name"), item.get("value")))
        else:
            name, _colon, text = string(item).partition(":")
            rows.append((name, text))
    if not rows or any(isinstance(item, Mapping | list) for row in rows for item in row):
        return None
    return [(string(name).strip(), string(item).strip()) for name, item in rows]


def from_json(value: Any) -> Any:
    """The content of a JSON text; any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def cut_line(text: str) -> str:
    """A file's text for a sentence: on one line, and cut if it is long."""
    return one_line(text, MAX_SHOWN)


def string(value: object) -> str:
    """A value as text; empty for None, lists and objects. A lone surrogate, which JSON can contain
    and no page can show, becomes a question mark.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | float) else ""


def number(value: object) -> float | None:
    """A number, which may be written as text; None for any other value."""
    text = string(value).strip() if not isinstance(value, bool) else ""
    if not text or len(text) > 20:
        return None
    try:
        amount = float(text)
    except ValueError:
        return None
    return amount if abs(amount) < 10**12 else None


def truth(value: object) -> bool:
    """Whether a switch is on: ``true``, ``1``, ``"1"``, ``"yes"``."""
    return string(value).strip().lower() in ("true", "1", "yes", "on")


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def seconds(value: object, units: Mapping[str, float] = UNIT_SECONDS) -> float | None:
    """The seconds of a number, or of a duration such as ``5m``, ``1h30m`` and ``5 min``."""
    plain_number = number(value)
    return plain_number if plain_number is not None else duration_seconds(string(value), units)


def number_text(value: float) -> str:
    return f"{value:g}"


def duration_text(value: float) -> str:
    """``20 s``, ``5 min``, ``1 h`` or ``2 d``."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if value >= size and value % size == 0:
            return f"{number_text(value / size)} {unit}"
    return f"{number_text(value)} s"


# --- Patterns -------------------------------------------------------------------------------------
#
# JSON paths and RE2 patterns for assertions, made from the conditions of other tools.

_STEP = re.compile(
    r"""\.?(?:(?P<name>[\w-]+)|`(?P<quoted>[^`]+)`|\[(?P<index>-?[0-9]{1,9})\])""", re.VERBOSE
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
_MAX_PATH = 1_000  # characters


def json_path(dotted: str, *, hyphens: bool = True) -> str | None:
    """``$.data[0].name`` for ``data[0].name``; None for a path that has more than names and
    indices. ``hyphens``: whether a hyphen is part of a name; in JSONata it is a minus sign.
    """
    path = dotted.strip()
    if len(path) > _MAX_PATH:
        return None
    path = path.removeprefix("$")
    steps = ["$"]
    offset = 0
    while offset < len(path):
        step = _STEP.match(path, offset)
        if step is None or (not hyphens and "-" in (step["name"] or "")):
            return None
        steps.append(_step_text(step))
        offset = step.end()
    return "".join(steps)


def _step_text(step: re.Match[str]) -> str:
    if step["index"] is not None:
        return f"[{int(step['index'])}]"
    name = step["name"] or step["quoted"]
    if _PLAIN.fullmatch(name):
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"


def literal_pattern(text: str) -> str:
    """A pattern that matches ``text`` itself."""
    return _SPECIAL.sub(r"\\\1", text)


def glob_pattern(pattern: str) -> str:
    """The pattern that is equivalent to a shell pattern with ``*`` and ``?``."""
    parts = (
        ".*" if part == "*" else "." if part == "?" else literal_pattern(part)
        for part in re.split(r"([*?])", pattern)
    )
    return "".join(parts)


def spaced_pattern(text: str) -> str:
    """A pattern that matches a part of a JSON text, with or without spaces around its signs."""
    return "".join(
        rf"\s*{literal_pattern(sign)}\s*" if sign in "{}[]:," else literal_pattern(sign)
        for sign in text
    )


NAMES = ("CNAME", "MX", "NS", "PTR", "SOA", "SRV")  # records whose value is a name
# A record as ``dig +short`` writes it, by its type, with {} for its value.
_RECORDS = {
    "MX": "[0-9]+ {}", "SRV": "[0-9]+ [0-9]+ [0-9]+ {}", "SOA": "{} .*", "TXT": '.*"{}".*',
    "CAA": '[0-9]+ issue "{}"',
}  # fmt: skip


def record_pattern(rdtype: str, pattern: str) -> str:
    """A pattern for a whole record whose value matches ``pattern``."""
    return f"^{_RECORDS.get(rdtype, '{}').format(pattern)}$"


def alternatives(texts: Iterable[str]) -> str:
    return f"^(?:{'|'.join(map(literal_pattern, texts))})$"
