"""The monitors of a list and their order: its filters, search, tags and sort."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, select

from app.db import db, latest
from app.db.cached import of_transaction
from app.db.tables import (
    AssignmentRow,
    DomainRow,
    MonitorContactRow,
    MonitorDependencyRow,
    MonitorRow,
    MonitorStateRow,
    PlaceRow,
    StatusPageMonitorRow,
)
from app.db.tags import tagged, tags_of
from app.records import MaintenanceWindow, MonitorQuery, MonitorSearchBy, MonitorSortBy
from app.stores.local import states
from app.stores.local.part import (
    PageStatements,
    contains,
    fitting,
    has_words,
    ordered,
    page_statements,
)
from app.stores.local.windows import active_windows

FEW_MATCHES = 500  # monitors of a search whose ids are read first
# The statements use tables, because the ORM would double the time of a page.
_MONITOR: Any = MonitorRow.__table__.c
_STATE: Any = MonitorStateRow.__table__.c
_DOMAIN: Any = DomainRow.__table__
SORT_COLUMNS = {
    MonitorSortBy.ID: (_MONITOR.id,),
    MonitorSortBy.NAME: (_MONITOR.name_folded, _MONITOR.id),
    MonitorSortBy.URL: (_MONITOR.url_folded, _MONITOR.id),
    MonitorSortBy.NATURAL: (_MONITOR.name_natural, _MONITOR.id),
}
# The earlier expiry; without min() or least(), which treat nulls differently in the databases.
EXPIRES_AT = case(
    (_DOMAIN.c.expires_at < _STATE.ssl_expires_at, _DOMAIN.c.expires_at),
    else_=func.coalesce(_STATE.ssl_expires_at, _DOMAIN.c.expires_at),
)


@lru_cache(maxsize=64)
def statements(
    query: MonitorQuery, windows: tuple[MaintenanceWindow, ...], *, is_few: bool
) -> PageStatements:
    """The statements of a list that is not ordered by state. They need the parameters ``now`` and
    ``until``. ``is_few``: whether few monitors are in ``query.state``.
    """
    selection = matching(query)
    # Without a filter or an order by the state, the states are not read.
    if query.state:
        selection = states.during(windows).in_states(selection, query.statuses, is_few=is_few)
    elif query.sort_by not in SORT_COLUMNS:
        selection = states.joined(selection)
    if query.sort_by == MonitorSortBy.EXPIRES_AT:
        selection = selection.outerjoin(_DOMAIN, _DOMAIN.c.domain == _STATE.domain)
    return page_statements(selection, _order(query), query.page, query.per_page)


def matching(query: MonitorQuery) -> Select[Any]:
    """A selection of the ids of the monitors that match all filters but the state."""
    return _filtered(
        query.search,
        query.search_by,
        query.ids,
        query.status_page_id,
        query.contact_id,
        query.location,
        query.depends_on,
        tuple(tag for tag in (query.tag, query.bound_tag) if tag),
    )


@lru_cache(maxsize=64)
def _filtered(
    search: str | None,
    search_by: str,
    ids: tuple[int, ...] | None,
    status_page_id: int | None,
    contact_id: int | None,
    location: str | None,
    parent_id: int | None,
    tags: tuple[str, ...],
) -> Select[Any]:
    statement = select(_MONITOR.id)
    if search:
        statement = statement.where(_search_condition(search, search_by))
    if ids is not None:
        statement = statement.where(_MONITOR.id.in_(ids))
    page, contact, edge = StatusPageMonitorRow, MonitorContactRow, MonitorDependencyRow
    for owner_id, owner, monitor_id in (
        (status_page_id, page.status_page_id, page.monitor_id),
        (contact_id, contact.contact_id, contact.monitor_id),
        (parent_id, edge.parent_id, edge.monitor_id),
    ):
        if owner_id is not None:
            of_owner = select(monitor_id).where(owner == fitting(owner_id))
            statement = statement.where(_MONITOR.id.in_(of_owner))
    if location is not None:
        checked = select(AssignmentRow.monitor_id).join(
            PlaceRow, PlaceRow.id == AssignmentRow.location_id
        )
        statement = statement.where(_MONITOR.id.in_(checked.where(PlaceRow.name == location)))
    for tag in tags:
        statement = statement.where(tagged([tag]))
    return statement


def tag_counts(selection: Select[Any], query: MonitorQuery, now: datetime) -> Mapping[str, int]:
    if query.state:
        during = states.during(tuple(active_windows(now)))
        selection = during.in_states(selection, query.statuses, is_few=True)
    statement = selection.with_only_columns(
        _MONITOR.tags, func.count(), maintain_column_froms=True
    ).where(_MONITOR.tags != "")
    counts: Counter[str] = Counter()
    for text, count in db.session.execute(statement.group_by(_MONITOR.tags), {"now": now}):
        counts.update(dict.fromkeys(tags_of(text), count))
    return counts


def searched(query: MonitorQuery) -> MonitorQuery:
    """Replace the search of ``query`` by the ids of the monitors that match it, if they are few.
    Otherwise up to three statements of a page would each search all monitors, and SQLite would
    read whole rows in the order of the page, not the index of names or URLs.
    """
    if not query.search:
        return query
    cache, name = of_transaction(), f"search {query.search_by} {query.search}"
    if name not in cache:
        cache[name] = tuple(db.session.scalars(_matches(query.search, query.search_by)))
    ids = cache[name]
    return replace(query, search=None, ids=ids) if len(ids) <= FEW_MATCHES else query


@lru_cache(maxsize=64)
def _matches(search: str, search_by: str) -> Select[Any]:
    condition = _search_condition(search, search_by)
    return select(_MONITOR.id).where(condition).limit(FEW_MATCHES + 1)


def _search_condition(search: str, search_by: str) -> ColumnElement[bool]:
    if search_by == MonitorSearchBy.ANY:
        return has_words(search, _MONITOR.name_folded, _MONITOR.url_folded, tags=_MONITOR.tags)
    by_url = search_by == MonitorSearchBy.URL
    return contains(_MONITOR.url_folded if by_url else _MONITOR.name_folded, search)


def _order(query: MonitorQuery) -> list[Any]:
    if query.sort_by == MonitorSortBy.RESPONSE_TIME:
        time = latest.response_time()
        return [time.is_(None), *ordered(query.sort, time), _MONITOR.id]
    if query.sort_by == MonitorSortBy.EXPIRES_AT:
        return [EXPIRES_AT.is_(None), *ordered(query.sort, EXPIRES_AT), _MONITOR.id]
    return ordered(query.sort, *SORT_COLUMNS[MonitorSortBy(query.sort_by)])
