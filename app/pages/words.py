"""How times and texts look on a status page, in the page's zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo

from markupsafe import Markup

from app.i18n import _
from app.rules.posts import parts
from app.rules.time import in_zone, iso


@dataclass(frozen=True, slots=True)
class Times:
    """Moments as ``<time>``, which the script turns to the reader's zone."""

    zone: tzinfo

    def at(self, moment: datetime | None) -> Markup | str:
        """``22 Nov 2026, 09:32 CET``."""
        if moment is None:
            return ""
        there = in_zone(moment, self.zone)
        text = f"{there.day} {there:%b} {there.year:04}, {there:%H:%M} {there.tzname() or ''}"
        return _time(moment, text.rstrip(), "at")

    def clock(self, moment: datetime) -> Markup:
        """``22 Nov, 09:32``, beside one of the same year that says the zone."""
        there = in_zone(moment, self.zone)
        return _time(moment, f"{there.day} {there:%b}, {there:%H:%M}", "clock")

    def between(self, start: datetime, end: datetime | None) -> Markup:
        return Markup("{} – {}").format(self.clock(start), self.at(end) or _("now"))


def _time(moment: datetime, text: str, kind: str) -> Markup:
    return Markup('<time datetime="{}" data-{}>{}</time>').format(iso(moment), Markup(kind), text)  # noqa: S704 - our own words


def linked(text: str) -> Markup:
    """Plain text with its addresses as links."""
    link = Markup('<a href="{0}" rel="nofollow noopener">{0}</a>')
    pieces = parts(text)
    return Markup("").join(link.format(piece) if is_link else piece for piece, is_link in pieces)
