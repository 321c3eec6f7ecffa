"""The wall: one page for a screen that everybody sees from afar. What is down comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from flask import Blueprint, g, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Invalid, NotFound
from app.i18n import N_, _, _n
from app.records import (
    Incident,
    Monitor,
    MonitorQuery,
    MonitorSortBy,
    MonitorStatus,
    Role,
    Sort,
    WallLink,
)
from app.rules import text
from app.rules.natural import natural_key
from app.stores import current_access, current_store
from app.web.forms import WallLinkForm
from app.web.frame import fragments, links, notices, servers, tags
from app.web.frame.editing import Editing, confirmed
from app.web.frame.repeated import shown_once
from app.web.frame.session import guarded
from app.web.shown import looks, times

blueprint = guarded("wall", __name__, "/wall")

TILES = 200  # no screen shows more legibly; further monitors are counted
PAGE = 100
GROUP = 20  # tiles that are values again if one of them changes
THEMES = ("dark", "light", "auto")
FETCHED = 20  # monitors asked for one by one, because only their incident is loaded
# The states that need somebody: shown large, with the cause.
LARGE = (MonitorStatus.DOWN, MonitorStatus.FAILING, MonitorStatus.DEGRADED, MonitorStatus.UNKNOWN)
COUNTED = {
    MonitorStatus.DOWN: N_("%(count)s down"),
    MonitorStatus.FAILING: N_("%(count)s failing, checking again"),
    # The parent that is down may lack the tag of the wall.
    MonitorStatus.UNREACHABLE: N_("%(count)s unreachable"),
    MonitorStatus.DEGRADED: N_("%(count)s degraded"),
    MonitorStatus.UNKNOWN: N_("%(count)s unknown"),
}
# An open incident of a monitor that is not down: somebody reported it, whatever the checks say.
INCIDENT = looks.Look(N_("Incident"), "down", "down")


@dataclass(frozen=True, slots=True)
class Tile:
    """``since``: when its state, or its incident, began. ``incident``: the open one, if any."""

    monitor: Monitor
    since: datetime | None
    incident: Incident | None
    look: looks.Look

    @property
    def is_large(self) -> bool:
        return self.incident is not None or self.monitor.status in LARGE

    @property
    def rank(self) -> int:
        """Monitors that are down come first, then those with an incident, then all others."""
        if self.monitor.status == MonitorStatus.DOWN:
            return 0
        return 1 if self.incident else 2

    @property
    def cause(self) -> str:
        """The cause of the last check, or that of an incident reported by hand."""
        incident = self.incident
        cause = self.monitor.cause or (incident.cause if incident else None)
        return times.dated(cause, self.since)


@blueprint.get("")
def show() -> Response:
    return page(tags.requested(), times.zone().key)


def page(tag: str | None, zone: str, *, public: bool = False) -> Response:
    """The wall of all monitors, or of those with ``tag``. ``zone``: the zone of its clock.
    ``public``: it is for people without an account, so it has no links to other pages.
    """
    theme = request.args.get("theme") or THEMES[0]
    if theme not in THEMES:
        raise Invalid({"theme": [text.one_of(THEMES)]})
    monitors, counters, total = _monitors(tag)
    open_page = current_store().incidents.open(PAGE)
    incidents, open_ = {each.monitor_id: each for each in open_page.items}, open_page.total
    monitors_shown = [*monitors, *_with_incident_alone(monitors, incidents, tag)]
    if tag:
        ids = {monitor.id for monitor in monitors_shown}
        incidents = {id: incident for id, incident in incidents.items() if id in ids}
        open_ = len(incidents)
    slow = sum(map(looks.is_degraded, incidents.values()))
    sentence, look = headline(counters, total, open_ - slow)
    tiles = [_tile(monitor, incidents.get(monitor.id)) for monitor in monitors_shown]
    tiles.sort(key=lambda tile: tile.rank)
    return fragments.page(
        "wall/show.html",
        "wall/_live.html",
        large=[tile for tile in tiles if tile.is_large],
        small=_groups([tile for tile in tiles if not tile.is_large]),
        counters=counters,
        more=total - len(tiles),
        total=total,
        sentence=_("No monitor has the tag %(tag)s.", tag=tag) if tag and not total else sentence,
        look=look,
        theme=theme,
        tag=tag,
        zone=zone,
        clock=times.now().astimezone(ZoneInfo(zone)),
        public=public,
        aside=notices.set_aside(),
    )


def _groups(tiles: Sequence[Tile]) -> list[tuple[tuple[int, str, looks.Look], ...]]:
    """The tiles in groups that are values together, each with id, name and look."""
    values = [(tile.monitor.id, tile.monitor.name, tile.look) for tile in tiles]
    return [tuple(values[first : first + GROUP]) for first in range(0, len(values), GROUP)]


def headline(counters: Mapping[str, int], total: int, open_: int = 0) -> tuple[str, looks.Look]:
    """The large sentence at the top and its look. ``open_``: the number of open incidents, except
    those of slowness.
    """
    if not total:
        return _("No monitors yet"), looks.MONITOR[MonitorStatus.PENDING]
    if open_ and not counters.get(MonitorStatus.DOWN):
        sentence = _n("%(num)s incident open", "%(num)s incidents open", open_, num=f"{open_:,}")
        return sentence, INCIDENT
    for status in COUNTED:
        if count := counters.get(status, 0):
            return _(COUNTED[status], count=f"{count:,}"), looks.MONITOR[status]
    up = counters.get(MonitorStatus.UP, 0)
    look = looks.MONITOR[MonitorStatus.UP if up else MonitorStatus.PAUSED]
    if up != total:
        return _("Nothing is down"), look
    return _("Everything is up") if total == 1 else _("All %(total)s up", total=f"{total:,}"), look


def _monitors(tag: str | None) -> tuple[Sequence[Monitor], Mapping[str, int], int]:
    """The monitors to show, the worst first; how many are in each state; and how many there are."""
    store = current_store()
    if servers.is_bare():
        return _monitors_of_bare_server(tag)
    counters = store.monitors.overview(MonitorQuery(tag=tag))
    total = sum(counters.values())
    monitors: list[Monitor] = []
    size = TILES if servers.servers() is None else PAGE  # no server answers with more than a page
    for number in range(1, -(-min(total, TILES) // size) + 1):
        query = replace(_query(number, tag), per_page=size)
        in_states = replace(query, sort_by=MonitorSortBy.STATE, sort=Sort.DESC, counts=counters)
        monitors += store.monitors.list(in_states).items
    return monitors[:TILES], counters, total


def _monitors_of_bare_server(tag: str | None) -> tuple[Sequence[Monitor], Mapping[str, int], int]:
    """The same for a server that can neither sort by state nor count: only the monitors that are
    shown are counted by state.
    """
    monitors: list[Monitor] = []
    for number in range(1, TILES // PAGE + 1):
        page = current_store().monitors.list(_query(number, tag))
        monitors += page.items
        if number >= page.last_number:
            break
    order: dict[str, int] = {status: rank for rank, status in enumerate(looks.MONITOR_ORDER)}
    last = len(order)
    monitors.sort(key=lambda each: (order.get(each.status, last), natural_key(each.name)))
    counters = Counter(monitor.status for monitor in monitors)
    return monitors, counters, max(page.total, len(monitors))


def _query(number: int, tag: str | None) -> MonitorQuery:
    return MonitorQuery(
        sort_by=MonitorSortBy.NATURAL, sort=Sort.ASC, per_page=PAGE, page=number,
        tag=tag, uptime=(), status_only=True,
    )  # fmt: skip


def _with_incident_alone(
    monitors: Sequence[Monitor], incidents: Mapping[int, Incident], tag: str | None
) -> list[Monitor]:
    """The monitors with an open incident that are not among ``monitors``."""
    if tag and len(monitors) < TILES:
        return []  # the wall shows every monitor with the tag
    on_wall = {monitor.id for monitor in monitors}
    missing: list[Monitor] = []
    for id in [id for id in incidents if id not in on_wall][:FETCHED]:
        try:
            missing.append(current_store().monitors.get(id))
        except NotFound:  # deleted meanwhile
            continue
    return [monitor for monitor in missing if tag is None or tag in monitor.tags]


def _tile(monitor: Monitor, incident: Incident | None) -> Tile:
    look = looks.look_of(looks.MONITOR, monitor.status)
    if incident is None or monitor.status == MonitorStatus.FAILING:
        return Tile(monitor, monitor.status_since, incident, look)
    if monitor.status != MonitorStatus.DOWN:
        look = looks.SLOW if looks.is_degraded(incident) else INCIDENT
    return Tile(monitor, incident.started_at, incident, look)


# --- Links to the wall for a screen: made, shown once, listed, revoked ----------------------------


wall_links_blueprint = guarded("wall_links", __name__, "/settings/wall-links", Role.ADMIN)
public = Blueprint("screen", __name__)

# The address holds a secret: no index keeps it, no other site gets it, no cache keeps the page.
HEADERS = {
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


class WallLinkMaking(Editing[tuple[WallLink, str], WallLinkForm]):
    """``record``: the link and its token."""

    by_tag = "tag"
    template = "wall_links/index.html"

    def bind(self) -> WallLinkForm:
        return WallLinkForm(data={"zone": times.zone().key, "tag": request.args.get("tag", "")})

    def save(self) -> tuple[WallLink, str]:
        form = self.form
        return current_access().wall_links.create(
            form.name.data.strip(),
            form.zone.data,
            tag=(form.tag.data or "").strip(),
            server=servers.chosen_name(),
            by=current_user.person.email,
        )

    def finish(self, record: tuple[WallLink, str]) -> Response:
        link, token = record
        address, back = links.absolute(f"/screen/{token}"), url_for(".index")
        return shown_once("wall_links/made.html", back, link=link, address=address)

    def context(self) -> dict[str, Any]:
        return {"links": current_access().wall_links.all()}


WallLinkMaking.register(wall_links_blueprint, index="")


@wall_links_blueprint.route("/<int:id>/revoke", methods=["GET", "POST"])
def revoke(id: int) -> str | Response:
    link = next((link for link in current_access().wall_links.all() if link.id == id), None)
    return confirmed(
        "wall_links/revoke.html",
        lambda: current_access().wall_links.revoke(id),
        _("Link revoked. Screens that use it stop showing the wall."),
        url_for(".index"),
        link=link,
    )


@public.get("/screen/<token>", endpoint="show")
def show_screen(token: str) -> Response:
    """The wall, for everybody who has the link. Without a session, it opens no other page."""
    link = current_access().wall_links.of_token(token)
    # If the server of the link still exists, it becomes the server of this request.
    if link is None or not servers.choose_by_name(link.server):
        answer = _void()
    else:
        g.zone = link.zone
        answer = page(link.tag, link.zone, public=True)
    answer.headers.update(HEADERS)
    return answer


def _void() -> Response:
    """The answer for a link that has ended. A screen shows it in place of the wall."""
    if fragments.is_fragment():
        return Response(render_template("wall_links/_void.html"), mimetype="text/html")
    return Response(render_template("wall_links/void.html"), 404, mimetype="text/html")
