"""Subscribing to a status page, confirming it and ending it (decision 12)."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest
from flask import Flask
from sqlalchemy import text

from app.access.tokens import Purpose, subscription_token
from app.alerts.subscribers import delete_unconfirmed
from app.db import db, writing
from app.db.tables import StatusPageRow
from app.errors import Invalid, NotFound, Throttled
from app.records import DeliveryQuery, SubscriberEvent
from app.stores.local import LocalStore
from app.stores.local.subscribers import QUESTIONS, SIGN_UPS, Subscribing
from tests.support.pages import Pages

T = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
WHO = "reader@example.com"


class Public:
    """The actions of strangers, on a clock of the test's own."""

    def __init__(self, app: Flask, *, mail: bool = True) -> None:
        self.app = app
        self.now = T
        settings = app.extensions["wakeful.settings"]
        settings = dataclasses.replace(settings, smtp_url="smtp://127.0.0.1:9" if mail else None)
        self.subscribing = Subscribing(settings, lambda: self.now)
        self.pages = Pages(app)
        self.clients = 0

    def subscribe(
        self, page: int, target: str = WHO, channel: str = "email", address: str | None = None
    ) -> None:
        self.clients += 1
        with self.app.app_context():
            self.subscribing.subscribe(
                page, channel, target, address=address or f"198.51.100.{self.clients}"
            )

    def confirm(self, token: str) -> str:
        with self.app.app_context():
            return self.subscribing.confirm(token).name

    def unsubscribe(self, token: str) -> str:
        with self.app.app_context():
            return self.subscribing.unsubscribe(token).name

    def mailed(self) -> list[str]:
        return [row.event for row in self.pages.messages()]

    def token(self, name: str = "token") -> str:
        """Out of the newest message."""
        return str(self.pages.messages()[-1].facts[name])

    def confirmed(self) -> list[bool]:
        return [row.confirmed_at is not None for row in self.pages.subscribers()]


@pytest.fixture
def public(core: Flask) -> Public:
    return Public(core)


def test_a_subscriber_is_confirmed_by_the_token_and_ends_it_with_another(public: Public) -> None:
    page = public.pages.page(now=T)
    public.subscribe(page)
    assert public.mailed() == [SubscriberEvent.CONFIRM]
    assert public.confirmed() == [False]
    assert public.confirm(public.token()) == "Example"
    assert public.confirm(public.token()) == "Example"  # a second press is no error
    assert public.confirmed() == [True]

    end = public.token("unsubscribe")
    assert public.unsubscribe(end) == "Example"
    assert public.pages.subscribers() == []
    assert public.pages.messages() == []  # nothing with the address is left
    assert public.unsubscribe(end) == "Example"  # nor is this one


def test_neither_target_nor_token_can_be_read_in_the_database(public: Public, core: Flask) -> None:
    page = public.pages.page(now=T)
    public.subscribe(page)
    token = public.token()
    with core.app_context():
        kept = [
            str(row)
            for table in ("subscribers", "deliveries", "counters")
            for row in db.session.execute(text(f"SELECT * FROM {table}"))
        ]
    assert len(kept) >= 4
    assert not [row for row in kept if WHO in row or token in row]


def test_a_token_fits_one_use_one_subscriber_and_48_hours(public: Public, core: Flask) -> None:
    page = public.pages.page(now=T)
    public.subscribe(page)
    confirm, end = public.token(), public.token("unsubscribe")
    [row] = public.pages.subscribers()
    with core.app_context():
        of_another = subscription_token(Purpose.CONFIRM, page, row.id + 1, row.digest, T)
    wrong = [end, confirm[:-1], f"{confirm}0", f"1{confirm}", "", "-", "1-1-1-1-1", "é" * 9]
    for token in (*wrong, of_another):
        with pytest.raises(NotFound):
            public.confirm(token)
    for token in (confirm, confirm[1:], ""):
        with pytest.raises(NotFound):
            public.unsubscribe(token)
    public.now = T + 48 * HOUR + timedelta(seconds=1)
    with pytest.raises(NotFound):
        public.confirm(confirm)
    public.now = T + 48 * HOUR
    assert public.confirm(confirm)
    public.now = T + 9_000 * HOUR
    assert public.unsubscribe(end)


def test_signing_up_again_says_the_same_and_sends_another_link(public: Public) -> None:
    page = public.pages.page(now=T)
    public.subscribe(page)
    public.now += HOUR
    public.subscribe(page, WHO.upper())  # the same person
    assert public.mailed() == [SubscriberEvent.CONFIRM] * 2
    assert len(public.pages.subscribers()) == 1
    assert public.confirm(public.token())


def test_a_subscriber_who_signs_up_again_is_mailed_once_a_day(public: Public) -> None:
    page = public.pages.page(now=T)
    public.subscribe(page)
    public.confirm(public.token())
    for _ in range(3):
        public.subscribe(page)
    assert public.mailed() == [SubscriberEvent.CONFIRM, SubscriberEvent.KNOWN]
    public.now += 24 * HOUR
    public.subscribe(page)
    assert public.mailed()[1:] == [SubscriberEvent.KNOWN] * 2
    assert public.confirmed() == [True]


def test_nobody_is_asked_more_often_than_a_few_times_a_day(public: Public) -> None:
    pages = [public.pages.page(now=T, slug=f"p{n}") for n in range(2)]
    for place in range(QUESTIONS + 3):
        public.subscribe(pages[place % 2])
    assert len(public.mailed()) == QUESTIONS
    public.now += 24 * HOUR
    public.subscribe(pages[0])
    assert len(public.mailed()) == QUESTIONS + 1


@pytest.mark.both_databases
def test_sign_ups_from_one_client_are_limited(public: Public) -> None:
    page = public.pages.page(now=T)
    for place in range(SIGN_UPS):
        public.subscribe(page, f"{place}@example.com", address="2001:db8::1")
    with pytest.raises(Throttled) as raised:
        public.subscribe(page, "one.more@example.com", address="2001:db8::2")  # the same /64
    assert 0 < raised.value.retry_after <= 3600
    public.subscribe(page, "other@example.com", address="2001:db8:0:1::1")
    public.now += HOUR
    public.subscribe(page, "one.more@example.com", address="2001:db8::2")
    assert len(public.mailed()) == SIGN_UPS + 2


@pytest.mark.parametrize(
    ("channel", "target", "field"),
    [
        ("email", "no address", "target"),
        ("email", "", "target"),
        ("email", "a@b.example\r\nBcc: c@d.example", "target"),
        ("webhook", "ftp://example.com/", "target"),
        ("webhook", "https://user:password@example.com/", "target"),
        ("webhook", "http://192.168.1.4:9999/hook", "target"),
        ("webhook", "https://[fd00::1]/hook", "target"),
        ("sms", "+447700900123", "channel"),
        ("contact", "ops", "channel"),
    ],
)
def test_a_target_that_cannot_be_reached_is_refused(
    public: Public, channel: str, target: str, field: str
) -> None:
    page = public.pages.page(now=T)
    with pytest.raises(Invalid) as raised:
        public.subscribe(page, target, channel)
    assert list(raised.value.errors) == [field]
    assert public.mailed() == []


def test_without_a_mail_server_nobody_subscribes_by_email(core: Flask) -> None:
    public = Public(core, mail=False)
    page = public.pages.page(now=T)
    with pytest.raises(Invalid) as raised:
        public.subscribe(page)
    assert list(raised.value.errors) == ["channel"]
    public.subscribe(page, "https://example.com/hook", "webhook")


def test_a_closed_page_takes_nobody_and_lets_everybody_go(public: Public, core: Flask) -> None:
    page = public.pages.page(now=T)
    public.subscribe(page)
    confirm, end = public.token(), public.token("unsubscribe")
    with core.app_context(), writing() as session:
        session.get_one(StatusPageRow, page).visibility = "closed"
    for id in (page, page + 1, 10**30):
        with pytest.raises(NotFound):
            public.subscribe(id)
    with pytest.raises(NotFound):
        public.confirm(confirm)
    assert public.unsubscribe(end) == "Example"


@pytest.mark.both_databases
def test_those_who_do_not_confirm_are_forgotten_after_48_hours(public: Public, core: Flask) -> None:
    page = public.pages.page(now=T)
    public.subscribe(page, "late@example.com")
    public.subscribe(page, "confirmed@example.com")
    public.confirm(public.token())
    public.now = T + 47 * HOUR
    public.subscribe(page, "late@example.com")  # the new link lasts 48 hours
    public.subscribe(page, "young@example.com")
    with core.app_context():
        assert delete_unconfirmed(T + 49 * HOUR) == 0
        assert delete_unconfirmed(T + 96 * HOUR) == 2
    assert [row.value for row in public.pages.subscribers()] == ["confirmed@example.com"]
    assert {row.value for row in public.pages.messages()} == {"confirmed@example.com"}


@pytest.mark.both_databases
def test_two_sign_ups_at_the_same_moment_make_one_subscriber(public: Public) -> None:
    page = public.pages.page(now=T)
    start, faults = Barrier(4), []

    def sign_up() -> None:
        try:
            start.wait(30)
            public.subscribe(page)
        except Exception as fault:
            faults.append(fault)

    threads = [Thread(target=sign_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert len(public.pages.subscribers()) == 1


def test_messages_to_subscribers_are_not_in_the_delivery_log(public: Public, core: Flask) -> None:
    page = public.pages.page(now=T)
    public.subscribe(page)
    [message] = public.pages.messages()
    with core.app_context():
        store = LocalStore(core.extensions["wakeful.settings"])
        deliveries = store.deliveries.list(DeliveryQuery())
        assert (list(deliveries.items), deliveries.total) == ([], 0)
        for call in (store.deliveries.get, store.deliveries.retry):
            with pytest.raises(NotFound):
                call(message.id)
