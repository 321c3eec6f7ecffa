"""Status pages: what the public sees, without a key or a login.

A WSGI layer in front of the dashboard (``serving``) answers ``/status`` and everything under a
page's own host name. It reads through ``app.stores.local.public`` and keeps what it read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from flask import Flask

from app.pages import front
from app.pages.addresses import FOLDER as FOLDER
from app.pages.serving import StatusPageLayer

if TYPE_CHECKING:
    from app.stores.local.public import PublicPages


def init_app(app: Flask) -> None:
    """Answer for status pages in front of the dashboard, if this installation has them. The
    dashboard edits those of other servers too, and previews them.
    """
    app.extensions["wakeful.preview"] = partial(front.preview, app.jinja_env)
    public: PublicPages | None = app.extensions.get("wakeful.public")
    if public is not None:
        app.extensions["wakeful.pages"] = StatusPageLayer(app, public)


def layer(app: Flask) -> StatusPageLayer | None:
    """The layer; None if this installation has no status pages of its own."""
    pages: StatusPageLayer | None = app.extensions.get("wakeful.pages")
    return pages
