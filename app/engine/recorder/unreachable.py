"""Dependencies in a batch of results (decision 20): the state of a monitor's parents for the judge,
and the effect of its new state on its parents and children. A parent is a monitor that another one
is reached through.

When a monitor begins to fail, its parents are asked for a check, and no incident opens before they
have been checked. The parents' states are locked with that of the monitor, so no incident opens
while a parent is being recorded as down. A crash loses none of this: the request is stored in the
parents' assignments, and its time in the monitor's state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, func, or_, select

from app.db import AnySession, changes, dependencies, liveness, rollups, wakeups
from app.db.latest import lock_states
from app.db.statements import rows_changed, updating
from app.db.tables import (
    AssignmentRow,
    CauseCodeRow,
    HeartbeatStateRow,
    IncidentRow,
    MonitorStateRow,
    ResultRow,
    UnreachableRow,
)
from app.db.types import from_ms, to_ms
from app.engine.recorder.batch import Family, MonitorInBatch, ResultBatch
from app.engine.recorder.rows import confirm_delay
from app.engine.schedule import REQUEST_LASTS
from app.i18n import N_, _
from app.judge.replay import FAR_FUTURE, TimeSpan
from app.judge.verdict import (
    NO_PARENTS,
    Effect,
    Parents,
    Stage,
    State,
    behind_parent,
    failing_parent,
    is_failing,
)
from app.records import Cause, IncidentSeverity, Verdict

BEHIND = N_("Unreachable: %(parent)s, which it is reached through, is down.")
# A parent must be checked within its own time limit and these seconds, because an agent must read
# the request and bring the result. After that, the monitor is judged without it.
ANSWER_SECONDS = 10.0
_WAITING = select(MonitorStateRow.monitor_id).where(
    MonitorStateRow.monitor_id.in_(bindparam("ids", expanding=True)),
    MonitorStateRow.failing_since.is_not(None),
)

_NEWEST_FAILURE = (
    select(CauseCodeRow.code, ResultRow.cause)
    .outerjoin(CauseCodeRow, CauseCodeRow.id == ResultRow.cause_code_id)
    .where(ResultRow.monitor_id == bindparam("id"), ResultRow.verdict == Verdict.DOWN)
    .order_by(ResultRow.at.desc())
    .limit(1)
)


def lock_family(session: AnySession, ids: Collection[int]) -> Family:
    """Lock the states of these monitors and of their family, in the order of ``lock_states``."""
    above, below = dependencies.above(session, ids), dependencies.below(session, ids)
    children = {id for ids in below.values() for id in ids}
    waiting = set(dependencies.selected_among(session, _WAITING, children))
    waits = {id: ids & waiting for id, ids in below.items() if ids & waiting}
    family = Family(above, waits, {id for id, ids in below.items() if ids})
    lock_states(session, {*ids, *family.ids})
    return family


def parents_of(batch: ResultBatch, monitor: MonitorInBatch) -> Parents:
    """The present state of a monitor's parents, for the judge."""
    parents = _watched(batch, monitor)
    if not parents:
        return NO_PARENTS
    failing = failing_parent((parent.row.id, parent.state) for parent in parents)
    if failing is not None:
        return Parents(failing)
    confirming = monitor.state.failing_since is not None
    asked_at = monitor.columns["parents_asked_at"] if confirming else None
    if (
        asked_at is not None
        and _was_interrupted(monitor, batch.now)
        and any(_lacks_answer(parent, asked_at, batch.now) for parent in parents)
    ):
        asked_at = monitor.columns["parents_asked_at"] = None  # ask again
    awaited = any(_is_awaited(parent, asked_at, batch.now) for parent in parents)
    ids = [parent.row.id for parent in parents]
    return Parents(None, awaited, _good_since(batch.session, ids, batch.now))


def _was_interrupted(monitor: MonitorInBatch, now: datetime) -> bool:
    """Whether nothing was checked for so long, as after a stop of the service, that the request to
    the monitor's parents is too old to be carried out.
    """
    longest = REQUEST_LASTS + confirm_delay() + timedelta(seconds=monitor.row.timeout)
    checked_at = monitor.state.checked_at
    return checked_at is not None and now - checked_at > longest


def _watched(batch: ResultBatch, monitor: MonitorInBatch) -> list[MonitorInBatch]:
    """The parents whose state counts: neither paused nor in maintenance."""
    above = (batch.monitors.get(id) for id in batch.family.above.get(monitor.row.id, ()))
    return [
        parent
        for parent in above
        if parent is not None
        and not parent.row.paused
        and not batch.windows.covers(parent.row, batch.now)
    ]


def _is_awaited(parent: MonitorInBatch, asked_at: datetime | None, now: datetime) -> bool:
    """Whether the monitor waits for a check of the parent that starts after the request. It does
    not wait for silent places, nor for a heartbeat, which cannot be asked.
    """
    if asked_at is not None:
        in_time = now - asked_at <= timedelta(seconds=parent.row.timeout + ANSWER_SECONDS)
        return in_time and _lacks_answer(parent, asked_at, now)
    return _can_be_asked(parent)


def _can_be_asked(parent: MonitorInBatch) -> bool:
    return parent.state.verdict is not Verdict.UNKNOWN and parent.assigned.is_assigned


def _lacks_answer(parent: MonitorInBatch, asked_at: datetime, now: datetime) -> bool:
    """Whether a place of the parent that is not silent has made no check since it was asked."""
    if not _can_be_asked(parent):
        return False
    checked = parent.assigned.checked()
    times = [parent.newest] if len(checked) == 1 else checked
    return any(
        at is None or (at < asked_at and now - at <= parent.rules.vote_valid_for) for at in times
    )


def _good_since(session: AnySession, ids: Sequence[int], now: datetime) -> datetime | None:
    """When the last outage of these monitors ended."""
    ended: datetime | None = session.scalar(
        select(func.max(IncidentRow.ended_at)).where(
            IncidentRow.monitor_id.in_(ids),
            IncidentRow.by_hand.is_(False),
            IncidentRow.severity == IncidentSeverity.DOWN,
        )
    )
    return None if ended is None else min(ended, now)


def update_family(
    batch: ResultBatch, monitor: MonitorInBatch, previous: State, at: datetime
) -> None:
    """Apply a monitor's new state to its parents and children. ``previous``: its state before.
    ``at``: the start of the check that led to the new one.
    """
    state, columns = monitor.state, monitor.columns
    if state.failing_since is None:
        columns["parents_asked_at"] = None
    elif monitor.row.id in batch.family.above:
        if previous.failing_since is None or columns["parents_asked_at"] is None:
            asked = [parent.row.id for parent in _watched(batch, monitor)]
            columns["parents_asked_at"] = ask_places(batch.session, asked, batch.now)
        if not monitor.assigned.is_assigned:
            again = batch.now + confirm_delay()
            _judge_heartbeats_again(batch.session, [monitor.row.id], again)
    if state.behind != previous.behind:
        _note_span(batch, monitor, previous, at)
    if batch.windows.covers(monitor.row, batch.now):
        return  # no child is behind a monitor in maintenance
    if is_failing(state):
        if not is_failing(previous):
            _hide(batch, monitor)
    else:
        if is_failing(previous) and monitor.row.id in batch.family.parents:
            check_children(batch.session, monitor.row.id, batch.now)
        _judge_waiting(batch, monitor, at)


def _hide(batch: ResultBatch, parent: MonitorInBatch) -> None:
    """Put the children that wait for a check of this parent behind it, because it fails."""
    root = parent.state.behind or parent.row.id
    for id in sorted(batch.family.waiting.get(parent.row.id, ())):
        child = batch.monitors.get(id)
        if child is None or child.row.paused or child.state.stage is not Stage.CONFIRMING:
            continue
        if child.state.verdict is not Verdict.DOWN:
            continue  # its newest check could not tell whether it fails
        previous, transition = child.state, behind_parent(child.state, root)
        child.set_state(transition.state)
        child.columns |= {"unconfirmed_at": None, "parents_asked_at": None}
        set_cause(batch, child)
        if transition.effect is Effect.CANCEL:
            batch.failing.drop(id)
        _note_span(batch, child, previous, batch.now)
        changes.note(batch.session, id)


def _judge_waiting(batch: ResultBatch, parent: MonitorInBatch, at: datetime) -> None:
    """Check the children at once that wait only for this check of the parent, because their own
    failure is confirmed.
    """
    children = (batch.monitors.get(id) for id in batch.family.waiting.get(parent.row.id, ()))
    ids = [
        child.row.id
        for child in children
        if child is not None
        and (asked_at := child.columns["parents_asked_at"]) is not None
        and at >= asked_at
        and (child.state.failures > child.row.confirmations or not child.assigned.is_assigned)
    ]
    check_again(batch.session, ids, batch.now)


def set_cause(batch: ResultBatch, monitor: MonitorInBatch) -> bool:
    """Set the cause of a monitor that is behind another; returns whether it is."""
    if monitor.state.behind is None:
        return False
    parent = batch.monitors.get(monitor.state.behind)
    if parent is not None:
        cause = _(BEHIND, parent=parent.row.name)
        monitor.columns |= {"cause_code": Cause.UNREACHABLE, "cause": cause}
    return True


def _note_span(batch: ResultBatch, monitor: MonitorInBatch, previous: State, at: datetime) -> None:
    """Store the time at which a monitor begins or ceases to be behind a parent."""
    session, id, state = batch.session, monitor.row.id, monitor.state
    since = previous.failing_since or state.failing_since or at
    if previous.behind is not None:
        end_span(session, id, since)
    if state.behind is not None:
        session.add(UnreachableRow(monitor_id=id, parent_id=state.behind, started_at=since))
        session.flush()
    batch.sum_again.append((id, since))


def end_span(session: AnySession, monitor_id: int, at: datetime) -> None:
    """End the stored time in which a monitor is unreachable."""
    row = UnreachableRow
    is_open = row.monitor_id == monitor_id, row.ended_at.is_(None)
    for span in session.scalars(select(row).where(*is_open)):
        span.ended_at = max(at, span.started_at)
    session.flush()


def detach(session: AnySession, state: MonitorStateRow, now: datetime) -> None:
    """End the unreachable time of a monitor without a check: a person has changed it or its parent,
    or its places are silent. Until its next check, it shows the cause of its own newest failure.
    """
    if state.behind_id is not None:
        state.behind_id = None
        end_span(session, state.monitor_id, now)
        failure = session.execute(_NEWEST_FAILURE, {"id": state.monitor_id}).one_or_none()
        state.cause_code, state.cause = failure or (None, None)


# --- The monitors behind a parent


def check_children(session: AnySession, parent_id: int, now: datetime) -> None:
    """Check the monitors behind a parent at once, because it does not fail any more. They stay
    unreachable until then.
    """
    row = UnreachableRow
    is_behind = row.parent_id == parent_id, row.ended_at.is_(None)
    check_again(session, session.scalars(select(row.monitor_id).where(*is_behind)).all(), now)


def check_again(session: AnySession, ids: Collection[int], now: datetime) -> None:
    """Ask for checks of these monitors now; those that are heartbeats are judged again."""
    if ids:
        ask_places(session, ids, now)
        _judge_heartbeats_again(session, ids, now)


def ask_places(session: AnySession, ids: Collection[int], now: datetime) -> datetime:
    """Ask all places of these monitors for a check; returns the stored time of the request."""
    asked_at = from_ms(to_ms(now))
    session.execute(
        updating(AssignmentRow).where(AssignmentRow.monitor_id.in_(ids)).values(asked_at=asked_at)
    )
    for id in ids:
        changes.note(session, id)
    return asked_at


def _judge_heartbeats_again(session: AnySession, ids: Iterable[int], at: datetime) -> None:
    """Record the state of these heartbeats again at ``at``, as a check of other monitors would."""
    row = HeartbeatStateRow
    of_these = row.monitor_id.in_(list(ids))
    if rows_changed(session, updating(row).where(of_these).values(due_at=at)):
        wakeups.note(session, liveness.DEADLINES)


def forget_parent(session: AnySession, parent_id: int, now: datetime) -> None:
    """Before a monitor is deleted: check its children, and put none behind it any more."""
    check_children(session, parent_id, now)
    behind = select(MonitorStateRow).where(MonitorStateRow.behind_id == parent_id)
    for row in session.scalars(behind):
        detach(session, row, now)


# --- The outages of parents, for late results


def outages_above(
    session: AnySession, above: Mapping[int, Collection[int]], since: datetime
) -> dict[int, list[tuple[int, TimeSpan]]]:
    """The outages of the parents of each monitor (``above``) that lasted at ``since`` or later,
    each with the id of the parent.
    """
    parent_ids = {parent for parents in above.values() for parent in parents}
    if not parent_ids:
        return {}
    row = IncidentRow
    rows = session.execute(
        select(row.monitor_id, rollups.DOWN_SINCE, row.ended_at)
        .where(
            row.monitor_id.in_(parent_ids),
            row.by_hand.is_(False),
            row.severity == IncidentSeverity.DOWN,
            or_(row.ended_at.is_(None), row.ended_at > since),
        )
        .order_by(row.started_at)
    ).all()
    return {
        id: [
            (parent, (started_at, ended_at or FAR_FUTURE))
            for parent, started_at, ended_at in rows
            if parent in parents
        ]
        for id, parents in above.items()
    }
