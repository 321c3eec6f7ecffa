"""The addresses of status pages: which page and which answer a path stands for, and the context of
an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import Environment
from werkzeug.wrappers import Request, Response

from app.records import UNBRANDED, Brand, Component, PageAddress
from app.rules.slugs import is_slug

if TYPE_CHECKING:
    from app.stores.local.public import PublicPages

HTML = "text/html; charset=utf-8"
FOLDER = "/status"
FRONT = ""
SUMMARY = "summary.json"


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Relative links of an address: to Wakeful's root (``root``), and ``up`` and ``front`` of
    ``PageContext``.
    """

    root: str
    up: str
    front: str


class Directory:
    """All pages by slug, id and host name. It is rebuilt when an address has changed."""

    def __init__(self, addresses: Sequence[PageAddress]) -> None:
        self.addresses = tuple(addresses)
        self.by_slug: Mapping[str, PageAddress] = {address.slug: address for address in addresses}
        self.by_id: Mapping[int, PageAddress] = {address.id: address for address in addresses}
        self.by_host: Mapping[str, PageAddress] = {
            address.domain.lower(): address for address in addresses if address.domain
        }


def is_status_path(path: str) -> bool:
    return path == FOLDER or path.startswith(f"{FOLDER}/")


def without_slash(path: str) -> str | None:
    """The relative link to the same address without the slash at the end, for ``/status/`` and
    ``/status/SLUG/``; None for other paths.
    """
    if path == f"{FOLDER}/":
        return f"..{FOLDER}"
    slug, slash, name = path.removeprefix(f"{FOLDER}/").partition("/")
    return f"../{slug}" if slash and not name and is_slug(slug) else None


def target_of(path: str) -> tuple[str, str]:
    """The slug of the page and the name of its answer, for a path under ``/status/``. The front
    page has the name "".
    """
    slug, slash, name = path.removeprefix(f"{FOLDER}/").partition("/")
    if not slash and slug.endswith(".json"):
        return slug.removesuffix(".json"), SUMMARY
    # ``SLUG/summary.json`` is no address.
    return slug if not slash or name not in (FRONT, SUMMARY) else "", name


def link_name(path: str) -> str:
    """The name in a path that may be a link of a message, such as ``confirm/TOKEN``, alone or below
    ``/status/SLUG``; "" for other paths.
    """
    parts = path.split("/")
    if len(parts) == 5 and parts[1] == FOLDER[1:]:
        del parts[1:3]
    return "/".join(parts[1:]) if len(parts) == 3 else ""


def links_of(slug: str, name: str, *, on_page_host: bool) -> PageLinks:
    above = "../" * name.count("/")
    if on_page_host:
        return PageLinks(above, above, above or "./")
    if name in (FRONT, SUMMARY):
        return PageLinks("../", f"{slug}/", slug)
    return PageLinks(f"../../{above}", above, f"../{above}{slug}")


# --- The arguments of functions that make answers


@dataclass(frozen=True, slots=True)
class PageContext:
    """The context of an answer at one address.

    ``templates`` has ``status/...``. ``up`` leads from the address to the folder of the page's
    addresses, so that a link is ``context.up + "history"``; ``front`` is the link to the page
    itself. Both are relative, so that the same bytes work behind a proxy that serves Wakeful in a
    folder. ``static`` returns the link of a file in static/, with its version. Absolute links,
    which feeds need, begin with ``page.page.link``. ``stale``: the database does not answer now,
    and HTML must say that the page is from ``page.made_at``. ``component``: the monitor whose id
    is in the address. ``brand``: how the page looks. ``logo`` and ``colours``: the links of its
    image and its style sheet, if they are not below ``up``.
    """

    templates: Environment
    static: Callable[[str], str]
    up: str
    front: str
    on_page_host: bool = False
    stale: bool = False
    component: Component | None = None
    brand: Brand = UNBRANDED
    logo: str | None = None
    colours: str | None = None


@dataclass(frozen=True, slots=True)
class Visit:
    """A request for an answer that is not cached."""

    request: Request
    address: PageAddress
    context: PageContext
    public: PublicPages
    token: str | None = None

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page of a template, which also gets ``context``."""
        body = self.context.templates.get_template(template).render(
            context=self.context, address=self.address, page=None, **values
        )
        return Response(body, status, content_type=HTML)
