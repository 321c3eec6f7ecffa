"""Names and letters beyond ASCII in mail: logins, addresses, hosts; and the name that we call
ourselves.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult, LoginPassword

from app.records import DeliveryStatus
from app.rules import addresses, smtp
from app.rules.channel_values import check_value
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import MailSink, mail_sink

USER, PASSWORD = "jürgen", "pässwörd €"
LOGIN = "j%C3%BCrgen:p%C3%A4ssw%C3%B6rd%20%E2%82%AC"


class Sink(MailSink):
    """Notes what it is greeted with, and knows CRAM-MD5."""

    def __init__(self) -> None:
        super().__init__()
        self.greeted: list[str] = []
        self.options: list[list[str]] = []

    async def handle_EHLO(
        self, server: Any, session: Any, envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        self.greeted.append(hostname)
        session.host_name = hostname
        return responses

    async def handle_MAIL(
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        self.options.append(options)
        envelope.mail_from = address
        return "250 OK"

    async def auth_CRAM__MD5(self, server: Any, args: list[str]) -> AuthResult:
        challenge = b"<1.2@mail.test>"
        response = await server.challenge_auth(challenge)
        user, _space, digest = response.rpartition(b" ")
        wanted = hmac.new(PASSWORD.encode(), challenge, hashlib.md5).hexdigest()
        self.logins.append((user.decode(), PASSWORD if digest.decode() == wanted else "wrong"))
        return AuthResult(success=digest.decode() == wanted, auth_data=LoginPassword(user, b""))

    def authenticate(self, server: Any, session: Any, envelope: Any, how: str, data: Any) -> Any:
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=True)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def server(sink: Sink) -> Iterator[Sink]:
    with mail_sink(sink) as running:
        yield running


@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN", "CRAM-MD5"])
def test_every_login_sends_user_and_password_as_utf8(
    box: Outbox, sink: Sink, mechanism: str
) -> None:
    others = {"PLAIN", "LOGIN", "CRAM-MD5"} - {mechanism}
    options = {"authenticator": sink.authenticate, "auth_exclude_mechanism": others}
    with mail_sink(sink, auth_require_tls=False, **options):
        box.configure(smtp_url=f"smtp://{LOGIN}@127.0.0.1:{sink.port}?from=a@b.example")
        box.send("email", "ops@example.com")
    assert sink.logins == [(USER, PASSWORD)]
    assert [row.status for row in box.rows()] == [DeliveryStatus.DELIVERED], box.rows()[0].attempts


def test_a_server_without_a_login_that_we_know_is_not_taken_for_a_lost_connection(
    box: Outbox, sink: Sink
) -> None:
    everything = {"PLAIN", "LOGIN", "CRAM-MD5"}
    with mail_sink(sink, auth_require_tls=False, auth_exclude_mechanism=everything):
        box.configure(smtp_url=f"smtp://{LOGIN}@127.0.0.1:{sink.port}?from=a@b.example")
        row = box.send("email", "ops@example.com")
    assert row.status == DeliveryStatus.FAILED
    assert "offers none of the logins" in row.reason


def utf8_of(text: str) -> str:
    """What Python's reader of headers makes of bytes that are UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode()


@pytest.mark.parametrize(
    ("sender", "to", "envelope", "utf8"),
    [
        ("w@müller.example", "ops@example.com", ("w@xn--mller-kva.example", "ops@example.com"), 0),
        ("a@b.example", "o@straße.example", ("a@b.example", "o@xn--strae-oqa.example"), 0),
        ("wä@b.example", "ops@example.com", ("wä@b.example", "ops@example.com"), 1),
        ("a@b.example", "ü@bücher.example", ("a@b.example", "ü@xn--bcher-kva.example"), 1),
        ("用户@例子.example", "δ@example.com", ("用户@xn--fsqu00a.example", "δ@example.com"), 1),
        ("w@[192.0.2.1]", "ops@[IPv6:2001:db8::1]", ("w@[192.0.2.1]", "ops@[IPv6:2001:db8::1]"), 0),
    ],
)  # fmt: skip
def test_addresses_in_any_script_arrive(
    box: Outbox, server: Sink, sender: str, to: str, envelope: tuple[str, str], utf8: int
) -> None:
    box.configure(smtp_url=f"smtp://127.0.0.1:{server.port}?from=Wächter <{sender}>")
    assert smtp.check_sender(f"Wächter <{sender}>")
    row = box.send("email", to)
    assert row.status == DeliveryStatus.DELIVERED, row.attempts
    assert server.envelopes == [(envelope[0], [envelope[1]])]
    assert ("SMTPUTF8" in server.options[0]) is bool(utf8)
    (sent,) = server.mails
    (author,), (reader,) = sent["From"].addresses, sent["To"].addresses
    assert (utf8_of(author.display_name), utf8_of(author.addr_spec)) == ("Wächter", envelope[0])
    assert utf8_of(reader.addr_spec) == envelope[1]
    assert sent["Message-ID"].isascii()


def test_an_address_that_the_server_cannot_take_is_refused_for_good(
    box: Outbox, sink: Sink
) -> None:
    with mail_sink(sink, enable_SMTPUTF8=False):
        box.configure(smtp_url=f"smtp://127.0.0.1:{sink.port}?from=a@b.example")
        row = box.send("email", "jürgen@example.com")
    assert row.status == DeliveryStatus.FAILED
    assert "does not accept addresses with these characters" in row.reason


@pytest.mark.parametrize(
    ("public_url", "name"),
    [
        ("https://status.example.com/wakeful", "status.example.com"),
        ("https://wächter.example", "xn--wchter-bua.example"),
        ("http://wakeful:8000", "[127.0.0.1]"),
        ("http://192.0.2.7", "[127.0.0.1]"),
        (None, "[127.0.0.1]"),
    ],
)
def test_we_call_ourselves_by_a_name_that_others_can_look_up_or_by_our_address(
    box: Outbox, server: Sink, public_url: str | None, name: str
) -> None:
    """Postfix answers the bare name of a container with 504, and the alert would be lost."""
    box.configure(smtp_url=f"smtp://127.0.0.1:{server.port}", public_url=public_url)
    box.send("email", "ops@example.com")
    assert server.greeted == [name]
    assert server.envelopes == [(f"wakeful@{name}", ["ops@example.com"])]
    (sent,) = server.mails
    assert sent["Message-ID"].endswith(f"@{name}>")
    assert socket.gethostname() not in sent.as_string()


BAD = [
    "a", "a@", "@b.example", "a@b@c.example", "a b@c.example", "a@b..example", ".a@b.example",
    "a.@b.example", "a..b@c.example", "a@b.example\r\nBcc: x@y.example", "a@b.example\n",
    "a\r\nRCPT TO:<x@y.example>@b.example", "a>b@c.example", "a@<b.example>", "a(b)@c.example",
    "a@b.example (c)", "a@b.example,c@d.example", "a@b.example;c", "=?utf-8?q?a?=@b.example",
    "a@-b.example", "a@b-.example", "a@☃☃\u3000.example", "a\ud800@b.example",
    "a\x00@b.example", "a\x85@b.example", "a@[1.2.3]", "a@[IPv6:1.2.3.4]", "a@[x]", "a@b_.example",
    "ä" * 33 + "@b.example", "a@" + "ü" * 60 + ".example", "a@" + "b." * 150 + "example",
    '"a"@b.example', "a@b\u200b\ud800.example", "a@\u202eb.example",
]  # fmt: skip


@pytest.mark.parametrize("address", BAD, ids=ascii)
def test_what_could_be_read_as_more_than_one_address_is_refused_by_the_one_rule(
    address: str,
) -> None:
    with pytest.raises(ValueError, match="not an email address"):
        addresses.check(address)
    assert check_value("email", address, telegram_token_set=False)
    with pytest.raises(ValueError, match="Enter an address"):
        smtp.check_sender(address)


@pytest.mark.parametrize(
    "name", ["Wakeful\r\nBcc: x@y.example", "Wake\x00ful", "a\ud800"], ids=ascii
)
def test_the_name_of_a_sender_begins_no_header(name: str) -> None:
    with pytest.raises(ValueError, match="Enter an address"):
        smtp.check_sender(f"{name} <a@b.example>")
