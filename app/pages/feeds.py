"""RSS 2.0 and Atom (RFC 4287): an entry for each update of each post, the newest first.

Feed readers notify people of new entries, hardly ever of changed ones, so each update is an entry.
A corrected entry keeps its id and has the time of the correction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from xml.etree import ElementTree

from app.i18n import _
from app.pages.feed_text import affected, clean, newest, one_line, page_url, post_link
from app.records import Post, PostUpdate, PublicPage
from app.rules.linked import linked
from app.rules.page_state import post_word
from app.rules.time import in_zone, iso, zone_of

ATOM = "http://www.w3.org/2005/Atom"
MAX = 50  # entries
REFRESH_MINUTES = 5


@dataclass(frozen=True, slots=True)
class FeedEntry:
    id: str
    title: str
    html: str
    link: str
    state: str
    published: datetime
    updated: datetime


def rss(page: PublicPage) -> bytes:
    entries = _entries(page)
    root = ElementTree.Element("rss", {"version": "2.0", "xmlns:atom": ATOM})
    channel = ElementTree.SubElement(root, "channel")
    _add(channel, "title", _title(page))
    _add(channel, "link", page_url(page))
    _add(channel, "description", _description(page))
    _add(channel, "atom:link", rel="self", type="application/rss+xml", href=_feed_url(page, "rss"))
    _add(channel, "lastBuildDate", _rfc822(_updated(page, entries)))
    _add(channel, "ttl", str(REFRESH_MINUTES))
    for entry in entries:
        item = ElementTree.SubElement(channel, "item")
        _add(item, "title", entry.title)
        _add(item, "link", entry.link)
        _add(item, "guid", entry.id, isPermaLink="false")
        _add(item, "pubDate", _rfc822(entry.published))
        if entry.updated > entry.published:
            _add(item, "atom:updated", iso(entry.updated))
        _add(item, "category", entry.state)
        _add(item, "description", entry.html)
    return _document(root)


def atom(page: PublicPage) -> bytes:
    entries = _entries(page)
    root = ElementTree.Element("feed", {"xmlns": ATOM})
    _add(root, "id", _tag_uri(page))
    _add(root, "title", _title(page))
    _add(root, "subtitle", _description(page))
    _add(root, "updated", iso(_updated(page, entries)))
    _add(root, "link", rel="self", type="application/atom+xml", href=_feed_url(page, "atom"))
    _add(root, "link", rel="alternate", type="text/html", href=page_url(page))
    author = ElementTree.SubElement(root, "author")
    _add(author, "name", one_line(page.page.name))
    for entry in entries:
        item = ElementTree.SubElement(root, "entry")
        _add(item, "id", entry.id)
        _add(item, "title", entry.title)
        _add(item, "link", rel="alternate", type="text/html", href=entry.link)
        _add(item, "published", iso(entry.published))
        _add(item, "updated", iso(entry.updated))
        _add(item, "category", term=entry.state)
        _add(item, "content", entry.html, type="html")
    return _document(root)


def _entries(page: PublicPage) -> list[FeedEntry]:
    entries = [entry for post in page.posts for entry in _entries_of_post(page, post)]
    return sorted(entries, key=lambda entry: (entry.published, entry.id), reverse=True)[:MAX]


def _entries_of_post(page: PublicPage, post: Post) -> Iterator[FeedEntry]:
    for number, update in enumerate(post.updates):
        published = newest(update.created_at)
        corrected = _corrected(post, update, first=number == 0)
        yield FeedEntry(
            id=_tag_uri(page, f"/posts/{post.id}/updates/{update.id}"),
            title=f"{one_line(post.title)} ({_(post_word(update.state))})",
            html=_html(page, post, update, corrected),
            link=post_link(page, post.id, post.created_at),
            state=update.state,
            published=published,
            updated=newest(published, corrected),
        )


def _corrected(post: Post, update: PostUpdate, *, first: bool) -> datetime | None:
    """When an entry was corrected; None if never. The first entry also has the title, times and
    monitors of the post, so a correction of the post is one of the entry.
    """
    moments = (update.corrected_at, post.corrected_at if first else None)
    return newest(*moments) if any(moments) else None


def _html(page: PublicPage, post: Post, update: PostUpdate, corrected: datetime | None) -> str:
    zone = page.page.zone
    paragraphs = [_html_of(update.body)]
    if post.starts_at and post.ends_at:
        planned = _(
            "Planned: %(start)s to %(end)s.",
            start=_time_in(post.starts_at, zone),
            end=_time_in(post.ends_at, zone),
        )
        paragraphs.append(escape(planned))
    names = ", ".join(one_line(name) for name in affected(page.components, post.affected))
    if names:
        paragraphs.append(escape(_("Affects: %(names)s.", names=names)))
    if corrected:
        edited = _("Edited %(when)s.", when=_time_in(corrected, zone))
        paragraphs.append(f"<em>{escape(edited)}</em>")
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)


def _title(page: PublicPage) -> str:
    return _("%(page)s: status updates", page=one_line(page.page.name))


def _description(page: PublicPage) -> str:
    about = clean(page.page.description or "").strip()
    return about or _("%(page)s: incidents and maintenance", page=one_line(page.page.name))


def _feed_url(page: PublicPage, ending: str) -> str:
    return f"{page_url(page)}/feed.{ending}"


def _tag_uri(page: PublicPage, path: str = "") -> str:
    """A tag: URI (RFC 4151) with the day on which the page was created.

    It contains neither host name nor slug: otherwise all entries would be new after a change of
    them. It contains the time of creation, because two installations have the same ids.
    """
    created = newest(page.page.created_at).astimezone(UTC)
    number = f"{page.page.id}-{round(created.timestamp() * 1000)}"
    return f"tag:wakeful.invalid,{created:%Y-%m-%d}:status-pages/{number}{path}"


def _updated(page: PublicPage, entries: list[FeedEntry]) -> datetime:
    return newest(page.page.updated_at, *(entry.updated for entry in entries))


def _rfc822(moment: datetime) -> str:
    return format_datetime(moment.astimezone(UTC), usegmt=True)


def _add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> None:
    ElementTree.SubElement(parent, name, attributes).text = text or None


def _document(root: ElementTree.Element) -> bytes:
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data


def _html_of(text: str) -> str:
    """A post's text as HTML, with its links and line breaks."""
    return str(linked(clean(text))).replace("\n", "<br>")


def _time_in(moment: datetime, zone: str | None) -> str:
    """``2026-11-21 08:00 UTC``, in the page's time zone."""
    return f"{in_zone(moment, zone_of(zone)):%Y-%m-%d %H:%M %Z}"
