"""What a status page answers beside its front page: one line for each address.

An address is ``/status/SLUG/NAME``, and ``/NAME`` on the page's own host name. A line in ``SHOWN``
is a name, a content type, and a function that makes the answer from the ``PublicPage`` and the
``Place`` that it is made for:

    Shown("feed.rss", "application/rss+xml; charset=utf-8", feeds.rss)
    Shown("badge/<id>.svg", "image/svg+xml", badges.svg)

The function returns the body, or None where there is nothing (404). It must return equal bytes for
equal pages: no clock, no random number, no ``made_at``, or the ETag changes all the time. All the
rest is done for it (``app/pages/serving.py``): who may read it, memory, ETag, compression, HEAD,
and the answer while the database is away. ``<id>`` is the id of a monitor that the page shows; it
comes as ``place.component``. ``/status/SLUG.json`` is ``Shown("summary.json", ...)``.

A line in ``ASKED`` is for what cannot be kept in memory: forms, and links with a token. Its
function gets a ``Visit`` and returns a response. It runs in an application context, after it was
judged that the visitor may read the page. It sets no cookie and writes only on POST.

    Asked("subscribe", subscribe.form, {"GET", "POST"})

``<token>`` in the name of such a line comes as ``visit.token``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment
from werkzeug.wrappers import Request, Response

from app.records import Component, PublicPage
from app.stores.public import Address, PublicPages

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Place:
    """For which address something is made.

    ``templates`` is where ``templates/status/...`` is. ``up`` leads from the address to the folder
    of the page's addresses, so that a link is ``place.up + "history"``; ``front`` is the link to
    the page itself. Both are relative: the same bytes fit behind a proxy that serves Wakeful in a
    folder. ``static`` is the link of a file in static/, with its version. Absolute links, which
    feeds need, begin with ``page.page.link``. ``away``: the database does not answer, and the page
    is as it was at ``page.made_at``, which HTML has to say.
    """

    templates: Environment
    static: Callable[[str], str]
    up: str
    front: str
    own_host: bool = False
    away: bool = False
    component: Component | None = None


Make = Callable[[PublicPage, Place], bytes | None]


@dataclass(frozen=True, slots=True)
class Shown:
    """``frames``: other sites may have it in a frame. ``scripts``: their scripts may read it."""

    name: str
    content_type: str
    make: Make
    frames: bool = False
    scripts: bool = False


@dataclass(frozen=True, slots=True)
class Visit:
    """A request for something that is not kept in memory."""

    request: Request
    address: Address
    place: Place
    public: PublicPages
    token: str | None = None

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page made of a template, which gets ``place`` too."""
        body = self.place.templates.get_template(template).render(place=self.place, **values)
        return Response(body, status, content_type=HTML)


@dataclass(frozen=True, slots=True)
class Asked:
    name: str
    answer: Callable[[Visit], Response]
    methods: frozenset[str] | set[str] = frozenset({"GET"})


# Files of static/ that pages use: a page's own host name serves no others.
ASSETS = ("css/tokens.css", "css/pages/status.css", "js/status.js", "img/mark.svg")

# ``app/pages/front.py`` is the front page, ``app/pages/history.py`` the history by months.
SHOWN: Sequence[Shown] = ()

ASKED: Sequence[Asked] = ()
