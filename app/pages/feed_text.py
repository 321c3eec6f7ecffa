"""Texts for feeds, calendars and other formats that programs read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from app.records import Component, PublicPage
from app.rules.time import zone_of

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Some programs read these as line breaks.
_LINE_ENDS = dict.fromkeys(map(ord, "\r\x0b\x0c\x85\u2028\u2029"), "\n")
# XML and iCalendar do not allow these. One of them makes a whole feed invalid.
_FORBIDDEN = dict.fromkeys(
    (
        *range(0x09),
        *range(0x0E, 0x20),
        *range(0x7F, 0x85),
        *range(0x86, 0xA0),
        *range(0xD800, 0xE000),
        0xFFFE,
        0xFFFF,
    ),
    _REPLACEMENT,
)
_REPLACED = {**_FORBIDDEN, **_LINE_ENDS}
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def clean(text: str) -> str:
    """``text`` without characters that XML and iCalendar forbid; lines end with LF."""
    return text.replace("\r\n", "\n").translate(_REPLACED)


def one_line(text: str) -> str:
    """``text`` on one line: titles and names."""
    return " ".join(clean(text).split())


def newest(*moments: datetime | None) -> datetime:
    """The latest of these; long ago if there is none."""
    return max((moment for moment in moments if moment is not None), default=LONG_AGO)


def page_url(page: PublicPage) -> str:
    """The beginning of the absolute links of a page."""
    return (page.page.link or "").rstrip("/")


def affected(components: Sequence[Component], ids: Iterable[int]) -> list[str]:
    """The names of the components with these ids. A group that is complete is named instead of its
    members.
    """
    id_set = set(ids)
    groups = {component.group for component in components if component.group}
    groups -= {component.group for component in components if component.id not in id_set}
    names = (
        component.group if component.group in groups else component.name
        for component in components
        if component.id in id_set
    )
    return list(dict.fromkeys(name for name in names if name))


def post_link(page: PublicPage, id: int, created_at: datetime | None) -> str:
    """The permanent address of a post: its anchor in the history."""
    at = (created_at or LONG_AGO).astimezone(zone_of(page.page.zone))
    return f"{page_url(page)}/history?month={at:%Y-%m}#post-{id}"
