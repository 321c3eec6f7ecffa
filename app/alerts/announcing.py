"""Telling the subscribers of a status page of a post.

The transaction that writes an update only leaves its ``announced_at`` null. The worker then writes
the messages in batches, each in one transaction with the place up to which they are written. So a
crash loses none and doubles none, and thousands of subscribers hold nobody up: the next batch is
written when most of the one before is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, exists, func, insert, or_, select

from app.alerts.subscribers import message, page_facts
from app.db import AnySession
from app.db.page_names import names_on_page
from app.db.tables import (
    DeliveryRow,
    PostMonitorRow,
    PostRow,
    PostUpdateRow,
    StatusPageRow,
    SubscriberRow,
)
from app.db.types import Unreadable
from app.records import Channel, DeliveryStatus, SubscriberEvent, Visibility
from app.rules.time import iso

log = logging.getLogger(__name__)

BATCH = 50  # messages in one transaction, which holds SQLite's write lock meanwhile
MOST_DUE = 50  # mails that wait to be sent when the next batch is written
MOST_WEBHOOKS_DUE = 1_000  # more: fifty that hang would hold all mails
_UPDATES = 20  # that are looked at in one turn
# Built once: asked in each turn of the worker.
_UNTOLD = (
    select(PostUpdateRow.id)
    .where(PostUpdateRow.announced_at.is_(None))
    .order_by(PostUpdateRow.id)
    .limit(_UPDATES)
)


def announce(session: AnySession, update_row: PostUpdateRow, now: datetime) -> None:
    """Let the subscribers be told of an update, in the transaction that writes it. Where nobody is
    subscribed, it counts as told at once.
    """
    session.flush()
    somebody = (
        exists()
        .where(PostRow.id == update_row.post_id)
        .where(SubscriberRow.status_page_id == PostRow.status_page_id)
        .where(SubscriberRow.confirmed_at.is_not(None))
    )
    update_row.announced_at = None if session.scalar(select(somebody)) else now


def waiting(session: AnySession, now: datetime) -> list[int]:
    """The updates that subscribers are to be told of now, the oldest first; none while enough
    messages wait to be sent.
    """
    by_webhook = DeliveryRow.channel == Channel.WEBHOOK
    found = list(session.scalars(_UNTOLD))
    waits = found and (
        _are_due(session, now, ~by_webhook, MOST_DUE)
        or _are_due(session, now, by_webhook, MOST_WEBHOOKS_DUE)
    )
    return [] if waits else found


def _are_due(session: AnySession, now: datetime, which: ColumnElement[bool], most: int) -> bool:
    """Whether so many messages wait to be sent."""
    query = select(DeliveryRow.id).where(
        DeliveryRow.status == DeliveryStatus.PENDING,
        DeliveryRow.next_attempt_at <= now,
        DeliveryRow.subscriber_id.is_not(None),
        which,
    )
    counted = select(func.count()).select_from(query.limit(most).subquery())
    return session.execute(counted).scalar_one() >= most


def write(session: AnySession, update_id: int, now: datetime) -> int:
    """Write the next messages about an update; how many. Two processes that do it at once write
    each message once: the second finds the update locked.
    """
    told = session.scalar(
        select(PostUpdateRow)
        .where(PostUpdateRow.id == update_id, PostUpdateRow.announced_at.is_(None))
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if told is None:
        return 0
    post = session.get_one(PostRow, told.post_id)
    page = session.get_one(StatusPageRow, post.status_page_id)
    # What strangers cannot read is not sent to them either.
    closed = page.visibility == Visibility.CLOSED
    found = [] if closed else session.execute(_next(told, page.id, now)).all()
    rows = _rows(session, found, told, post, page, now)
    if rows:
        session.execute(insert(DeliveryRow), rows)
    if found:
        told.announced_to = found[-1].id
    if len(found) < BATCH:
        told.announced_at = now
    session.flush()
    return len(rows)


def _next(told: PostUpdateRow, page_id: int, now: datetime) -> Select[int, str, Any, str]:
    """Who had confirmed when the update was written, and has no message about it yet."""
    row = SubscriberRow
    # After now: before the clock was set back.
    confirmed = or_(row.confirmed_at <= told.created_at, row.confirmed_at > now)
    return (
        select(row.id, row.channel, row.value, row.digest)
        .where(
            row.status_page_id == page_id,
            confirmed,
            row.id > told.announced_to,
        )
        .order_by(row.id)
        .limit(BATCH)
    )


def _rows(
    session: AnySession,
    found: Sequence[Row[Any]],
    told: PostUpdateRow,
    post: PostRow,
    page: StatusPageRow,
    now: datetime,
) -> list[dict[str, Any]]:
    facts = _facts(session, told, post, page) if found else {}
    event = (
        SubscriberEvent.POST_UPDATED if _is_later(session, told) else SubscriberEvent.POST_PUBLISHED
    )
    rows = []
    for subscriber in found:
        if isinstance(subscriber.value, Unreadable):
            why = subscriber.value.why
            log.error("Subscriber %d is not told of a post, because %s.", subscriber.id, why)
        else:
            rows.append(message(event, subscriber, page.id, facts, now))
    return rows


def _is_later(session: AnySession, told: PostUpdateRow) -> bool:
    earlier = exists().where(PostUpdateRow.post_id == told.post_id, PostUpdateRow.id < told.id)
    return bool(session.scalar(select(earlier)))


def _facts(
    session: AnySession, told: PostUpdateRow, post: PostRow, page: StatusPageRow
) -> dict[str, Any]:
    members = select(PostMonitorRow.monitor_id).where(PostMonitorRow.post_id == post.id)
    return {
        "page": page_facts(page),
        "post": {
            "id": post.id,
            "update_id": told.id,
            "title": post.title,
            "state": told.state,
            "body": told.body,
            "monitors": names_on_page(session, page.id, session.scalars(members).all()),
            "starts_at": post.starts_at and iso(post.starts_at),
            "ends_at": post.ends_at and iso(post.ends_at),
            "created_at": iso(told.created_at),
        },
    }
