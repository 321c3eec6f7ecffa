"""The tags that monitors have, for fields that take some, and how many monitors they reach."""

from __future__ import annotations

from collections.abc import Sequence

from flask import g

from app.i18n import _, _n
from app.stores import current_store
from app.web.frame.store_errors import NOT_TAKEN

SUGGESTED = 50  # the most used of more


def in_use() -> Sequence[tuple[str, int]]:
    """The tags by name, with how many monitors have each; none where the store does not say. Asked
    once a request.
    """
    if "tags_in_use" not in g:
        try:
            counts = current_store().monitors.tag_counts()
        except NOT_TAKEN:  # a form does without rather than fail
            counts = {}
        most_used = sorted(counts.items(), key=lambda pair: -pair[1])[:SUGGESTED]
        g.tags_in_use = sorted(most_used, key=lambda pair: pair[0].casefold())
    tags: Sequence[tuple[str, int]] = g.tags_in_use
    return tags


def reached(tags: Sequence[str], ids: Sequence[int] = ()) -> int:
    """How many monitors have one of ``tags``, or one of ``ids``."""
    return current_store().monitors.count(tags, ids)


def sentence(tags: Sequence[str], ids: Sequence[int] = ()) -> str:
    """How many monitors are meant; empty if none is chosen."""
    if not tags and not ids:
        return ""
    if count := reached(tags, ids):
        return _reaches(count)
    return _("This reaches no monitor now: none has the tag %(tags)s.", tags=", ".join(tags))


def sentence_of_all() -> str:
    """How many monitors are meant where all are."""
    return _reaches(sum(current_store().monitors.overview().values()))


def _reaches(count: int) -> str:
    return _n(
        "This reaches %(num)s monitor now.",
        "This reaches %(num)s monitors now.",
        count,
        num=f"{count:,}",
    )
