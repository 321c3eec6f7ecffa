"""The widget: a page that needs no script for a frame on other sites, and a script that makes one.

Other sites may frame this address alone; no other answer of Wakeful allows it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from jinja2 import Environment

from app.i18n import _
from app.pages.text import base, line
from app.paths import STATIC
from app.records import PageState, PublicPage
from app.rules.page_state import SENTENCES

SHEETS = ("css/tokens.css", "css/pages/widget.css")
SCRIPT = "js/status-widget.js"
FRESHENER = "js/widget.js"  # within the frame
REFRESH_SECONDS = 60


def html(
    page: PublicPage, templates: Environment, static: Callable[[str], str], *, away: bool = False
) -> bytes:
    """``static`` is the link of a file in static/. ``away``: the database does not answer."""
    template = templates.get_template("status/widget.html")
    text = template.render(
        page=page,
        name=line(page.page.name),
        sentence=_(SENTENCES[PageState(page.state)]),
        link=base(page) or "/",
        sheets=SHEETS,
        static=static,
        script=FRESHENER,
        refresh=REFRESH_SECONDS,
        away=away,
    )
    return text.encode("utf-8", "replace")


@cache
def script() -> bytes:
    """It finds the widget beside its own address, so it is the same for every page."""
    return (STATIC / SCRIPT).read_bytes()
