"""Each channel sends what its service documents, to a real listener (decision 5)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import ssl
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from app.access import Access, webhook_secret
from app.access.tokens import keyed_hash
from app.alerts import lanes
from app.alerts.channels import opsgenie, pagerduty, pushover
from app.alerts.channels.apprise_child import refused_for_good
from app.alerts.channels.base import Outgoing, Tools, post
from app.alerts.claims import SENT
from app.alerts.composing import message_text
from app.alerts.messages.message import Message, Tone
from app.db import db, writing
from app.db.tables import DeliveryRow
from app.engine import recorder
from app.errors import Conflict
from app.net import client
from app.net.hosts import SystemNames
from app.net.policy import Policy
from app.net.resolver import Resolved
from app.records import DeliveryStatus, Event
from app.rules import masking
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import (
    TOKEN,
    TWILIO_OK,
    TWILIO_PATH,
    HttpSink,
    MailSink,
    Reply,
    Request,
    mail_sink,
)

DELIVERED, FAILED = DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
PENDING = DeliveryStatus.PENDING
HOSTILE = 'Shop <!channel> @everyone *[x](http://evil.test)* & "quotes" \U0001f600 <b>'
SECRET_PATH = "/hook/T0SECRETSECRET/B0SECRETSECRET"


def check_slack(request: Request) -> None:
    # https://docs.slack.dev/reference/block-kit/blocks
    sent = request.json
    assert "Down: Shop" in sent["text"]
    assert "http://wakeful.test/incidents/1" in sent["text"]
    assert "<!channel>" not in sent["text"]
    assert "@everyone" not in request.raw.decode()
    assert 1 <= len(sent["blocks"]) <= 50
    for block in sent["blocks"]:
        if block["type"] == "header":
            assert block["text"]["type"] == "plain_text"
            assert 1 <= len(block["text"]["text"]) <= 150
            continue
        assert block["type"] == "section"
        texts = block.get("fields", [block.get("text")])
        assert 1 <= len(texts) <= 10
        for text in texts:
            assert text["type"] == "mrkdwn"
            assert "<!" not in text["text"].replace("<!date^", ""), "nobody is called"
            assert 1 <= len(text["text"]) <= (2000 if "fields" in block else 3000)


def check_teams(request: Request) -> None:
    # https://adaptivecards.io/explorer; Workflows wants the message envelope around the card
    sent = request.json
    assert sent["type"] == "message"
    (attachment,) = sent["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert {element["type"] for element in card["body"]} <= {"TextBlock", "FactSet"}
    for element in card["body"]:
        if element["type"] == "FactSet":
            assert all(set(fact) == {"title", "value"} for fact in element["facts"])
        else:
            assert element["wrap"] is True
            assert "[x](http" not in element["text"]
    assert all(action["type"] == "Action.OpenUrl" for action in card["actions"])
    assert len(request.raw) < 28_000


def check_discord(request: Request) -> None:
    # https://discord.com/developers/docs/resources/webhook#execute-webhook
    sent = request.json
    assert sent["allowed_mentions"] == {"parse": []}
    assert 1 <= len(sent["content"]) <= 2000
    (embed,) = sent["embeds"]
    assert 1 <= len(embed["description"]) <= 4096
    assert 0 <= embed["color"] <= 0xFFFFFF
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", embed["timestamp"])
    assert len(embed["fields"]) <= 25
    assert all(1 <= len(f["name"]) <= 256 and 1 <= len(f["value"]) <= 1024 for f in embed["fields"])
    assert "http://wakeful.test/incidents/1" in embed["description"]
    assert "[x](http" not in sent["content"]


def check_flock(request: Request) -> None:
    sent = request.json
    assert "Down: Shop" in sent["text"]
    assert sent["flockml"].startswith("<flockml>")
    assert "&lt;!channel&gt;" in sent["flockml"]
    assert "<!channel>" not in sent["flockml"]


def check_telegram(request: Request) -> None:
    # https://core.telegram.org/bots/api#sendmessage
    sent = request.json
    assert sent["chat_id"] == "-1001234"
    assert sent["message_thread_id"] == 7
    assert "parse_mode" not in sent
    units = sent["text"].encode("utf-16-le")
    assert len(units) // 2 <= 4096
    (bold,) = sent["entities"]
    title = units[bold["offset"] * 2 : (bold["offset"] + bold["length"]) * 2].decode("utf-16-le")
    assert title.endswith("<b>")  # the whole title, an astral character before its end
    assert "http://wakeful.test/acknowledge/" in sent["text"]


def check_webhook(request: Request) -> None:
    sent = request.json
    assert set(sent) == {"type", "timestamp", "data"}
    assert sent["type"] == "incident.opened"
    assert sent["timestamp"] == "2026-11-21T08:00:00Z"
    assert set(sent["data"]) == {"monitor", "incident"}
    assert sent["data"]["monitor"] == {"id": 1, "name": HOSTILE, "url": "http://127.0.0.1:9/"}
    incident = sent["data"]["incident"]
    assert incident["status"] == "unresolved"
    assert incident["link"] == "http://wakeful.test/incidents/1"
    assert incident["acknowledge_link"].startswith("http://wakeful.test/acknowledge/")
    assert incident["started_at"] == "2026-11-21T08:00:00Z"


def check_twilio(request: Request) -> None:
    # https://www.twilio.com/docs/messaging/api/message-resource
    expected = base64.b64encode(b"AC0account:twilio token 1").decode()
    assert request.headers["authorization"] == f"Basic {expected}"
    assert set(request.form) == {"To", "From", "Body"}
    assert (request.form["To"], request.form["From"]) == ("+447700900123", "+15550001111")
    assert len(request.form["Body"]) <= 1600
    assert "http://wakeful.test/incidents/1" in request.form["Body"]


def check_apprise(request: Request) -> None:
    # Apprise's json:// service, which posts what it was given
    sent = request.json
    assert sent["title"].startswith("Down: Shop")
    assert "http://wakeful.test/incidents/1" in sent["message"]
    assert sent["type"] == "failure"


def check_ntfy(request: Request) -> None:
    # https://docs.ntfy.sh/publish/#publish-as-json
    sent = request.json
    assert request.headers["authorization"] == "Bearer tk_secrettoken"
    assert (sent["topic"], sent["priority"], sent["tags"]) == ("my_topic", 4, ["red_circle"])
    assert sent["title"].startswith("Down: Shop")
    assert sent["click"] == "http://wakeful.test/incidents/1"
    assert [action["label"] for action in sent["actions"]] == ["Acknowledge", "Incident"]
    assert all({"action", "label", "url"} == set(action) for action in sent["actions"])
    assert len(sent["message"].encode()) <= 4096
    assert sent["message"].startswith("The server answered 503.")


def check_gotify(request: Request) -> None:
    # https://gotify.net/docs/pushmsg
    sent = request.json
    assert request.headers["x-gotify-key"] == "AsecretToken1"
    assert set(sent) == {"title", "message", "priority", "extras"}
    assert sent["title"].endswith(HOSTILE)
    assert sent["priority"] == 8
    click = sent["extras"]["client::notification"]["click"]
    assert click == {"url": "http://wakeful.test/incidents/1"}
    assert "Acknowledge: http://wakeful.test/acknowledge/" in sent["message"]


def check_pushover(request: Request) -> None:
    # https://pushover.net/api
    sent = request.json
    assert (sent["user"], sent["token"], sent["priority"]) == ("u" * 30, "a" * 30, 1)
    assert len(sent["title"]) <= 250
    assert len(sent["message"]) <= 1024
    assert "Acknowledge: http://wakeful.test/acknowledge/" in sent["message"]
    assert (sent["url"], sent["url_title"]) == ("http://wakeful.test/incidents/1", "Incident")
    assert sent["timestamp"] == 1795248000


INCIDENT = re.compile(r"wakeful-[0-9a-f]{8}-incident-1")


def key_of(box: Outbox, incident_id: int) -> str:
    """The name of an incident's alert: incidents of two installations have the same ids."""
    with box.app.app_context():
        return f"wakeful-{keyed_hash('installation')[:8]}-incident-{incident_id}"


def check_pagerduty(request: Request) -> None:
    # https://developer.pagerduty.com/docs/send-alert-event
    sent = request.json
    assert (sent["routing_key"], sent["event_action"]) == ("R0" * 16, "trigger")
    assert INCIDENT.fullmatch(sent["dedup_key"])
    event = sent["payload"]
    assert event["summary"].startswith("Down: Shop")
    assert "The server answered 503." in event["summary"]
    assert len(event["summary"]) <= 1024
    assert (event["source"], event["severity"]) == ("http://127.0.0.1:9/", "critical")
    assert event["timestamp"] == "2026-11-21T08:00:00Z"
    assert event["custom_details"]["Down since"] == "2026-11-21 08:00 UTC"
    assert [link["text"] for link in sent["links"]] == ["Acknowledge", "Incident"]
    assert sent["client_url"] == "http://wakeful.test/incidents/1"


def check_opsgenie(request: Request) -> None:
    # https://docs.opsgenie.com/docs/alert-api#create-alert
    sent = request.json
    assert request.headers["authorization"] == f"GenieKey {GENIE}"
    assert INCIDENT.fullmatch(sent["alias"])
    assert sent["priority"] == "P1"
    assert sent["message"].startswith("Down: Shop")
    assert len(sent["message"]) <= 130
    assert "http://wakeful.test/acknowledge/" in sent["description"]
    assert sent["entity"] == HOSTILE
    assert all(isinstance(value, str) for value in sent["details"].values())


GENIE = "01234567-89ab-cdef-0123-456789abcdef"
ENQUEUE, GENIES = "/events.eu.pagerduty.com/v2/enqueue", "/api.opsgenie.com/v2/alerts"


@pytest.fixture
def at_the_sink(sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services at addresses of their own are the sink, each below its host name."""
    for module in (pushover, pagerduty, opsgenie):
        monkeypatch.setattr(module, "API", module.API.replace("https:/", sink.url))


CASES: list[tuple[str, str, str, Callable[[Request], None], Reply]] = [
    ("slack", "{url}" + SECRET_PATH, SECRET_PATH, check_slack, Reply(200, "ok")),
    ("teams", "{url}/flow?sig=SECRETSECRET", "/flow?sig=SECRETSECRET", check_teams, Reply(202, "")),
    ("discord", "{url}" + SECRET_PATH, SECRET_PATH, check_discord, Reply(204, "")),
    ("flock", "{url}" + SECRET_PATH, SECRET_PATH, check_flock, Reply(200, '{"uid": "x"}')),
    ("telegram", TOKEN + "/-1001234/7", f"/bot{TOKEN}/sendMessage", check_telegram, Reply(200)),
    ("webhook", "{url}" + SECRET_PATH, SECRET_PATH, check_webhook, Reply(200)),
    ("sms", "+447700900123", TWILIO_PATH, check_twilio, TWILIO_OK),
    ("apprise", "json://127.0.0.1:{port}/SECRETSECRET", "/SECRETSECRET", check_apprise, Reply(200)),
    ("ntfy", "http://tk_secrettoken@127.0.0.1:{port}/my_topic", "/", check_ntfy, Reply(200)),
    ("gotify", "{url}/?token=AsecretToken1", "/message", check_gotify, Reply(200)),
    ("pushover", f"{'u' * 30}/{'a' * 30}", "/api.pushover.net/1/messages.json", check_pushover,
     Reply(200, '{"status":1,"request":"x"}')),
    ("pagerduty", f"eu:{'R0' * 16}", ENQUEUE, check_pagerduty, Reply(202)),
    ("opsgenie", GENIE, GENIES, check_opsgenie, Reply(202)),
]  # fmt: skip


CALLED = {
    "pagerduty": (f"eu:{'R0' * 16}", [ENQUEUE] * 4),
    "opsgenie": (
        GENIE,
        [GENIES, GENIES, *(f"{GENIES}/{{}}/{step}?identifierType=alias"
                           for step in ("acknowledge", "close"))],
    ),
}  # fmt: skip


@pytest.mark.usefixtures("at_the_sink")
@pytest.mark.parametrize("channel", CALLED)
def test_an_incident_is_one_alert_that_is_acknowledged_and_resolved_with_it(
    box: Outbox, sink: HttpSink, channel: str
) -> None:
    value, paths = CALLED[channel]
    monitor = box.monitor((channel, value))
    incident = box.open(monitor)
    box.turn(1)
    box.tell(Event.INCIDENT_REMINDER, monitor, incident)
    box.turn(1)
    box.tell(Event.INCIDENT_ACKNOWLEDGED, monitor, incident)
    box.turn(1)
    box.close(monitor, incident)
    box.turn(1)
    assert {row.status for row in box.rows()} == {DELIVERED}
    key = key_of(box, incident.id)
    assert [request.path for request in sink.requests] == [path.format(key) for path in paths]
    if channel == "pagerduty":
        sent = [request.json for request in sink.requests]
        steps = ["trigger", "trigger", "acknowledge", "resolve"]
        assert [event["event_action"] for event in sent] == steps
        assert {event["dedup_key"] for event in sent} == {key}
    sink.requests.clear()
    box.notice(monitor)
    box.tell(Event.TEST, monitor)
    box.turn(1)
    keys = {sent.get("dedup_key", sent.get("alias")) for sent in (r.json for r in sink.requests)}
    assert keys == {f"wakeful-{row.message_id}" for row in box.rows()[-2:]}


def delete_incident(session: Any, id: int, now: datetime) -> None:
    recorder.delete_incident(session, recorder.lock_incident(session, id), now)


ENDS: dict[str, tuple[Callable[[Any, int, datetime], object], str]] = {
    "pause": (recorder.pause, "monitor"),
    "monitor deleted": (recorder.delete_monitor, "monitor"),
    "incident deleted": (delete_incident, "incident"),
}


@pytest.mark.both_databases
@pytest.mark.usefixtures("at_the_sink")
@pytest.mark.parametrize("end", ENDS)
def test_an_alert_is_closed_with_an_incident_that_ends_without_a_recovery(
    box: Outbox, sink: HttpSink, end: str
) -> None:
    box.clock.now = box.clock.now.replace(hour=21)
    alerts = ("pagerduty", f"eu:{'R0' * 16}"), ("webhook", f"{sink.url}/hook")
    monitor = box.monitor(*alerts, quiet_start="22:00", quiet_end="06:00")
    incident = box.open(monitor)
    box.turn(5)
    box.clock.advance(seconds=2 * 3600)
    with box.app.app_context(), writing() as session:
        act, of = ENDS[end]
        act(session, monitor.id if of == "monitor" else incident.id, box.clock.now)
    box.turn(9 * 3600 if end == "pause" else 1)  # what is deleted has no quiet hours
    sent = [(request.path, request.json.get("event_action")) for request in sink.requests]
    assert sorted(sent) == [(ENQUEUE, "resolve"), (ENQUEUE, "trigger"), ("/hook", None)]
    keys = {r.json["dedup_key"] for r in sink.requests if r.path == ENQUEUE}
    assert keys == {key_of(box, incident.id)}


@pytest.mark.usefixtures("at_the_sink")
def test_for_an_alert_of_each_incident_a_burst_is_not_grouped(
    box: Outbox, sink: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "BURST_MONITORS", 4)
    monitors = [box.monitor(("pagerduty", f"eu:{'R0' * 16}"), name=f"M{n}") for n in range(5)]
    incidents = [box.open(monitor) for monitor in monitors]
    box.turn(1)
    box.acknowledge(incidents)
    for monitor, incident in zip(monitors, incidents, strict=True):
        box.close(monitor, incident)
    box.turn(1)
    keys = {key_of(box, incident.id) for incident in incidents}
    for step in ("trigger", "acknowledge", "resolve"):
        sent = [r.json["dedup_key"] for r in sink.requests if r.json["event_action"] == step]
        assert (set(sent), len(sent)) == (keys, 5)


@pytest.mark.both_databases
@pytest.mark.usefixtures("at_the_sink")
def test_after_quiet_hours_nobody_is_called_for_an_outage_that_is_over(
    box: Outbox, sink: HttpSink
) -> None:
    box.clock.now = box.clock.now.replace(hour=21)
    night = {"quiet_start": "22:00", "quiet_end": "06:00"}
    called, lasting, over = (
        box.monitor(("pagerduty", f"eu:{'R0' * 16}"), name=name, **night)
        for name in ("Called", "Lasting", "Over")
    )
    before = box.open(called)
    box.turn(1)
    box.turn(2 * 3600)
    still, short = box.open(lasting), box.open(over)
    box.turn(60)
    box.close(called, before)
    box.close(over, short)
    box.turn(60)
    assert len(sink.requests) == 1
    box.turn(8 * 3600)
    sent = [(r.json["event_action"], r.json["dedup_key"]) for r in sink.requests[1:]]
    assert sorted(sent) == [("resolve", key_of(box, before.id)), ("trigger", key_of(box, still.id))]
    quiet = [row.reason for row in box.rows() if row.incident_id == short.id]
    assert quiet == ["settled", "settled"]


@pytest.mark.usefixtures("at_the_sink")
@pytest.mark.parametrize(
    ("channel", "value", "path", "secret"),
    [
        ("ntfy", "http://tk_secrettoken@127.0.0.1:{port}/my_topic", "/", "tk_secrettoken"),
        ("gotify", "{url}/?token=AsecretToken1", "/message", "AsecretToken1"),
        ("pushover", f"{'u' * 30}/{'a' * 30}", "/api.pushover.net/1/messages.json", "a" * 30),
        ("pagerduty", f"eu:{'R0' * 16}", ENQUEUE, "R0" * 16),
        ("opsgenie", GENIE, GENIES, GENIE),
    ],
)
def test_what_a_service_quotes_is_masked_and_its_reason_is_shown(
    box: Outbox, sink: HttpSink, channel: str, value: str, path: str, secret: str
) -> None:
    reason = f"No such key {secret}"
    errors = {"message": "Invalid", "errors": [reason]}
    body = {"error": reason, "errorDescription": reason, **errors}
    sink.replies[path] = [Reply(400, json.dumps(body))]
    row = box.send(channel, value.format(url=sink.url, port=sink.port))
    assert row.status == FAILED
    assert "No such key ••••" in row.attempts[-1]["answer"]
    assert secret not in str(row.attempts)


@pytest.mark.usefixtures("at_the_sink")
@pytest.mark.parametrize(
    ("channel", "value", "path", "check", "reply"), CASES, ids=[case[0] for case in CASES]
)
def test_each_service_gets_what_it_documents(
    box: Outbox,
    sink: HttpSink,
    channel: str,
    value: str,
    path: str,
    check: Callable[[Request], None],
    reply: Reply,
) -> None:
    box.configure(
        telegram_api=sink.url,
        sms_url=f"twilio://AC0account:twilio%20token%201@+15550001111?api={sink.url}",
    )
    sink.replies[path] = [reply]
    monitor = box.monitor((channel, value.format(url=sink.url, port=sink.port)), name=HOSTILE)

    box.open(monitor)
    box.turn(1)

    (row,) = box.rows()
    (request,) = sink.to(path)
    check(request)
    assert row.status == DeliveryStatus.DELIVERED, row.attempts
    assert row.delivered_at == box.clock.now
    assert [attempt["ok"] for attempt in row.attempts] == [True]
    with box.app.app_context():
        stored = db.session.get_one(DeliveryRow, row.id)
        shown = message_text(db.session, box.settings, stored) or ""
    assert shown == row.facts[SENT], "it is stored: what else is down may change"
    assert "The server answered 503." in shown
    assert "/acknowledge/…" in shown, "a link with its token acknowledges"
    assert not re.search(r"/acknowledge/[\w-]", shown)
    for secret in ("SECRET", TOKEN, "secrettoken", "AsecretToken", "twilio token", "R0R0"):
        assert secret not in shown


def test_a_mail_has_text_and_html_and_belongs_to_its_incidents_thread(
    box: Outbox, mail: MailSink
) -> None:
    box.configure(smtp_url=f"smtp://127.0.0.1:{mail.port}?from=Wakeful <alerts@example.com>")
    monitor = box.monitor(("email", "ops@bücher.example"), name=HOSTILE)
    incident = box.open(monitor)
    box.turn(1)
    box.clock.advance(seconds=300)
    box.close(monitor, incident)
    box.turn(1)

    opened, resolved = mail.mails
    assert mail.envelopes[0] == ("alerts@example.com", ["ops@xn--bcher-kva.example"])
    assert opened["From"] == "Wakeful <alerts@example.com>"
    assert opened["Subject"].startswith("Down: Shop <!channel> @everyone")
    assert opened["Message-ID"] == f"<{box.rows()[0].message_id}@example.com>"
    assert opened["References"] == resolved["References"] == "<incident-1@example.com>"
    text, html = (part.get_content() for part in opened.iter_parts())
    assert [part.get_content_type() for part in opened.iter_parts()] == ["text/plain", "text/html"]
    assert "The server answered 503." in text
    assert "Down since: 2026-11-21 08:00 UTC" in text
    assert "Incident: http://wakeful.test/incidents/1" in text
    assert "&lt;!channel&gt;" in html
    assert "<!channel>" not in html
    assert "prefers-color-scheme: dark" in html
    assert "It was down for 5 minutes 1 second." in resolved.get_body(("plain",)).get_content()
    assert [row.attempts[-1]["answer"] for row in box.rows()] == [
        "SMTP 250: 2.0.0 queued as 4711"
    ] * 2


def test_tls_required_refuses_a_server_without(box: Outbox, mail: MailSink) -> None:
    box.configure(smtp_url=f"smtp://127.0.0.1:{mail.port}?tls=required")
    row = box.send("email", "ops@example.com")
    assert row.status == FAILED
    assert "does not offer STARTTLS" in row.attempts[-1]["answer"]


@pytest.mark.parametrize("trusted", [True, False])
def test_starttls_is_used_if_offered_and_a_password_requires_a_trusted_certificate(
    box: Outbox, tmp_path: Any, trusted: bool
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    with mail_sink(tls_context=context, require_starttls=True, auth_required=True) as sink:
        box.configure(
            smtp_url=f"smtp://me:mail%20password%20123@127.0.0.1:{sink.port}?from=a@b.example",
            ca_bundle=str(bundle) if trusted else None,
        )
        row = box.send("email", "ops@example.com")
        if trusted:
            assert row.status == DeliveryStatus.DELIVERED, row.attempts
            assert sink.logins == [("me", "mail password 123")]
        else:
            assert row.status == DeliveryStatus.PENDING
            assert "certificate is not trusted" in row.attempts[-1]["answer"]
            assert sink.logins == []


# --- Standard Webhooks, verified by an implementation of our own reading of the specification


def verified(request: Request, secret_: str) -> bool:
    """https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md"""
    head = request.headers
    assert abs(int(head["webhook-timestamp"])) > 0
    signed = b".".join(
        [head["webhook-id"].encode(), head["webhook-timestamp"].encode(), request.raw]
    )
    key = base64.b64decode(secret_.split("_", 1)[1])
    wanted = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    entries = [entry.split(",", 1) for entry in head["webhook-signature"].split(" ")]
    return any(version == "v1" and hmac.compare_digest(entry, wanted) for version, entry in entries)


def test_a_webhook_is_signed_and_a_change_of_the_secret_overlaps(
    box: Outbox, sink: HttpSink
) -> None:
    monitor = box.monitor(("webhook", f"{sink.url}/hook"))
    access = Access()

    def with_access(call: Callable[..., str], *args: Any) -> str:
        with box.app.app_context():
            result = call(box.settings, access.settings, *args)
            db.session.rollback()
            return result

    def send() -> Request:
        box.notice(monitor)
        box.turn(2)
        return sink.to("/hook")[-1]

    first = with_access(webhook_secret.webhook_secret)
    assert len(base64.b64decode(first.removeprefix("whsec_"))) >= 24
    assert verified(send(), first)

    second = with_access(webhook_secret.rotate, box.clock.now)
    during = send()
    assert verified(during, first)
    assert verified(during, second)
    assert not verified(during, webhook_secret.make_secret())

    box.clock.advance(seconds=24 * 3600)
    after = send()
    assert verified(after, second)
    assert not verified(after, first)


@pytest.mark.settings(webhook_secret="whsec_" + base64.b64encode(b"k" * 24).decode())
def test_the_environments_secret_signs_and_cannot_be_changed_here(
    box: Outbox, sink: HttpSink
) -> None:
    box.send("webhook", f"{sink.url}/hook")
    assert verified(sink.to("/hook")[0], box.settings.webhook_secret)
    with pytest.raises(Conflict, match="WAKEFUL_WEBHOOK_SECRET"):
        webhook_secret.rotate(box.settings, Access().settings, box.clock.now)


# --- Vonage says 200 whatever happened


def test_the_status_in_vonages_body_decides(box: Outbox, sink: HttpSink) -> None:
    """tests/faults/test_answers_of_receivers.py has all that the body may say."""
    box.configure(sms_url=f"vonage://key:vonagesecret@Wakeful?api={sink.url}")
    part = {"status": "4", "error-text": "Bad Credentials"}
    sink.replies["/sms/json"] = [Reply(200, json.dumps({"messages": [part]}))]
    row = box.send("sms", "+447700900123")
    assert row.status == FAILED, row.attempts
    sent = sink.to("/sms/json")[0].form
    assert (sent["to"], sent["from"], sent["type"]) == ("447700900123", "Wakeful", "text")
    assert "vonagesecret" not in str(row.attempts)


# --- Apprise says yes or no, and the status in its log


def test_a_permanent_refusal_behind_apprise_is_not_retried(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/hook"] = [Reply(404)]
    row = box.send("apprise", f"json://127.0.0.1:{sink.port}/hook")
    assert row.status == FAILED, row.attempts
    assert "error=404" in row.attempts[-1]["answer"]


def test_one_target_that_may_recover_keeps_an_apprise_url_being_retried() -> None:
    gone = "Failed to send Slack notification: Page not found., error=404."
    assert refused_for_good([gone, gone])
    assert not refused_for_good([gone, "A Connection error occurred sending Slack notification."])
    assert not refused_for_good([gone, "Failed to send Slack notification: error=503."])
    assert not refused_for_good(["The service answered ok: false, error=200."])
    assert not refused_for_good([])


# --- Policy and secrets


@pytest.mark.settings(allow_networks="")
@pytest.mark.parametrize("channel", ["slack", "webhook", "apprise"])
def test_a_closed_address_is_not_connected_to(box: Outbox, sink: HttpSink, channel: str) -> None:
    scheme = "json" if channel == "apprise" else "http"
    row = box.send(channel, f"{scheme}://127.0.0.1:{sink.port}/hook")
    assert row.status == DeliveryStatus.FAILED
    assert "allow loopback" in (row.reason or "")
    assert sink.requests == []


@pytest.mark.parametrize(
    ("certified", "status", "reason"),
    [("localhost", DELIVERED, "HTTP 200"), ("other.example", PENDING, "could not be verified")],
)
def test_tls_is_verified_for_the_name_although_the_address_is_pinned(
    box: Outbox, tmp_path: Path, certified: str, status: DeliveryStatus, reason: str
) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(certified).configure_cert(context)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    box.configure(ca_bundle=str(bundle))
    sink = HttpSink(context)
    try:
        box.send("slack", f"https://localhost:{sink.port}/hook")
    finally:
        sink.close()
    (row,) = box.rows()
    assert row.status == status, row.attempts
    assert reason in row.attempts[0]["answer"]


def test_only_the_addresses_of_a_name_that_policy_allows_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([("127.0.0.1", "169.254.169.254"), ("169.254.169.254",)])
    monkeypatch.setattr(client, "resolve", lambda host, *_, **__: Resolved(host, next(answers)))
    network = client.Network(Policy.parse("loopback"), SystemNames())
    assert network.addresses("rebinding.example") == ["127.0.0.1"]
    with pytest.raises(client.Blocked, match="metadata"):
        network.addresses("rebinding.example")


NGINX = """<html>\r\n<head><title>502 Bad Gateway</title><style>h1 { color: red }</style></head>
<body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx &amp; friends</center>
<a href="/hook/SECRETOFTHEHOOK">/hook/SECRET&#79;FTHEHOOK</a></body></html>"""


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (NGINX, "text/html", "HTTP 502: 502 Bad Gateway nginx & friends ••••"),
        (NGINX, "text/plain", "HTTP 502: 502 Bad Gateway nginx & friends ••••"),
        ('{"error": "a < b"}', "application/json", 'HTTP 502: {"error": "a < b"}'),
        ("", "text/html", "HTTP 502"),
    ],
)
def test_only_the_text_of_an_html_answer_is_kept(
    box: Outbox, sink: HttpSink, body: str, kind: str, reason: str
) -> None:
    sink.replies["/hook/SECRETOFTHEHOOK"] = [Reply(502, body, (("Content-Type", kind),))]
    row = box.send("webhook", f"{sink.url}/hook/SECRETOFTHEHOOK")
    assert row.attempts[-1]["answer"] == reason


ECHO_404, ECHO_500 = Reply(404, act="echo"), Reply(500, act="echo")


SLACK = "slack", "{url}" + SECRET_PATH, SECRET_PATH, ["T0SECRETSECRET", "B0SECRETSECRET"]


@pytest.mark.parametrize(
    ("reply", "channel", "value", "path", "secrets"),
    [
        (ECHO_404, *SLACK),
        (Reply(act="echo"), *SLACK),
        (Reply(act="reset"), *SLACK),
        (ECHO_500, "teams", "{url}/flow?sig=SIGSECRET%2B", "/flow?sig=SIGSECRET%2B", ["SIGSECRET"]),
        (ECHO_404, "telegram", TOKEN + "/-100", f"/bot{TOKEN}/sendMessage",
         ["secretpartofthetoken"]),
        (ECHO_404, "sms", "+447700900123", TWILIO_PATH, ["twilio token 1", "AC0account"]),
    ],
)  # fmt: skip
def test_a_service_that_echoes_the_request_reveals_no_secret(
    box: Outbox,
    sink: HttpSink,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    channel: str,
    value: str,
    path: str,
    secrets: list[str],
) -> None:
    sms = f"twilio://AC0account:twilio%20token%201@+15550001111?api={sink.url}"
    box.configure(telegram_api=sink.url, sms_url=sms)
    sink.replies[path] = [reply]
    box.notice(box.monitor((channel, value.format(url=sink.url))))
    with caplog.at_level("DEBUG", logger="app"):
        box.turn()
    (row,) = box.rows()
    assert row.attempts, "it was tried"
    basic = base64.b64encode(b"AC0account:twilio token 1").decode()
    for secret_ in [*secrets, basic]:
        for kept in (str(row.attempts), str(row.reason), caplog.text):
            assert secret_.lower() not in kept.lower()
            assert secret_.replace(" ", "%20").lower() not in kept.lower()


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_a_mail_server_that_quotes_the_password_does_not_reveal_it(box: Outbox) -> None:
    with mail_sink(auth_required=True, auth_require_tls=False) as sink:
        sink.script = {"ops@example.com": ["550 me with mail password 123 may not"]}
        box.configure(smtp_url=f"smtp://me:mail%20password%20123@127.0.0.1:{sink.port}")
        row = box.send("email", "ops@example.com")
    assert row.reason == "SMTP 550: me with •••• may not"


@pytest.mark.parametrize(
    ("url", "secret_"),
    [
        ("tgram://123456:AAF-secretpart/-100", "AAF-secretpart"),
        ("ntfy://our-secret-topic", "our-secret-topic"),
        ("discord://4711004711/TokenOfTheHook", "TokenOfTheHook"),
        ("mailtos://user:passpass1@mail.example.com", "passpass1"),
        ("json://[broken-secret", "broken-secret"),
    ],
)
def test_secrets_in_an_apprise_url_are_masked(url: str, secret_: str) -> None:
    text = masking.clean(f"Failed at {url} with {url.upper()}", masking.secrets_in_apprise(url))
    assert secret_.lower() not in text.lower()
    host = masking.clean("mail.example.com refused", masking.secrets_in_apprise(url))
    assert host == "mail.example.com refused"


def test_a_service_that_answers_a_byte_at_a_time_is_cut_off(box: Outbox, sink: HttpSink) -> None:
    sink.replies["/hook"] = [Reply(act="drip")]
    network = client.Network(Policy.parse("loopback"), SystemNames(), total_seconds=1.0)
    message = Message("test", Tone.PLAIN, "t", "s", box.clock.now)
    outgoing = Outgoing("msg_1", f"{sink.url}/hook", message, box.clock.now)
    began = time.monotonic()
    answer = post(outgoing, Tools(box.settings, network), {"text": "x"})
    assert time.monotonic() - began < 30
    assert answer.text == "HTTP 200", "the status had come; to send again would repeat the alert"
