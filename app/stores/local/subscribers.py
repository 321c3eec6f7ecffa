"""The subscribers of status pages, and their sign-ups, in the local database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from app.access import audit
from app.access.counters import Counters, Limit, counted_address
from app.access.settings import can_mail
from app.access.tokens import Purpose, Subscription, read_subscription, target_digest
from app.alerts import subscribers
from app.config import Settings
from app.db import DbSession, db, writing
from app.db.statements import inserting, locked, pieces
from app.db.tables import StatusPageRow, SubscriberRow
from app.db.types import readable, record_of
from app.errors import Invalid, NotFound, existing
from app.i18n import N_, _
from app.net.policy import Policy
from app.records import (
    SUBSCRIBER_CHANNELS,
    Action,
    AuditedObject,
    Channel,
    ObjectKind,
    StatusPage,
    Subscriber,
    SubscriberEvent,
    SubscriberQuery,
    Visibility,
)
from app.rules.channel_values import check_value
from app.rules.url import parse_url
from app.stores import base
from app.stores.local.part import Rows, fits, fitting
from app.stores.local.status_pages import locked_page

IDS_PER_STATEMENT = 1000


class LocalSubscribers(Rows[Subscriber, SubscriberQuery], base.Subscribers):
    order = (SubscriberRow.id.desc(),)
    only = (SubscriberRow.confirmed_at.is_not(None),)

    def matching(self, query: SubscriberQuery) -> Select[Any]:
        of_page = SubscriberRow.status_page_id == fitting(query.status_page_id)
        return super().matching(query).where(of_page)

    def record(self, row: SubscriberRow) -> Subscriber:
        return record_of(Subscriber, row, target=readable(row.value) or "")

    def clear(self, page_id: int) -> int:
        of_page = select(SubscriberRow.id).where(SubscriberRow.status_page_id == page_id)
        with writing() as session:
            page = locked_page(session, page_id)
            ids = session.scalars(of_page).all()
            for part in pieces(ids, IDS_PER_STATEMENT):
                subscribers.delete_subscribers(session, part)
            cleared = AuditedObject(ObjectKind.SUBSCRIBERS, page_id, page.name)
            audit.note(session, Action.DELETED, cleared, {"subscribers": (len(ids), 0)})
            return len(ids)


SIGN_UPS, SIGN_UP_SECONDS = 10, 3600  # from one client address
QUESTIONS, DAY = 5, 24 * 3600  # to one target, from all pages
NO_TARGET = {Channel.EMAIL: N_("Enter an email address."), Channel.WEBHOOK: N_("Enter a URL.")}
NOT_PUBLIC = N_("This address is not public. Enter a URL that the internet can reach.")
TOO_MANY = N_("Too many sign-ups. Wait and try again.")


class Subscribing:
    """Subscribe to a status page, confirm a subscription, and end it. Nothing that a stranger can
    see or measure shows whether somebody subscribed before: a new target gets a question, a
    confirmed target a reminder, and the answer of the page is the same. ``clock`` returns the
    present time in UTC.
    """

    def __init__(
        self, settings: Settings, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.counters = Counters(clock)

    def subscribe(self, id: int, channel: str, target: str, *, address: str | None) -> None:
        """Raises NotFound, Invalid (``channel``, ``target``) and Throttled."""
        page = db.session.get(StatusPageRow, id) if fits(id) else None
        if page is None or page.visibility == Visibility.CLOSED:
            raise NotFound("status page", id)
        target = target.strip()
        self._check(channel, target)
        name = f"subscribe:address:{counted_address(address)}"
        self.counters.attempt(TOO_MANY, Limit(name, SIGN_UP_SECONDS, SIGN_UPS))
        with writing() as session:
            self._sign_up(session, id, channel, target)

    def confirm(self, token: str) -> StatusPage:
        """Confirm a subscription; a second time is no error. Raises NotFound."""
        subscription = self._subscription_of(Purpose.CONFIRM, token)
        with writing() as session:
            query = locked(SubscriberRow).where(SubscriberRow.id == subscription.subscriber_id)
            row = session.scalar(query)
            page = session.get(StatusPageRow, subscription.page_id)
            if row is None or page is None or page.visibility == Visibility.CLOSED:
                raise NotFound(N_("subscription"), subscription.subscriber_id)
            row.confirmed_at = row.confirmed_at or self.clock()
            return _page(page)

    def unsubscribe(self, token: str) -> StatusPage:
        """End a subscription, even if the page has been closed. Raises NotFound."""
        subscription = self._subscription_of(Purpose.UNSUBSCRIBE, token)
        with writing() as session:
            row = session.get(StatusPageRow, subscription.page_id)
            page = existing(row, "status page", subscription.page_id)
            subscribers.delete_subscribers(session, [subscription.subscriber_id])
            return _page(page)

    def _subscription_of(self, purpose: Purpose, token: str) -> Subscription:
        return existing(read_subscription(purpose, token, self.clock()), N_("subscription"), 0)

    def _check(self, channel: str, target: str) -> None:
        if channel not in SUBSCRIBER_CHANNELS:
            raise Invalid({"channel": [_("Choose email or webhook.")]})
        if channel == Channel.EMAIL and not can_mail(self.settings):
            raise Invalid({"channel": [_("This page sends no email.")]})
        if not target:
            raise Invalid({"target": [_(NO_TARGET[Channel(channel)])]})
        fault = check_value(channel, target, telegram_token_set=False)
        if fault is not None:
            raise Invalid({"target": [fault]})
        if channel == Channel.WEBHOOK and self._is_closed(target):
            raise Invalid({"target": [_(NOT_PUBLIC)]})

    def _is_closed(self, url: str) -> bool:
        """Whether the URL has an address that webhooks may not reach. Names are not resolved:
        strangers would learn which inner names exist.
        """
        host = parse_url(url).ascii_host
        try:
            return not Policy.parse(self.settings.subscriber_networks).allows(host.strip("[]"))
        except ValueError:
            return False

    def _sign_up(self, session: DbSession, page_id: int, channel: str, target: str) -> None:
        """Ask the target to confirm, or remind it that it is subscribed, within daily limits."""
        now, mark = self.clock(), target_digest(channel, target)
        page = session.get_one(StatusPageRow, page_id)
        # Every sign-up counts before it locks the subscriber: in another order, two sign-ups at the
        # same moment would wait for each other.
        questions = self.counters.count(f"subscribe:target:{mark[:32]}", DAY)
        row = session.scalar(locked(SubscriberRow).where(*_identified(page_id, mark)))
        if row is not None:
            row.channel, row.value = channel, target  # repairs a stored target that is unreadable
        if row is not None and row.confirmed_at is not None:
            was_reminded = self.counters.count(f"subscribed:{page_id}:{mark[:32]}", DAY) > 1
            if channel == Channel.EMAIL and not was_reminded:
                subscribers.enqueue_answer(session, SubscriberEvent.KNOWN, row, page, now)
            return
        if questions > QUESTIONS:
            return
        if row is None:
            row = _insert(session, page_id, channel, target, mark, now)
        row.created_at = now  # the row is kept as long as the newest link is valid
        session.flush()
        subscribers.enqueue_answer(session, SubscriberEvent.CONFIRM, row, page, now)


def _insert(
    session: DbSession, page_id: int, channel: str, target: str, mark: str, now: datetime
) -> SubscriberRow:
    """A new subscriber, or the one that another process has just stored."""
    values = {
        "status_page_id": page_id,
        "channel": channel,
        "value": target,
        "digest": mark,
        "created_at": now,
    }
    session.execute(inserting(SubscriberRow).values(values).on_conflict_do_nothing())
    row = session.scalar(locked(SubscriberRow).where(*_identified(page_id, mark)))
    return existing(row, N_("subscription"), 0)


def _identified(page_id: int, mark: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return SubscriberRow.status_page_id == page_id, SubscriberRow.digest == mark


def _page(row: StatusPageRow) -> StatusPage:
    """The fields of a status page that the pages for its subscribers show."""
    names = ("id", "name", "slug", "description", "visibility", "domain", "zone", "theme")
    return StatusPage(**{name: getattr(row, name) for name in names})
