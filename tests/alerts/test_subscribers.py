"""The messages to subscribers of a status page (decision 12); alerts go first."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import insert

from app import paths
from app.access.tokens import Purpose, subscription_token, target_digest
from app.alerts import subscribers
from app.alerts.channels import mail as mails
from app.alerts.channels.base import Outgoing
from app.alerts.channels.email import _is_gone
from app.alerts.log import failed_channels, forget_deliveries, lost_messages
from app.alerts.messages import compose
from app.alerts.messages.message import MessageContext
from app.alerts.worker import MAX_WEBHOOKS, Worker
from app.db import db, writing
from app.db.tables import PostRow, StatusPageRow, SubscriberRow
from app.engine import posts
from app.records import DeliveryStatus, SubscriberEvent
from tests.alerts.conftest import Outbox
from tests.alerts.crash_worker import killed, run_worker
from tests.alerts.sinks import HttpSink, MailSink, Reply
from tests.support.german import translations
from tests.support.pages import Pages

WHO = "reader@example.com"
FACTS = {
    "event": SubscriberEvent.POST_UPDATED,
    "at": "2026-11-21T08:00:00Z",
    "page": {"id": 1, "name": "Example <b>", "slug": "example-" + "x" * 50, "domain": None},
    "post": {
        "id": 7, "update_id": 9, "title": "Shop is down", "state": "in_progress",
        "body": "First line.\n.second line, with <b>\n", "monitors": ["Shop", "Blog"],
        "starts_at": "2026-11-21T07:00:00Z", "ends_at": None, "created_at": "2026-11-21T08:00:00Z",
    },
    "unsubscribe": "1-2-0123456789abcdef-0-" + "0" * 40,
}  # fmt: skip
END = f"https://w.example/status/example-{'x' * 50}/unsubscribe/{FACTS['unsubscribe']}"


@pytest.fixture
def pages(core: Flask, box: Outbox) -> Pages:
    return Pages(core, box.clock)


@pytest.fixture
def page(pages: Pages) -> int:
    return pages.page()


@pytest.fixture
def mailing(box: Outbox, mail: MailSink) -> Outbox:
    box.configure(
        smtp_url=f"smtp://127.0.0.1:{mail.port}?from=Wakeful <status@example.com>",
        public_url="https://w.example",
    )
    return box


def ask(box: Outbox, subscriber: int) -> None:
    """Ask a subscriber to confirm."""
    with box.app.app_context(), writing() as session:
        row = session.get_one(SubscriberRow, subscriber)
        page = session.get_one(StatusPageRow, row.status_page_id)
        subscribers.enqueue_answer(session, SubscriberEvent.CONFIRM, row, page, box.clock.now)


# --- Mails ----------------------------------------------------------------------------------------


def test_confirmed_subscribers_get_a_mail_of_each_update(
    mailing: Outbox, mail: MailSink, pages: Pages
) -> None:
    box = mailing
    shop = box.monitor(name="db-3.internal")
    page = pages.page(shop, names=["Shop"])
    other = pages.page(slug="other")
    pages.subscriber(page, "email", WHO)
    pages.subscriber(page, "email", "unconfirmed@example.com", confirmed=False)
    pages.subscriber(other, "email", "of.another.page@example.com")
    post = pages.post(page, body="We look into it.")
    box.turn(1)
    late = pages.subscriber(page, "email", "late@example.com")
    box.clock.advance(seconds=60)
    pages.update(post, "resolved", "All is well.")
    box.turn(1)

    receivers = sorted(envelope[1][0] for envelope in mail.envelopes)
    assert receivers == ["late@example.com", WHO, WHO]
    first, second = (received for received in mail.mails if received["To"] == WHO)
    assert first["Subject"] == "Investigating: Trouble (Example)"
    assert second["Subject"] == "Resolved: Trouble (Example)"
    assert first["References"] == second["References"]
    assert first["Message-ID"] != second["Message-ID"]
    lines = first.get_body(("plain",)).get_content().splitlines()
    assert "We look into it." in lines
    assert "Status page: https://w.example/status/example" in lines
    assert "db-3" not in first.as_string()
    assert [row.event for row in pages.messages()] == [
        SubscriberEvent.POST_PUBLISHED, SubscriberEvent.POST_UPDATED, SubscriberEvent.POST_UPDATED,
    ]  # fmt: skip
    assert {row.subscriber_id for row in pages.messages()} == {1, late}


def test_who_confirmed_before_the_clock_was_set_back_is_notified_too(
    mailing: Outbox, mail: MailSink, pages: Pages, page: int
) -> None:
    now = mailing.clock.now
    pages.subscriber(page, "email", WHO, now=now + timedelta(hours=1))
    pages.post(page)
    mailing.turn()
    assert [to for _sender, to in mail.envelopes] == [[WHO]]


def test_a_mail_can_be_unsubscribed_from_by_one_click(core: Flask) -> None:
    """RFC 8058; in one piece, because mail programs do not decode these headers."""
    with core.app_context():
        message = compose(FACTS, MessageContext("https://w.example", str))
        outgoing = Outgoing("msg_1", WHO, message, datetime.now(UTC))
        made = mails.build(outgoing, "a@b.example").message
    head, _, body = made.as_bytes().partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert f"List-Unsubscribe: <{END}>" in lines
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in lines
    assert max(map(len, body.split(b"\r\n"))) <= 100
    text, html = (made.get_body((kind,)).get_content() for kind in ("plain", "html"))
    assert END in text
    assert "First line.\n.second line, with <b>" in text
    assert "State: In progress\nAffected: Shop, Blog\nBegins: 2026-11-21 07:00 UTC" in text
    assert f'href="{END}"' in html
    assert ".second line, with &lt;b&gt;" in html
    assert "on the status page of Example &lt;b&gt;" in html
    assert "with <b>" not in html
    assert "Example <b>" not in html


def test_mails_and_automatic_posts_are_in_the_language_of_the_page(
    mailing: Outbox, mail: MailSink, pages: Pages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "TRANSLATIONS", translations(tmp_path, GERMAN))
    box = mailing
    shop = box.monitor(("email", "ops@example.com"), name="Shop")
    for slug, language in (("german", "de"), ("english", "en")):
        page = pages.page(shop, slug=slug, language=language, auto_post_after=1)
        pages.subscriber(page, "email", f"{slug}@example.com")
    ask(box, pages.subscriber(1, "email", "neu@example.com", confirmed=False))
    incident = box.open(shop)
    box.clock.advance(seconds=120)
    write_due(box)
    box.turn()
    box.close(shop, incident)
    write_due(box)
    box.turn(1)

    mails = defaultdict(list)
    for received in mail.mails:
        mails[str(received["To"])].append(received)
    opened, resolved = mails["german@example.com"]
    assert [opened["Subject"], resolved["Subject"]] == [
        "In Prüfung: Störung: Shop (Example)", "Behoben: Störung: Shop (Example)",
    ]  # fmt: skip
    text, html = (opened.get_body((kind,)).get_content() for kind in ("plain", "html"))
    assert "Der Dienst antwortet nicht." in text
    assert "Abmelden: https://" in text
    assert "Von Wakeful. Eingetragen bei Example." in html
    assert '<html lang="de">' in html
    assert "Es ist vorbei." in resolved.get_body(("plain",)).get_content()
    assert mails["neu@example.com"][0]["Subject"] == "Bestätige Example"
    for who, subject in (("english", "Investigating: Problems with Shop"), ("ops", "Down: Shop")):
        english = mails[f"{who}@example.com"][0]
        assert english["Subject"].startswith(subject)
        assert '<html lang="en">' in english.get_body(("html",)).get_content()
        assert not any(text in english.as_string() for text in GERMAN.values())


GERMAN = {
    "Investigating": "In Prüfung", "Resolved": "Behoben", "Unsubscribe": "Abmelden",
    "Problems with %(names)s": "Störung: %(names)s",
    "The service does not respond.": "Der Dienst antwortet nicht.",
    "The problem is resolved.": "Es ist vorbei.",
    "This address was entered on the status page of %(name)s.": "Eingetragen bei %(name)s.",
    "Sent by Wakeful. %(footer)s": "Von Wakeful. %(footer)s",
    "Confirm your subscription to %(name)s": "Bestätige %(name)s",
}  # fmt: skip


def write_due(box: Outbox) -> None:
    with box.app.app_context():
        posts.write_due(box.clock.now)


def test_alert_mails_have_no_button_to_unsubscribe(mailing: Outbox, mail: MailSink) -> None:
    mailing.notice(mailing.monitor(("email", "ops@example.com")))
    mailing.turn()
    assert mail.mails[0]["List-Unsubscribe"] is None
    assert "a monitor alerts this address" in mail.mails[0].get_body(("html",)).get_content()


def test_links_lead_to_the_pages_own_host_name() -> None:
    own = FACTS | {"page": FACTS["page"] | {"domain": "status.example.com"}}  # type: ignore[operator]
    message = compose(own, MessageContext("https://w.example", str))
    token = FACTS["unsubscribe"]
    assert [link.url for link in message.links] == [
        "https://status.example.com", f"https://status.example.com/unsubscribe/{token}",
    ]  # fmt: skip


def test_the_question_links_the_page_where_one_confirms(
    mailing: Outbox, mail: MailSink, pages: Pages, page: int
) -> None:
    now = mailing.clock.now
    who = pages.subscriber(page, "email", WHO, confirmed=False)
    ask(mailing, who)
    mailing.turn()
    with mailing.app.app_context():
        token = subscription_token(Purpose.CONFIRM, page, who, target_digest("email", WHO), now)
    lines = mail.mails[0].get_body(("plain",)).get_content().splitlines()
    assert f"Confirm: https://w.example/status/example/confirm/{token}" in lines
    assert pages.subscribers()[0].confirmed_at is None  # only the button does that


# --- Webhooks -------------------------------------------------------------------------------------


def test_a_webhook_confirms_by_sending_the_token_back(
    box: Outbox, sink: HttpSink, pages: Pages, page: int
) -> None:
    now = box.clock.now
    who = pages.subscriber(page, "webhook", f"{sink.url}/hook", confirmed=False)
    sink.replies["/hook"] = [Reply(act="echo")]
    ask(box, who)
    box.turn()
    [request] = sink.to("/hook")
    assert request.json["type"] == "confirm"
    with box.app.app_context():
        token = subscription_token(
            Purpose.CONFIRM, page, who, target_digest("webhook", f"{sink.url}/hook"), now
        )
    assert request.json["token"] == token
    [row] = pages.messages()
    assert row.status == DeliveryStatus.DELIVERED
    assert token not in str(row.attempts)
    assert pages.subscribers()[0].confirmed_at == now


@pytest.mark.parametrize(
    ("reply", "asked"), [(Reply(200, "ok"), 1), (Reply(404, ""), 1), (Reply(503, ""), 3)]
)
def test_a_webhook_that_does_not_confirm_is_left_alone(
    box: Outbox, sink: HttpSink, pages: Pages, reply: Reply, asked: int
) -> None:
    """Anybody may have named its URL: it is not called for a day."""
    who = pages.subscriber(pages.page(), "webhook", f"{sink.url}/hook", confirmed=False)
    sink.replies["/hook"] = [reply]
    ask(box, who)
    for _ in range(8):
        box.turn(120)
    assert len(sink.to("/hook")) == asked
    assert [row.status for row in pages.messages()] == [DeliveryStatus.FAILED]
    assert pages.subscribers()[0].confirmed_at is None


def test_a_webhook_gets_the_post_without_a_signature_of_ours(
    box: Outbox, sink: HttpSink, pages: Pages
) -> None:
    """Its URL may be a receiver of alerts, which would believe what is signed."""
    box.configure(public_url="https://w.example")
    shop = box.monitor(name="Shop", url="https://internal.example/")
    page = pages.page(shop)
    pages.subscriber(page, "webhook", f"{sink.url}/hook")
    pages.post(page, body="We look into it.")
    box.turn()
    [request] = sink.to("/hook")
    assert "webhook-signature" not in request.headers
    assert request.headers["webhook-id"] == pages.messages()[0].message_id
    assert request.json["type"] == "post.published"
    assert request.json["data"]["page"]["link"] == "https://w.example/status/example"
    assert request.json["data"]["post"]["body"] == "We look into it."
    assert "internal" not in request.raw.decode()


@pytest.mark.settings(allow_networks="loopback", subscriber_networks="")
def test_a_webhook_cannot_reach_networks_that_are_open_to_monitors(
    box: Outbox, sink: HttpSink, pages: Pages, page: int
) -> None:
    ask(box, pages.subscriber(page, "webhook", f"{sink.url}/h", confirmed=False))
    box.turn()
    assert sink.requests == []
    [row] = pages.messages()
    assert row.status == DeliveryStatus.FAILED
    assert "WAKEFUL_SUBSCRIBER_NETWORKS" in row.attempts[0]["answer"]


# --- The end of a subscription --------------------------------------------------------------------


def test_an_address_that_is_gone_ends_its_subscription(
    mailing: Outbox, mail: MailSink, sink: HttpSink, pages: Pages, page: int
) -> None:
    for name in ("gone", "busy", "fine"):
        pages.subscriber(page, "email", f"{name}@example.com")
    for name in ("gone", "missing"):
        pages.subscriber(page, "webhook", f"{sink.url}/{name}")
    mail.script = {
        "gone@example.com": ["550 5.1.1 User unknown"],
        "busy@example.com": ["450 4.2.1 Try later"],
    }
    sink.replies |= {"/gone": [Reply(410)], "/missing": [Reply(404)]}
    pages.post(page)
    mailing.turn(1)
    assert [row.value for row in pages.subscribers()] == [
        "busy@example.com", "fine@example.com", f"{sink.url}/missing",
    ]  # fmt: skip
    assert [row.value for row in pages.messages()] == [
        row.value for row in pages.subscribers()
    ]  # nothing of those who are gone is kept


@pytest.mark.parametrize(
    ("code", "reply", "gone"),
    [
        (550, "5.1.1 <x@y>: Recipient address rejected: User unknown", True),
        (550, "5.2.1 Mailbox disabled", True),
        (553, "sorry, no mailbox here by that name", True),
        (556, "domain does not accept mail", True),
        (550, "", True),
        # What says nothing of the recipient, though it is said when we name them.
        (554, "5.7.1 <x@y>: Relay access denied", False),
        (550, "relay not permitted", False),
        (550, "5.1.8 <us@y>: Sender address rejected: Domain not found", False),
        (550, "5.7.26 Unauthenticated mail from us is not accepted", False),
        (530, "5.7.0 Authentication required", False),
        (503, "bad sequence of commands", False),
        (450, "4.2.1 Try later", False),
    ],
)
def test_what_a_mail_server_says_of_us_does_not_end_a_subscription(
    code: int, reply: str, gone: bool
) -> None:
    assert _is_gone(code, reply) is gone


def test_a_refused_login_or_sender_ends_no_subscription(
    mailing: Outbox, pages: Pages, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> str:
        return "550 5.1.0 who are you"

    monkeypatch.setattr(MailSink, "handle_MAIL", refuse, raising=False)
    pages.subscriber(page, "email", WHO)
    pages.post(page)
    mailing.turn(1)
    assert [row.status for row in pages.messages()] == [DeliveryStatus.FAILED]
    assert len(pages.subscribers()) == 1


@pytest.mark.parametrize("what", ["page", "post", "closed"])
def test_nothing_goes_out_of_what_is_gone_or_closed(
    mailing: Outbox, mail: MailSink, pages: Pages, page: int, what: str
) -> None:
    now = mailing.clock.now
    pages.subscriber(page, "email", WHO)
    post = pages.post(page)
    with mailing.app.app_context(), writing() as session:
        if what == "page":
            session.delete(session.get_one(StatusPageRow, page))
        elif what == "post":
            session.delete(session.get_one(PostRow, post))
        else:
            session.get_one(StatusPageRow, page).visibility = "closed"
    mailing.turn(1)
    assert mail.mails == []
    with mailing.app.app_context():
        assert subscribers.unannounced(db.session, now) == []


def test_messages_of_a_page_that_is_deleted_meanwhile_are_dropped(
    mailing: Outbox, mail: MailSink, pages: Pages, page: int
) -> None:
    now = mailing.clock.now
    pages.subscriber(page, "email", WHO)
    pages.post(page)
    with mailing.app.app_context(), writing() as session:
        [update] = subscribers.unannounced(session, now)
        assert subscribers.write_batch(session, update, now) == 1
        session.delete(session.get_one(StatusPageRow, page))
    mailing.turn(10)
    assert (mail.mails, pages.messages()) == ([], [])


# --- Alerts beside them ---------------------------------------------------------------------------


def test_failures_of_subscribers_are_no_failures_of_alert_channels(
    mailing: Outbox, mail: MailSink, pages: Pages, page: int
) -> None:
    now = mailing.clock.now
    mailing.notice(mailing.monitor(("email", WHO)))
    mailing.turn()
    pages.subscriber(page, "email", WHO)
    mail.script = {WHO: ["554 5.7.1 no"]}
    pages.post(page)
    mailing.turn(1)
    assert [row.status for row in pages.messages()] == [DeliveryStatus.FAILED]
    with mailing.app.app_context():
        assert failed_channels(db.session) == []
        assert lost_messages(db.session, now) == []
        assert forget_deliveries(now + timedelta(days=1)) == 2  # they are cleaned like others


def many(pages: Pages, page: int, urls: list[str], now: datetime) -> None:
    with pages.app.app_context(), writing() as session:
        rows = [
            {"status_page_id": page, "channel": "webhook", "value": url,
             "digest": target_digest("webhook", url), "created_at": now, "confirmed_at": now}
            for url in urls
        ]  # fmt: skip
        session.execute(insert(SubscriberRow), rows)


def test_an_alert_goes_before_all_that_waits_for_subscribers(
    box: Outbox, sink: HttpSink, pages: Pages, page: int
) -> None:
    """This holds even if it goes to the same URL, and all threads for subscribers' webhooks
    hang.
    """
    now = box.clock.now
    sink.replies["/hang"] = [Reply(act="hang")]
    urls = [f"{sink.url}/hang?{n}" for n in range(40)]
    for url in urls:
        sink.replies[url.removeprefix(sink.url)] = [Reply(act="hang")]
    many(pages, page, [*urls, f"{sink.url}/ops"], now)
    pages.post(page)
    box.settle(lambda: len(box.worker.webhook_lanes.busy) == MAX_WEBHOOKS)  # there are no more
    sink.wait_for(lambda: len(sink.requests) == MAX_WEBHOOKS)
    box.notice(box.monitor(("webhook", f"{sink.url}/ops")))
    box.worker.take_turn(0)  # the next turn, also while subscribers rest
    sink.wait_for(lambda: len(sink.to("/ops")) == 1)
    assert len(sink.requests) == MAX_WEBHOOKS + 1
    sink.stopping.set()
    box.settle()


@pytest.mark.parametrize("act", ["hang", "drip"])
def test_mails_wait_for_no_webhook(
    mailing: Outbox,
    mail: MailSink,
    sink: HttpSink,
    pages: Pages,
    page: int,
    act: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Strangers choose the webhooks: many that hang would hold the mails of all other readers."""
    monkeypatch.setattr(subscribers, "BATCH", MAX_WEBHOOKS + 1)
    monkeypatch.setattr(subscribers, "MAX_DUE", MAX_WEBHOOKS + 1)
    now = mailing.clock.now
    hanging = [f"/hang?{n}" for n in range(2 * subscribers.MAX_DUE)]
    sink.replies |= {path: [Reply(act=act)] for path in hanging}
    many(pages, page, [f"{sink.url}{path}" for path in hanging], now)
    pages.subscriber(page, "email", WHO)
    pages.post(page)
    hang = mailing.worker.webhook_lanes.busy  # they may begin after the mail
    mailing.settle(lambda: len(mail.mails) == 1 and bool(hang))
    assert len(mail.mails) == 1
    assert hang, "they still hang"
    sink.stopping.set()
    mailing.settle()


def test_thousands_are_written_in_batches_and_each_is_sent_once(
    box: Outbox, sink: HttpSink, pages: Pages, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribers, "BATCH", 8)
    monkeypatch.setattr(subscribers, "MAX_DUE", 8)
    now = box.clock.now
    many(pages, page, [f"{sink.url}/{n}" for n in range(18)], now)
    pages.post(page)
    box.worker.take_turn(0)
    assert len(pages.messages()) == 8  # the next batch waits for these
    box.settle()
    assert Counter(request.path for request in sink.requests) == {f"/{n}": 1 for n in range(18)}
    with box.app.app_context():
        assert subscribers.unannounced(db.session, now) == []


@pytest.mark.both_databases
def test_two_workers_write_each_message_once(
    box: Outbox, pages: Pages, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribers, "BATCH", 100)
    now = box.clock.now
    many(pages, page, [f"https://example.com/{n}" for n in range(150)], now)
    pages.post(page)
    with box.app.app_context():
        [update] = subscribers.unannounced(db.session, now)
        counts = []
        for _ in range(3):
            with writing() as session:
                counts.append(subscribers.write_batch(session, update, now))
    assert counts == [100, 50, 0]
    assert len({row.subscriber_id for row in pages.messages()}) == 150


def test_messages_of_a_worker_that_died_before_its_commit_are_written_once(
    box: Outbox, sink: HttpSink, pages: Pages, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = box.clock.now
    many(pages, page, [f"{sink.url}/{n}" for n in range(3)], now)
    pages.post(page)
    write = subscribers.write_batch

    def die(*arguments: Any) -> int:
        write(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(subscribers, "write_batch", die)
        with pytest.raises(KeyboardInterrupt):
            box.worker.take_turn(0)
    assert pages.messages() == []
    box.worker = Worker(box.app, box.settings, clock=box.clock)
    box.settle()
    assert Counter(request.path for request in sink.requests) == {f"/{n}": 1 for n in range(3)}


@pytest.mark.slow
@pytest.mark.more
@pytest.mark.timeout(600)
def test_a_worker_killed_at_every_step_loses_no_message_of_a_post(
    box: Outbox, sink: HttpSink, pages: Pages, page: int
) -> None:
    now = box.clock.now = datetime.now(UTC)
    many(pages, page, [f"{sink.url}/{n}" for n in range(300)], now)
    pages.post(page)
    for step in ("write", "claim", "send", "mark", "never"):
        worker = run_worker(box, step, 1 if step == "write" else 40)
        if step != "never":
            killed(worker)
    received: Counter[str] = Counter()

    def enough() -> bool:
        received.clear()
        received.update(request.path for request in sink.requests)
        return len(received) == 300

    try:
        sink.wait_for(enough, 300)
    finally:
        worker.terminate()
        worker.join(60)
    assert max(received.values()) <= 2
