"""End to end: ``wakeful serve`` without email, then email set up on the dashboard, while the worker
and the web server keep running.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.alerts.sinks import MailSink
from tests.support.service import Service, eventually

pytestmark = pytest.mark.slow

PASSWORD, NEW = "correct horse battery staple", "another long password"


class Browser:
    """Opens pages and sends their forms, with a token of the page."""

    def __init__(self, base: str) -> None:
        self.base, self.session = base, requests.Session()
        self.session.trust_env = False

    def open(self, path: str) -> requests.Response:
        return self.session.get(f"{self.base}{path}", timeout=60)

    def send(self, page: str, to: str | None = None, **fields: str) -> requests.Response:
        token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', self.open(page).text)
        assert token
        answer = self.session.post(
            f"{self.base}{to or page}",
            data={"csrf_token": html.unescape(token[1]), **fields},
            headers={"Referer": self.base},
            timeout=60,
        )
        assert answer.ok, answer.text
        return answer


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    running = Service(tmp_path / "instance", CANARIES="")
    running.start()
    yield running
    running.stop()


def links(mail: MailSink, kind: str) -> list[str]:
    texts = [part.get_content() for sent in mail.mails for part in sent.iter_parts()]
    return list(dict.fromkeys(re.findall(rf"(/{kind}/[\w-]+)", " ".join(texts))))


def test_email_set_up_on_the_dashboard_is_used_by_every_process(
    service: Service, mail: MailSink
) -> None:
    address = service.await_line(r"(http://[^/\s]+)(/setup/\S+)")
    admin = Browser(address[1])
    twice = {"password": PASSWORD, "password_again": PASSWORD, "time_zone": "UTC"}
    admin.send(address[2], email="ada@example.org", **twice)
    server = {"host": "127.0.0.1", "port": str(mail.port), "tls": "offered"}
    admin.send("/settings/email", sender="Wakeful <wakeful@example.org>", **server)

    contact = {"name": "Team", "channels[0][key]": "email"}
    contact |= {"channels[0][value]": "ops@example.org", "min_severity": "all"}
    tried = admin.send("/contacts/new", **{**contact, "try": "channels"})
    eventually(
        lambda: [sent for sent in mail.mails if sent["To"] == "ops@example.org"], "the alert"
    )
    assert "SMTP 250" in tried.text

    admin.send("/people/invite", email="eve@example.org", role="viewer")
    (invitation,) = links(mail, "invitation")
    eve = Browser(address[1])
    assert "You are logged in." in eve.send(invitation, name="Eve", **twice).text

    Browser(address[1]).send("/login/forgotten", email="eve@example.org")
    (link,) = eventually(lambda: links(mail, "new-password"), "the link")
    assert eve.open("/profile").url.endswith("/profile")
    Browser(address[1]).send(link, password=NEW, password_again=NEW)
    assert "/login" in eve.open("/profile").url
    eve.send("/login", email="eve@example.org", password=NEW)
    assert eve.open("/profile").url.endswith("/profile")
    assert not [line for line in service.lines if link in line or invitation in line]
