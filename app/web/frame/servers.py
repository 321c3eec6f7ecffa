"""Remote servers behind one dashboard: which server a request is for, and the features of its
store.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from typing import Any

from flask import Flask, abort, current_app, g, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from app.errors import Conflict, Unsupported, WakefulError
from app.i18n import N_, _
from app.middleware import Environ, Layer
from app.records import Role
from app.stores import Extent, current_store
from app.web.frame.session import SAFE_METHODS, guarded, needs

blueprint = guarded("remote", __name__)

CHOICE = "server"  # in the session: the server's name, because the order in the settings may change
PATH = "/on/"
_UNCHANGED = frozenset(string.ascii_letters + string.digits + ".-")
GONE = N_("The server of this page is no longer in the settings. Choose another one in the menu.")
# Blueprints that are the same for every server.
ANYWHERE = frozenset(
    {"auth", "second", "account", "acknowledge", "remote", "bootstrap", "screen", "docs"}
)


def servers(app: Flask | None = None) -> Any | None:
    """All remote servers (``app.stores.remote.RemoteStores``); None over the local database."""
    store = (app or current_app).extensions["wakeful.store"]
    return store if hasattr(store, "choose") else None


def slug(name: str) -> str:
    """A server's name in URLs; different names have different slugs."""
    escapes = {":": "_", "/": "~"}
    return "".join(c if c in _UNCHANGED else escapes.get(c, f"={ord(c):x}=") for c in name)


class ServerPaths(Layer):
    """Moves the server from a URL path such as ``/on/status.example.com/monitors/4`` to the root
    path, so that every URL on a page contains the server.

    All tabs share a cookie: with a cookie alone, a form for one server could be sent to another,
    for a record with the same id.
    """

    def __init__(self, remotes: Any) -> None:
        self.slugs = [slug(name) for name in remotes.names]

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        root, path = environ.get("SCRIPT_NAME", ""), environ.get("PATH_INFO", "")
        environ["wakeful.root"] = root
        name, page_path = path.removeprefix(PATH).partition("/")[::2]
        is_server = path.startswith(PATH) and name in self.slugs
        if is_server and page_path.partition("/")[0] != "api":  # the API has no such paths
            environ["wakeful.server"] = self.slugs.index(name)
            environ["SCRIPT_NAME"] = f"{root}{PATH}{name}"
            environ["PATH_INFO"] = f"/{page_path}"
        return self.inner(environ, start_response)


def choose_server() -> Response | None:
    remotes = servers()
    if remotes is None:
        return None
    index = request.environ.get("wakeful.server")
    if index is not None:
        remotes.choose(index)
        return None
    if request.path.startswith(PATH):
        raise Unsupported(_(GONE))
    name = session.get(CHOICE)
    remotes.choose(remotes.names.index(name) if name in remotes.names else 0)
    if len(remotes.names) == 1 or not request.blueprint or request.blueprint in ANYWHERE:
        return None
    # The script of a fragment would mistake the redirect for one to the login page.
    if request.method not in SAFE_METHODS or request.headers.get("X-Fragment"):
        raise Conflict(_("This page does not say which server it belongs to. Reload it."))
    return redirect(path_of(remotes.chosen.name) + request.full_path.rstrip("?"))


def path_of(name: str) -> str:
    """The path under which the pages of server ``name`` begin, without a slash at the end."""
    return f"{request.environ['wakeful.root']}{PATH}{slug(name)}"


def names() -> Sequence[str]:
    remotes = servers()
    return remotes.names if remotes else ()


def chosen_name() -> str | None:
    """The name of this request's remote server; None over the local database."""
    remotes = servers()
    return None if remotes is None else str(remotes.chosen.name)


def choose_by_name(name: str | None) -> bool:
    """Use the server of this name for this request, and return whether there is one. None: the
    local database.
    """
    remotes = servers()
    if remotes is None or name is None:
        return remotes is None and name is None
    if name not in remotes.names:
        return False
    remotes.choose(remotes.names.index(name))
    return True


def extent() -> Extent:
    """The features that this request's store has, for menus and other parts of every page; the
    fewest if it does not answer. It is read once, because each further read would wait again.
    """
    if "extent" not in g:
        try:
            g.extent = current_store().extent
        except WakefulError as fault:
            g.extent, g.extent_fault = Extent.BARE, fault
    return Extent(g.extent)


def is_bare() -> bool:
    """Whether the store is a server with the base API alone. Raises the store's error if it does
    not answer: a page must not claim that the server lacks something when that is not known.
    """
    present = extent()
    if "extent_fault" in g:
        raise g.extent_fault
    return present == Extent.BARE


def is_whole() -> bool:
    """Whether the store has all features of Wakeful. Raises as ``is_bare`` does."""
    return not is_bare() and extent() == Extent.WHOLE


def refuse_bare() -> None:
    """Raise Unsupported for a server with the base API alone."""
    if is_bare():
        raise Unsupported(_("The server behind this dashboard does not have this."))


def assume_bare() -> None:
    """Treat the store as bare for the rest of the request, because it does not answer: the page
    must not wait for it again.
    """
    g.extent = Extent.BARE


# Features that a server with the base API alone lacks, and that people would look for.
LACKING = (
    N_("Single checks with their response times, and charts of them"),
    N_("Uptime and other statistics"),
    N_("Checks on request, and of a monitor that is not saved yet"),
    N_(
        "The fields of a monitor that are Wakeful's own: time limit, accepted status codes, tags,"
        " quiet hours and others"
    ),
    N_("How many monitors are in each state; lists by state or tag"),
    N_("The certificates of what is checked"),
    N_("Planned maintenance, besides the one window of a monitor"),
    N_("Contacts: named sets of alert channels"),
    N_("The log of alerts, and test alerts"),
    N_("Status pages"),
    N_("Reports"),
    N_("Markers, such as of deployments"),
    N_("Several places to check from"),
)


@blueprint.get("/server")
@needs(Role.VIEWER)
def lacking() -> str:
    if servers() is None:
        abort(404)
    sentences = [_(sentence) for sentence in LACKING] if is_bare() else []
    return render_template("servers/lacking.html", lacking=sentences)


@blueprint.post("/server")
@needs(Role.VIEWER)
def choose() -> Response:
    name = request.form.get("server")
    if name is None or name not in names():
        return redirect(url_for("home.show"))
    session[CHOICE] = name
    return redirect(f"{path_of(name)}/")
