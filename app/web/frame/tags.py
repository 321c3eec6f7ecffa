"""The tags of monitors, for fields that take tags, and how many monitors have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import g, request

from app.errors import Invalid
from app.i18n import _, _n
from app.records import MAX_TAG
from app.rules.natural import natural_key
from app.rules.text import fault_of, length
from app.stores import current_store
from app.web.frame.store_errors import if_answered

SUGGESTED = 50  # the most frequent tags


def requested() -> str | None:
    """The tag in the address, or None. Raises Invalid if it is too long."""
    tag = request.args.get("tag", "").strip()
    if (fault := fault_of(lambda: length(tag, MAX_TAG))) is not None:
        raise Invalid({"tag": [fault]})
    return tag or None


def counts() -> Mapping[str, int] | None:
    """How many monitors have each tag; None if the store cannot tell. Read once a request."""
    if "tag_counts" not in g:
        g.tag_counts = if_answered(lambda: current_store().monitors.tag_counts(), None)
    by_tag: Mapping[str, int] | None = g.tag_counts
    return by_tag


def in_use() -> Sequence[tuple[str, int]] | None:
    """The tags that a field suggests, by name, with how many monitors have each; None if the store
    cannot tell.
    """
    if (by_tag := counts()) is None:
        return None
    frequent = sorted(by_tag.items(), key=lambda pair: -pair[1])[:SUGGESTED]
    return sorted(frequent, key=lambda pair: natural_key(pair[0]))


def reached(tags: Sequence[str], ids: Sequence[int] = ()) -> int:
    """How many monitors have one of ``tags``, or one of ``ids``."""
    return current_store().monitors.count(tags, ids)


def sentence(tags: Sequence[str], ids: Sequence[int] = ()) -> str:
    """A sentence on how many monitors have the tags or ids; empty without tags and ids."""
    if not tags and not ids:
        return ""
    if count := reached(tags, ids):
        return _reaches(count)
    return _("This reaches no monitor now: none has the tag %(tags)s.", tags=", ".join(tags))


def sentence_of_all() -> str:
    """A sentence on the number of all monitors."""
    return _reaches(sum(current_store().monitors.overview().values()))


def _reaches(count: int) -> str:
    return _n(
        "This reaches %(num)s monitor now.",
        "This reaches %(num)s monitors now.",
        count,
        num=f"{count:,}",
    )
