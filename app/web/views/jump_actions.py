"""What Ctrl-K does: pause, resume and check monitors, acknowledge incidents, plan maintenance.

An action is written as a verb and a name, in either order: ``pause shop``, ``shop pause``. Those
that change something are buttons that send a form to the page's own address for it, so the same
rules hold there: the role, the token, the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flask import url_for
from flask_login import current_user

from app.i18n import N_, _
from app.records import Incident, IncidentQuery, IncidentStatus, Monitor, MonitorQuery
from app.stores import current_store
from app.web.frame import servers
from app.web.shown import looks
from app.web.views.jump_pages import Place

MOST = 5  # of one verb
SHORTEST = 2  # letters that are enough to recognise a verb
Actions = list[Place]


@dataclass(frozen=True, slots=True)
class Verb:
    """``words``: how people begin to write it. ``find``: its actions on what has that name."""

    words: str
    find: Callable[[str], Actions]


def meant(query: str) -> Actions:
    """What a query that names a verb and something else means; none for a viewer."""
    if not current_user.may_edit:
        return []
    return _unique(
        [place for verb, target in _read(query) if target for place in verb.find(target)]
    )


def alone(query: str) -> Actions:
    """What a verb by itself could be about."""
    if not current_user.may_edit:
        return []
    return _unique(
        [place for verb, target in _read(query) if not target for place in verb.find("")]
    )


def on(id: int) -> Actions:
    """What can be done with one monitor."""
    if not current_user.may_edit:
        return []
    monitor = current_store().monitors.get(id)
    turns = [_resume(monitor)] if monitor.paused else [_pause(monitor)]
    if "paused" in monitor.missing:
        turns.append(_resume(monitor))
    acknowledging = [_acknowledge(one) for one in _waiting(monitor.name) if one.monitor_id == id]
    return [*acknowledging, *_checks([monitor]), *turns, *_silences([monitor])]


def _read(query: str) -> list[tuple[Verb, str]]:
    """The verbs that the first or the last word begins, each with the other words."""
    words = query.casefold().split()
    if not words:
        return []
    ways = [(words[0], words[1:])]
    if len(words) > 1:
        ways.append((words[-1], words[:-1]))
    return [
        (verb, " ".join(word for word in rest if word != "now"))
        for word, rest in ways
        for verb in VERBS
        if len(word) >= SHORTEST and any(one.startswith(word) for one in _(verb.words).split())
    ]


def _monitors(target: str, state: str | None = None) -> Sequence[Monitor]:
    """By name, those that are called exactly so first."""
    query = MonitorQuery(
        search=target or None, sort_by="name", sort="asc", state=state, per_page=25, uptime=()
    )
    found = list(current_store().monitors.list(query).items)
    return sorted(found, key=lambda one: not one.name.casefold().startswith(target))


def _pauses(target: str) -> Actions:
    return [_pause(one) for one in _monitors(target) if not one.paused][:MOST]


def _resumes(target: str) -> Actions:
    state = None if servers.is_bare() else "paused"
    found = _monitors(target, state)
    return [_resume(one) for one in found if one.paused or "paused" in one.missing][:MOST]


def _check(target: str) -> Actions:
    return _checks(_monitors(target))


def _silence(target: str) -> Actions:
    return _silences(_monitors(target)) if target else []


def _acknowledges(target: str) -> Actions:
    return [_acknowledge(one) for one in _waiting(target)]


def _pause(one: Monitor) -> Place:
    href = url_for("monitors.pause", id=one.id)
    return Place(_("Pause %(name)s", name=one.name), _("Action"), href, "pause", posts=True)


def _resume(one: Monitor) -> Place:
    href = url_for("monitors.resume", id=one.id)
    return Place(_("Resume %(name)s", name=one.name), _("Action"), href, "play", posts=True)


def _checks(found: Sequence[Monitor]) -> Actions:
    if servers.is_bare():
        return []
    return [
        Place(_("Check %(name)s now", name=one.name), _("Action"),
              url_for("monitors.check", id=one.id), "refresh", posts=True)
        for one in found[:MOST]
    ]  # fmt: skip


def _silences(found: Sequence[Monitor]) -> Actions:
    """A form to fill in, so a link."""
    if not servers.is_whole():
        return []
    return [
        Place(_("Plan maintenance of %(name)s", name=one.name), _("Action"),
              url_for("windows.new", monitor_id=one.id), "windows")
        for one in found[:MOST]
    ]  # fmt: skip


def _waiting(target: str) -> Sequence[Incident]:
    """Incidents that nobody has acknowledged."""
    query = IncidentQuery(search=target or None, status=IncidentStatus.UNRESOLVED, brief=True)
    found = current_store().incidents.list(query).items
    return [one for one in found if one.status == IncidentStatus.UNRESOLVED][:MOST]


def _acknowledge(one: Incident) -> Place:
    href = url_for("incidents.acknowledge", id=one.id)
    name = _("Acknowledge %(name)s", name=looks.monitor_of(one))
    return Place(name, one.cause or _("Action"), href, "seen", posts=True)


def _unique(places: Actions) -> Actions:
    return list(dict.fromkeys(places))


VERBS = (
    Verb(N_("acknowledge"), _acknowledges),
    Verb(N_("pause disable"), _pauses),
    Verb(N_("resume unpause enable"), _resumes),
    Verb(N_("check recheck run"), _check),
    Verb(N_("silence mute snooze maintenance"), _silence),
)
