"""A status page as the dashboard's editor shows it: the same template, in a frame of the form."""

from __future__ import annotations

from collections.abc import Callable

from jinja2 import Environment

from app.pages import front
from app.pages.place import Place
from app.records import PublicPage

TEMPLATE = "status/preview.html"
LINK, NO_LINK = ' href="', ' data-href="'
ICON = "<use"


def html(templates: Environment, page: PublicPage, static: Callable[[str], str]) -> str:
    """The whole document. Its links are none: a page that is not saved has nothing behind them.
    ``static`` is the link of a file in static/.
    """
    place = Place(templates=templates, static=static, up="", front="")
    head, tag, body = front.page(page, place, TEMPLATE).decode().partition("<body")
    body = body.replace(LINK, NO_LINK).replace(ICON + NO_LINK, ICON + LINK)
    return head + tag + body
