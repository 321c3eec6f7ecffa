"""/api/v1/status-pages (decisions.md 12)."""

from __future__ import annotations

from app.api.resource import Resource, register
from app.forms.status_page import StatusPageForm

PAGES = Resource(
    name="status_pages",
    path="/status-pages",
    one="a status page",
    many="status pages",
    answer="StatusPage",
    form=StatusPageForm,
    records=lambda store: store.status_pages,
    about={
        "list": "Each with its present state.",
        "store": "The page is there at once, at the address in `link`.",
        "show": "`state` is the worst of its monitors' confirmed states, or of its open posts.",
        "update": "Changes what is sent. Taking a monitor off the page takes it out of names,"
        " groups and posts too.",
        "delete": "Its posts and subscribers go with it, and its address answers 404.",
    },
    refusals={"store": (409,), "update": (409,)},
)
register(PAGES)
