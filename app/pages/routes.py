"""The addresses of a status page, one line for each.

The front page, the history and the images are in ``app/pages/serving.py``. An address is
``/status/SLUG/NAME``, and ``/NAME`` on the page's host name. A line in ``CACHED_ROUTES`` is a name,
a content type, and a function that makes the answer from a ``PublicPage`` and its ``PageContext``:

    CachedRoute("feed.rss", "application/rss+xml; charset=utf-8", feeds.rss)
    CachedRoute("badge/<id>.svg", "image/svg+xml", badges.svg)

The function returns the body, or None for 404. It must return equal bytes for equal pages: a clock,
a random number or ``made_at`` would change the ETag all the time. ``app/pages/serving.py`` does
everything else: access, cache, ETag, compression, HEAD, and the answer while the database does not
answer. ``<id>`` is the id of a monitor on the page, which is then ``context.component``.
``/status/SLUG.json`` is ``CachedRoute("summary.json", ...)``.

A line in ``FORM_ROUTES`` is an answer that cannot be cached: a form, or a link with a token. Its
function gets a ``Visit`` and returns a response. It runs in an application context, for a visitor
who may read the page. It sets no cookie and writes only on POST.

    FormRoute("subscribe", subscribe.sign_up, GET_AND_POST)

``<token>`` in the name is ``visit.token``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from werkzeug.wrappers import Response

from app.access.tokens import Purpose
from app.pages import badges, calendar, feeds, subscribe, summary
from app.pages.addresses import HTML, PageContext, Visit
from app.records import Component, PublicPage
from app.rules import colours

Make = Callable[[Any, PageContext], bytes | None]  # of a ``PublicPage``; history: ``PublicMonth``


@dataclass(frozen=True, slots=True)
class CachedRoute:
    """An answer that is cached. ``frames``: other sites may show it in a frame. ``scripts``:
    scripts of other sites may read it.
    """

    name: str
    content_type: str
    make: Make
    frames: bool = False
    scripts: bool = False


@dataclass(frozen=True, slots=True)
class FormRoute:
    """An answer that is not cached. ``purpose``: that of the token in the address. The token
    identifies the page, whatever the page's address is now, and replaces its password.
    """

    name: str
    answer: Callable[[Visit], Response]
    methods: frozenset[str] = frozenset({"GET"})
    purpose: Purpose | None = None


def _from_page(make: Callable[[PublicPage], bytes]) -> Make:
    return lambda page, context: make(page)


def _from_component(make: Callable[[Component], bytes]) -> Make:
    return lambda page, context: None if context.component is None else make(context.component)


def _colours(_page: PublicPage, context: PageContext) -> bytes | None:
    accent = context.brand.accent
    return colours.sheet(accent).encode() if accent else None


JSON = "application/json"
# The files of static/ that pages use: the host name of a page serves no others.
ASSETS = (
    "css/tokens.css",
    "css/pages/status.css",
    "css/pages/widget.css",
    "js/status.js",
    "js/widget.js",
    "img/mark.svg",
)

CACHED_ROUTES: Sequence[CachedRoute] = (
    CachedRoute("feed.rss", "application/rss+xml; charset=utf-8", _from_page(feeds.rss)),
    CachedRoute("feed.atom", "application/atom+xml; charset=utf-8", _from_page(feeds.atom)),
    CachedRoute("maintenance.ics", "text/calendar; charset=utf-8", _from_page(calendar.ics)),
    CachedRoute("summary.json", JSON, _from_page(summary.summary_json), scripts=True),
    CachedRoute("badge/<id>.svg", "image/svg+xml", _from_component(badges.svg), scripts=True),
    CachedRoute("badge/<id>.json", JSON, _from_component(badges.shields), scripts=True),
    CachedRoute("colours.css", "text/css; charset=utf-8", _colours),
    CachedRoute("widget", HTML, badges.widget, frames=True),
    CachedRoute("widget.js", "text/javascript; charset=utf-8", badges.widget_script, scripts=True),
)

GET_AND_POST = frozenset({"GET", "POST"})
FORM_ROUTES: Sequence[FormRoute] = (
    FormRoute("subscribe", subscribe.sign_up, GET_AND_POST),
    FormRoute("confirm/<token>", subscribe.confirm, GET_AND_POST, Purpose.CONFIRM),
    FormRoute("unsubscribe/<token>", subscribe.unsubscribe, GET_AND_POST, Purpose.UNSUBSCRIBE),
)
