"""Read single values from another server's JSON; None stands for an invalid value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from app.records import AUTO, MAX_ID, Assertion, Pair
from app.rules.time import FIRST_YEAR, LAST_YEAR, iso

T = TypeVar("T")
Json = Mapping[str, Any]

# A smaller number is not a time: this is March 1973 in seconds since 1970. A number that is a
# thousand times as large or more is in milliseconds.
MIN_SECONDS = 1e8
FLAGS = {
    **dict.fromkeys(("1", "true", "yes", "on", "y", "enabled"), True),
    **dict.fromkeys(("0", "false", "no", "off", "n", "disabled"), False),
}
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_DATE = re.compile(r"/Date\((-?\d{1,15})\)/")


class MalformedData(ValueError):
    """The answer is not what the base API says. ``str`` names the part, not its content."""


def parse_json(text: bytes, max_values: int, **hooks: Callable[[str], Any]) -> Any:
    """Parse the JSON of a stranger. Raises MalformedData for more than ``max_values`` values before
    it builds them: ``[[],[],…]`` takes 25 times the memory of its text. ``hooks`` are passed to
    ``json.loads``.
    """
    plain = text.replace(rb"\\", b"").replace(rb"\"", b"")
    strings = plain.count(b'"') // 2
    # Each value may have two strings: its name and its text.
    if strings > 2 * max_values or _marks_outside(plain) > max_values:
        raise MalformedData("too many values")
    try:
        return json.loads(text, **hooks)  # type: ignore[arg-type]
    except (ValueError, RecursionError):
        raise MalformedData("JSON") from None


def _marks_outside(text: bytes) -> int:
    """How many ``,``, ``[`` and ``{`` are outside of the strings of a JSON text without escapes:
    about as many as it has values.
    """
    outside = b"".join(text.split(b'"')[::2])
    return sum(outside.count(mark) for mark in (b",", b"[", b"{"))


def object_(data: Any, name: str) -> Json:
    if not isinstance(data, Mapping):
        raise MalformedData(name)
    return data


def mapping(value: Any) -> Json:
    """``value`` if it is an object, else an empty object."""
    return value if isinstance(value, Mapping) else {}


def must(value: T | None, name: str) -> T:
    if value is None:
        raise MalformedData(name)
    return value


def record_id(value: Any) -> int | None:
    """An id in the range of the database's ids."""
    id = whole(value)
    return id if id is not None and 0 < id <= MAX_ID else None


def text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(value) if abs(float(value)) <= MAX_ID else None
    except (ValueError, OverflowError):
        return None


def alert_days(value: Any) -> int | str | None:
    return AUTO if value == AUTO else whole(value)


def bit(value: Any) -> int | None:
    on = flag(value)
    return None if on is None else int(on)


def percent(value: Any) -> float | None:
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100
    return float(value) if valid else None


def whole_or_zero(value: Any) -> int:
    """A count or a duration; 0 for a negative or invalid value."""
    return max(0, whole(value) or 0)


def flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else FLAGS.get(str(value).strip().lower())


def moment(value: Any) -> datetime | None:
    """An aware datetime in UTC; None if invalid, or so far away that other zones cannot show it.

    Besides ISO 8601: seconds or milliseconds since 1970, the dates of HTTP, of PHP, of Jackson (its
    parts in a list) and of ASP.NET (``/Date(1795687200000)/``).
    """
    try:
        read = _moment(value)
        read = (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return None
    return read if FIRST_YEAR <= read.year <= LAST_YEAR else None


def _moment(value: Any) -> datetime:
    if isinstance(value, list):  # of Jackson: [2026, 11, 26, 10, 0]
        year, month, day, hour, minute, second = [*value, 0, 0, 0][:6]
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    if isinstance(value, Mapping):
        if value.get("timezone", "UTC") not in ("UTC", "Z", "+00:00"):
            raise ValueError("another zone")
        return _moment(value["date"]) if isinstance(value.get("date"), str) else _moment(None)
    if isinstance(value, str) and (of_microsoft := _DATE.fullmatch(value)):
        value = of_microsoft[1]
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        plain = value.strip().removesuffix("UTC").removesuffix("GMT").strip().replace("/", "-")
        try:
            return datetime.fromisoformat(plain)
        except ValueError:
            return parsedate_to_datetime(value)
    if isinstance(value, bool) or abs(seconds := float(value)) < MIN_SECONDS:
        raise ValueError("no time")  # such as a count
    if abs(seconds) >= MIN_SECONDS * 1000:
        seconds /= 1000
    return datetime.fromtimestamp(seconds, UTC)


def time_text(value: Any) -> str | None:
    """A time that stays text, as in evidence and statistics."""
    read = moment(value)
    return None if read is None else iso(read)


def word(words: type[T], value: Any) -> T | None:
    try:
        return words(value)  # type: ignore[call-arg] # every ``words`` is a StrEnum
    except ValueError:
        return None


def pairs(value: Any) -> tuple[Pair, ...]:
    if isinstance(value, Mapping):
        # Some languages encode an array with gaps in its indices as an object.
        value = list(value.values())
    if not isinstance(value, list):
        return ()
    return tuple(
        Pair(key, text(entry.get("value")) or "")
        for entry in value
        if isinstance(entry, Mapping) and (key := text(entry.get("key")))
    )


def assertions(value: Any) -> tuple[Assertion, ...]:
    return each(value, _assertion)


def _assertion(entry: Any) -> Assertion | None:
    parts = mapping(entry)
    source, op = text(parts.get("source")), text(parts.get("op"))
    if not source or not op:
        return None
    return Assertion(source, text(parts.get("property")), op, text(parts.get("value")))


def each(value: Any, read: Callable[[Any], T | None]) -> tuple[T, ...]:
    """The valid results of ``read`` for the entries of a list."""
    entries = value if isinstance(value, list) else []
    return tuple(result for entry in entries if (result := read(entry)) is not None)


def each_in(name: str, read: Callable[[Any], T | None], data: Any) -> tuple[T, ...]:
    """``each`` of the list in the field ``name`` of an object. Raises MalformedData."""
    return each(object_(data, name).get(name), read)


def spans(value: Any) -> tuple[tuple[datetime, datetime], ...]:
    """Pairs of times, from and to; incomplete pairs are left out."""
    return each(value, _span)


def _span(value: Any) -> tuple[datetime, datetime] | None:
    ends = mapping(value)
    since, until = moment(ends.get("from")), moment(ends.get("to"))
    return None if since is None or until is None else (since, until)


def texts(value: Any) -> tuple[str, ...]:
    return each(value.split(",") if isinstance(value, str) else value, text)
