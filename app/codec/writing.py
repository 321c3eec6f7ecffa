"""Values as the API writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from app.records import Pair, masked_alert
from app.rules.time import iso


def spans(value: Iterable[tuple[datetime, datetime]]) -> list[dict[str, str]]:
    return [{"from": iso(since), "to": iso(to)} for since, to in value]


def pairs(value: Iterable[Pair]) -> list[dict[str, str]]:
    return [{"key": pair.key, "value": pair.value} for pair in value]


def masked_pairs(value: Iterable[Pair]) -> list[dict[str, str]]:
    return pairs(pair.masked() for pair in value)


def masked_alerts(value: Iterable[Pair]) -> list[dict[str, str]]:
    return pairs(masked_alert(pair) for pair in value)


def plain(value: Any) -> Any:
    """Nested data, with its times in the API's format."""
    if value is None or isinstance(value, str | int | float):  # tested first: most values are
        return value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
