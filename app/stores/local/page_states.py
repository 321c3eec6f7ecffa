"""The states of status pages and of the monitors on them, from confirmed states (decision
12).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import aliased

from app.db import db
from app.db.tables import (
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    PostMonitorRow,
    PostRow,
    ResultRow,
    StatusPageMonitorRow,
)
from app.db.types import Moment
from app.records import (
    OPEN_STATES,
    Classification,
    ComponentState,
    IncidentSeverity,
    PageState,
    Verdict,
)
from app.rules.page_state import component_state, impact_of, page_state, state_by_post, worst
from app.stores.local.windows import active_windows, in_maintenance

# An incident with one of these classifications does not count.
EXCUSED = tuple(Classification)


_PARENTS = aliased(IncidentRow)
# The time since which the parent of an unreachable monitor is confirmed as down.
BEHIND_SINCE = (
    select(func.coalesce(_PARENTS.down_since, _PARENTS.started_at, type_=Moment))
    .where(
        _PARENTS.severity == IncidentSeverity.DOWN,
        _PARENTS.monitor_id == MonitorStateRow.behind_id,
        _PARENTS.ended_at.is_(None),
        _PARENTS.classification.is_(None),
    )
    .correlate(MonitorStateRow)
    .scalar_subquery()
    .label("behind_since")
)


_COLUMNS = (
    MonitorRow.id, MonitorRow.paused, MonitorRow.interval, MonitorRow.created_at,
    MonitorStateRow.verdict, MonitorStateRow.status_since, MonitorStateRow.checked_at, BEHIND_SINCE,
    IncidentRow.started_at, IncidentRow.classification, IncidentRow.severity,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CountedState:
    """The state of a monitor on a page. ``counts``: whether the state of the page depends on it.
    Monitors that are paused or were never checked do not count.
    """

    state: ComponentState
    counts: bool


def counted_states(monitors: Select[Any], now: datetime) -> dict[int, CountedState]:
    """The states of monitors at ``now``. ``monitors``: a selection of their ids."""
    statement = (
        select(*_COLUMNS, in_maintenance(now, active_windows(now)).label("in_maintenance"))
        .join(MonitorStateRow, MonitorStateRow.monitor_id == MonitorRow.id)
        .outerjoin(
            IncidentRow, (IncidentRow.monitor_id == MonitorRow.id) & IncidentRow.ended_at.is_(None)
        )
        .where(MonitorRow.id.in_(monitors))
    )
    return counted_states_of(db.session.execute(statement).all(), lambda row: row.in_maintenance)


def states_of_pages(ids: Collection[int], now: datetime) -> dict[int, PageState]:
    """The state of each of these pages."""
    member = StatusPageMonitorRow
    of_pages = member.status_page_id.in_(ids)
    by_monitor = counted_states(select(member.monitor_id).where(of_pages), now)
    by_posts = _states_by_posts(ids)
    components: defaultdict[int, list[ComponentState]] = defaultdict(list)
    members = select(member.status_page_id, member.monitor_id).where(of_pages)
    for page_id, monitor_id in db.session.execute(members):
        own = by_monitor.get(monitor_id)
        states = by_posts[page_id, monitor_id] + ([own.state] if own and own.counts else [])
        if states:
            components[page_id].append(worst(states))
    posts = _open_posts(ids)
    return {id: page_state(components[id], posts[id]) for id in ids}


def _states_by_posts(ids: Collection[int]) -> defaultdict[tuple[int, int], list[ComponentState]]:
    """The states worse than operational that open posts give to the monitors of these pages."""
    states: defaultdict[tuple[int, int], list[ComponentState]] = defaultdict(list)
    rows = db.session.execute(
        select(PostRow.status_page_id, PostRow.state, PostRow.automatic)
        .add_columns(PostMonitorRow.monitor_id, PostMonitorRow.impact)
        .join(PostMonitorRow, PostMonitorRow.post_id == PostRow.id)
        .where(PostRow.status_page_id.in_(ids), PostRow.state.in_(OPEN_STATES))
    )
    for page_id, state, automatic, monitor_id, own in rows:
        by_post = state_by_post(state, impact_of(own, state, automatic=automatic))
        if by_post != ComponentState.OPERATIONAL:
            states[page_id, monitor_id].append(by_post)
    return states


def _open_posts(ids: Collection[int]) -> defaultdict[int, list[str]]:
    """The states of each page's open posts."""
    states: defaultdict[int, list[str]] = defaultdict(list)
    of_pages = PostRow.status_page_id.in_(ids), PostRow.state.in_(OPEN_STATES)
    rows = select(PostRow.status_page_id, PostRow.state).where(*of_pages).distinct()
    for page_id, state in db.session.execute(rows):
        states[page_id].append(state)
    return states


def counted_states_of(
    rows: Sequence[Any], in_maintenance: Callable[[Any], bool]
) -> dict[int, CountedState]:
    """The states of monitors by id. ``rows`` have ``_COLUMNS``."""
    unchecked_ids = [row.id for row in rows if row.verdict is not None and not _was_checked(row)]
    were_up = _were_up(unchecked_ids)
    return {row.id: _counted_state(row, in_maintenance(row), row.id in were_up) for row in rows}


def _counted_state(row: Any, in_maintenance: bool, was_up: bool) -> CountedState:
    incident_open = row.started_at is not None and row.classification not in EXCUSED
    slow = incident_open and row.severity == IncidentSeverity.DEGRADED
    is_behind = row.behind_since is not None
    planned = in_maintenance and row.verdict is not None
    checked = incident_open or is_behind or planned or was_up or _was_checked(row)
    state = component_state(
        paused=row.paused,
        checked=checked,
        in_maintenance=in_maintenance,
        incident_open=is_behind or (incident_open and not slow),
        verdict=Verdict.DEGRADED if slow else row.verdict if _has_lasted(row) else None,
    )
    return CountedState(state, checked and not row.paused)


def _were_up(ids: Collection[int]) -> set[int]:
    """The monitors among these that were up in an earlier check. They are new, so they have few
    results.
    """
    if not ids:
        return set()
    up = ResultRow.verdict == Verdict.UP
    monitor_ids = select(ResultRow.monitor_id).where(ResultRow.monitor_id.in_(ids), up)
    return set(db.session.scalars(monitor_ids.distinct()))


def _has_lasted(row: Any) -> bool:
    """Whether several checks in a row gave the verdict: a single check changes no page."""
    since, checked_at = row.status_since, row.checked_at
    return since is not None and checked_at is not None and checked_at > since


def _was_checked(row: Any) -> bool:
    """Whether the stored state is enough to show a state. A new monitor has no state to show before
    its first good check, or before two equal verdicts in a row.
    """
    if row.verdict is None:
        return False
    if row.verdict == Verdict.UP or _has_lasted(row) or row.status_since is None:
        return True
    first = row.created_at + timedelta(seconds=row.interval)
    return bool(row.status_since > first)
