"""The maintenance of a status page as iCalendar (RFC 5545), for calendars that subscribe to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from app.i18n import _
from app.pages.feed_text import affected, clean, newest, one_line, page_url
from app.records import PublicPage, PublicWindow

LINE_BYTES = 75
REFRESH = "PT15M"
PRODUCT = "-//Wakeful//Status pages//EN"
_ESCAPED = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"})


def ics(page: PublicPage) -> bytes:
    lines = (
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        f"PRODID:{PRODUCT}",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        f"NAME:{_name(page)}",  # RFC 7986
        f"X-WR-CALNAME:{_name(page)}",
        f"REFRESH-INTERVAL;VALUE=DURATION:{REFRESH}",
        f"X-PUBLISHED-TTL:{REFRESH}",
        *(text for window in page.windows for text in _event(page, window)),
        "END:VCALENDAR",
    )
    return b"".join(_folded(text) + b"\r\n" for text in lines)


def _event(page: PublicPage, window: PublicWindow) -> Iterator[str]:
    changed = newest(window.updated_at)
    yield "BEGIN:VEVENT"
    yield f"UID:{_text(window.uid)}"
    yield f"SEQUENCE:{window.sequence}"
    # The last change of the entry, not the present time: equal pages must have equal bytes.
    yield f"DTSTAMP:{_moment(changed)}"
    yield f"LAST-MODIFIED:{_moment(changed)}"
    yield f"DTSTART:{_moment(window.start_at)}"
    yield f"DTEND:{_moment(window.end_at)}"
    yield f"SUMMARY:{_text(one_line(window.name))}"
    about = _about(page, window)
    if about:
        yield f"DESCRIPTION:{_text(about)}"
    yield f"STATUS:{'CANCELLED' if window.cancelled else 'CONFIRMED'}"
    yield "TRANSP:TRANSPARENT"  # otherwise, Outlook shows people as busy
    if page_url(page):
        yield f"URL:{one_line(page_url(page))}"
    yield "END:VEVENT"


def _about(page: PublicPage, window: PublicWindow) -> str:
    names = ", ".join(one_line(name) for name in affected(page.components, window.components))
    concerned = _("Affects: %(names)s.", names=names) if names else ""
    return "\n\n".join(text for text in (clean(window.description).strip(), concerned) if text)


def _name(page: PublicPage) -> str:
    return _text(_("%(page)s: maintenance", page=one_line(page.page.name)))


def _text(value: str) -> str:
    return clean(value).translate(_ESCAPED)


def _moment(moment: datetime) -> str:
    moment = moment.astimezone(UTC)
    return f"{moment.year:04}{moment:%m%dT%H%M%SZ}"


def _folded(text: str) -> bytes:
    """A content line in pieces of at most 75 bytes, never cut within a character."""
    pieces, piece = [], b""
    for character in text:
        data = character.encode()
        if len(piece) + len(data) > LINE_BYTES:
            pieces.append(piece)
            piece = b" "
        piece += data
    return b"\r\n".join((*pieces, piece))
