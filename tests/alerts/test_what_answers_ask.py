"""An answer that says what to do instead, or that says in its body that a good status is none: what
it asks for is done, and no alert is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.alerts.channels import pushover
from app.alerts.channels.base import MAX_POSTS
from app.db import db, writing
from app.db.tables import AuditRow, ContactRow, MonitorRow
from app.records import DeliveryStatus
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import HttpSink, Reply, Request

DELIVERED, FAILED = DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
PENDING = DeliveryStatus.PENDING
TOKEN = "123456:AAF-secretpartofthetoken"
PATHS = {
    "telegram": f"/bot{TOKEN}/sendMessage",
    "sms": "/2010-04-01/Accounts/AC0/Messages.json",
    "pushover": "/1/messages.json",
}
OK = Reply(200, '{"ok": true}')


def refused(status: int, document: Any) -> Reply:
    body = document if isinstance(document, str) else json.dumps(document)
    return Reply(status, body)


def telegram(description: str, **parameters: Any) -> Reply:
    document = {"ok": False, "error_code": 400, "description": f"Bad Request: {description}"}
    return refused(400, document | ({"parameters": parameters} if parameters else {}))


def send(box: Outbox, sink: HttpSink, channel: str, replies: list[Reply], value: str = "") -> Any:
    """The row of a message to this channel, and the requests that its service got."""
    box.configure(telegram_api=sink.url, sms_url=f"twilio://AC0:secret@+1555?api={sink.url}")
    path = PATHS.get(channel, "/hook")
    sink.replies[path] = replies
    values = {
        "telegram": f"{TOKEN}/-100/7",
        "sms": "+447700900123",
        "pushover": f"{'u' * 30}/{'a' * 30}",
    }
    row = box.send(channel, value or values.get(channel, f"{sink.url}/hook"))
    return row, sink.to(path)


def has(**fields: Any) -> Callable[[Request], bool]:
    """Whether a request's JSON has these fields; None: it lacks them."""
    return lambda request: all(request.json.get(name) == fields[name] for name in fields)


DELIVERY_FAILED = (
    "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error "
)
FORUM = {"code": 220001, "message": "Webhooks posted to forum channels must have a thread_name"}
# The first answer of the service, and the next request that follows from it.
CORRECTED = {
    "discord: a forum": ("discord", refused(400, FORUM), lambda r: "thread_name" in r.json),
    "discord: an embed": ("discord", refused(400, {"code": 50035}), has(embeds=None)),
    "slack: blocks": ("slack", refused(400, "invalid_blocks"), has(blocks=None)),
    "flock: its markup": ("flock", refused(400, {"error": "Invalid"}), has(flockml=None)),
    "teams: too large": ("teams", refused(413, ""), lambda r: "FactSet" not in r.raw.decode()),
    "telegram: moved": (
        "telegram",
        telegram("group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1009),
        has(chat_id="-1009", message_thread_id=7),
    ),
    "telegram: moved, the id as text": (
        "telegram", telegram("upgraded", migrate_to_chat_id="-1009"), has(chat_id="-1009")),
    "telegram: a good status": (
        "telegram", refused(200, {"ok": False, "error_code": 400, "description": "no entities"}),
        has(entities=None)),
    "slack: a good status": (
        "slack", refused(200, {"ok": False, "error": "invalid_blocks"}), has(blocks=None)),
    "flock: a good status": ("flock", refused(200, {"error": "Invalid"}), has(flockml=None)),
    "teams: a good status": (
        "teams", refused(200, DELIVERY_FAILED + "413 with ContextId x"),
        lambda r: "FactSet" not in r.raw.decode()),
    "telegram: no topic": ("telegram", telegram("message thread not found"),
                           has(message_thread_id=None, chat_id="-100")),
    "telegram: closed topic": ("telegram", telegram("TOPIC_CLOSED"), has(message_thread_id=None)),
    "telegram: entities": ("telegram", telegram("can't parse entities: x"), has(entities=None)),
}  # fmt: skip


@pytest.mark.parametrize("case", CORRECTED)
def test_what_the_answer_asks_for_is_sent_at_once(box: Outbox, sink: HttpSink, case: str) -> None:
    channel, reply, check = CORRECTED[case]
    row, requests = send(box, sink, channel, [reply, OK])
    assert row.status == DELIVERED, row.attempts
    assert len(requests) == 2
    assert not check(requests[0])
    assert check(requests[1])
    assert "expires" in requests[1].raw.decode()


@pytest.mark.parametrize("case", ["discord: a forum", "telegram: moved", "teams: a good status"])
def test_an_answer_that_keeps_asking_ends_in_a_refusal(
    box: Outbox, sink: HttpSink, case: str
) -> None:
    channel, reply, _check = CORRECTED[case]
    row, requests = send(box, sink, channel, [reply])
    assert row.status == FAILED
    assert 2 <= len(requests) <= MAX_POSTS


def test_a_forum_that_takes_no_embed_gets_plain_text_in_a_thread(
    box: Outbox, sink: HttpSink
) -> None:
    replies = [refused(400, FORUM), refused(400, {"code": 50035}), OK]
    row, requests = send(box, sink, "discord", replies)
    assert row.status == DELIVERED
    last = requests[-1].json
    assert (len(last["thread_name"]) <= 100, "embeds" in last) == (True, False)


# A good status that says in its body that it is none.
REFUSED = [
    ("slack", "rate_limited", PENDING),
    ("slack", {"ok": False, "error": "ratelimited"}, PENDING),
    ("slack", {"ok": False, "error": "channel_not_found"}, FAILED),
    ("slack", {"success": False, "error": "no"}, FAILED),
    ("slack", "channel_is_archived", FAILED),
    ("slack", {"ok": True, "error": []}, DELIVERED),
    ("slack", {"ok": False, "error": []}, FAILED),
    ("teams", DELIVERY_FAILED + "429 with ContextId x", PENDING),
    ("teams", DELIVERY_FAILED + "403 with ContextId x", FAILED),
    ("teams", {"error": {"code": "TooManyRequests", "message": "Slow down"}}, PENDING),
    ("teams", {"error": {"code": "WorkflowTriggerIsNotEnabled"}}, FAILED),
    ("teams", "1", DELIVERED),
    ("flock", {"error": "InvalidToken", "description": "No such hook"}, FAILED),
    ("telegram", {"ok": False, "error_code": 403, "description": "Forbidden"}, FAILED),
    ("telegram", {"ok": False, "error_code": 429, "parameters": {"retry_after": 9}}, PENDING),
    ("telegram", {"ok": False, "error_code": []}, FAILED),
    ("sms", {"sid": "SM1", "status": "queued", "error_code": None}, DELIVERED),
    ("sms", {"sid": "SM1", "status": "failed", "error_code": 21610}, FAILED),
    ("sms", {"sid": "SM1", "status": "undelivered"}, FAILED),
    ("sms", {"sid": "SM1", "status": "failed", "error_code": 30001}, PENDING),
    ("sms", {"error_code": [], "status": {}}, DELIVERED),
    ("pushover", {"status": 1, "request": "x"}, DELIVERED),
    ("pushover", {"status": 0, "errors": ["user key is invalid"]}, FAILED),
    ("webhook", {"ok": False, "error": "ours has no such rule"}, DELIVERED),
]


@pytest.mark.parametrize("id", [True, 0, "x", -(10**40), [], -100])
def test_no_group_moves_to_what_is_no_id_of_a_group(box: Outbox, sink: HttpSink, id: Any) -> None:
    row, requests = send(box, sink, "telegram", [telegram("upgraded", migrate_to_chat_id=id), OK])
    assert (row.status, len(requests)) == (FAILED, 1), row.attempts


@pytest.mark.parametrize(("channel", "document", "status"), REFUSED)
def test_a_refusal_in_the_body_counts_where_the_service_puts_it_there(
    box: Outbox,
    sink: HttpSink,
    monkeypatch: pytest.MonkeyPatch,
    channel: str,
    document: Any,
    status: DeliveryStatus,
) -> None:
    monkeypatch.setattr(pushover, "API", f"{sink.url}/1/messages.json")
    row, _requests = send(box, sink, channel, [refused(200, document)])
    assert row.status == status, row.attempts


def test_twilio_codes_that_pass_are_retried_whatever_the_status(
    box: Outbox, sink: HttpSink
) -> None:
    full = refused(400, {"code": 21611, "message": "The queue of this number is full"})
    row, _requests = send(box, sink, "sms", [full])
    assert row.status == PENDING


# --- Redirects


@pytest.mark.parametrize(
    ("status", "location", "posts"),
    [
        (307, "{url}/elsewhere", 1),
        (308, "/elsewhere", 1),
        (301, "/elsewhere", 0),  # it may be a page to log in, which answers 200
        (302, "/elsewhere", 0),
        (303, "/elsewhere", 0),
        (308, "http://localhost:{port}/elsewhere", 0),  # another host would get the secrets
        (308, "http://127.0.0.1:1/elsewhere", 0),
        (308, "https://[", 0),
        (308, "", 0),
    ],
)
def test_a_redirect_is_followed_only_where_the_same_post_belongs_on_the_same_host(
    box: Outbox, sink: HttpSink, status: int, location: str, posts: int
) -> None:
    to = (("Location", location.format(url=sink.url, port=sink.port)),)
    row, requests = send(box, sink, "webhook", [Reply(status, headers=to)])
    assert row.status == (DELIVERED if posts else FAILED), row.attempts
    arrived = sink.to("/elsewhere")
    assert [request.raw for request in arrived] == [requests[0].raw] * posts
    if not posts:
        assert "enter the URL that it leads to" in row.reason


# --- A group that moved


def test_a_group_that_moved_is_stored_under_its_new_id_everywhere_and_said_once(
    box: Outbox, sink: HttpSink, caplog: pytest.LogCaptureFixture
) -> None:
    box.configure(telegram_api=sink.url)
    path, old, new = PATHS["telegram"], f"{TOKEN}/-100", f"{TOKEN}/-1009"
    moved = telegram("group chat was upgraded", migrate_to_chat_id=-1009)
    sink.replies[path] = [moved, OK]
    shop = box.monitor(("telegram", old), ("webhook", f"{sink.url}/hook"))
    blog = box.monitor(("telegram", old), name="Blog")
    other = box.monitor(("telegram", f"{TOKEN}/-200"), name="Other")
    with box.app.app_context(), writing() as session:
        session.add(
            ContactRow(name="Ops", name_folded="ops", channels=[["telegram", old]], default=False,
                       quiet_zone="UTC", min_severity="all", acknowledgements=True,
                       created_at=box.clock.now, updated_at=box.clock.now)
        )  # fmt: skip
    incident = box.open(shop)
    box.turn(1)
    with box.app.app_context():
        alerts = {row.id: row.alerts for row in db.session.scalars(db.select(MonitorRow))}
        assert alerts[shop.id] == [["telegram", new], ["webhook", f"{sink.url}/hook"]]
        assert alerts[blog.id] == [["telegram", new]]
        assert alerts[other.id] == [["telegram", f"{TOKEN}/-200"]]
        assert db.session.scalars(db.select(ContactRow)).one().channels == [["telegram", new]]
        lines = db.session.scalars(db.select(AuditRow)).all()
        assert [(line.action, line.actor_kind) for line in lines] == [("changed", "wakeful")] * 3
    box.close(shop, incident)
    box.notice(blog)
    box.turn(5)
    assert {row.status for row in box.rows()} == {DELIVERED}
    chats = [request.json["chat_id"] for request in sink.to(path)]
    assert chats[0] == "-100"
    assert set(chats[1:]) == {"-1009"}
    messages = [record.getMessage() for record in caplog.records if record.name.endswith("moved")]
    assert messages == [
        "The service of a telegram channel gave it a new address. It is stored in 2 monitors and "
        "1 contact."
    ]
    assert "secretpart" not in caplog.text
    assert "new chat ID -1009" in box.rows()[0].attempts[0]["answer"]
