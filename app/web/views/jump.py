"""Ctrl-K: go to a page, monitor, incident or tag by a few letters, or do something at once. Without
a script, a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flask import current_app, render_template, request, url_for
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

MONITORS_SHOWN = 8
OTHERS_SHOWN = 4
LOCATIONS_ASKED = 100


@blueprint.get("/jump")
def show() -> str:
    query = request.args.get("q", "")[:MAX_SEARCH].strip()
    hits = list(dict.fromkeys(_hits(query)))
    part = request.headers.get(HEADER) == "jump"
    template = "jump/_hits.html" if part else "jump/show.html"
    return render_template(template, query=query, hits=hits)


def _hits(query: str) -> list[Hit]:
    """The most probable hit comes first, because Enter takes it. An action comes first only if its
    name was typed too.
    """
    if not query:
        return pages_named(query)
    ask = _Questions()
    monitors = ask(lambda: _monitors(query))
    actions = ask(lambda: actions_meant(query))
    hits = actions + pages_named(query) + [_monitor(monitor) for monitor in monitors]
    hits += pages_called(query)
    if len(query) >= SHORTEST:
        hits += ask(lambda: actions_on(monitors[0].id) if monitors else [])
        hits += ask(lambda: actions_of_verb(query))
        hits += ask(lambda: _locations(query))
        hits += ask(lambda: _tags(query)) + ask(lambda: _incidents(query))
    # Last: "ack" is in "Backup", but means "Acknowledge".
    return hits + pages_within(query)


T = TypeVar("T")


class _Questions:
    """Questions to the store. Once it has not answered, it is not asked again: the pages alone
    still help, and each question would wait.
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
            servers.no_answer()
            return []


def _monitors(query: str) -> list[MonitorRef]:
    refs = current_store().monitors.refs(search=query, limit=MONITORS_SHOWN)
    return sorted(refs, key=lambda ref: _distance(ref.name, query))


def _distance(name: str, query: str) -> int:
    """How far a name is from what was typed: it begins so, it has the words, or the URL has."""
    name, query = name.casefold(), query.casefold()
    if name.startswith(query):
        return 0
    return 1 if all(word in name for word in query.split()) else 2


def _monitor(monitor: MonitorRef) -> Hit:
    return Hit(monitor.name, monitor.url, url_for("monitors.show", id=monitor.id), "monitors")


def _locations(query: str) -> list[Hit]:
    """Places that checks run from; for people who may not edit one, the list of all."""
    wanted = query.casefold()
    names = {name for name, title in titles().items() if wanted in f"{name}\n{title}".casefold()}
    if not names:
        return []
    listed = current_store().locations.list(PageQuery(per_page=LOCATIONS_ASKED)).items
    matches = [location for location in listed if location.name in names][:OTHERS_SHOWN]
    return [
        Hit(location.title, _("Place"), _address(location.id), "monitors") for location in matches
    ]


def _address(location_id: int) -> str:
    if current_user.may_edit:
        return url_for("locations.edit", id=location_id)
    return url_for("locations.index")


def _tags(query: str) -> list[Hit]:
    return [
        Hit(tag, _("Tag"), url_for("monitors.index", tag=tag), "monitors")
        for tag in current_store().monitors.tags(query, OTHERS_SHOWN)
    ]


def _when(incident: Incident) -> str:
    began = times.local(incident.started_at)
    return (
        _("Open incident")
        if incident.is_open
        else _("Incident of %(day)s", day=f"{began.day} {began:%b %Y}")
    )


def _incidents(query: str) -> list[Hit]:
    """The newest, by monitor; those of every monitor are a page."""
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
    """One line of the list. ``posts``: it changes something, so it is a button that sends a form
    to ``href``, never a link.
    """

    name: str
    note: str
    href: str
    sign: str
    posts: bool = False


@dataclass(frozen=True, slots=True)
class JumpPage:
    """``also``: what people call it. ``needs``: how much the store must have for it. ``names``: of
    what is behind it, the same in every language.
    """

    name: str
    endpoint: str
    role: Role = Role.VIEWER
    also: str = ""
    needs: Extent = Extent.BARE
    names: tuple[str, ...] = ()


VIEWER, EDITOR, ADMIN = Role.VIEWER, Role.EDITOR, Role.ADMIN
TAG, WHOLE = Extent.TAG, Extent.WHOLE
# Pages that are not registered, or that a server lacks, are left out.
PAGES = (
    JumpPage(N_("Home"), "home.show", also=N_("dashboard overview start")),
    JumpPage(N_("Monitors"), "monitors.index", also=N_("checks urls sites hosts list")),
    JumpPage(N_("New monitor"), "monitors.new", EDITOR, N_("add create watch url site check")),
    JumpPage(N_("Add many or import"), "imports.start", EDITOR,
             N_("paste urls monitors bulk"), names=tuple(FORMATS)),
    JumpPage(N_("Incidents"), "incidents.index", also=N_("outages downtime down alerts history")),
    JumpPage(N_("Report an incident"), "incidents.new", EDITOR, N_("new incident outage create")),
    JumpPage(N_("Maintenance"), "windows.index", VIEWER,
             N_("silence mute snooze downtime window schedule calendar"), WHOLE),
    JumpPage(N_("New maintenance"), "windows.new", EDITOR,
             N_("add create silence mute snooze downtime window schedule"), WHOLE),
    JumpPage(N_("Markers"), "markers.index", VIEWER, N_("deploys releases deployments versions"),
             WHOLE),
    JumpPage(N_("Status pages"), "status_pages.index", VIEWER,
             N_("public subscribers badge widget"), WHOLE),
    JumpPage(N_("New status page"), "page_editor.new", EDITOR, N_("add create public"),
             WHOLE),
    JumpPage(N_("Contacts"), "contacts.index", VIEWER,
             N_("alerts channels notifications pager on-call"), WHOLE, tuple(Channel)),
    JumpPage(N_("New contact"), "contacts.new", EDITOR,
             N_("add create channel notification"), WHOLE, tuple(Channel)),
    JumpPage(N_("Alerts sent"), "deliveries.index", VIEWER,
             N_("deliveries notifications messages log"),
             TAG),
    JumpPage(N_("Reports"), "reports.show", VIEWER,
             N_("uptime sla availability statistics month print"),
             WHOLE),
    JumpPage(N_("Wall"), "wall.show", also=N_("tv screen kiosk big")),
    JumpPage(N_("Links to the wall"), "wall_links.index", ADMIN,
             N_("tv screen kiosk share read-only")),
    JumpPage(N_("Places"), "locations.index", VIEWER,
             N_("locations regions agents probers checkers remote vantage"), WHOLE),
    JumpPage(N_("New place"), "locations.new", EDITOR,
             N_("add create location agent prober region"), WHOLE),
    JumpPage(N_("API keys"), "keys.index", EDITOR, N_("tokens terraform secrets integrations")),
    JumpPage(N_("People"), "people.index", ADMIN, N_("users accounts team members roles")),
    JumpPage(N_("Invite a person"), "invitations.new", ADMIN,
             N_("add user account member invitation")),
    JumpPage(N_("Settings"), "settings.show", ADMIN,
             N_("networks private webhook secret configuration")),
    JumpPage(N_("Audit log"), "audit.index", ADMIN,
             N_("history changes who events security trail log-ins")),
    JumpPage(N_("Backup"), "backups.show", ADMIN, N_("restore save copy dump")),
    JumpPage(N_("Email settings"), "mail_settings.show", ADMIN, N_("smtp mail server sender")),
    JumpPage(N_("Post templates"), "post_templates.index", needs=WHOLE),
    JumpPage(N_("Help"), "docs.index", also=N_("manuals documentation docs guide how")),
    JumpPage(N_("API reference"), "docs.api", also=N_("rest http curl python openapi json try")),
    JumpPage(N_("Profile"), "profile.show", VIEWER,
             N_("time zone colours dark light theme password name account language")),
    JumpPage(N_("Second factor"), "two_factor.show", VIEWER,
             N_("2fa mfa totp authenticator app passkey security key recovery codes login")),
    JumpPage(N_("Sessions"), "sessions.index", VIEWER,
             N_("devices browsers logged in log out everywhere")),
)  # fmt: skip


def pages_named(query: str) -> list[Hit]:
    """The pages with ``query`` at the start of a word of their names; all, for an empty one."""
    return [_page_hit(entry) for entry in _permitted() if _is_named(query.casefold(), entry)]


def pages_called(query: str) -> list[Hit]:
    """The pages with every word of ``query`` at the start of another word for them; none that
    ``pages_named`` finds.
    """
    wanted = query.casefold()
    words = wanted.split()
    unnamed = [entry for entry in _permitted() if words and not _is_named(wanted, entry)]
    fitting = [entry for entry in unnamed if _fits(words, entry)]
    # Whole words first: "sla" is not the start of "slack".
    return [
        _page_hit(entry)
        for entry in sorted(fitting, key=lambda entry: not set(words) & _words_of(entry))
    ]


def pages_within(query: str) -> list[Hit]:
    """The pages with ``query`` anywhere in their names."""
    return [
        _page_hit(entry) for entry in _permitted() if query.casefold() in _(entry.name).casefold()
    ]


def _is_named(wanted: str, entry: JumpPage) -> bool:
    return f" {wanted}" in f" {_(entry.name).casefold()}"


def _fits(words: list[str], entry: JumpPage) -> bool:
    return all(any(name.startswith(word) for name in _words_of(entry)) for word in words)


def _words_of(entry: JumpPage) -> set[str]:
    words = f"{_(entry.name)} {_(entry.also) if entry.also else ''}".casefold().split()
    return {*words, *entry.names}


def _permitted() -> Iterator[JumpPage]:
    """The pages that this person may open on this server."""
    for entry in PAGES:
        registered = entry.endpoint in current_app.view_functions
        if registered and current_user.can(entry.role) and servers.extent() >= entry.needs:
            yield entry


def _page_hit(entry: JumpPage) -> Hit:
    return Hit(_(entry.name), _("Page"), url_for(entry.endpoint), "right")


MAX_HITS = 5  # of the actions of one verb
SHORTEST = 2  # letters that are enough to recognise a verb
Actions = list[Hit]


@dataclass(frozen=True, slots=True)
class Verb:
    """``words``: how people begin to write it. ``find``: its actions on what has a name."""

    words: str
    find: Callable[[str], Actions]


def actions_meant(query: str) -> Actions:
    """The actions of a query that has a verb and a name; none for a viewer."""
    if not current_user.may_edit:
        return []
    return _unique([hit for verb, target in _read(query) if target for hit in verb.find(target)])


def actions_of_verb(query: str) -> Actions:
    """The actions of a query that is a verb alone; none for a viewer."""
    if not current_user.may_edit:
        return []
    return _unique([hit for verb, target in _read(query) if not target for hit in verb.find("")])


def actions_on(id: int) -> Actions:
    """What can be done with one monitor."""
    if not current_user.may_edit:
        return []
    monitor = current_store().monitors.get(id)
    switches = [_resume_hit(monitor)] if monitor.paused else [_pause_hit(monitor)]
    if "paused" in monitor.missing:
        switches.append(_resume_hit(monitor))
    acknowledging = [
        _acknowledge_hit(incident)
        for incident in _waiting(monitor.name)
        if incident.monitor_id == id
    ]
    return [*acknowledging, *_check_hits([monitor]), *switches, *_silence_hits([monitor])]


def _read(query: str) -> list[tuple[Verb, str]]:
    """The verbs that the first or the last word begins, each with the other words."""
    words = query.casefold().split()
    if not words:
        return []
    splits = [(words[0], words[1:])]
    if len(words) > 1:
        splits.append((words[-1], words[:-1]))
    return [
        (verb, " ".join(word for word in rest if word != "now"))
        for word, rest in splits
        for verb in VERBS
        if len(word) >= SHORTEST and any(start.startswith(word) for start in _(verb.words).split())
    ]


def _monitors_called(target: str, state: str | None = None) -> Sequence[Monitor]:
    """Monitors by name; those whose names begin with ``target`` come first, and those whose URL
    alone has its words are left out if there are others.
    """
    query = MonitorQuery(
        search=target or None,
        search_by=MonitorSearchBy.ANY,
        sort_by=MonitorSortBy.NATURAL,
        sort="asc",
        state=state,
        per_page=25,
        uptime=(),
    )
    monitors = current_store().monitors.list(query).items
    nearest = sorted(monitors, key=lambda monitor: _distance(monitor.name, target))
    named = [monitor for monitor in nearest if _distance(monitor.name, target) < 2]
    return named or nearest


def _pause_actions(target: str) -> Actions:
    running = [monitor for monitor in _monitors_called(target) if not monitor.paused]
    return [_pause_hit(monitor) for monitor in running[:MAX_HITS]]


def _resume_actions(target: str) -> Actions:
    state = None if servers.is_bare() else "paused"
    monitors = _monitors_called(target, state)
    resumable = [monitor for monitor in monitors if monitor.paused or "paused" in monitor.missing]
    return [_resume_hit(monitor) for monitor in resumable[:MAX_HITS]]


def _check_actions(target: str) -> Actions:
    return _check_hits(_monitors_called(target))


def _silence_actions(target: str) -> Actions:
    return _silence_hits(_monitors_called(target)) if target else []


def _acknowledge_actions(target: str) -> Actions:
    return [_acknowledge_hit(incident) for incident in _waiting(target)]


def _pause_hit(monitor: Monitor) -> Hit:
    href = url_for("monitors.pause", id=monitor.id)
    return Hit(_("Pause %(name)s", name=monitor.name), _("Action"), href, "pause", posts=True)


def _resume_hit(monitor: Monitor) -> Hit:
    href = url_for("monitors.resume", id=monitor.id)
    return Hit(_("Resume %(name)s", name=monitor.name), _("Action"), href, "play", posts=True)


def _check_hits(monitors: Sequence[Monitor]) -> Actions:
    if servers.is_bare():
        return []
    return [
        Hit(_("Check %(name)s now", name=monitor.name), _("Action"),
              url_for("monitors.check", id=monitor.id), "refresh", posts=True)
        for monitor in monitors[:MAX_HITS]
    ]  # fmt: skip


def _silence_hits(monitors: Sequence[Monitor]) -> Actions:
    """Links, because a window has a form to fill in."""
    if not servers.is_whole():
        return []
    return [
        Hit(_("Plan maintenance of %(name)s", name=monitor.name), _("Action"),
              url_for("windows.new", monitor_id=monitor.id), "windows")
        for monitor in monitors[:MAX_HITS]
    ]  # fmt: skip


def _waiting(target: str) -> Sequence[Incident]:
    """Incidents that nobody has acknowledged."""
    query = IncidentQuery(search=target or None, status=IncidentStatus.UNRESOLVED, brief=True)
    incidents = current_store().incidents.list(query).items
    waiting = [incident for incident in incidents if incident.status == IncidentStatus.UNRESOLVED]
    return waiting[:MAX_HITS]


def _acknowledge_hit(incident: Incident) -> Hit:
    href = url_for("incidents.acknowledge", id=incident.id)
    name = _("Acknowledge %(name)s", name=looks.monitor_of(incident))
    return Hit(name, incident.cause or _("Action"), href, "seen", posts=True)


def _unique(hits: Actions) -> Actions:
    return list(dict.fromkeys(hits))


VERBS = (
    Verb(N_("acknowledge"), _acknowledge_actions),
    Verb(N_("pause disable"), _pause_actions),
    Verb(N_("resume unpause enable"), _resume_actions),
    Verb(N_("check recheck run"), _check_actions),
    Verb(N_("silence mute snooze maintenance"), _silence_actions),
)
