"""Ctrl-K: go to a page or a monitor by a few letters of its name. Without a script, a page."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Blueprint, current_app, render_template, request, url_for
from flask_login import current_user

from app.errors import WakefulError
from app.records import MAX_SEARCH, Role
from app.stores import Feature, current_store
from app.web.frame import servers
from app.web.frame.fragments import HEADER
from app.web.frame.session import guarded

blueprint = guarded(Blueprint("jump", __name__))

MONITORS_SHOWN = 8
# Name, endpoint, the role that it needs. Those of rooms that are not there are left out.
PAGES = (
    ("Home", "home.show", Role.VIEWER),
    ("Monitors", "monitors.index", Role.VIEWER),
    ("New monitor", "monitors.new", Role.EDITOR),
    ("Add many or import", "imports.start", Role.EDITOR),
    ("Incidents", "incidents.index", Role.VIEWER),
    ("Report an incident", "incidents.new", Role.EDITOR),
    ("Maintenance", "windows.index", Role.VIEWER),
    ("Markers", "markers.index", Role.VIEWER),
    ("Status pages", "status_pages.index", Role.VIEWER),
    ("Post templates", "post_templates.index", Role.VIEWER),
    ("Deliveries", "deliveries.index", Role.VIEWER),
    ("Reports", "reports.show", Role.VIEWER),
    ("Wall", "wall.show", Role.VIEWER),
    ("API keys", "keys.index", Role.EDITOR),
    ("People", "people.index", Role.ADMIN),
    ("Settings", "settings.show", Role.ADMIN),
    ("Profile, time zone and colours", "profile.show", Role.VIEWER),
)


# What a server has to offer for a page; the others are always there.
NEEDS = {
    "windows.index": Feature.WINDOWS,
    "markers.index": Feature.MARKERS,
    "status_pages.index": Feature.STATUS_PAGES,
    "post_templates.index": Feature.POST_TEMPLATES,
    "deliveries.index": Feature.DELIVERIES,
    "reports.show": Feature.REPORTS,
}


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    note: str
    href: str
    sign: str


@blueprint.get("/jump")
def show() -> str:
    query = request.args.get("q", "")[:MAX_SEARCH].strip()
    places = _pages(query) + _monitors(query)
    part = request.headers.get(HEADER) == "jump"
    template = "jump/_places.html" if part else "jump/show.html"
    return render_template(template, query=query, places=places)


def _pages(query: str) -> list[Place]:
    wanted, offered = query.casefold(), servers.offered()
    return [
        Place(name, "Page", url_for(endpoint), "right")
        for name, endpoint, role in PAGES
        if endpoint in current_app.view_functions
        and current_user.can(role)
        and (endpoint not in NEEDS or offered[NEEDS[endpoint]])
        and wanted in name.casefold()
    ]


def _monitors(query: str) -> list[Place]:
    if not query:
        return []
    try:
        found = current_store().monitors.refs(search=query, limit=MONITORS_SHOWN)
    except WakefulError:  # the pages alone still help
        servers.no_offers()
        return []
    return [
        Place(one.name, one.url, url_for("monitors.show", id=one.id), "monitors") for one in found
    ]
