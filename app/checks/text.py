"""Whether a piece of text is in an answer (decisions.md 3)."""

from __future__ import annotations

from app.checks.redact import Redactor
from app.records import TEXT_CONDITIONS, AlertCondition, Cause


def judge_text(condition: str, lookup: str | None, text: str, cut: bool) -> Cause | None:
    """The cause by a text condition, or None. A missing text in a cut body is not a fault."""
    if condition not in TEXT_CONDITIONS or not lookup:
        return None
    found = lookup in text
    if condition == AlertCondition.URL_TEXT:
        return Cause.TEXT_FOUND if found else None
    return None if found or cut else Cause.TEXT_MISSING


def excerpt(text: str, lookup: str, redactor: Redactor, around: int = 60) -> str | None:
    """The found text with its surroundings, on one line; None if it is not there."""
    place = text.find(lookup)
    if place < 0:
        return None
    start, end = redactor.whole(text, max(0, place - around), place + len(lookup) + around)
    piece = " ".join(redactor.text(text[start:end]).split())
    return ("…" if start else "") + piece + ("…" if end < len(text) else "")
