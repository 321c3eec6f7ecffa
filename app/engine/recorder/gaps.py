"""Gaps: times without checks, because the service was stopped, an older backup was restored, or
the places that see a failure were silent. An incident may have ended in its gap, so its length is
only an upper limit.

A gap is noted at the first check after it. A gap of silent places is noted as soon as they count as
silent. Paused monitors have no gaps, because pausing ends the incident.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import or_, select

from app.db import AnySession, journal
from app.db.tables import IncidentRow
from app.engine.recorder.rows import cover_limit_s, find_open_incident
from app.records import Verdict
from app.rules.time import iso

MISSED_INTERVALS = 3  # a longer time without checks is a gap, unless it is below MIN_GAP
MIN_GAP = timedelta(minutes=10)
MAX_GAPS = 20  # of one incident: a machine that sleeps each night must not fill its row

Gap = tuple[datetime, datetime]  # the last check before it, and the first check after it


def gap_before(monitor: Any, last: datetime | None, at: datetime) -> Gap | None:
    """The gap between the monitor's ``last`` check and the one at ``at``; None if there is none."""
    if last is None or at - last <= longest_without_gap(monitor):
        return None
    # The interval may have been longer then. The time that the last result covers shows it.
    covers = journal.newest_cover_s(monitor.id, last) or 0
    was_longer = covers > cover_limit_s(monitor)
    if was_longer and at - last <= MISSED_INTERVALS * timedelta(seconds=covers):
        return None
    return last, at


def longest_without_gap(monitor: Any) -> timedelta:
    """The longest time between two checks that is no gap."""
    return max(MISSED_INTERVALS * timedelta(seconds=monitor.interval), MIN_GAP)


def silent_from(state: Any) -> datetime | None:
    """The start of the last check of a monitor that is shown as unknown because all its places are
    silent; None for any other. ``state``: a ``State``, or a row with its columns.
    """
    last: datetime | None = state.checked_at
    since: datetime | None = state.status_since
    if state.verdict != Verdict.UNKNOWN or last is None or since is None or since <= last:
        return None
    return last


def gap_after_silence(
    session: AnySession, monitor: Any, last: datetime | None, since: datetime, at: datetime
) -> Gap | None:
    """The gap of the silence that began at ``since`` and ends with the check at ``at``; it replaces
    the gap that was noted when the silence began. It starts at the ``last`` check before ``at``,
    because late results may have filled a part of it.
    """
    if (incident := find_open_incident(session, monitor.id)) is not None:
        drop(incident, since)
    if last is None or at - last <= _one_check_apart(monitor):
        return None
    return last, at


def fill(session: AnySession, monitor: Any, moments: Sequence[datetime]) -> None:
    """Remove from the gaps of a monitor's incidents the time that late checks, at these moments,
    watched.
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
        unfilled = [
            {"from": iso(since), "to": iso(to)}
            for gap in incident.unwatched or []
            for since, to in _between(gap, checks)
            if to - since > _one_check_apart(monitor)
        ]
        incident.unwatched = unfilled or None


def _between(gap: Mapping[str, str], checks: Sequence[datetime]) -> Iterator[Gap]:
    """The pieces of a gap between the checks in it."""
    start, end = (datetime.fromisoformat(gap[name]) for name in ("from", "to"))
    return pairwise([start, *(at for at in checks if start < at < end), end])


def _one_check_apart(monitor: Any) -> timedelta:
    """The longest time between two checks of one place with no check missing between them."""
    return timedelta(seconds=monitor.interval + monitor.timeout)


def add_to_open(session: AnySession, monitor_id: int, gap: Gap) -> None:
    """Write the gap into the open incident."""
    if (incident := find_open_incident(session, monitor_id)) is not None:
        add(incident, *gap)


def add(incident: IncidentRow, since: datetime, to: datetime) -> None:
    """Write the gap from ``since`` to ``to`` into an incident, in place of one that began at the
    same time and was noted before its end was known.
    """
    incident.unwatched = _with(incident, since, to)


def gaps_until(incident: Any, state: Any, to: datetime) -> Sequence[Mapping[str, str]]:
    """The gaps of an incident that is open until ``to``. If all places of its monitor are silent,
    the last gap lasts until ``to``. ``incident`` and ``state``: rows with these columns.
    """
    since = None if incident.by_hand else silent_from(state)
    if since is None or since >= to:
        return incident.unwatched or []
    return _with(incident, since, to)


def _with(incident: Any, since: datetime, to: datetime) -> list[Mapping[str, str]]:
    gaps = [gap for gap in incident.unwatched or [] if gap["from"] != iso(since)]
    return [*gaps, {"from": iso(since), "to": iso(to)}][-MAX_GAPS:]


def drop(incident: IncidentRow, since: datetime) -> None:
    """Drop the gap that began at ``since``, if there is one."""
    gaps = [gap for gap in incident.unwatched or [] if gap["from"] != iso(since)]
    incident.unwatched = gaps or None


def drop_after(incident: IncidentRow, ended: datetime) -> None:
    """Drop the gaps after the end of an incident: a recovery may begin before a gap and be
    confirmed after it.
    """
    gaps = [gap for gap in incident.unwatched or [] if gap["from"] < iso(ended)]
    incident.unwatched = gaps or None
