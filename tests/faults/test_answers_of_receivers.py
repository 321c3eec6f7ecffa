"""The status of a receiver's answer decides whether an alert is delivered, not its body, unless its
service documents that it puts refusals there (``tests/alerts/test_what_answers_ask.py``).

If an unreadable body counted as "not delivered", a receiver that answers 200 with an unknown
charset would get the same alert again for a day (decision 5).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest

from app.access.webhook_secret import PREFIX
from app.alerts.answers import Acceptance, Answer
from app.alerts.channels import SENDERS, opsgenie, pagerduty, pushover
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.messages.message import Message, Tone
from app.config import Settings
from app.net.client import MAX_BODY, Network
from app.net.hosts import SystemNames
from app.net.policy import Policy
from app.records import Channel
from tests.lab.net import Connection, Listener

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
DELIVERED, RETRY, PERMANENT = Acceptance.DELIVERED, Acceptance.RETRY, Acceptance.PERMANENT


def http(body: bytes = b"ok", *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def html(page: str) -> bytes:
    return http(page.encode(), "Content-Type: text/html")


def as_json(document: object) -> bytes:
    return http(json.dumps(document).encode(), "Content-Type: application/json")


def coded(coding: str, body: bytes) -> bytes:
    return http(body, f"Content-Encoding: {coding}")


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# The answer of a receiver, as bytes on the wire; then it closes the connection.
ACCEPTED = {
    "plainly": http(),
    "with an unknown charset": http(b"ok", "Content-Type: text/plain; charset=utf8mb4"),
    "with a NUL in its charset": http(b"ok", "Content-Type: text/plain; charset=u\0tf"),
    "in another charset than it says": http(b"\xff\xfe\xfd", "Content-Type: a/b; charset=ascii"),
    "with broken gzip": coded("gzip", b"this is no gzip"),
    "with gzip that is cut short": coded("gzip", gzip.compress(b"ok" * 999)[:-30]),
    "with broken brotli": coded("br", b"\xff\xff\xff\xff"),
    "with a coding that nobody knows": coded("rot13", b"bx"),
    "with a body that unpacks to much more": coded("gzip", 50 * gzip.compress(bytes(1_000_000))),
    "with a chunk that is cut short": CHUNKED + b"ff\r\nok",
    "with a chunk without a size": CHUNKED + b"zz\r\nok",
    "with less than it announced": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nok",
    "with two hundred headers": http(b"", *(f"X-{n}: 1" for n in range(200))),
    "with an endless header": http(b"", "X-Long: " + "x" * 100_000),
    "with a header that is none": http(b"ok", "this is no header"),
    "after early hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + http(),
    "with JSON that is broken": http(b'{"ok": tru', "Content-Type: application/json"),
    "with JSON that is nested deeply": http(b"[" * (MAX_BODY - 1)),
    "with a number of five thousand digits": http(b'{"retry_after": ' + b"9" * 5000 + b"}"),
    "with JSON of another shape": as_json([{"message": {"description": ["x"]}}]),
    "with messages that are a number": as_json({"messages": 5, "message": 5, "description": {}}),
    "with a page that no parser takes": html("<![foo[ x"),
    "with a page of a huge character": html("&#" + "9" * 5000 + ";"),
    "with nothing but tags that never end": html("<a " * 5000),
}


@contextmanager
def receiver(answer: Callable[[Connection], None]) -> Iterator[str]:
    """The URL of a server that reads a request and sends a given answer."""

    def serve(connection: Connection) -> None:
        head = connection.read_until(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        missing = length - len(head.partition(b"\r\n\r\n")[2])
        while missing > 0:
            missing -= len(connection.receive())
        answer(connection)

    listener = Listener(serve)
    try:
        yield f"http://127.0.0.1:{listener.port}"
    finally:
        listener.close()


def send(channel: str, url: str, path: Path, *, sms: str = "twilio", seconds: float = 60) -> Answer:
    """One alert through the sender of a channel, whose service is at ``url``."""
    values = {
        Channel.TELEGRAM: "123:ABC/-100",
        Channel.SMS: "+447700900123",
        Channel.GOTIFY: f"{url}/?token=Abc",
        Channel.PUSHOVER: f"{'u' * 30}/{'a' * 30}",
        Channel.PAGERDUTY: "a" * 32,
        Channel.OPSGENIE: "-".join(["abcdef01", "2345", "6789", "abcd", "ef0123456789"]),
    }
    settings = Settings(
        instance=path,
        database_url="sqlite://",
        secret_key="a key",
        telegram_api=url,
        sms_url=f"{sms}://account:password@Wakeful?api={url}",
    )
    network = Network(Policy.parse("loopback"), SystemNames(), total_seconds=seconds)
    message = Message("test", Tone.PLAIN, "Test", "It works.", NOW)
    value = values.get(Channel(channel), f"{url}/hook")
    tools = Tools(settings, network, (PREFIX + "a" * 32,))
    with ExitStack() as patched:
        for module in (opsgenie, pagerduty, pushover):
            patched.enter_context(patch.object(module, "API", f"{url}/"))
        return SENDERS[channel](Outgoing("msg_1", value, message, NOW), tools)


def outcome(answer: bytes, path: Path, channel: str = Channel.WEBHOOK, **how: str) -> Answer:
    with receiver(lambda connection: connection.send(answer)) as url:
        return send(channel, url, path, **how)


@pytest.mark.parametrize("way", ACCEPTED)
def test_a_200_counts_as_delivered(way: str, tmp_path: Path) -> None:
    answer = outcome(ACCEPTED[way], tmp_path)
    assert answer.acceptance is DELIVERED, answer
    assert answer.text.startswith("HTTP 200")


@pytest.mark.parametrize(
    "way",
    [
        "with JSON that is nested deeply",
        "with JSON of another shape",
        "with messages that are a number",
        "with a page that no parser takes",
    ],
)
@pytest.mark.parametrize(
    ("channel", "sms"),
    [
        *((channel, "twilio") for channel in Channel if channel not in ("email", "apprise")),
        ("sms", "vonage"),
    ],
)
def test_no_response_body_makes_a_sender_fail(
    channel: str, sms: str, way: str, tmp_path: Path
) -> None:
    assert outcome(ACCEPTED[way], tmp_path, channel, sms=sms).acceptance is DELIVERED


@pytest.mark.parametrize(
    ("status", "verdict"),
    [("204 No Content", DELIVERED), ("302 Found", PERMANENT), ("404 Not Found", PERMANENT),
     ("429 Too Many Requests", RETRY), ("503 Service Unavailable", RETRY)],
)  # fmt: skip
def test_a_status_decides_also_where_the_body_cannot_be_read(
    status: str, verdict: Acceptance, tmp_path: Path
) -> None:
    broken = http(b"ok", "Content-Type: a/b; charset=utf8mb4", "Content-Encoding: gzip",
                  "Location: http://[", status=status)  # fmt: skip
    assert outcome(broken, tmp_path).acceptance is verdict


@pytest.mark.parametrize(
    "garbage",
    [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n", b"HTTP/1.1 7 OK\r\n\r\n", b"HTTP/1.1 2",
     b"HTTP/1.1 103 Early Hints\r\n\r\n", b"SSH-2.0-OpenSSH\r\n"],
)  # fmt: skip
def test_without_a_status_the_alert_is_sent_again(garbage: bytes, tmp_path: Path) -> None:
    assert outcome(garbage, tmp_path).acceptance is RETRY


@pytest.mark.parametrize(
    ("sent", "verdict", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nTaken", DELIVERED, "HTTP 200: Taken"),
        (b"HTTP/1.1 200 OK\r\nX-Slow: 1\r\n", DELIVERED, "HTTP 200"),
        (b"", RETRY, "did not answer in time"),
    ],
)
def test_an_answer_that_is_slower_than_the_limit_counts_if_it_has_a_status(
    sent: bytes, verdict: Acceptance, words: str, tmp_path: Path
) -> None:
    def drip(connection: Connection) -> None:
        connection.send(sent)
        connection.wait_until_gone()

    with receiver(drip) as url:
        answer = send(Channel.WEBHOOK, url, tmp_path, seconds=0.5)
    assert (answer.acceptance, words in answer.text) == (verdict, True)


def test_of_an_endless_body_only_the_beginning_is_read(tmp_path: Path) -> None:
    sent = []

    def flood(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n")
        for _ in range(4000):  # 250 MiB, if somebody takes them
            connection.send(bytes(64 * 1024))
            sent.append(1)

    with receiver(flood) as url:
        assert send(Channel.WEBHOOK, url, tmp_path).acceptance is PERMANENT
    assert len(sent) < 1000


@pytest.mark.parametrize(
    ("named", "pause"),
    [
        (["Retry-After: 7"], 7.0),
        (["Retry-After: Sat, 21 Nov 2026 08:00:09 GMT"], 9.0),
        (["Retry-After: never"], None),
        (["Retry-After: Sat, 21 Nov 2026 08:00:09 +" + "9" * 20], None),
        (["Retry-After: 3601"], 3600.0),
        (["Retry-After: " + "9" * 6000], 3600.0),
        (["Retry-After: Fri, 31 Dec 99999 23:59:59 GMT"], None),
        (["Retry-After: Sat, 21 Nov 2026 08:00:00 GMT"], None),
        ([], None),
    ],
)
def test_a_pause_is_an_hour_at_most_and_none_where_it_is_no_time_to_come(
    named: list[str], pause: float | None, tmp_path: Path
) -> None:
    answer = outcome(http(b"", *named, status="503 Busy"), tmp_path)
    assert (answer.acceptance, answer.retry_after) == (RETRY, pause)


@pytest.mark.parametrize("number", ["9" * 400, "1e999", "-1", "true", "NaN", '"5"'])
def test_a_pause_in_the_body_that_is_no_pause_stops_nobody(number: str, tmp_path: Path) -> None:
    body = f'{{"retry_after": {number}}}'.encode()
    assert outcome(http(body, status="429 Slow down"), tmp_path).acceptance is RETRY


def test_what_vonage_documents_to_say_with_a_200_counts(tmp_path: Path) -> None:
    """Vonage answers 200 to all; only a status within a message says that it was refused."""
    for status, verdict in (("0", DELIVERED), ("1", RETRY), ("4", PERMANENT)):
        body = as_json({"messages": [{"status": status, "error-text": "So it is."}]})
        assert outcome(body, tmp_path, Channel.SMS, sms="vonage").acceptance is verdict
    for odd in ({}, {"messages": []}, {"messages": [{}]}, {"messages": "0"}):
        assert outcome(as_json(odd), tmp_path, Channel.SMS, sms="vonage").acceptance is DELIVERED


# --- Mail

# The answer of a mail server to the mail itself, and its next action.
MAIL = {
    "plainly": (b"250 2.0.0 queued\r\n", DELIVERED),
    "in several lines": (b"250-2.0.0 queued\r\n250 as 4711\r\n", DELIVERED),
    "and a line without end": (b"250 " + b"x" * 20_000 + b"\r\n", DELIVERED),
    "and the connection is lost in the second line": (b"250-2.0.0 queued\r\n25", DELIVERED),
    "in a charset that is none": (b"250 \xff\xfe\r\n", DELIVERED),
    "that it is to wait": (b"451 4.7.1 Greylisted\r\n", RETRY),
    "that it is refused": (b"554-5.7.1 Spam.\r\n554 Go away\r\n", PERMANENT),
    "nothing": (b"", RETRY),
    "nonsense": (b"what?\r\n", RETRY),
}


def mailed(
    serve: Callable[[Connection], None], tmp_path: Path, login: str = "", server: str = ""
) -> Answer:
    """The answer to one mail through ``server``, or a server of its own that does this."""
    listener = Listener(serve)
    server = server or f"127.0.0.1:{listener.port}"
    settings = Settings(
        instance=tmp_path,
        database_url="sqlite://",
        secret_key="a key",
        smtp_url=f"smtp://{login}{server}?from=wakeful@example.com",
    )
    message = Message("test", Tone.PLAIN, "Test", ".\n..two dots", NOW)
    tools = Tools(settings, Network(Policy.parse("loopback"), SystemNames()))
    try:
        return SENDERS["email"](Outgoing("msg_1", "ops@example.com", message, NOW), tools)
    finally:
        listener.close()


@pytest.mark.parametrize(
    ("kind", "goodbye"),
    [*((kind, "lost") for kind in MAIL), *(("plainly", bye) for bye in ("reset", "no", "garbage"))],
)
def test_what_is_said_to_the_mail_itself_decides(kind: str, goodbye: str, tmp_path: Path) -> None:
    reply, verdict = MAIL[kind]

    def serve(connection: Connection) -> None:
        connection.send(b"220 mail.test\r\n")
        for answer in (b"250 mail.test\r\n", b"250 OK\r\n", b"250 OK\r\n", b"354 Go on\r\n"):
            connection.read_until(b"\r\n")
            connection.send(answer)
        mails.append(connection.read_until(b"\r\n.\r\n"))
        connection.send(reply)
        if goodbye == "lost" or not reply.endswith(b"\r\n"):
            return
        connection.read_until(b"\r\n")
        if goodbye == "reset":
            connection.reset()
        else:
            connection.send({"no": b"500 No\r\n", "garbage": b"\xff" * 9000}[goodbye])

    mails: list[bytes] = []
    answer = mailed(serve, tmp_path)
    assert answer.acceptance is verdict, answer
    assert b"\r\n..\r\n...two dots" in mails[0], "a line's first dot is doubled"


GREETING = "220 mail.test"
# The answer of a server in place of 250, and the fate of a mail with and without a login.
SESSIONS = {
    "a name of a login in small letters": ({"EHLO": "250-x\r\n250 AUTH plain login"}, DELIVERED),
    "no login for a moment": (
        {"EHLO": "250-x\r\n250 AUTH PLAIN", "AUTH": "454 4.7.0 Later"}, RETRY),
    "STARTTLS that it offers and refuses": (
        {"EHLO": "250-x\r\n250 STARTTLS", "STARTTLS": "454 4.7.0 No certificate"}, DELIVERED),
    "our name with 504, and HELO": ({"EHLO": "504 5.5.2 Need a name"}, DELIVERED),
    "the sender with 450": ({"MAIL": "450 4.2.0 Greylisted"}, RETRY),
    "the recipient with 421": ({"RCPT": "421 4.3.2 Shutting down"}, RETRY),
    "in HTTP": ({"": "HTTP/1.1 400 Bad Request"}, RETRY),
}  # fmt: skip


def session(replies: dict[str, str]) -> Callable[[Connection], None]:
    """A mail server that answers as ``replies`` says, by the word of the command; "" greets."""

    def serve(connection: Connection) -> None:
        connection.send(f"{replies.get('', GREETING)}\r\n".encode())
        while line := connection.read_until(b"\r\n").decode():
            word = line.split()[0].upper()
            usual = {"DATA": "354 Go on", "AUTH": "235 OK"}.get(word, "250 OK")
            connection.send(f"{replies.get(word, usual)}\r\n".encode())
            if word == "DATA":
                connection.read_until(b"\r\n.\r\n")
                connection.send(b"250 queued\r\n")

    return serve


@pytest.mark.parametrize("session_name", SESSIONS)
def test_what_a_mail_server_says_before_the_mail(session_name: str, tmp_path: Path) -> None:
    replies, verdict = SESSIONS[session_name]
    answer = mailed(session(replies), tmp_path, "me:secret@" if "login" in session_name else "")
    assert answer.acceptance is verdict, answer
    assert "SMTP -1" not in answer.text


def test_a_refused_starttls_ends_a_session_that_may_not_be_plain(tmp_path: Path) -> None:
    replies = SESSIONS["STARTTLS that it offers and refuses"][0]
    answer = mailed(session(replies), tmp_path, "me:secret@")
    assert answer.text == "SMTP 454: 4.7.0 No certificate"


@pytest.mark.parametrize("greeting", ["421 4.3.2 Too busy", "554 5.3.2 No service", ""])
def test_an_address_that_sends_us_away_leaves_the_turn_to_the_others(
    greeting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Listener(session({"": greeting}) if greeting else lambda _connection: None, "127.0.0.2")
    good = Listener(session({}), "127.0.0.3", away.port)
    addresses = ["127.0.0.2", "127.0.0.3"]
    monkeypatch.setattr(Network, "addresses", lambda *_host, **_limits: addresses)
    try:
        server = f"mail.example:{good.port}"
        assert mailed(session({}), tmp_path, server=server).acceptance is DELIVERED
        addresses.remove("127.0.0.3")
        assert mailed(session({}), tmp_path, server=server).acceptance is not DELIVERED
    finally:
        away.close()
        good.close()
