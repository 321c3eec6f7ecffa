"""Automatic posts on status pages (decision 12). Needs an application context.

``write_due`` is safe to call in several processes in parallel: each page or post is locked and
judged again in a separate transaction, so nothing is posted twice. A page that fails stops no
other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, or_, select

from app.alerts.subscribers import announce, names_on_page
from app.db import AnySession, db, faults, writing
from app.db.statements import locked
from app.db.tables import (
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    PostMonitorRow,
    PostRow,
    PostUpdateRow,
    StatusPageMonitorRow,
    StatusPageRow,
)
from app.db.windows import MaintenanceTimes
from app.i18n import N_, _, speaking
from app.paths import translations_of
from app.records import Cause, Ending, IncidentSeverity, PostState
from app.rules.causes import draft

log = logging.getLogger(__name__)

SAME_POST_WITHIN = timedelta(minutes=1)  # incidents that began within it share one post

# The states of open posts about incidents, not about maintenance
_OPEN = (PostState.INVESTIGATING, PostState.IDENTIFIED, PostState.MONITORING)

RESOLVED = N_("The problem is resolved.")
NO_LONGER_SEEN = N_("The problem is no longer seen.")
BEGUN = N_("The maintenance has begun.")
COMPLETED = N_("The maintenance is complete.")


def write_due(now: datetime) -> int:
    """Write the posts and updates that are due on all pages; returns how many."""
    work: Sequence[tuple[str, Callable[[AnySession, int, datetime], bool], Sequence[int]]] = (
        ("resolve the automatic post", _resolve, _automatic_posts()),
        ("post on the status page", _post, _pages_with_incidents()),
        ("advance the scheduled post", _advance, _due_posts(now)),
    )
    return sum(_isolated(f"{what} {id}", do, id, now) for what, do, ids in work for id in ids)


def _isolated(
    what: str, do: Callable[[AnySession, int, datetime], bool], id: int, now: datetime
) -> bool:
    is_written = False
    with faults.isolated(log, f"Could not {what}."), writing() as session:
        is_written = do(session, id, now)
    return is_written


# --- Posts about incidents -----------------------------------------------------------------------


def _pages_with_incidents() -> Sequence[int]:
    """The pages with automatic posts that have an open incident."""
    member = StatusPageMonitorRow
    trouble = (
        exists()
        .where(member.status_page_id == StatusPageRow.id)
        .where(_concerns(member.monitor_id), IncidentRow.ended_at.is_(None))
    )
    query = select(StatusPageRow.id).where(StatusPageRow.auto_post_after.is_not(None), trouble)
    return db.session.scalars(query).all()


def _concerns(monitor_id: Any) -> ColumnElement[bool]:
    """The condition that an incident is of this monitor, or of the parent that it is behind."""
    behind = exists().where(
        MonitorStateRow.monitor_id == monitor_id,
        MonitorStateRow.behind_id == IncidentRow.monitor_id,
        IncidentRow.severity == IncidentSeverity.DOWN,
    )
    return or_(IncidentRow.monitor_id == monitor_id, behind)


def _post(session: AnySession, page_id: int, now: datetime) -> bool:
    """Post about incidents that have been open on a page for long enough."""
    page = session.scalar(locked(StatusPageRow).where(StatusPageRow.id == page_id))
    if page is None or page.auto_post_after is None:
        return False
    unposted = _unposted(session, page_id, now)
    due = now - timedelta(minutes=page.auto_post_after)
    first = next((incident for incident, _monitor in unposted if incident.started_at <= due), None)
    if first is None:
        return False
    latest = first.started_at + SAME_POST_WITHIN
    _write(session, page_id, [row for row in unposted if row[0].started_at <= latest], now)
    return True


def _unposted(
    session: AnySession, page_id: int, now: datetime
) -> list[tuple[IncidentRow, MonitorRow]]:
    """The open incidents of a page without a post about them, the oldest first."""
    query = (
        select(IncidentRow, MonitorRow)
        .join(MonitorRow, _concerns(MonitorRow.id))
        .join(StatusPageMonitorRow, StatusPageMonitorRow.monitor_id == MonitorRow.id)
        .where(
            StatusPageMonitorRow.status_page_id == page_id,
            IncidentRow.ended_at.is_(None),
            IncidentRow.classification.is_(None),
            ~exists().where(PostRow.status_page_id == page_id, _is_about(now)),
        )
        .order_by(IncidentRow.started_at, IncidentRow.id, MonitorRow.id)
    )
    rows = session.execute(query).all()
    windows = MaintenanceTimes(session, now) if rows else None
    return [
        (incident, monitor)
        for incident, monitor in rows
        if windows and not any(windows.covers(monitor, at) for at in (now, incident.started_at))
    ]


def _is_about(now: datetime) -> ColumnElement[bool]:
    """The condition that a post is about an incident. It names the incident; or it is automatic,
    was written after the incident began and has its monitor; or a person wrote it about the
    monitor, and it is open. An automatic post from the future that is not open does not count: it
    was written before the clock was set back.
    """
    has_monitor = (
        exists()
        .where(PostMonitorRow.post_id == PostRow.id)
        .where(_concerns(PostMonitorRow.monitor_id))
        .correlate(
            PostRow, IncidentRow
        )  # otherwise the subquery would select from one of them again
    )
    return or_(
        PostRow.incident_id == IncidentRow.id,
        and_(
            PostRow.automatic,
            PostRow.created_at >= IncidentRow.started_at,
            or_(PostRow.created_at <= now, PostRow.state.in_(_OPEN)),
            has_monitor,
        ),
        and_(~PostRow.automatic, PostRow.state.in_(_OPEN), has_monitor),
    )


def _write(
    session: AnySession,
    page_id: int,
    incidents: Sequence[tuple[IncidentRow, MonitorRow]],
    now: datetime,
) -> None:
    posted = [incident for incident, _monitor in incidents]
    ids = list(dict.fromkeys(monitor.id for _incident, monitor in incidents))
    codes = {
        incident.cause_code if incident.monitor_id == monitor.id else Cause.UNREACHABLE
        for incident, monitor in incidents
    }
    names = names_on_page(session, page_id, ids)
    with _speaking(session, page_id):
        code = codes.pop() if len(codes) == 1 else None
        zone = session.get_one(StatusPageRow, page_id).zone
        text = draft(names, code, posted[0].started_at, zone=zone)
    post = PostRow(
        status_page_id=page_id,
        title=text["title"],
        state=text["state"],
        incident_id=posted[0].id,
        automatic=True,
        created_at=now,
        updated_at=now,
    )
    session.add(post)
    session.flush()
    session.add_all(PostMonitorRow(post_id=post.id, monitor_id=id) for id in ids)
    _add_update(session, post, PostState(text["state"]), text["body"], now)


def _automatic_posts() -> Sequence[int]:
    """The automatic posts in the state in which they were written."""
    query = select(PostRow.id).where(PostRow.automatic, PostRow.state == PostState.INVESTIGATING)
    return db.session.scalars(query.order_by(PostRow.id)).all()


def _resolve(session: AnySession, post_id: int, now: datetime) -> bool:
    """Resolve an automatic post if none of its incidents is open any more. A post that a person has
    edited is left to people.
    """
    post = _locked(session, post_id)
    if post is None or post.state != PostState.INVESTIGATING or _is_edited(session, post):
        return False
    has_open_incident = exists().where(
        PostRow.id == post.id,
        IncidentRow.ended_at.is_(None),
        IncidentRow.classification.is_(None),
        _is_about(now),
    )
    if session.scalar(select(has_open_incident)):
        return False
    _add_update(session, post, PostState.RESOLVED, _resolution(session, post, now), now)
    return True


def _resolution(session: AnySession, post: PostRow, now: datetime) -> str:
    """The text of the last update: the problem is resolved, or no longer seen if no check saw the
    end of an incident.
    """
    unseen = exists().where(
        PostRow.id == post.id,
        IncidentRow.ending.in_((Ending.SILENCE, Ending.CHANGED)),
        IncidentRow.ended_at >= PostRow.created_at,
        _is_about(now),
    )
    with _speaking(session, post.status_page_id):
        return _(NO_LONGER_SEEN if session.scalar(select(unseen)) else RESOLVED)


def _is_edited(session: AnySession, post: PostRow) -> bool:
    """Whether somebody has added an update, or corrected the post or an update."""
    row = PostUpdateRow
    corrected = session.scalars(select(row.corrected_at).where(row.post_id == post.id)).all()
    return post.corrected_at is not None or len(corrected) > 1 or any(corrected)


# --- Scheduled posts -----------------------------------------------------------------------------


def _due_posts(now: datetime) -> Sequence[int]:
    query = select(PostRow.id).where(
        or_(
            and_(PostRow.state == PostState.SCHEDULED, PostRow.starts_at <= now),
            and_(PostRow.state == PostState.IN_PROGRESS, PostRow.ends_at <= now),
        )
    )
    return db.session.scalars(query.order_by(PostRow.id)).all()


def _advance(session: AnySession, post_id: int, now: datetime) -> bool:
    """Begin or complete a scheduled post whose time has come."""
    post = _locked(session, post_id)
    if post is None:
        return False
    has_ended = post.ends_at is not None and post.ends_at <= now
    if post.state == PostState.SCHEDULED and post.starts_at is not None and post.starts_at <= now:
        state = PostState.COMPLETED if has_ended else PostState.IN_PROGRESS
    elif (
        post.state == PostState.IN_PROGRESS and has_ended and not _is_prolonged(session, post, now)
    ):
        state = PostState.COMPLETED
    else:
        return False
    with _speaking(session, post.status_page_id):
        body = _(COMPLETED if state is PostState.COMPLETED else BEGUN)
    _add_update(session, post, state, body, now)
    return True


def _is_prolonged(session: AnySession, post: PostRow, now: datetime) -> bool:
    """Whether a person wrote an update after the planned end. Such a post is left to people.
    Updates from the future do not count: they were written before the clock was set back.
    """
    row = PostUpdateRow
    later = exists().where(
        row.post_id == post.id, row.created_at >= post.ends_at, row.created_at <= now
    )
    return bool(session.scalar(select(later)))


# --- Shared by both ------------------------------------------------------------------------------


def _speaking(session: AnySession, page_id: int) -> AbstractContextManager[None]:
    """Translate sentences to the language of this page in the block."""
    return speaking(translations_of(session.get_one(StatusPageRow, page_id).language))


def _locked(session: AnySession, post_id: int) -> PostRow | None:
    return session.scalar(locked(PostRow).where(PostRow.id == post_id))


def _add_update(
    session: AnySession, post: PostRow, state: PostState, body: str, now: datetime
) -> None:
    row = PostUpdateRow(post_id=post.id, state=state.value, body=body, created_at=now)
    post.state, post.updated_at = state.value, now
    session.add(row)
    announce(session, row, now)
