"""Status pages: list, show with what others embed, subscribers, delete. Their form is in
``page_editor``, what people write on them in ``posts``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from flask import flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.forms.queries import page_query
from app.i18n import _, _n
from app.records import (
    MASK,
    ObjectKind,
    Post,
    PostQuery,
    Role,
    StatusPage,
    SubscriberQuery,
    Visibility,
    mask,
)
from app.rules.time import iso
from app.stores import current_access, current_store
from app.web.frame import fragments, links, servers
from app.web.frame.editing import DeleteForm
from app.web.frame.session import Answer, guarded, needs
from app.web.shown import page_lines
from app.web.shown.page_lines import names_on
from app.web.shown.report import plain

blueprint = guarded("status_pages", __name__, "/status-pages")

EXPORTED_PAGES = 1_000  # of 100 subscribers each
POSTS = 25  # on the page of a status page


@blueprint.get("")
def index() -> Response:
    servers.refuse_bare()
    page = current_store().status_pages.list(page_query(links.pairs()))
    return fragments.page(
        "status_pages/index.html",
        "status_pages/_list.html",
        page=page,
        # Each page, its link, and the number of its posts that have not ended, with scheduled ones.
        entries=[
            (each, link_of(each), current_store().posts.list(PostQuery(each.id, open=True)).total)
            for each in page.items
        ],
    )


@blueprint.get("/<int:id>")
def show(id: int) -> Response:
    servers.refuse_bare()
    page = current_store().status_pages.get(id)
    paging = page_query([pair for pair in links.pairs() if pair[0] == "page"])
    names = names_on(page)
    posts = current_store().posts.list(PostQuery(id, per_page=POSTS, page=paging.page))
    return fragments.page(
        "status_pages/show.html",
        "status_pages/_live.html",
        status_page=page,
        names=names,
        posts=posts,
        authors=authors_of(posts.items),
        mails=page_lines.sends_mail(),
        links=StatusPageLinks(page, request.args.get("badge", ""), names),
        embedded_at=_embedded_at(page),
    )


def authors_of(posts: Sequence[Post]) -> Mapping[int, str]:
    """The author of each of these posts, for the dashboard alone; another server does not say."""
    if servers.servers() is not None:
        return {}
    return current_access().audit.authors(ObjectKind.POST, [post.id for post in posts])


def _embedded_at(page: StatusPage) -> str | None:
    """The address from which the dashboard loads badges and the widget of a page, to show how they
    look; None if other sites may not show them, or they are on another server.
    """
    open_ = page.visibility in (Visibility.PUBLIC, Visibility.UNLISTED)
    address = f"{request.root_path}/status/{page.slug}"
    return address if open_ and servers.servers() is None else None


# --- Who is notified of posts ---------------------------------------------------------------------


@blueprint.get("/<int:id>/subscribers")
def subscribers(id: int) -> str:
    page = current_store().status_pages.get(id)
    paging = page_query(links.pairs())
    query = SubscriberQuery(id, per_page=paging.per_page, page=paging.page)
    return render_template(
        "status_pages/subscribers.html",
        masked=_masked,
        status_page=page,
        page=current_store().subscribers.list(query),
    )


def _masked(target: str) -> str:
    """A subscriber as people may recognise it: ``a••••@example.com``,
    ``https://example.com/••••``.
    """
    name, at, domain = target.rpartition("@")
    if at and "/" not in domain:
        return f"{name[:1]}{MASK}@{domain}"
    scheme, slashes, address = target.partition("://")
    host = address.partition("/")[0].rpartition("@")[2]
    return f"{scheme}://{host}/{MASK}" if slashes else mask(target)


@blueprint.get("/<int:id>/subscribers.csv")
@needs(Role.EDITOR)
def export(id: int) -> Response:
    page = current_store().status_pages.get(id)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["channel", "target", "subscribed_at", "confirmed_at"])
    query = SubscriberQuery(id, per_page=100)
    for subscriber in current_store().subscribers.every(query, EXPORTED_PAGES):
        times = [iso(at) if at else "" for at in (subscriber.created_at, subscriber.confirmed_at)]
        writer.writerow([plain(subscriber.channel), plain(subscriber.target or ""), *times])
    headers = {"Content-Disposition": f'attachment; filename="subscribers-{page.id}.csv"'}
    return Response(out.getvalue(), 200, headers, content_type="text/csv; charset=utf-8")


@blueprint.route("/<int:id>/subscribers/clear", methods=["GET", "POST"])
def clear(id: int) -> Answer:
    page = current_store().status_pages.get(id)
    if DeleteForm().validate_on_submit():
        count = current_store().subscribers.clear(id)
        deleted = _n("%(num)s subscription deleted.", "%(num)s subscriptions deleted.", count)
        flash(deleted, "success")
        return redirect(url_for(".show", id=id))
    return render_template("status_pages/clear.html", status_page=page)


def link_of(page: StatusPage) -> str:
    """The address of the page. A server without PUBLIC_URL may send only a path, which is below the
    address of that server. A link that is no web address, such as ``javascript:``, is not used.
    """
    if page.link.lower().startswith(("http://", "https://")):
        return page.link
    link = page.link if page.link.startswith("/") else f"/status/{page.slug}"
    root = getattr(current_store(), "address", "")
    return f"{root}{link}" if root else links.absolute(link)


def image_here(page: StatusPage, name: str) -> str | None:
    """The address at which this dashboard shows an image of a page; None if there is none, or it is
    on another server, whose images no page of ours may load.
    """
    link: str | None = getattr(page, f"{name}_link")
    if link is None or servers.servers() is not None:
        return None
    return f"{request.root_path}/status/{page.slug}/{name}?{urlsplit(link).query}"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A text to copy. ``id``: of the element that shows it."""

    id: str
    label: str
    text: str


class StatusPageLinks:
    """The links and snippets that a page offers to other sites. ``badge``: the id of the monitor
    whose badge is shown, as text; if that is not on the page, the first monitor's is shown.
    """

    def __init__(self, page: StatusPage, badge: str, names: Mapping[int, str]) -> None:
        self.page = link_of(page)
        self._base = self.page.rstrip("/")
        self._name = page.name
        summary = f"{self._base}/summary.json" if page.domain else f"{self._base}.json"
        self.feeds = (
            ("RSS", f"{self._base}/feed.rss"),
            ("Atom", f"{self._base}/feed.atom"),
            (_("Calendar of maintenance"), f"{self._base}/maintenance.ics"),
            ("JSON", summary),
        )
        self.badge = next((id for id in names if str(id) == badge), next(iter(names), None))
        self._monitor = names.get(self.badge or 0, "")

    def badges(self) -> Sequence[Snippet]:
        if self.badge is None:
            return ()
        image = f"{self._base}/badge/{self.badge}.svg"
        alt = _("Status of %(monitor)s", monitor=self._monitor)
        html = f'<a href="{escape(self.page)}"><img src="{escape(image)}" alt="{escape(alt)}"></a>'
        in_brackets = alt.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return (
            Snippet("badge-html", "HTML", html),
            Snippet("badge-markdown", "Markdown", f"[![{in_brackets}]({image})]({self.page})"),
            Snippet("badge-shields", _("Data for shields.io"), f"{image[:-4]}.json"),
        )

    def widget(self) -> Snippet:
        title = escape(_("%(page)s: status", page=self._name))
        frame = (
            f'<iframe src="{escape(self._base)}/widget" title="{title}" width="320" height="120"'
            ' style="border:0" loading="lazy"></iframe>'
        )
        return Snippet("widget-html", "HTML", frame)
