"""Messages to the subscribers of status pages in the outbox, and the effect of an answer on a
subscription. Every function but ``delete_unconfirmed`` runs inside a transaction.

Each subscriber has a lane, also if an alert goes to the same address, so that no alert waits behind
a post.

The transaction that writes an update of a post leaves its ``announced_at`` null. The worker writes
the messages afterwards, in batches. One transaction writes a batch and the id of its last
subscriber (``announced_to``), so a crash loses no message and writes none twice. The next batch is
written once few messages are due (``MAX_DUE``, ``MAX_WEBHOOKS_DUE``), so that thousands of
subscribers delay no other message.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, exists, func, insert, or_, select

from app.access.tokens import CONFIRM_WITHIN, Purpose, subscription_token
from app.alerts.answers import Answer
from app.alerts.lanes import ClaimedDelivery
from app.alerts.outbox import columns
from app.db import AnySession, liveness, wakeups, writing
from app.db.statements import deleting, locked, updating
from app.db.tables import (
    DeliveryRow,
    MonitorRow,
    PostMonitorRow,
    PostRow,
    PostUpdateRow,
    StatusPageMonitorRow,
    StatusPageRow,
    SubscriberRow,
)
from app.db.types import Unreadable
from app.records import Channel, DeliveryStatus, SubscriberEvent, Visibility
from app.rules.time import iso

log = logging.getLogger(__name__)

BATCH = 50  # messages in one transaction, which holds SQLite's write lock meanwhile
MAX_DUE = 50  # mails that wait to be sent when the next batch is written
MAX_WEBHOOKS_DUE = 1_000  # with MAX_DUE, fifty hanging webhooks would delay all mails
_UPDATES = 20  # updates of posts that are read in one turn
_BY_WEBHOOK = DeliveryRow.channel == Channel.WEBHOOK
_WAITS = (DeliveryRow.subscriber_id.is_not(None), DeliveryRow.status == DeliveryStatus.PENDING)
_EXISTS = exists().where(SubscriberRow.id == DeliveryRow.subscriber_id)
# Built once, because each turn of the worker runs them.
_ORPHANS = select(DeliveryRow.id).where(*_WAITS, ~_EXISTS).limit(1_000)
_UNANNOUNCED = (
    select(PostUpdateRow.id)
    .where(PostUpdateRow.announced_at.is_(None))
    .order_by(PostUpdateRow.id)
    .limit(_UPDATES)
)


def page_facts(page: StatusPageRow) -> dict[str, Any]:
    """The facts of the page in a message."""
    return {
        "id": page.id, "name": page.name, "slug": page.slug, "domain": page.domain,
        "language": page.language,
    }  # fmt: skip


def message_columns(
    event: SubscriberEvent, subscriber: Any, page_id: int, facts: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """The columns of a row for one subscriber, who has ``id``, ``channel``, ``value`` and
    ``digest``.
    """
    token = subscription_token(Purpose.UNSUBSCRIBE, page_id, subscriber.id, subscriber.digest, now)
    facts = {"event": event.value, "at": iso(now), **facts, "unsubscribe": token}
    row = columns(event.value, subscriber.channel, subscriber.value, facts, now)
    return row | {"subscriber_id": subscriber.id, "lane": f"subscriber-{subscriber.id}"}


def enqueue_answer(
    session: AnySession,
    event: SubscriberEvent,
    subscriber: SubscriberRow,
    page: StatusPageRow,
    now: datetime,
) -> None:
    """Write the message to somebody who subscribes: a question (``CONFIRM``), or a note that they
    are subscribed already (``KNOWN``).
    """
    facts: dict[str, Any] = {"page": page_facts(page)}
    if event is SubscriberEvent.CONFIRM:
        token = subscription_token(Purpose.CONFIRM, page.id, subscriber.id, subscriber.digest, now)
        facts["token"] = token
    session.execute(insert(DeliveryRow), [message_columns(event, subscriber, page.id, facts, now)])
    wakeups.note(session, liveness.WORKER)


def apply_answer(
    session: AnySession, claim: ClaimedDelivery, answer: Answer, now: datetime
) -> None:
    """Apply the service's answer to a message for a subscriber. A webhook that has sent the token
    back is confirmed. A subscriber whose address no longer exists is deleted.
    """
    if claim.subscriber_id is None:
        return
    if answer.gone:
        delete_subscribers(session, [claim.subscriber_id])
    elif answer.ok and claim.asks_webhook:
        session.execute(
            updating(SubscriberRow)
            .where(SubscriberRow.id == claim.subscriber_id, SubscriberRow.confirmed_at.is_(None))
            .values(confirmed_at=now)
        )


def delete_subscribers(session: AnySession, ids: Collection[int]) -> None:
    """Delete subscribers with all messages to them."""
    session.execute(deleting(DeliveryRow).where(DeliveryRow.subscriber_id.in_(ids)))
    session.execute(deleting(SubscriberRow).where(SubscriberRow.id.in_(ids)))


def orphans(session: AnySession, _now: datetime) -> list[int]:
    """The ids of messages whose subscriber was deleted, alone or with the page."""
    return list(session.scalars(_ORPHANS))


def delete_messages(session: AnySession, ids: Collection[int], _now: datetime) -> None:
    session.execute(deleting(DeliveryRow).where(DeliveryRow.id.in_(ids)))


def delete_unconfirmed(now: datetime) -> int:
    """Delete subscribers whose link has expired without being confirmed; returns how many."""
    with writing() as session:
        expired = (
            SubscriberRow.confirmed_at.is_(None),
            SubscriberRow.created_at < now - CONFIRM_WITHIN,
        )
        ids = session.scalars(select(SubscriberRow.id).where(*expired).limit(1_000)).all()
        if ids:
            delete_subscribers(session, ids)
    return len(ids)


# --- Messages about a post ------------------------------------------------------------------------


def announce(session: AnySession, update_row: PostUpdateRow, now: datetime) -> None:
    """Let the worker notify the subscribers of an update. Call this in the transaction that writes
    the update. Without subscribers, the update counts as announced at once.
    """
    session.flush()
    has_subscriber = (
        exists()
        .where(PostRow.id == update_row.post_id)
        .where(SubscriberRow.status_page_id == PostRow.status_page_id)
        .where(SubscriberRow.confirmed_at.is_not(None))
    )
    update_row.announced_at = None if session.scalar(select(has_subscriber)) else now
    wakeups.note(session, liveness.WORKER)


def unannounced(session: AnySession, now: datetime) -> list[int]:
    """The ids of updates of which subscribers are still to be notified, the oldest first; none
    while enough messages wait to be sent.
    """
    updates = list(session.scalars(_UNANNOUNCED))
    are_enough_due = updates and (
        _are_many_due(session, now, ~_BY_WEBHOOK, MAX_DUE)
        or _are_many_due(session, now, _BY_WEBHOOK, MAX_WEBHOOKS_DUE)
    )
    return [] if are_enough_due else updates


def _are_many_due(
    session: AnySession, now: datetime, condition: ColumnElement[bool], limit: int
) -> bool:
    """Whether ``limit`` or more messages wait to be sent."""
    query = select(DeliveryRow.id).where(*_WAITS, DeliveryRow.next_attempt_at <= now, condition)
    count_query = select(func.count()).select_from(query.limit(limit).subquery())
    return session.execute(count_query).scalar_one() >= limit


def write_batch(session: AnySession, update_id: int, now: datetime) -> int:
    """Write the next messages about an update; returns how many. The lock of the update keeps two
    processes from writing a message twice.
    """
    row = session.scalar(
        locked(PostUpdateRow).where(
            PostUpdateRow.id == update_id, PostUpdateRow.announced_at.is_(None)
        )
    )
    if row is None:
        return 0
    post = session.get_one(PostRow, row.post_id)
    page = session.get_one(StatusPageRow, post.status_page_id)
    # Subscribers are strangers: they get no messages about a page that they cannot read.
    closed = page.visibility == Visibility.CLOSED
    batch = [] if closed else _next(session, row, page.id, now)
    rows = []
    if batch:
        facts = _facts(session, row, post, page)
        is_later = exists().where(PostUpdateRow.post_id == post.id, PostUpdateRow.id < row.id)
        later = session.scalar(select(is_later))
        event = SubscriberEvent.POST_UPDATED if later else SubscriberEvent.POST_PUBLISHED
        for subscriber in batch:
            if isinstance(subscriber.value, Unreadable):
                why = subscriber.value.why
                log.error(
                    "Subscriber %d is not notified of a post, because %s.", subscriber.id, why
                )
            else:
                rows.append(message_columns(event, subscriber, page.id, facts, now))
        row.announced_to = batch[-1].id
    if rows:
        session.execute(insert(DeliveryRow), rows)
    if len(batch) < BATCH:
        row.announced_at = now
    session.flush()
    return len(rows)


def _next(
    session: AnySession, update_row: PostUpdateRow, page_id: int, now: datetime
) -> Sequence[Any]:
    """The next subscribers, by id, who had confirmed when the update was written."""
    row = SubscriberRow
    # A time in the future was written before the clock was set back.
    confirmed = or_(row.confirmed_at <= update_row.created_at, row.confirmed_at > now)
    query = (
        select(row.id, row.channel, row.value, row.digest)
        .where(row.status_page_id == page_id, confirmed, row.id > update_row.announced_to)
        .order_by(row.id)
        .limit(BATCH)
    )
    return session.execute(query).all()


def _facts(
    session: AnySession, update_row: PostUpdateRow, post: PostRow, page: StatusPageRow
) -> dict[str, Any]:
    members = select(PostMonitorRow.monitor_id).where(PostMonitorRow.post_id == post.id)
    return {
        "page": page_facts(page),
        "post": {
            "id": post.id,
            "update_id": update_row.id,
            "title": post.title,
            "state": update_row.state,
            "body": update_row.body,
            "monitors": names_on_page(session, page.id, session.scalars(members).all()),
            "starts_at": post.starts_at and iso(post.starts_at),
            "ends_at": post.ends_at and iso(post.ends_at),
            "created_at": iso(update_row.created_at),
        },
    }


def names_on_page(session: AnySession, page_id: int, monitor_ids: Collection[int]) -> list[str]:
    """The names of these monitors on a page, in its order. Monitors that the page does not show are
    left out.
    """
    member = StatusPageMonitorRow
    query = (
        select(func.coalesce(member.name, MonitorRow.name))
        .select_from(member)
        .join(MonitorRow, MonitorRow.id == member.monitor_id)
        .where(member.status_page_id == page_id, member.monitor_id.in_(monitor_ids))
        .order_by(member.position)
    )
    return list(session.scalars(query))
