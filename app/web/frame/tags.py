"""The tags that monitors have, for fields that take some, and how many monitors they reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import g

from app.i18n import _, _n
from app.rules.natural import natural_key
from app.stores import current_store
from app.web.frame.store_errors import NOT_TAKEN

SUGGESTED = 50  # the most used of more


def counts() -> Mapping[str, int] | None:
    """How many monitors have each tag; None if the store does not say. Asked once a request."""
    if "tag_counts" not in g:
        try:
            g.tag_counts = current_store().monitors.tag_counts()
        except NOT_TAKEN:  # a form does without rather than fail
            g.tag_counts = None
    by_tag: Mapping[str, int] | None = g.tag_counts
    return by_tag


def in_use() -> Sequence[tuple[str, int]] | None:
    """The tags that a field suggests, by name, with how many monitors have each; None if the
    store does not say.
    """
    if (by_tag := counts()) is None:
        return None
    most_used = sorted(by_tag.items(), key=lambda pair: -pair[1])[:SUGGESTED]
    return sorted(most_used, key=lambda pair: natural_key(pair[0]))


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
    """How many monitors are meant if all are."""
    return _reaches(sum(current_store().monitors.overview().values()))


def _reaches(count: int) -> str:
    return _n(
        "This reaches %(num)s monitor now.",
        "This reaches %(num)s monitors now.",
        count,
        num=f"{count:,}",
    )
