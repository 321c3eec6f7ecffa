"""The monitors that others are reached through (``depends_on``), and those that were unreachable
because of an outage (decision 20). Needs an application context.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ScalarSelect, String, bindparam, cast, delete, func, insert, or_, select

from app.db import AnySession
from app.db.latest import IDS_PER_STATEMENT
from app.db.statements import grouped, pieces
from app.db.tables import MonitorDependencyRow, MonitorRow, ResultRow, UnreachableRow
from app.db.types import to_ms
from app.records import GOOD_VERDICTS, Verdict

_EDGES: Any = MonitorDependencyRow.__table__
_SPANS: Any = UnreachableRow.__table__
_MONITOR: Any = MonitorRow.__table__
_IDS: Any = bindparam("ids", expanding=True)
# Built once, because each batch of results runs them.
_UP = select(_EDGES.c.monitor_id, _EDGES.c.parent_id).where(_EDGES.c.monitor_id.in_(_IDS))
_DOWN = select(_EDGES.c.parent_id, _EDGES.c.monitor_id).where(_EDGES.c.parent_id.in_(_IDS))
_IN_ORDER = _UP.order_by(_EDGES.c.monitor_id, _EDGES.c.position)
_AFFECTED = (
    select(_SPANS.c.parent_id, _SPANS.c.monitor_id, _MONITOR.c.name)
    .add_columns(_SPANS.c.started_at, _SPANS.c.ended_at)
    .join(_MONITOR, _MONITOR.c.id == _SPANS.c.monitor_id)
    .where(
        _SPANS.c.parent_id.in_(_IDS),
        or_(_SPANS.c.ended_at.is_(None), _SPANS.c.ended_at >= bindparam("first")),
    )
    .order_by(_SPANS.c.started_at, _SPANS.c.monitor_id)
)


def _newest(verdicts: Iterable[Verdict]) -> ScalarSelect[Any]:
    """The SQL of the time of a monitor's newest result since ``first`` with one of the verdicts."""
    query = select(ResultRow.at).where(
        ResultRow.monitor_id == MonitorRow.id,
        ResultRow.at >= bindparam("first"),
        ResultRow.verdict.in_(list(verdicts)),
    )
    return query.order_by(ResultRow.at.desc()).limit(1).scalar_subquery()


_FAILED = select(MonitorRow.id, _newest([Verdict.DOWN])).where(MonitorRow.id.in_(_IDS))
_WATCHED = (
    select(MonitorRow.id, MonitorRow.name, _newest(GOOD_VERDICTS).label("good_at"))
    .where(MonitorRow.id.in_(_IDS), MonitorRow.paused.is_(False))
    .order_by(MonitorRow.id)
)


def parents(session: AnySession, ids: Collection[int]) -> dict[int, list[int]]:
    """The direct parents of each of these monitors, in the order in which people chose them."""
    return grouped(_edges(session, _IN_ORDER, ids))


def parents_of(monitor_id: Any) -> ScalarSelect[Any]:
    """The SQL of the direct parents of a monitor, as a text that ``parents_in`` reads."""
    entry = cast(_EDGES.c.position, String) + ":" + cast(_EDGES.c.parent_id, String)
    entries = select(func.aggregate_strings(entry, ","))
    return entries.where(_EDGES.c.monitor_id == monitor_id).scalar_subquery()


def parents_in(text: str | None) -> list[int]:
    """The ids in a value of ``parents_of``, in the order in which people chose them."""
    entries = (entry.partition(":") for entry in (text or "").split(",") if entry)
    return [id for _position, id in sorted((int(at), int(id)) for at, _colon, id in entries)]


def above(session: AnySession, ids: Collection[int]) -> dict[int, set[int]]:
    """The ancestors of each of these monitors: its parents, their parents, and so on."""
    return _closure(session, _UP, ids)


def below(session: AnySession, ids: Collection[int]) -> dict[int, set[int]]:
    """The descendants of each of these monitors: all monitors that are reached through it."""
    return _closure(session, _DOWN, ids)


def replace_parents(session: AnySession, monitor_id: int, parent_ids: Sequence[int]) -> None:
    """Replace the parents of a monitor by these, which the caller has checked."""
    session.execute(delete(_EDGES).where(_EDGES.c.monitor_id == monitor_id))
    rows = [
        {"monitor_id": monitor_id, "parent_id": parent, "position": position}
        for position, parent in enumerate(parent_ids)
    ]
    if rows:
        session.execute(insert(_EDGES), rows)


def _closure(session: AnySession, statement: Any, ids: Collection[int]) -> dict[int, set[int]]:
    """The ids that can be reached from each of ``ids``, by any number of edges. Ids without edges
    are left out. If no monitor depends on another, as in most installations, this is one statement.
    """
    edges: dict[int, list[int]] = {}
    visited: set[int] = set()
    front = set(ids)
    while front:
        visited |= front
        targets = set()
        for source, target in _edges(session, statement, front):
            edges.setdefault(source, []).append(target)
            targets.add(target)
        front = targets - visited
    return {id: _reached(edges, id) for id in ids if id in edges}


def _edges(session: AnySession, statement: Any, ids: Iterable[int]) -> Iterator[Any]:
    for part in pieces(sorted(ids), IDS_PER_STATEMENT):
        yield from session.execute(statement, {"ids": part})


def selected_among(session: AnySession, statement: Any, ids: Iterable[int]) -> Iterator[int]:
    """The ids among these that a ``statement`` of one column selects. There may be many ids."""
    return (id for (id,) in _edges(session, statement, ids))


def _reached(edges: Mapping[int, Sequence[int]], id: int) -> set[int]:
    reached: set[int] = set()
    front = [id]
    while front:
        new = {target for source in front for target in edges.get(source, ())} - reached
        reached |= new
        front = [*new]
    return reached - {id}


class AffectedMonitor(NamedTuple):
    """A monitor that failed behind another one's outage."""

    id: int
    name: str


def affected(session: AnySession, incidents: Iterable[Any]) -> dict[int, list[AffectedMonitor]]:
    """The monitors that were unreachable behind the outages of these incidents, by the incident's
    id, in the order in which they failed. ``incidents`` have ``id``, ``monitor_id``,
    ``started_at``, ``down_since`` and ``ended_at``.
    """
    incidents = list(incidents)
    if not incidents:
        return {}
    first = min(incident.started_at for incident in incidents)
    ids = {incident.monitor_id for incident in incidents}
    spans = session.execute(_AFFECTED, {"ids": sorted(ids), "first": first}).all()
    return {
        incident.id: list(
            dict.fromkeys(
                AffectedMonitor(span.monitor_id, span.name)
                for span in spans
                if span.parent_id == incident.monitor_id and _overlap(span, incident)
            )
        )
        for incident in incidents
    }


def _overlap(span: Any, incident: Any) -> bool:
    ended: datetime | None = incident.ended_at
    return (ended is None or span.started_at <= ended) and (
        span.ended_at is None or span.ended_at >= (incident.down_since or incident.started_at)
    )


def unreachable_at_opening(
    session: AnySession, incidents: Iterable[Any]
) -> dict[int, list[AffectedMonitor]]:
    """The monitors that cannot be reached when these incidents open, by the incident's id: the
    ``affected`` ones, and all others that are reached through its monitor and have had no good
    check since its last failing check, because they may not have been checked since the outage
    began. ``incidents``: as for ``affected``.
    """
    incidents = list(incidents)
    behind_each = affected(session, incidents)
    below_each = below(session, {incident.monitor_id for incident in incidents})
    leading = [incident for incident in incidents if incident.monitor_id in below_each]
    if not leading:
        return behind_each
    since = {incident.id: to_ms(incident.down_since or incident.started_at) for incident in leading}
    first = min(since.values())
    failed_at = dict(_edges(session, _FAILED.params(first=first), below_each))
    watched = list(_edges(session, _WATCHED.params(first=first), set().union(*below_each.values())))
    for incident in leading:
        ids = below_each[incident.monitor_id] - {row.id for row in behind_each[incident.id]}
        last = max(since[incident.id], failed_at.get(incident.monitor_id) or 0)
        behind_each[incident.id] += [
            AffectedMonitor(row.id, row.name)
            for row in watched
            if row.id in ids and (row.good_at is None or row.good_at < last)
        ]
    return behind_each
