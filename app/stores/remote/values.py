"""Single values out of JSON that somebody else sent: each is what it should be, or None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from app.records import MAX_ID, Pair

T = TypeVar("T")
Json = Mapping[str, Any]

FIRST_YEAR, LAST_YEAR = 1970, 9000


class Odd(ValueError):
    """The answer is not what interface.md says. ``str`` names the part, not its content."""


def object_(data: Any, name: str) -> Json:
    if not isinstance(data, Mapping):
        raise Odd(name)
    return data


def must(value: T | None, name: str) -> T:
    if value is None:
        raise Odd(name)
    return value


def given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def id_(data: Json, name: str) -> int:
    id = must(whole(data.get(name)), name)
    if not 0 < id <= MAX_ID:
        raise Odd(name)
    return id


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


def percent(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100
    return float(value) if known else None


def length(value: Any) -> int:
    """A count or a length of time; what is none counts as nothing."""
    return max(0, whole(value) or 0)


def flag(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"1": True, "true": True, "0": False, "false": False}.get(str(value).lower())


def moment(value: Any) -> datetime | None:
    """In UTC; None for what is none, or so far away that other zones have no name for it."""
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value)
        read = (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return read if FIRST_YEAR <= read.year <= LAST_YEAR else None


def time(value: Any) -> str | None:
    """A time that stays text, as evidence and statistics have it."""
    read = moment(value)
    return None if read is None else read.strftime("%Y-%m-%dT%H:%M:%SZ")


def word(words: type[T], value: Any) -> T | None:
    try:
        return words(value)  # type: ignore[call-arg] # every ``words`` is a StrEnum
    except ValueError:
        return None


def pairs(value: Any) -> tuple[Pair, ...]:
    if isinstance(value, Mapping):
        value = list(
            value.values()
        )  # an array whose indices are not dense, as some languages write it
    if not isinstance(value, list):
        return ()
    return tuple(
        Pair(key, text(one.get("value")) or "")
        for one in value
        if isinstance(one, Mapping) and (key := text(one.get("key")))
    )


def texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    found = value if isinstance(value, list) else []
    return tuple(one for each in found if (one := text(each)) is not None)


def ids(value: Any) -> tuple[int, ...]:
    found: Sequence[Any] = value if isinstance(value, list) else []
    return tuple(id for one in found if (id := whole(one)) is not None)
