"""Home: is anything down now?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from flask import Response, redirect, url_for
from flask_login import current_user
from werkzeug.wrappers import Response as Answer

from app.i18n import _, _n, join_words
from app.records import (
    WORST_FIRST,
    Incident,
    IncidentQuery,
    IncidentSortBy,
    IncidentStatus,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSortBy,
    MonitorStatus,
    Sort,
)
from app.rules.causes import shared_cause
from app.stores import current_access, current_store
from app.stores.health import cannot_write
from app.web.frame import fragments, servers
from app.web.frame.session import guarded
from app.web.shown import first_steps, looks, monitor_rows, planned, times
from app.web.views import deliveries

blueprint = guarded("home", __name__)

OPEN_SHOWN = 50
CHANGES_SHOWN = 12
CHANGES_READ = 25  # a page size of the base API, which every server accepts
ATTENTION_SHOWN, ATTENTION_READ = 10, 50
MAX_NAMED = 2  # of the monitors on one card
FLAPPING, FLAPPING_WITHIN = 3, timedelta(days=1)  # incidents of a monitor that share a line
# States that are not down and still need attention.
ATTENTION_STATES = (MonitorStatus.FAILING, MonitorStatus.DEGRADED, MonitorStatus.UNKNOWN)
URGENT = WORST_FIRST[: WORST_FIRST.index(MonitorStatus.UNKNOWN) + 1]


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A monitor went down or up: ``status`` is ``down`` or ``up``. For a monitor that flaps,
    ``times`` is how many incidents this line stands for, and ``since`` when the first began.
    """

    at: datetime
    status: str
    incident: Incident
    times: int = 1
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class OpenCard:
    """Open incidents with the same cause and state, the newest first. ``cause``: their shared
    sentence. ``behind``: how many monitors are unreachable because of them. ``named``: those of
    these monitors whose names were read.
    """

    incidents: Sequence[Incident]
    cause: str
    behind: int = 0
    named: Sequence[MonitorRef] = ()

    @property
    def started_at(self) -> datetime:
        return min(incident.started_at for incident in self.incidents)

    @property
    def summary(self) -> str:
        """The first names, and how many more there are."""
        names = [looks.monitor_of(incident) for incident in self.incidents]
        more = len(names) - MAX_NAMED
        if more <= 0:
            return join_words(names)
        first = ", ".join(names[:MAX_NAMED])
        return _n("%(names)s and %(num)s more", "%(names)s and %(num)s more", more, names=first)


@blueprint.get("/")
def show() -> Response:
    store = current_store()
    counts = not servers.is_bare()  # first, because it raises the error of a silent server
    open_page = store.incidents.open(OPEN_SHOWN)
    open_now, total = open_page.items, open_page.total
    slow = sum(map(looks.is_degraded, open_now))
    counters = dict(store.monitors.overview()) if counts else {}
    look, sentence = headline(counters if counts else None, total, slow)
    if look == "up" and cannot_write():  # new outages are not recorded
        look, sentence = str(MonitorStatus.UNKNOWN), _("Nothing new is known")
    # There are monitors, none of them is down, and no incident is open.
    is_calm = any(counters.values()) and not total and not counters.get(MonitorStatus.DOWN)
    recent_changes = changes(open_now)
    return fragments.page(
        "home/show.html",
        "home/_live.html",
        open_now=open_now,
        cards=_cards(open_now),
        open_total=total,
        open_slow=slow,
        counters=counters if counts else None,
        needing_attention=_needing_attention(counters),
        unreached=deliveries.unreached(open_now),
        unalerted=deliveries.unalerted(open_now),
        look=look,
        headline=sentence,
        changes=recent_changes,
        last=next((change.incident for change in recent_changes if change.status == "up"), None),
        calm=_calm() if is_calm else None,
        # called in the template; the fragment does not have it
        first_steps=first_steps.first_steps,
    )


@blueprint.post("/first-steps/put-away")
def put_away() -> Answer:
    current_access().people.update(current_user.person.id, {"first_steps_away": True})
    return redirect(url_for(".show"))


def _cards(open_now: Sequence[Incident]) -> Sequence[OpenCard]:
    """The incidents on cards, in the order of the first incident of each card."""
    shared: dict[Any, list[Incident]] = {}
    for incident in open_now:
        cause = shared_cause(incident) or incident.id
        shared.setdefault((cause, incident.status, incident.acknowledged_by), []).append(incident)
    behind = {id for incident in open_now for id in incident.affected}
    # Another server would be asked for each name.
    local = servers.servers() is None
    refs = current_store().monitors.refs(ids=[*behind]) if behind and local else ()
    names = {ref.id: ref for ref in refs}
    return [_card(cause, incidents, names) for (cause, *_state), incidents in shared.items()]


def _card(cause: Any, incidents: Sequence[Incident], names: Mapping[int, MonitorRef]) -> OpenCard:
    no_cause = _("No cause given")
    sentences = {times.dated(each.cause, each.started_at) or no_cause for each in incidents}
    behind = dict.fromkeys(id for incident in incidents for id in incident.affected)
    return OpenCard(
        incidents,
        cause=cause[-1] if len(sentences) > 1 else sentences.pop(),
        behind=len(behind),
        named=[names[id] for id in behind if id in names],
    )


def _needing_attention(counters: Mapping[str, int]) -> Sequence[Monitor]:
    """The first monitors in each state of ``ATTENTION_STATES``."""
    states = [state for state in ATTENTION_STATES if counters.get(state)]
    query = MonitorQuery(
        sort_by=MonitorSortBy.STATE, sort=Sort.DESC, per_page=ATTENTION_SHOWN, uptime=(),
        counts=counters, status_only=True,
    )  # fmt: skip
    queries = [replace(query, state=state) for state in states]
    urgent = sum(counters.get(state, 0) for state in URGENT)
    if len(states) > 1 and urgent <= ATTENTION_READ:
        # One list has the monitors of all these states, because urgent states come first in it.
        queries = [replace(query, per_page=ATTENTION_READ if servers.servers() else urgent)]
    by_state: dict[str, list[Monitor]] = {state: [] for state in states}
    for query in queries:
        for monitor in current_store().monitors.list(query).items:
            if monitor.status in by_state:
                by_state[monitor.status].append(monitor)
    return [monitor for monitors in by_state.values() for monitor in monitors[:ATTENTION_SHOWN]]


def headline(counters: Mapping[str, int] | None, open_: int, slow: int = 0) -> tuple[str, str]:
    """The look and the headline: whether anything is down. Without counters, only incidents decide.
    ``open_``: how many incidents are open; ``slow``: how many of them are degraded.
    """
    look, number = "down" if open_ > slow else "degraded", f"{open_:,}"
    incidents = _n("%(num)s incident open", "%(num)s incidents open", open_, num=number)
    if counters is None:
        return (look, incidents) if open_ else ("up", _("No incident is open"))
    if sum(counters.values()) == 0:
        return "pending", _("No monitors yet")
    if down := counters.get(MonitorStatus.DOWN):
        number = f"{down:,}"
        return "down", _n("%(num)s monitor is down", "%(num)s monitors are down", down, num=number)
    if open_:
        return look, incidents
    if failing := counters.get(MonitorStatus.FAILING):
        return "degraded", _n(
            "%(num)s monitor is failing, checking again",
            "%(num)s monitors are failing, checking again", failing, num=f"{failing:,}",
        )  # fmt: skip
    # A monitor whose parent is good again is unreachable until it is checked itself.
    if counters.get(MonitorStatus.UNKNOWN) or counters.get(MonitorStatus.UNREACHABLE):
        return "unknown", _("No confirmed outage")
    if counters.get(MonitorStatus.DEGRADED):
        return "degraded", _("Nothing is down")
    if counters.get(MonitorStatus.UP):
        return "up", _("Everything is up")
    return "paused", _("Nothing is down")


def changes(open_now: Sequence[Incident]) -> list[StatusChange]:
    """The recent starts and ends of incidents, the newest first. An incident that has started
    recently is in ``open_now`` or among those that ended recently.
    """
    query = IncidentQuery(
        status=IncidentStatus.RESOLVED, sort_by=IncidentSortBy.ENDED_AT,
        per_page=CHANGES_READ, brief=True, counted=False,
    )  # fmt: skip
    ended = current_store().incidents.list(query).items
    latest = [StatusChange(each.started_at, "down", each) for each in (*open_now, *ended)]
    latest += [StatusChange(each.ended_at, "up", each) for each in ended if each.ended_at]
    newest_first = sorted(latest, key=lambda change: change.at, reverse=True)
    return [*islice(_folded(newest_first), CHANGES_SHOWN)]


def _folded(changes: Sequence[StatusChange]) -> Iterator[StatusChange]:
    """The changes, with one line for a monitor that flaps: its newest change stands for all of its
    changes in the day before.
    """
    by_monitor: dict[int, list[StatusChange]] = defaultdict(list)
    for change in changes:
        by_monitor[change.incident.monitor_id].append(change)
    folded_since: dict[int, datetime] = {}  # by monitor: its line covers the changes since
    for change in changes:
        id = change.incident.monitor_id
        if id in folded_since and change.at >= folded_since[id]:
            continue
        day = change.at - FLAPPING_WITHIN
        recent = [other for other in by_monitor[id] if day <= other.at <= change.at]
        incidents = {other.incident.id for other in recent}
        if len(incidents) >= FLAPPING:
            folded_since[id] = day
            oldest = min(other.incident.started_at for other in recent)
            change = replace(change, times=len(incidents), since=oldest)
        yield change


STRIPS = 50  # of the sizes of the base API; with more monitors, the worst and a link to the list
EXPIRIES, EXPIRIES_ASKED = 3, 10
WINDOWS = 2


@dataclass(frozen=True, slots=True)
class Expiry:
    monitor: Monitor
    of_domain: bool  # otherwise of the certificate
    at: datetime


@dataclass(frozen=True, slots=True)
class Calm:
    """The parts of home while nothing is wrong. ``more``: how many monitors have no strip."""

    rows: Sequence[monitor_rows.MonitorListRow]
    more: int
    expiries: Sequence[Expiry]
    windows: Sequence[planned.Planned]


def _calm() -> Calm:
    sort_by, sort = MonitorSortBy.STATE, Sort.DESC  # the worst first
    if servers.is_bare():
        sort_by, sort = MonitorSortBy.NATURAL, Sort.ASC
    query = MonitorQuery(
        sort_by=sort_by, sort=sort, per_page=STRIPS, uptime=(), hours=True, brief=True
    )
    page = current_store().monitors.list(query)
    return Calm(
        rows=monitor_rows.rows_of(page.items),
        more=max(0, page.total - len(page.items)),
        expiries=_expiries(),
        windows=planned.soon(WINDOWS),
    )


def _expiries() -> Sequence[Expiry]:
    """The certificates and domains that expire next, of the monitors that are checked."""
    if servers.is_bare():
        return ()
    query = MonitorQuery(
        sort_by=MonitorSortBy.EXPIRES_AT, sort=Sort.ASC, per_page=EXPIRIES_ASKED, uptime=(),
        brief=True,
    )  # fmt: skip
    expiries = {
        (of_domain, monitor.domain if of_domain else monitor.id): Expiry(monitor, of_domain, at)
        for monitor in current_store().monitors.list(query).items
        for of_domain, at in ((False, monitor.ssl_expires_at), (True, monitor.domain_expires_at))
        if at is not None and not monitor.paused
    }
    return sorted(expiries.values(), key=lambda expiry: expiry.at)[:EXPIRIES]
