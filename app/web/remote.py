"""Several servers behind one dashboard: which one a person looks at, and what it offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Flask, current_app, g, redirect, request, session, url_for
from werkzeug.wrappers import Response

from app.errors import WakefulError
from app.records import Role
from app.stores import Feature, current_store
from app.web.session import guarded, needs

blueprint = guarded(Blueprint("remote", __name__))

CHOICE = "server"  # the cookie remembers the name, because the order of the settings may change


def init_app(app: Flask) -> None:
    app.before_request(_choose)


def servers() -> Any | None:
    """All remote servers (``app.stores.remote.RemoteStores``); None over the local database."""
    store = current_app.extensions["wakeful.store"]
    return store if hasattr(store, "choose") else None


def _choose() -> None:
    remotes, name = servers(), session.get(CHOICE)
    if remotes is not None and name in remotes.names:
        remotes.choose(remotes.names.index(name))


def names() -> Sequence[str]:
    remotes = servers()
    return remotes.names if remotes else ()


def offered() -> dict[Feature, bool]:
    """What this request's store offers, for menus and what else stands on every page: nothing while
    it does not answer. Asked once: it would be waited for again and again.
    """
    if "offered" not in g:
        try:
            known: frozenset[Feature] = current_store().offers
        except WakefulError as fault:
            known, g.offers_fault = frozenset(), fault
        g.offered = {feature: feature in known for feature in Feature}
    found: dict[Feature, bool] = g.offered
    return found


def offers(feature: Feature) -> bool:
    """Whether the store offers this. Raises what it raises while it does not answer: a page must
    not say that something is not there when nobody knows.
    """
    found = offered()[feature]
    if "offers_fault" in g:
        raise g.offers_fault
    return found


def no_offers() -> None:
    """For pages that say that the store does not answer: they must not ask it again."""
    g.offered = dict.fromkeys(Feature, False)


@blueprint.post("/server")
@needs(Role.VIEWER)
def choose() -> Response:
    if request.form.get("server") in names():
        session[CHOICE] = request.form["server"]
    return redirect(url_for("home.show"))
