"""Status pages, which the public sees without a key or a login.

A WSGI layer in front of the dashboard (``serving``) answers ``/status`` and everything under the
host names of pages. It reads through ``app.stores.local.public`` and caches what it reads.
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
    """Install the layer, if this installation has status pages. The preview is always there,
    because the dashboard edits the pages of remote servers too.
    """
    app.extensions["wakeful.preview"] = partial(front.preview, app.jinja_env)
    public: PublicPages | None = app.extensions.get("wakeful.public")
    if public is not None:
        app.extensions["wakeful.pages"] = StatusPageLayer(app, public)


def layer(app: Flask) -> StatusPageLayer | None:
    """The layer; None if this installation has no status pages of its own."""
    pages: StatusPageLayer | None = app.extensions.get("wakeful.pages")
    return pages
