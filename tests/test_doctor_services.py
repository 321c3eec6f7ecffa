"""``wakeful doctor`` asks the services of others as Wakeful does, and says what is wrong there."""

from __future__ import annotations

import json
import socket
from dataclasses import replace

import pytest
import requests
from aiosmtpd.smtp import AuthResult

from app.commands.doctor import examine
from app.net import icmp
from tests.alerts.sinks import MailSink, mail_sink
from tests.factories import make_monitor

pytestmark = pytest.mark.usefixtures("core")

TOKEN = "123456:hunter2-hunter2"
REGISTRIES = {
    "version": "1.0",
    "publication": "2026-11-01T00:00:00Z",
    "description": "",
    "services": [[["test"], ["http://127.0.0.1:9/"]]],
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def address(httpserver):
    return f"http://127.0.0.1:{httpserver.port}"


def findings(core, subject, **settings):
    changed = replace(core.extensions["wakeful.settings"], **settings)
    results = [result for result in examine(core, changed) if result.label == subject]
    assert not [result for result in results if "hunter2" in result.sentence]
    return [(result.is_problem, result.sentence) for result in results]


def test_a_machine_that_may_not_ping_is_a_fault_where_something_is_pinged(core, monkeypatch):
    assert findings(core, "ping") == [(False, "This machine may send pings.")] or icmp.why_not()
    monkeypatch.setattr(icmp, "open_socket", not_allowed)
    assert findings(core, "ping") == [(False, icmp.why_not())]
    make_monitor(core, url="ping://router.test")
    assert findings(core, "ping") == [(True, icmp.why_not())]


def not_allowed(_address):
    raise icmp.PingNotAllowed


GOOD = "127.0.0.1 answers and accepts the login."
REFUSED = "127.0.0.1 refuses the account or the token (HTTP 401)."
UNTOLD = "127.0.0.1 answers. Whether it accepts the login, only a test message tells (HTTP 404)."


@pytest.mark.parametrize(
    ("service", "status", "fault", "sentence"),
    [
        *((service, 200, False, GOOD) for service in ("Telegram", "twilio", "vonage")),
        *((service, 401, True, REFUSED) for service in ("Telegram", "twilio", "vonage")),
        ("Telegram", 500, True, "127.0.0.1 answers HTTP 500."),
        ("Telegram", 302, True, "127.0.0.1 answers HTTP 302."),
    ],
)
def test_the_account_of_a_service_is_asked_for(core, httpserver, service, status, fault, sentence):
    base = address(httpserver)
    twilio = f"twilio://AC1:hunter2@+15550100?api={base}"
    vonage = f"vonage://key:hunter2@Wakeful?api={base}"
    path, user, settings = {
        "Telegram": (f"/bot{TOKEN}/getMe", None, {"telegram_api": base, "telegram_token": TOKEN}),
        "twilio": ("/2010-04-01/Accounts/AC1.json", "AC1", {"sms_url": twilio}),
        "vonage": ("/account/get-balance", "key", {"sms_url": vonage}),
    }[service]
    answer = httpserver.expect_request(path, method="GET")
    answer.respond_with_data("{}", status=status, content_type="application/json")
    name = service if service == "Telegram" else "SMS"
    assert findings(core, name, **settings) == [(fault, sentence)]
    [(request, _response)] = httpserver.log
    login = user and requests.auth._basic_auth_str(user, "hunter2")
    assert request.headers.get("Authorization") == login


def test_a_gateway_that_knows_no_accounts_is_no_fault(core, httpserver):
    httpserver.expect_request("/2010-04-01/Accounts/AC1.json").respond_with_data("", status=404)
    url = f"twilio://AC1:hunter2@+15550100?api={address(httpserver)}"
    assert findings(core, "SMS", sms_url=url) == [(False, UNTOLD)]


@pytest.mark.parametrize("subject", ["Telegram", "SMS", "broker", "mail"])
def test_a_service_that_does_not_answer_is_a_fault(core, subject):
    port = free_port()
    api = f"http://127.0.0.1:{port}"
    [(fault, sentence)] = findings(
        core,
        subject,
        telegram_api=api,
        telegram_token=TOKEN,
        sms_url=f"twilio://AC1:hunter2@+15550100?api={api}",
        broker_url=f"redis://:hunter2@127.0.0.1:{port}/0",
        smtp_url=f"smtp://me:hunter2@127.0.0.1:{port}",
    )
    assert fault
    assert "127.0.0.1" in sentence


def test_remote_servers_are_asked_for_a_page_of_monitors_with_their_keys(core, httpserver):
    listed = httpserver.expect_request(
        "/api/v1/monitors", headers={"Authorization": "Bearer right"}
    )
    listed.respond_with_json({"data": []})
    httpserver.expect_request("/api/v1/monitors").respond_with_json({"message": "No."}, status=401)
    base = address(httpserver)
    here = f"127.0.0.1:{httpserver.port}"
    remotes = ((base, "right"), (f"http://localhost:{httpserver.port}", "hunter2"))
    good, bad = findings(core, "remote server", store="remote", remotes=remotes)
    assert good == (False, f"{here} answers and accepts its key.")
    assert bad[0]


def test_the_list_of_registries_is_read(core, httpserver):
    httpserver.expect_request("/good").respond_with_data(json.dumps(REGISTRIES))
    httpserver.expect_request("/bad").respond_with_data("{}")
    for path, fault in (("/good", False), ("/bad", True), ("/missing", True)):
        results = findings(core, "domain expiry", rdap_bootstrap=address(httpserver) + path)
        assert [result[0] for result in results] == [fault], path


class Refusing(MailSink):
    """It answers a wrong login, as mail servers do."""

    def authenticate(self, *asked):
        result = super().authenticate(*asked)
        return AuthResult(success=result.success, handled=result.success)


@pytest.mark.parametrize(
    ("password", "finding"),
    [
        ("mail%20password%20123", (False, GOOD)),
        ("hunter2", (True, "127.0.0.1 refuses the user name or the password (SMTP 535).")),
    ],
)
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_the_mail_server_is_asked_to_take_the_login(core, password, finding):
    with mail_sink(Refusing(), auth_required=True, auth_require_tls=False) as sink:
        url = f"smtp://me:{password}@127.0.0.1:{sink.port}"
        assert findings(core, "mail", smtp_url=url) == [finding]
        assert {login[0] for login in sink.logins} == {"me"}
        assert sink.mails == []
