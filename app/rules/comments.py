"""The comment of an incident: one text (API 4) to which the dashboard and the recorder add
paragraphs. The head of a paragraph names its time and its author, so that several people can write
and the timeline can show each paragraph at its time. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.records import MAX_COMMENT

_HEAD = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC, ([^\]\n]+)\]$", re.M)


@dataclass(frozen=True, slots=True)
class Remark:
    """One paragraph. ``at`` and ``who`` are None for text that ``add`` did not write."""

    text: str
    at: datetime | None = None
    who: str | None = None


def add(comment: str | None, text: str, who: str, at: datetime) -> str:
    """``comment`` with one more remark."""
    # A bracket in the name would end the head, and the text would be the previous author's.
    name = who.replace("[", "(").replace("]", ")")
    head = f"[{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {name}]"
    return "\n\n".join(
        part for part in ((comment or "").rstrip(), f"{head}\n{_without_heads(text)}") if part
    )


def _without_heads(text: str) -> str:
    """``text`` with brackets replaced in lines that look like the head of a remark: otherwise a
    person could write in the name of another. The text does not get longer.
    """
    lines = text.strip().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(f"({line[1:-1]})" if _HEAD.match(line) else line for line in lines)


def opening(fields: Mapping[str, Any], who: str, at: datetime) -> dict[str, Any]:
    """The fields of a new incident, with its comment as the first remark if that fits."""
    text = fields.get("comment")
    whole = add(None, text, who, at) if text else text
    fits = len(whole or "") <= MAX_COMMENT
    return {**fields, "comment": whole if fits else _without_heads(text or "")}


def remarks(comment: str | None) -> list[Remark]:
    """The paragraphs of a comment, in the order in which they were written."""
    pieces = _HEAD.split(comment or "")
    paragraphs = [Remark(pieces[0].strip())] if pieces[0].strip() else []
    for stamp, who, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        try:
            at = datetime.fromisoformat(stamp).replace(tzinfo=UTC)
        except ValueError:  # typed by hand, with a day that does not exist
            paragraphs.append(Remark(f"[{stamp} UTC, {who}]\n{text.strip()}"))
        else:
            paragraphs.append(Remark(text.strip(), at, who))
    return paragraphs
