"""The states of monitors in SQL: the state of a monitor, the number of monitors in each state, and
the list by state.

Most monitors are up. Queries for the others read their ids from small indexes (``not_up``), not the
state of every monitor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Select,
    bindparam,
    case,
    exists,
    func,
    select,
    text,
    union_all,
)

from app.db import db
from app.db.statements import constant
from app.db.tables import IncidentRow, MonitorRow, MonitorStateRow
from app.db.tables.monitors import NOT_UP
from app.records import (
    WORST_FIRST,
    IncidentSeverity,
    MaintenanceWindow,
    MonitorQuery,
    MonitorStatus,
    Sort,
    Verdict,
)
from app.stores.local.windows import in_maintenance

FEW_IN_STATE = 1000  # so many monitors can be sorted for one page
NOW: BindParameter[Any] = bindparam("now")
_MONITOR: Any = MonitorRow.__table__
_STATE: Any = MonitorStateRow.__table__
_OUTAGE: Any = IncidentRow.__table__.alias("outage")
_IS_FAILING = (_STATE.c.verdict == constant(Verdict.DOWN)) & ~(
    exists()
    .where(
        _OUTAGE.c.monitor_id == _STATE.c.monitor_id,
        _OUTAGE.c.ended_at.is_(None),
        _OUTAGE.c.severity != constant(IncidentSeverity.DEGRADED),
    )
    .correlate(_STATE)
)


def status(windows: Iterable[MaintenanceWindow]) -> ColumnElement[str]:
    """The status of a monitor at the time ``now`` (a parameter): the first one that applies
    (decision 3). The statement must join the row of its state. ``windows``: the active ones.

    The verdict is that of the last check: if the last check failed, the monitor is ``failing``
    until an outage is confirmed.
    """
    return case(
        (_MONITOR.c.paused, constant(MonitorStatus.PAUSED)),
        (in_maintenance(NOW, windows), constant(MonitorStatus.MAINTENANCE)),
        (_STATE.c.verdict.is_(None), constant(MonitorStatus.PENDING)),
        (_STATE.c.behind_id.is_not(None), constant(MonitorStatus.UNREACHABLE)),
        (_IS_FAILING, constant(MonitorStatus.FAILING)),
        else_=_STATE.c.verdict,
    )


def not_up(windows: Iterable[MaintenanceWindow]) -> CompoundSelect[Any]:
    """The ids of all monitors whose ``status`` is not ``up``, some of them twice."""
    return union_all(
        select(_STATE.c.monitor_id).where(text(NOT_UP)),
        select(_MONITOR.c.id).where(_MONITOR.c.paused),
        select(_MONITOR.c.id).where(in_maintenance(NOW, windows)),
    )


@lru_cache(maxsize=16)
def during(windows: tuple[MaintenanceWindow, ...]) -> States:
    """The states while these windows are active. They are cached, because building the statements
    takes longer than running them.
    """
    return States(windows)


class _Section(NamedTuple):
    """``limit`` monitors in these states from ``offset`` on, in the order of the list. ``is_few``:
    whether few monitors are in these states.
    """

    is_few: bool
    states: tuple[str, ...]
    offset: int
    limit: int


class States:
    """The states while these windows are active. ``matching``: a selection of the ids of the
    monitors that match filters. ``values``: the values of the parameters, with the time ``now``.
    """

    def __init__(self, windows: Sequence[MaintenanceWindow]) -> None:
        self._status = status(windows)
        self._not_up = not_up(windows)
        # Statements that run often are cached: the caller caches ``matching`` as well.
        self._counting = lru_cache(maxsize=16)(self._counted)
        self._ordering = lru_cache(maxsize=16)(self._ordered)

    def counts(self, matching: Select[Any], values: Mapping[str, Any]) -> dict[str, int]:
        """The number of matching monitors in each state. One statement counts the matching monitors
        and those that are not up, so that no change comes in between; the others are up.
        """
        rows = db.session.execute(self._counting(matching), values)
        counts = dict.fromkeys(map(str, MonitorStatus), 0)
        for name, count in rows:  # a union has no order
            counts[name if name in counts else MonitorStatus.UNKNOWN] += count
        counts[MonitorStatus.UP] -= sum(counts.values()) - counts[MonitorStatus.UP]
        return counts

    def _counted(self, matching: Select[Any]) -> CompoundSelect[Any]:
        not_up = joined(matching).where(_MONITOR.c.id.in_(self._not_up))
        return union_all(
            matching.with_only_columns(
                constant(MonitorStatus.UP), func.count(), maintain_column_froms=True
            ),
            not_up.with_only_columns(self._status, func.count()).group_by(self._status),
        )

    def in_states(
        self, matching: Select[Any], states: Collection[str], *, is_few: bool
    ) -> Select[Any]:
        """A selection of the matching monitors in one of ``states``. ``is_few``: whether few are
        expected.
        """
        matching = joined(matching).where(self._has_state(states))
        is_few = is_few and MonitorStatus.UP not in states
        return self._only_not_up(matching) if is_few else matching

    def page_by_state(
        self,
        matching: Select[Any],
        query: MonitorQuery,
        counts: Mapping[str, int],
        values: Mapping[str, Any],
        columns: Sequence[Any] = (),
    ) -> tuple[Sequence[Any], int]:
        """The rows on one page of a list in the order of states, by name within a state, with the
        id and ``columns``; and the number of all matching monitors.

        A state with many monitors has its own section, which follows the index of names and stops
        early: to sort all monitors by state would take as long as the rest of the page. States with
        few monitors share a section, because each section would read all monitors to find them.
        """
        states = WORST_FIRST if query.sort == Sort.DESC else WORST_FIRST[::-1]
        chosen_states = [state for state in states if state in query.statuses]
        start = (query.page - 1) * query.per_page
        sections, position = [], 0
        for is_few, group in _groups(chosen_states, counts):
            count = sum(counts.get(state, 0) for state in group)
            first, last = max(start, position), min(start + query.per_page, position + count)
            if first < last:
                sections.append(_Section(is_few, tuple(group), first - position, last - first))
            position += count
        if not sections:
            return [], position
        statement = self._ordering(matching, states, tuple(sections), columns)
        return db.session.execute(statement, values).all(), position

    def _ordered(
        self,
        matching: Select[Any],
        states: Sequence[str],
        sections: Sequence[_Section],
        columns: Sequence[Any],
    ) -> Select[Any]:
        position = self._position(states)
        selected = []
        for section in sections:
            statement = joined(matching).add_columns(
                position.label("position"), _MONITOR.c.name_natural, *columns
            )
            statement = statement.where(
                position.in_([constant(states.index(state)) for state in section.states])
            )
            if section.is_few and MonitorStatus.UP not in section.states:
                statement = self._only_not_up(statement)
            order = [
                *([position] if section.is_few else []),
                _MONITOR.c.name_natural,
                _MONITOR.c.id,
            ]
            selected.append(statement.order_by(*order).offset(section.offset).limit(section.limit))
        combined = union_all(*(select(section.subquery()) for section in selected)).subquery()
        return select(combined).order_by(
            combined.c.position, combined.c.name_natural, combined.c.id
        )

    def _only_not_up(self, matching: Select[Any]) -> Select[Any]:
        return matching.where(_MONITOR.c.id.in_(self._not_up))

    def _has_state(self, states: Collection[str]) -> ColumnElement[bool]:
        """An unreadable verdict counts as unknown: no list may lose a monitor."""
        if MonitorStatus.UNKNOWN not in states:
            return self._status.in_([constant(MonitorStatus(state)) for state in states])
        return self._status.not_in(
            [constant(state) for state in MonitorStatus if state not in states]
        )

    def _position(self, states: Sequence[str]) -> ColumnElement[int]:
        """The position of a monitor's state in ``states``; an unreadable one counts as unknown."""
        positions = {
            constant(MonitorStatus(state)): constant(at) for at, state in enumerate(states)
        }
        unknown = constant(states.index(MonitorStatus.UNKNOWN))
        return case(positions, value=self._status, else_=unknown)


def joined(matching: Select[Any]) -> Select[Any]:
    """``matching`` with the states of the monitors."""
    return matching.join(_STATE, _STATE.c.monitor_id == _MONITOR.c.id)


def _groups(
    states: Sequence[str], counts: Mapping[str, int]
) -> Iterator[tuple[bool, Sequence[str]]]:
    """The groups of states that are sections, each with whether it has few monitors. Neighbouring
    states with few monitors are one group, any other state is a group.
    """
    few = {state for state in states if counts.get(state, 0) <= FEW_IN_STATE}
    for _few, group in groupby(states, lambda state: state in few or state):
        neighbours = [*group]
        yield neighbours[0] in few, neighbours
