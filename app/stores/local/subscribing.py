"""Subscribing to a status page, confirming it and ending it. Needs an application context.

Nothing that a stranger sees or measures shows whether somebody subscribed before: a new target is
asked to confirm, a stored one is notified, and the answer is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Select, select

from app.access.counters import Counters, Limit, origin_of
from app.access.settings import can_mail
from app.access.subscriptions import Purpose, Subscription, digest, read_token
from app.alerts import subscribers
from app.config import Settings
from app.db import DbSession, db, writing
from app.db.statements import inserting
from app.db.tables import StatusPageRow, SubscriberRow
from app.errors import Invalid, NotFound
from app.i18n import N_, _
from app.records import SUBSCRIBER_CHANNELS, Channel, StatusPage, Visibility
from app.rules.channel_values import check_value
from app.stores.local.search import fits

SIGN_UPS, SIGN_UP_SECONDS = 10, 3600  # from one client address
QUESTIONS, DAY = 5, 24 * 3600  # to one target, whatever the page
NO_MAIL = N_("This page sends no email.")
NO_CHANNEL = N_("Choose email or webhook.")
NO_TARGET = {Channel.EMAIL: N_("Enter an email address."), Channel.WEBHOOK: N_("Enter a URL.")}
TOO_MANY = N_("Too many sign-ups. Wait and try again.")


class Subscribing:
    """``clock`` returns the present moment in UTC; tests pass their own."""

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
        name = f"subscribe:address:{origin_of(address)}"
        self.counters.attempt(TOO_MANY, Limit(name, SIGN_UP_SECONDS, SIGN_UPS))
        with writing() as session:
            self._sign_up(session, id, channel, target)

    def confirm(self, token: str) -> StatusPage:
        """Confirm a subscription; a second time is no error. Raises NotFound."""
        subscription = self._read(Purpose.CONFIRM, token)
        with writing() as session:
            row = session.scalar(_locked(SubscriberRow.id == subscription.subscriber_id))
            page = session.get(StatusPageRow, subscription.page_id)
            if row is None or page is None or page.visibility == Visibility.CLOSED:
                raise NotFound(N_("subscription"), subscription.subscriber_id)
            row.confirmed_at = row.confirmed_at or self.clock()
            return _page(page)

    def unsubscribe(self, token: str) -> StatusPage:
        """End a subscription, also that to a page which was closed since. Raises NotFound."""
        subscription = self._read(Purpose.UNSUBSCRIBE, token)
        with writing() as session:
            page = session.get(StatusPageRow, subscription.page_id)
            if page is None:
                raise NotFound("status page", subscription.page_id)
            subscribers.end(session, [subscription.subscriber_id])
            return _page(page)

    def _read(self, purpose: Purpose, token: str) -> Subscription:
        subscription = read_token(purpose, token, self.clock())
        if subscription is None:
            raise NotFound(N_("subscription"), 0)
        return subscription

    def _check(self, channel: str, target: str) -> None:
        if channel not in SUBSCRIBER_CHANNELS:
            raise Invalid({"channel": [_(NO_CHANNEL)]})
        if channel == Channel.EMAIL and not can_mail(self.settings):
            raise Invalid({"channel": [_(NO_MAIL)]})
        if not target:
            raise Invalid({"target": [_(NO_TARGET[Channel(channel)])]})
        fault = check_value(channel, target, telegram_token_set=False)
        if fault is not None:
            raise Invalid({"target": [fault]})

    def _sign_up(self, session: DbSession, page_id: int, channel: str, target: str) -> None:
        """Ask the target to confirm, or remind it that it is subscribed, within daily limits."""
        now, mark = self.clock(), digest(channel, target)
        page = session.get_one(StatusPageRow, page_id)
        # Before the subscriber is locked, by everybody: in another order, two sign-ups at the same
        # moment wait for each other.
        asked = self.counters.count(f"subscribe:target:{mark[:32]}", DAY)
        row = session.scalar(_locked(*_of(page_id, mark)))
        if row is not None:
            row.channel, row.value = channel, target  # as before, or it could not be read
        if row is not None and row.confirmed_at is not None:
            again = self.counters.count(f"subscribed:{page_id}:{mark[:32]}", DAY) > 1
            if channel == Channel.EMAIL and not again:
                subscribers.remind(session, row, page, now)
            return
        if asked > QUESTIONS:
            return
        if row is None:
            row = _insert(session, page_id, channel, target, mark, now)
        row.created_at = now  # it is kept as long as the newest link is valid
        session.flush()
        subscribers.ask(session, row, page, now)


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
    row = session.scalar(_locked(*_of(page_id, mark)))
    if row is None:
        raise NotFound(N_("subscription"), 0)
    return row


def _of(page_id: int, mark: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return SubscriberRow.status_page_id == page_id, SubscriberRow.digest == mark


def _locked(*where: ColumnElement[bool]) -> Select[SubscriberRow]:
    query = select(SubscriberRow).where(*where).with_for_update()
    return query.execution_options(populate_existing=True)


def _page(row: StatusPageRow) -> StatusPage:
    """The fields of a status page that the pages for its subscribers show."""
    return StatusPage(
        id=row.id,
        name=row.name,
        slug=row.slug,
        description=row.description,
        visibility=row.visibility,
        domain=row.domain,
        zone=row.zone,
        theme=row.theme,
    )
