"""Ctrl-K: go to a page, monitor, incident or tag by a few letters, or do something at once. Without
a script, a page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flask import Blueprint, render_template, request, url_for
from flask_login import current_user

from app.errors import WakefulError
from app.i18n import _
from app.records import MAX_SEARCH, Incident, IncidentQuery, MonitorRef, PageQuery
from app.stores import current_store
from app.web.frame import servers
from app.web.frame.fragments import HEADER
from app.web.frame.session import guarded
from app.web.shown import looks, times
from app.web.shown.places import titles
from app.web.views import jump_actions, jump_pages
from app.web.views.jump_pages import Place

blueprint = guarded(Blueprint("jump", __name__))

MONITORS_SHOWN = 8
OTHERS_SHOWN = 4
LOCATIONS_ASKED = 100


@blueprint.get("/jump")
def show() -> str:
    query = request.args.get("q", "")[:MAX_SEARCH].strip()
    places = list(dict.fromkeys(_found(query)))
    part = request.headers.get(HEADER) == "jump"
    template = "jump/_places.html" if part else "jump/show.html"
    return render_template(template, query=query, places=places)


def _found(query: str) -> list[Place]:
    """What was most probably meant comes first, because Enter takes it. An action comes first only
    where its name was written too.
    """
    if not query:
        return jump_pages.named(query)
    asking = _Asking()
    monitors = asking(lambda: _monitors(query))
    actions = asking(lambda: jump_actions.meant(query))
    places = actions + jump_pages.named(query) + [_monitor(one) for one in monitors]
    places += jump_pages.called(query)
    if len(query) >= jump_actions.SHORTEST:
        places += asking(lambda: jump_actions.on(monitors[0].id) if monitors else [])
        places += asking(lambda: jump_actions.alone(query))
        places += asking(lambda: _locations(query))
        places += asking(lambda: _tags(query)) + asking(lambda: _incidents(query))
    # Last: "ack" is in "Backup", but means "Acknowledge".
    return places + jump_pages.within(query)


T = TypeVar("T")


class _Asking:
    """Asks the store. Once it has not answered it is not asked again: the pages alone still help,
    and each question would wait.
    """

    def __init__(self) -> None:
        self._silent = False

    def __call__(self, what: Callable[[], list[T]]) -> list[T]:
        if self._silent:
            return []
        try:
            return what()
        except WakefulError:
            self._silent = True
            servers.no_answer()
            return []


def _monitors(query: str) -> list[MonitorRef]:
    """Those whose names begin so come first."""
    found = current_store().monitors.refs(search=query, limit=MONITORS_SHOWN)
    return sorted(found, key=lambda one: not one.name.casefold().startswith(query.casefold()))


def _monitor(one: MonitorRef) -> Place:
    return Place(one.name, one.url, url_for("monitors.show", id=one.id), "monitors")


def _locations(query: str) -> list[Place]:
    """Places that checks run from; for people who may not edit one, the list of all."""
    wanted = query.casefold()
    found = {name for name, title in titles().items() if wanted in f"{name}\n{title}".casefold()}
    if not found:
        return []
    listed = current_store().locations.list(PageQuery(per_page=LOCATIONS_ASKED)).items
    meant = [one for one in listed if one.name in found][:OTHERS_SHOWN]
    return [Place(one.title, _("Place"), _address(one.id), "monitors") for one in meant]


def _address(location_id: int) -> str:
    if current_user.may_edit:
        return url_for("locations.edit", id=location_id)
    return url_for("locations.index")


def _tags(query: str) -> list[Place]:
    return [
        Place(tag, _("Tag"), url_for("monitors.index", tag=tag), "monitors")
        for tag in current_store().monitors.tags(query, OTHERS_SHOWN)
    ]


def _when(one: Incident) -> str:
    began = times.local(one.started_at)
    return (
        _("Open incident")
        if one.is_open
        else _("Incident of %(day)s", day=f"{began.day} {began:%b %Y}")
    )


def _incidents(query: str) -> list[Place]:
    """The newest, by monitor; those of every monitor are a page."""
    asked = IncidentQuery(search=query, brief=True)
    no_cause = _("no cause given")
    return [
        Place(
            f"{looks.monitor_of(one)}: {one.cause or no_cause}",
            _when(one),
            url_for("incidents.show", id=one.id),
            "incidents",
        )
        for one in current_store().incidents.list(asked).items[:OTHERS_SHOWN]
    ]
