"""The subscribers of status pages in the outbox: their messages, and what an answer means for a
subscription. Every function runs inside a transaction, but for ``forget_unconfirmed``.

A subscriber has a lane of their own, apart from those of alerts, also where an alert goes to the
same address: no alert ever waits behind a post.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, insert, select, update

from app.access.subscriptions import CONFIRM_WITHIN, Purpose, make_token
from app.alerts.claims import Claim
from app.db import AnySession, writing
from app.db.tables import DeliveryRow, StatusPageRow, SubscriberRow
from app.records import Channel, DeliveryStatus, SubscriberEvent
from app.rules.time import iso

# The checker deletes subscribers who have not confirmed. Loading the senders for that would take
# 6 MB of its memory.
if TYPE_CHECKING:
    from app.alerts.channels.answer import Answer

_WAITS = (DeliveryRow.subscriber_id.is_not(None), DeliveryRow.status == DeliveryStatus.PENDING)
_KNOWN = exists().where(SubscriberRow.id == DeliveryRow.subscriber_id)
_ORPHANS = select(DeliveryRow.id).where(*_WAITS, ~_KNOWN).limit(1_000)  # built once: asked often


def page_facts(page: StatusPageRow) -> dict[str, Any]:
    """What a message says of the page."""
    return {"id": page.id, "name": page.name, "slug": page.slug, "domain": page.domain}


def message(
    event: SubscriberEvent, subscriber: Any, page_id: int, facts: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """The columns of a row for one subscriber, who has ``id``, ``channel``, ``value`` and
    ``digest``.
    """
    token = make_token(Purpose.UNSUBSCRIBE, page_id, subscriber.id, subscriber.digest, now)
    return {
        "message_id": f"msg_{secrets.token_hex(16)}",
        "event": event.value,
        "subscriber_id": subscriber.id,
        "channel": subscriber.channel,
        "value": subscriber.value,
        "lane": f"subscriber-{subscriber.id}",
        "facts": {"event": event.value, "at": iso(now), **facts, "unsubscribe": token},
        "status": DeliveryStatus.PENDING,
        "attempts": [],
        "created_at": now,
        "next_attempt_at": now,
    }


def ask(session: AnySession, subscriber: SubscriberRow, page: StatusPageRow, now: datetime) -> None:
    """Ask whether it was they who subscribed."""
    token = make_token(Purpose.CONFIRM, page.id, subscriber.id, subscriber.digest, now)
    facts = {"page": page_facts(page), "token": token}
    row = message(SubscriberEvent.CONFIRM, subscriber, page.id, facts, now)
    session.execute(insert(DeliveryRow), [row])


def remind(
    session: AnySession, subscriber: SubscriberRow, page: StatusPageRow, now: datetime
) -> None:
    """Tell somebody who subscribes again that they need not."""
    facts = {"page": page_facts(page)}
    row = message(SubscriberEvent.KNOWN, subscriber, page.id, facts, now)
    session.execute(insert(DeliveryRow), [row])


def note(session: AnySession, claim: Claim, answer: Answer, now: datetime) -> None:
    """What the answer to a message means for the subscription: a webhook that has sent the token
    back is confirmed, and a target that no longer exists ends it.
    """
    if claim.subscriber_id is None:
        return
    if answer.gone:
        end(session, [claim.subscriber_id])
    elif answer.ok and claim.channel == Channel.WEBHOOK and _asks(claim):
        session.execute(
            update(SubscriberRow)
            .where(SubscriberRow.id == claim.subscriber_id, SubscriberRow.confirmed_at.is_(None))
            .values(confirmed_at=now)
            .execution_options(synchronize_session=False)
        )


def _asks(claim: Claim) -> bool:
    return claim.facts.get("event") == SubscriberEvent.CONFIRM


def end(session: AnySession, ids: Collection[int]) -> None:
    """Delete subscribers with all that was or is to be sent to them."""
    for row in (delete(DeliveryRow).where(DeliveryRow.subscriber_id.in_(ids)),
                delete(SubscriberRow).where(SubscriberRow.id.in_(ids))):  # fmt: skip
        session.execute(row.execution_options(synchronize_session=False))


def orphans(session: AnySession) -> list[int]:
    """Messages whose subscriber is gone with the page, or was cleared away."""
    return list(session.scalars(_ORPHANS))


def drop(session: AnySession, ids: Collection[int]) -> None:
    session.execute(
        delete(DeliveryRow)
        .where(DeliveryRow.id.in_(ids))
        .execution_options(synchronize_session=False)
    )


def forget_unconfirmed(now: datetime) -> int:
    """Delete those who have not confirmed while their link was valid; how many."""
    with writing() as session:
        late = (
            SubscriberRow.confirmed_at.is_(None),
            SubscriberRow.created_at < now - CONFIRM_WITHIN,
        )
        ids = session.scalars(select(SubscriberRow.id).where(*late).limit(1_000)).all()
        if ids:
            end(session, ids)
    return len(ids)
