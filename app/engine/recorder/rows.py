"""Lock, read and change the rows of a monitor's state and of its incidents, and convert state rows
to ``State`` and back.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from flask import current_app
from sqlalchemy import func, select

from app.config import Settings
from app.db import AnySession, changes
from app.db.statements import locked
from app.db.tables import IncidentRow, MonitorEvidenceRow, MonitorStateRow
from app.db.types import record_of
from app.errors import NotFound
from app.judge.replay import FAR_FUTURE
from app.judge.verdict import State
from app.records import MAX_COMMENT, Ending, IncidentSeverity, Verdict
from app.rules import comments
from app.stats.cover import cover_limit_ms

AUTHOR = "Wakeful"  # of the remarks that the recorder writes into comments


def lock_state(session: AnySession, monitor_id: int) -> MonitorStateRow:
    """Lock the state row until the transaction ends, and note a change of the monitor in the change
    feed: the owner of its shard must not go on with the state that it remembers. Raises NotFound.
    """
    row = session.scalar(locked(MonitorStateRow).where(MonitorStateRow.monitor_id == monitor_id))
    if row is None:
        raise NotFound("monitor", monitor_id)
    changes.note(session, monitor_id)
    return row


def find_open_incident(session: AnySession, monitor_id: int) -> IncidentRow | None:
    return session.scalar(
        select(IncidentRow).where(
            IncidentRow.monitor_id == monitor_id, IncidentRow.ended_at.is_(None)
        )
    )


def last_end(session: AnySession, monitor_id: int) -> datetime | None:
    """The newest end of the monitor's incidents, without those found late; None if none ended."""
    ended: datetime | None = session.scalar(
        select(func.max(IncidentRow.ended_at)).where(
            IncidentRow.monitor_id == monitor_id, IncidentRow.found_late.is_(False)
        )
    )
    return ended


def state_of(row: Any, incident: Any) -> State:
    """The state in a row with the columns of MonitorStateRow. ``incident`` has ``started_at``,
    ``down_since``, ``severity`` and ``by_hand`` of the open incident. Without an open incident, it
    is None, or all four are.
    """
    is_slow = incident is not None and incident.severity == IncidentSeverity.DEGRADED
    started = incident and (incident.down_since or incident.started_at)
    return record_of(
        State,
        row,
        verdict=Verdict(row.verdict) if row.verdict else None,
        down_since=None if is_slow else started,
        by_hand=bool(incident and incident.by_hand),
        slow_since=started if is_slow else None,
        behind=row.behind_id,
    )


def cover_limit_s(monitor: Any) -> int:
    """The most seconds for which a result of the monitor counts."""
    return cover_limit_ms(monitor.interval, monitor.timeout) // 1000


def rejudged_from(monitor: Any) -> datetime:
    """The time from which results may be judged again: since then, the monitor has had its present
    places and ``FIELDS_THAT_END_REJUDGING``. ``monitor`` has ``created_at`` and, of its state,
    ``judged_since``.
    """
    since: datetime = monitor.judged_since or monitor.created_at
    return since


def last_pause(monitor: Any) -> tuple[datetime, datetime] | None:
    """When a monitor's last pause began and ended (``FAR_FUTURE`` while it lasts); None if it was
    never paused. ``monitor`` has ``paused``, ``created_at`` and, of its state, ``paused_at`` and
    ``resumed_at``.
    """
    if not monitor.paused and monitor.resumed_at is None:
        return None
    # The start is not stored for a monitor that was created paused, or paused by an older version.
    return (
        monitor.paused_at or monitor.created_at,
        FAR_FUTURE if monitor.paused else monitor.resumed_at,
    )


def confirm_delay() -> timedelta:
    """The time before a check is repeated: CONFIRM_SECONDS."""
    settings: Settings = current_app.extensions["wakeful.settings"]
    return timedelta(seconds=settings.confirm_seconds)


_STORED = (
    "checked_at", "verdict", "status_since", "failing_since", "failures", "recovering_since",
)  # fmt: skip


def columns_of(state: State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in _STORED} | {"behind_id": state.behind}


def reset_confirmation(session: AnySession, row: MonitorStateRow) -> None:
    """Drop a failure or a recovery that is being confirmed. Verdict and votes stay."""
    row.failing_since = row.recovering_since = row.unconfirmed_at = None
    row.failures = 0
    evidence = session.get(MonitorEvidenceRow, row.monitor_id)
    if evidence is not None:
        evidence.failing = None


def in_whole_seconds(moment: datetime) -> datetime:
    """Round down to whole seconds: the API shows the times of incidents so."""
    return moment.replace(microsecond=0)


def remark(incident: IncidentRow, sentence: str) -> None:
    """Add a sentence by Wakeful to an incident's comment."""
    comment = (incident.comment or "")[: MAX_COMMENT - len(sentence) - 1]
    incident.comment = f"{comment}\n{sentence}" if comment else sentence


def remark_at(incident: IncidentRow, sentence: str, at: datetime) -> None:
    """Add a sentence by Wakeful to an incident's comment, with the time at which the timeline shows
    it.
    """
    entry = comments.add(None, sentence, AUTHOR, at)
    comment = (incident.comment or "")[: MAX_COMMENT - len(entry) - 2]
    incident.comment = comments.add(comment, sentence, AUTHOR, at)


def end_incident(incident: IncidentRow, at: datetime, now: datetime, ending: Ending) -> datetime:
    """End an incident at ``at``; returns its end in whole seconds.

    The forms require that an acknowledgement is not after the end. One that came after the first
    good check, or from a clock that was ahead, is moved to the end.
    """
    ended = incident.ended_at = max(in_whole_seconds(at), incident.started_at)
    incident.ending = ending
    if incident.acknowledged_at is not None:
        incident.acknowledged_at = min(incident.acknowledged_at, ended)
    incident.updated_at = in_whole_seconds(now)
    return ended
