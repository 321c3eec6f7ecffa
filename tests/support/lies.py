"""Wrong values for each part of an answer in JSON, as a broken or hostile peer would send them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]  # of a part of an answer
MISSING = object()
LIES: list[Any] = [
    MISSING, None, "x", -1, 10**400, float("inf"), True, [], {}, "\ud800", [None], {"a": 1}, 7.5,
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-11-21T08:00:00", "javascript:alert(1)",
    "<b>x\r\nx: y</b>", 2**62,
]  # fmt: skip


def spoiled(answer: Any, path: Path, lie: Any) -> Any:
    """``answer`` with ``lie`` at ``path``."""
    if not path:
        return None if lie is MISSING else lie
    try:
        inner = answer[path[0]]
    except (KeyError, IndexError, TypeError):
        return answer
    copy = answer.copy()
    if len(path) == 1 and lie is MISSING:
        del copy[path[0]]
    else:
        copy[path[0]] = spoiled(inner, path[1:], lie)
    return copy


def paths(answer: Any, here: Path = ()) -> Iterator[Path]:
    """The path of every part of an answer; in a list the first entry stands for all."""
    yield here
    if isinstance(answer, dict):
        for name, inner in answer.items():
            yield from paths(inner, (*here, name))
    elif isinstance(answer, list) and answer:
        yield from paths(answer[0], (*here, 0))
