"""Ctrl-K: go to a page, monitor, incident, place or tag by a few letters, or act on a monitor at
once. Without JavaScript, it is a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flask import render_template, request, url_for
from flask_login import current_user

from app.errors import WakefulError
from app.i18n import N_, _
from app.imports.candidates import FORMATS
from app.records import (
    MAX_SEARCH,
    Channel,
    Incident,
    IncidentQuery,
    IncidentStatus,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSearchBy,
    MonitorSortBy,
    PageQuery,
    Role,
)
from app.stores import Extent, current_store
from app.web.frame import servers
from app.web.frame.fragments import HEADER
from app.web.frame.session import guarded
from app.web.shown import looks, times
from app.web.shown.places import titles

blueprint = guarded("jump", __name__)

MONITORS_SHOWN, OTHERS_SHOWN, LOCATIONS_ASKED = 8, 4, 100


@blueprint.get("/jump")
def show() -> str:
    query = request.args.get("q", "")[:MAX_SEARCH].strip()
    hits = list(dict.fromkeys(_hits(query)))
    part = request.headers.get(HEADER) == "jump"
    template = "jump/_hits.html" if part else "jump/show.html"
    return render_template(template, query=query, hits=hits)


def _hits(query: str) -> list[Hit]:
    """The most probable hit comes first, because Enter takes it. An action comes first only if the
    name of its monitor was typed too; viewers get no actions.
    """
    named, called, containing = _pages(query)
    if not query:
        return named
    ask, acts = _Questions(), current_user.may_edit
    monitors = ask(lambda: _monitors(query))
    hits = ask(lambda: matching_actions(query, named=True)) if acts else []
    hits += named + [_monitor(monitor) for monitor in monitors] + called
    if len(query) >= MIN_LETTERS:
        if acts:
            hits += ask(lambda: actions_of_monitor(monitors[0].id) if monitors else [])
            hits += ask(lambda: matching_actions(query, named=False))
        hits += ask(lambda: _locations(query))
        hits += ask(lambda: _tags(query)) + ask(lambda: _incidents(query))
    # Last: "ack" is in "Backup", but means "Acknowledge".
    return hits + containing


T = TypeVar("T")


class _Questions:
    """Questions to the store. After one that fails, no other is asked: each would wait for the
    store, and hits among the pages are useful alone.
    """

    def __init__(self) -> None:
        self._silent = False

    def __call__(self, question: Callable[[], list[T]]) -> list[T]:
        if self._silent:
            return []
        try:
            return question()
        except WakefulError:
            self._silent = True
            servers.assume_bare()
            return []


def _monitors(query: str) -> list[MonitorRef]:
    refs = current_store().monitors.refs(search=query, limit=MONITORS_SHOWN)
    return sorted(refs, key=lambda ref: _distance(ref.name, query))


def _distance(name: str, query: str) -> int:
    """How well a name matches the query: 0 if it begins with the query, 1 if it contains all of
    its words, otherwise 2.
    """
    name, query = name.casefold(), query.casefold()
    if name.startswith(query):
        return 0
    return 1 if all(word in name for word in query.split()) else 2


def _monitor(monitor: MonitorRef) -> Hit:
    return Hit(monitor.name, monitor.url, url_for("monitors.show", id=monitor.id), "monitors")


def _locations(query: str) -> list[Hit]:
    """Places that checks run from. The hits of people who may not edit places lead to the list."""
    folded = query.casefold()
    names = {name for name, title in titles().items() if folded in f"{name}\n{title}".casefold()}
    if not names:
        return []
    locations = current_store().locations.list(PageQuery(per_page=LOCATIONS_ASKED)).items
    matches = [location for location in locations if location.name in names][:OTHERS_SHOWN]
    list_, edits = url_for("locations.index"), current_user.may_edit
    return [
        Hit(place.title, _("Place"), url_for("locations.edit", id=place.id) if edits else list_,
            "monitors")
        for place in matches
    ]  # fmt: skip


def _tags(query: str) -> list[Hit]:
    return [
        Hit(tag, _("Tag"), url_for("monitors.index", tag=tag), "monitors")
        for tag in current_store().monitors.tags(query, OTHERS_SHOWN)
    ]


def _when(incident: Incident) -> str:
    if incident.is_open:
        return _("Open incident")
    began = times.local(incident.started_at)
    return _("Incident of %(day)s", day=f"{began.day} {began:%b %Y}")


def _incidents(query: str) -> list[Hit]:
    """The newest incidents of the monitors that the query finds."""
    incident_query = IncidentQuery(search=query, brief=True)
    no_cause = _("No cause given")
    return [
        Hit(
            f"{looks.monitor_of(incident)}: {incident.cause or no_cause}",
            _when(incident),
            url_for("incidents.show", id=incident.id),
            "incidents",
        )
        for incident in current_store().incidents.list(incident_query).items[:OTHERS_SHOWN]
    ]


@dataclass(frozen=True, slots=True)
class Hit:
    """One line of the list. ``posts``: it is a button that sends a form to ``href``, because it
    changes something; otherwise it is a link.
    """

    name: str
    note: str
    href: str
    sign: str
    posts: bool = False


@dataclass(frozen=True, slots=True)
class JumpPage:
    """``also``: other words that people search it by. ``needs``: how much of Wakeful the store must
    have. ``names``: names of services on the page, which are the same in every language.
    """

    name: str
    endpoint: str
    also: str = ""
    role: Role = Role.VIEWER
    needs: Extent = Extent.BARE
    names: tuple[str, ...] = ()


VIEWER, EDITOR, ADMIN = Role.VIEWER, Role.EDITOR, Role.ADMIN
TAG, WHOLE = Extent.TAG, Extent.WHOLE
PAGES = (
    JumpPage(N_("Home"), "home.show", N_("dashboard overview start")),
    JumpPage(N_("Monitors"), "monitors.index", N_("checks urls sites hosts list")),
    JumpPage(N_("New monitor"), "monitors.new", N_("add create watch url site check"), EDITOR),
    JumpPage(N_("Add many or import"), "imports.start", N_("paste urls monitors bulk"), EDITOR,
             names=tuple(FORMATS)),
    JumpPage(N_("Incidents"), "incidents.index", N_("outages downtime down alerts history")),
    JumpPage(N_("Report an incident"), "incidents.new", N_("new incident outage create"), EDITOR),
    JumpPage(N_("Maintenance"), "windows.index",
             N_("silence mute snooze downtime window schedule calendar"), VIEWER, WHOLE),
    JumpPage(N_("New maintenance"), "windows.new",
             N_("add create silence mute snooze downtime window schedule"), EDITOR, WHOLE),
    JumpPage(N_("Markers"), "markers.index", N_("deploys releases deployments versions"), VIEWER,
             WHOLE),
    JumpPage(N_("Status pages"), "status_pages.index", N_("public subscribers badge widget"),
             VIEWER, WHOLE),
    JumpPage(N_("New status page"), "page_editor.new", N_("add create public"), EDITOR, WHOLE),
    JumpPage(N_("Contacts"), "contacts.index", N_("alerts channels notifications pager on-call"),
             VIEWER, WHOLE, tuple(Channel)),
    JumpPage(N_("New contact"), "contacts.new", N_("add create channel notification"), EDITOR,
             WHOLE, tuple(Channel)),
    JumpPage(N_("Alerts sent"), "deliveries.index", N_("deliveries notifications messages log"),
             VIEWER, TAG),
    JumpPage(N_("Reports"), "reports.show", N_("uptime sla availability statistics month print"),
             VIEWER, WHOLE),
    JumpPage(N_("Wall"), "wall.show", N_("tv screen kiosk big")),
    JumpPage(N_("Links to the wall"), "wall_links.index", N_("tv screen kiosk share read-only"),
             ADMIN),
    JumpPage(N_("Places"), "locations.index",
             N_("locations regions agents probers checkers remote vantage"), VIEWER, WHOLE),
    JumpPage(N_("New place"), "locations.new", N_("add create location agent prober region"),
             EDITOR, WHOLE),
    JumpPage(N_("API keys"), "keys.index", N_("tokens terraform secrets integrations"), EDITOR),
    JumpPage(N_("People"), "people.index", N_("users accounts team members roles"), ADMIN),
    JumpPage(N_("Invite a person"), "invitations.new", N_("add user account member invitation"),
             ADMIN),
    JumpPage(N_("Settings"), "settings.show", N_("networks private webhook secret configuration"),
             ADMIN),
    JumpPage(N_("Audit log"), "audit.index",
             N_("history changes who events security trail log-ins"), ADMIN),
    JumpPage(N_("Backup"), "backups.show", N_("restore save copy dump"), ADMIN),
    JumpPage(N_("Email settings"), "mail_settings.show", N_("smtp mail server sender"), ADMIN),
    JumpPage(N_("Post templates"), "post_templates.index", needs=WHOLE),
    JumpPage(N_("Help"), "docs.index", N_("manuals documentation docs guide how")),
    JumpPage(N_("API reference"), "docs.api", N_("rest http curl python openapi json try")),
    JumpPage(N_("Profile"), "profile.show",
             N_("time zone colours dark light theme password name account language")),
    JumpPage(N_("Second factor"), "two_factor.show",
             N_("2fa mfa totp authenticator app passkey security key recovery codes login")),
    JumpPage(N_("Sessions"), "sessions.index", N_("devices browsers logged in log out everywhere")),
)  # fmt: skip


def _pages(query: str) -> tuple[list[Hit], list[Hit], list[Hit]]:
    """Three groups of the pages that this person may open on this server: those with ``query`` at
    the start of a word of their names (all, if it is empty); those for which every word of
    ``query`` begins one of their names or other words; those with ``query`` within their names.
    """
    folded = query.casefold()
    words = set(folded.split())
    named, called, containing = [], [], []
    for entry in PAGES:
        if not current_user.can(entry.role) or servers.extent() < entry.needs:
            continue
        hit = Hit(_(entry.name), _("Page"), url_for(entry.endpoint), "right")
        name, also = hit.name.casefold(), _(entry.also).casefold() if entry.also else ""
        page_words = {*name.split(), *also.split(), *entry.names}
        if f" {folded}" in f" {name}":
            named.append(hit)
        elif all(any(own.startswith(word) for own in page_words) for word in words):
            called.append((words.isdisjoint(page_words), hit))
        elif folded in name:
            containing.append(hit)
    # Whole words first: "sla" is not the start of "slack".
    called.sort(key=lambda entry: entry[0])
    return named, [hit for _is_start, hit in called], containing


MAX_HITS = 5  # of one action, on different monitors
MIN_LETTERS = 2  # letters that are enough to recognise a verb
# The actions on a monitor: sentence, endpoint and icon.
PAUSE = N_("Pause %(name)s"), "monitors.pause", "pause"
RESUME = N_("Resume %(name)s"), "monitors.resume", "play"
CHECK = N_("Check %(name)s now"), "monitors.check", "refresh"
SILENCE = N_("Plan maintenance of %(name)s"), "windows.new", "windows"
ACKNOWLEDGE = N_("Acknowledge %(name)s"), "incidents.acknowledge", "filled-eye"  # of its incident
MonitorAction = tuple[str, str, str]
# The verbs with which people begin each action.
VERBS = {
    N_("acknowledge"): ACKNOWLEDGE,
    N_("pause disable"): PAUSE,
    N_("resume unpause enable"): RESUME,
    N_("check recheck run"): CHECK,
    N_("silence mute snooze maintenance"): SILENCE,
}


def matching_actions(query: str, *, named: bool) -> list[Hit]:
    """The hits of the actions that the query names. ``named``: those of a verb with the name of a
    monitor; otherwise those of a verb alone.
    """
    return [
        hit
        for action, target in _actions_named_in(query)
        if bool(target) == named
        for hit in _action_hits(action, target)
    ]


def _actions_named_in(query: str) -> list[tuple[MonitorAction, str]]:
    """The actions whose verb begins with the first or the last word of the query, each with the
    other words.
    """
    words = query.casefold().split()
    if not words:
        return []
    return [
        (action, " ".join(word for word in rest if word != "now"))
        for word, rest in ((words[0], words[1:]), (words[-1], words[:-1]))
        for verbs, action in VERBS.items()
        if len(word) >= MIN_LETTERS and any(start.startswith(word) for start in _(verbs).split())
    ]


def _action_hits(action: MonitorAction, target: str) -> list[Hit]:
    """Hits of an action on the monitors that ``target`` names; on any monitors, if it is empty."""
    if action is ACKNOWLEDGE:
        return [_acknowledge_hit(incident) for incident in _unacknowledged(target)]
    if action is SILENCE and not target:
        return []
    state = "paused" if action is RESUME and not servers.is_bare() else None
    able = [
        monitor for monitor in _monitors_called(target, state) if action in _actions_for(monitor)
    ]
    return [_action_hit(action, monitor) for monitor in able[:MAX_HITS]]


def actions_of_monitor(id: int) -> list[Hit]:
    """The actions on one monitor."""
    monitor = current_store().monitors.get(id)
    incidents = [
        incident for incident in _unacknowledged(monitor.name) if incident.monitor_id == id
    ]
    actions = [_action_hit(action, monitor) for action in _actions_for(monitor)]
    return [*map(_acknowledge_hit, incidents), *actions]


def _actions_for(monitor: Monitor) -> Iterator[MonitorAction]:
    if not servers.is_bare():
        yield CHECK
    if not monitor.paused:
        yield PAUSE
    if monitor.paused or "paused" in monitor.missing:
        yield RESUME
    if servers.is_whole():
        yield SILENCE


def _monitors_called(target: str, state: str | None) -> Sequence[Monitor]:
    """The monitors that ``target`` finds; those whose names begin with it come first. If it finds
    some by name, those that it finds only by URL or tag are left out.
    """
    query = MonitorQuery(
        search=target or None, search_by=MonitorSearchBy.ANY, state=state,
        sort_by=MonitorSortBy.NATURAL, sort="asc", per_page=25, uptime=(),
    )  # fmt: skip
    monitors = current_store().monitors.list(query).items
    nearest = sorted(monitors, key=lambda monitor: _distance(monitor.name, target))
    named = [monitor for monitor in nearest if _distance(monitor.name, target) < 2]
    return named or nearest


def _action_hit(action: MonitorAction, monitor: Monitor) -> Hit:
    words, endpoint, sign = action
    posts = action is not SILENCE  # a link, because a window has a form to fill in
    id = monitor.id
    address = url_for(endpoint, id=id) if posts else url_for(endpoint, monitor_id=id)
    return Hit(_(words, name=monitor.name), _("Action"), address, sign, posts)


def _unacknowledged(target: str) -> Sequence[Incident]:
    """Incidents that nobody has acknowledged."""
    query = IncidentQuery(search=target or None, status=IncidentStatus.UNRESOLVED, brief=True)
    incidents = current_store().incidents.list(query).items
    unacknowledged = [
        incident for incident in incidents if incident.status == IncidentStatus.UNRESOLVED
    ]
    return unacknowledged[:MAX_HITS]


def _acknowledge_hit(incident: Incident) -> Hit:
    words, endpoint, sign = ACKNOWLEDGE
    name = _(words, name=looks.monitor_of(incident))
    address = url_for(endpoint, id=incident.id)
    return Hit(name, incident.cause or _("Action"), address, sign, posts=True)
