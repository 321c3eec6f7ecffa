"""What makers of answers are handed: for which address something is made, and who asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment
from werkzeug.wrappers import Request, Response

from app.records import Component
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


@dataclass(frozen=True, slots=True)
class Visit:
    """A request for something that is not kept in memory."""

    request: Request
    address: Address
    place: Place
    public: PublicPages
    token: str | None = None

    @property
    def channels(self) -> Sequence[str]:
        """How people may subscribe."""
        return self.public.channels

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page made of a template, which gets ``place`` too."""
        body = self.place.templates.get_template(template).render(
            place=self.place, address=self.address, theme=self.address.theme, **values
        )
        return Response(body, status, content_type=HTML)
