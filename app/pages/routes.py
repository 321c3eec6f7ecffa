"""What a status page answers beside its front page: one line for each address.

An address is ``/status/SLUG/NAME``, and ``/NAME`` on the page's own host name. A line in ``SHOWN``
is a name, a content type, and a function that makes the answer from the ``PublicPage`` and the
``PageContext`` that it is made for:

    Shown("feed.rss", "application/rss+xml; charset=utf-8", feeds.rss)
    Shown("badge/<id>.svg", "image/svg+xml", badges.svg)

The function returns the body, or None where there is nothing (404). It must return equal bytes for
equal pages: no clock, no random number, no ``made_at``, or the ETag changes all the time. All the
rest is done for it (``app/pages/serving.py``): who may read it, memory, ETag, compression, HEAD,
and the answer while the database is away. ``<id>`` is the id of a monitor that the page shows; it
comes as ``context.component``. ``/status/SLUG.json`` is ``Shown("summary.json", ...)``.

A line in ``ASKED`` is for what cannot be kept in memory: forms, and links with a token. Its
function gets a ``Visit`` and returns a response. It runs in an application context, after it was
judged that the visitor may read the page. It sets no cookie and writes only on POST.

    Asked("subscribe", subscribe.sign_up, FORM)

``<token>`` in the name of such a line comes as ``visit.token``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from werkzeug.wrappers import Response

from app.access.subscriptions import Purpose
from app.pages import badges, calendar, feeds, subscribe, summary
from app.pages.addresses import HTML, PageContext, Visit
from app.records import Component, PublicPage

Make = Callable[[PublicPage, PageContext], bytes | None]


@dataclass(frozen=True, slots=True)
class Shown:
    """``frames``: other sites may have it in a frame. ``scripts``: their scripts may read it."""

    name: str
    content_type: str
    make: Make
    frames: bool = False
    scripts: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """``purpose``: of the token in the address. The token says who may come and to which page,
    whatever its address is now; nobody is asked for a password.
    """

    name: str
    answer: Callable[[Visit], Response]
    methods: frozenset[str] | set[str] = frozenset({"GET"})
    purpose: Purpose | None = None


def _of_page(make: Callable[[PublicPage], bytes]) -> Make:
    return lambda page, context: make(page)


def _of_component(make: Callable[[Component], bytes]) -> Make:
    return lambda page, context: None if context.component is None else make(context.component)


def _widget(page: PublicPage, context: PageContext) -> bytes:
    return badges.widget(page, context.templates, context.static, away=context.away)


def _widget_script(page: PublicPage) -> bytes:
    return badges.widget_script()


# Files of static/ that pages use: a page's own host name serves no others.
ASSETS = (
    "css/tokens.css",
    "css/pages/status.css",
    "css/pages/widget.css",
    "js/status.js",
    "js/widget.js",
    "img/mark.svg",
)

# ``app/pages/front.py`` is the front page, ``app/pages/history.py`` the history by months.
SHOWN: Sequence[Shown] = (
    Shown("feed.rss", "application/rss+xml; charset=utf-8", _of_page(feeds.rss)),
    Shown("feed.atom", "application/atom+xml; charset=utf-8", _of_page(feeds.atom)),
    Shown("maintenance.ics", "text/calendar; charset=utf-8", _of_page(calendar.ics)),
    Shown("summary.json", "application/json", _of_page(summary.summary), scripts=True),
    Shown("badge/<id>.svg", "image/svg+xml", _of_component(badges.svg), scripts=True),
    Shown("badge/<id>.json", "application/json", _of_component(badges.shields), scripts=True),
    Shown("widget", HTML, _widget, frames=True),
    Shown("widget.js", "text/javascript; charset=utf-8", _of_page(_widget_script), scripts=True),
)

FORM = frozenset({"GET", "POST"})
ASKED: Sequence[Asked] = (
    Asked("subscribe", subscribe.sign_up, FORM),
    Asked("confirm/<token>", subscribe.confirm, FORM, Purpose.CONFIRM),
    Asked("unsubscribe/<token>", subscribe.unsubscribe, FORM, Purpose.UNSUBSCRIBE),
)
