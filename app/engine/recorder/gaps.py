"""Gaps: times without checks, because the service was stopped, an older backup was restored, or
the places that see a failure were silent. An incident may have been over meanwhile, so its length
is only an upper limit.

A gap is noted at the first check after it; one of silent places as soon as they count as
silent. Paused monitors have none: pausing ends the incident.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import or_, select

from app.db import AnySession, journal
from app.db.tables import IncidentRow
from app.engine.recorder.rows import covers_s, open_incident
from app.records import Verdict
from app.rules.time import iso

INTERVALS = 3
SHORTEST = timedelta(minutes=10)
KEPT = 20  # of one incident: a machine that sleeps each night must not fill its row

Gap = tuple[datetime, datetime]  # the last check before, and the first one after


def before(monitor: Any, last: datetime | None, at: datetime) -> Gap | None:
    """The gap between the monitor's last check and the one at ``at``, if there is one."""
    if last is None or at - last <= longest_regular(monitor):
        return None
    # If the interval was shortened since, the last result has the length for which it counts.
    covers = journal.covers_s(monitor.id, last) or 0
    was_longer = covers > covers_s(monitor)
    if was_longer and at - last <= INTERVALS * timedelta(seconds=covers):
        return None
    return last, at


def longest_regular(monitor: Any) -> timedelta:
    """The longest time between two checks that is no gap."""
    return max(INTERVALS * timedelta(seconds=monitor.interval), SHORTEST)


def silent_from(state: Any) -> datetime | None:
    """The last check of a monitor that is shown as unknown because all its places are silent.
    ``state``: a ``State``, or a row with its columns.
    """
    last: datetime | None = state.checked_at
    since: datetime | None = state.status_since
    if state.verdict != Verdict.UNKNOWN or last is None or since is None or since <= last:
        return None
    return last


def after_silence(
    session: AnySession, monitor: Any, last: datetime | None, since: datetime, at: datetime
) -> Gap | None:
    """The silence that began at ``since``, when the check at ``at`` ends it. Results that came late
    may have filled some of it: what is not known begins at the ``last`` check before.
    """
    incident = open_incident(session, monitor.id)
    if incident is not None:
        drop(incident, since)
    if last is None or at - last <= _regular(monitor):
        return None
    return last, at


def fill(session: AnySession, monitor: Any, moments: Sequence[datetime]) -> None:
    """Take the time that checks at these moments watched out of the gaps of a monitor's incidents,
    because their results came late.
    """
    first, last = min(moments), max(moments)
    query = select(IncidentRow).where(
        IncidentRow.monitor_id == monitor.id,
        IncidentRow.unwatched.is_not(None),
        IncidentRow.started_at <= last,
        or_(IncidentRow.ended_at.is_(None), IncidentRow.ended_at >= first),
    )
    checks = sorted(moments)
    for incident in session.scalars(query).all():
        left = [
            {"from": iso(since), "to": iso(to)}
            for gap in incident.unwatched or []
            for since, to in _left(gap, checks)
            if to - since > _regular(monitor)
        ]
        incident.unwatched = left or None


def _left(gap: Mapping[str, str], checks: Sequence[datetime]) -> Iterator[Gap]:
    """The pieces of a gap between the checks in it."""
    start, end = (datetime.fromisoformat(gap[name]) for name in ("from", "to"))
    return pairwise([start, *(at for at in checks if start < at < end), end])


def _regular(monitor: Any) -> timedelta:
    """The longest time between two checks of one place where none is missing."""
    return timedelta(seconds=monitor.interval + monitor.timeout)


def note(session: AnySession, monitor_id: int, gap: Gap) -> None:
    """Write the gap into the open incident."""
    incident = open_incident(session, monitor_id)
    if incident is not None:
        add(incident, *gap)


def add(incident: IncidentRow, since: datetime, to: datetime) -> None:
    """Write the time from ``since`` to ``to`` into an incident. A gap that began then, and was
    noted before its end was known, becomes as long.
    """
    incident.unwatched = _with(incident, since, to)


def until(incident: Any, state: Any, to: datetime) -> Sequence[Mapping[str, str]]:
    """The gaps of an incident that is open until ``to``: if all places of its monitor are silent,
    the last one lasts until then. ``incident`` and ``state``: rows with the columns of theirs.
    """
    since = None if incident.by_hand else silent_from(state)
    if since is None or since >= to:
        return incident.unwatched or []
    return _with(incident, since, to)


def _with(incident: Any, since: datetime, to: datetime) -> list[Mapping[str, str]]:
    kept = [gap for gap in incident.unwatched or [] if gap["from"] != iso(since)]
    return [*kept, {"from": iso(since), "to": iso(to)}][-KEPT:]


def drop(incident: IncidentRow, since: datetime) -> None:
    """Drop the gap that began at ``since``, if there is one."""
    kept = [gap for gap in incident.unwatched or [] if gap["from"] != iso(since)]
    incident.unwatched = kept or None


def keep_those_within(incident: IncidentRow, ended: datetime) -> None:
    """Drop gaps after the end: a recovery may begin before a gap and be confirmed after it."""
    kept = [gap for gap in incident.unwatched or [] if gap["from"] < iso(ended)]
    incident.unwatched = kept or None
