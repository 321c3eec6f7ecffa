"""Where the public finds a status page, and what others embed on their own sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from app.i18n import _
from app.records import StatusPage
from app.stores import current_store
from app.web.frame import links


def of(page: StatusPage) -> str:
    """The page's own address. A server without PUBLIC_URL may tell only its path: people reach it
    as they reach that server. What is no web address, such as a ``javascript:``, counts as none.
    """
    if page.link.lower().startswith(("http://", "https://")):
        return page.link
    link = page.link if page.link.startswith("/") else f"/status/{page.slug}"
    root = getattr(current_store(), "address", "")
    return f"{root}{link}" if root else links.own(link)


@dataclass(frozen=True, slots=True)
class Snippet:
    """What is copied. ``id`` is that of the element that shows it."""

    id: str
    label: str
    text: str


class Links:
    """Everything that a page offers to others. ``badge``: the id of the monitor whose badge is
    shown, as an address has it; the first one, where it is not on the page.
    """

    def __init__(self, page: StatusPage, badge: str, names: Mapping[int, str]) -> None:
        self.page = of(page)
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
        image, alt = (
            f"{self._base}/badge/{self.badge}.svg",
            _("Status of %(monitor)s", monitor=self._monitor),
        )
        html = f'<a href="{escape(self.page)}"><img src="{escape(image)}" alt="{escape(alt)}"></a>'
        in_brackets = alt.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return (
            Snippet("badge-html", "HTML", html),
            Snippet("badge-markdown", "Markdown", f"[![{in_brackets}]({image})]({self.page})"),
            Snippet(
                "badge-shields", _("Data for shields.io"), f"{image.removesuffix('.svg')}.json"
            ),
        )

    def widget(self) -> Snippet:
        title = escape(_("%(page)s: status", page=self._name))
        frame = (
            f'<iframe src="{escape(self._base)}/widget" title="{title}" width="320" height="120"'
            ' loading="lazy"></iframe>'
        )
        return Snippet("widget-html", "HTML", frame)
