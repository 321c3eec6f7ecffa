"""What the processes of Wakeful print holds no secret, also at the level DEBUG, when everything
that they talk to fails and repeats in its answer what it was sent.

What the pages and the API show is in tests/web/test_no_secret_is_shown.py.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
import requests

from app.commands import masking
from tests.alerts.sinks import HttpSink, Reply, mail_sink
from tests.lab.net import ClosedPort, Connection, Listener
from tests.support import command
from tests.support.service import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Canaries(dict[str, str]):
    """Secrets by where they were planted."""

    def new(self, where: str, before: str = "") -> str:
        self[where] = secret = f"{before}canary{len(self):02}{where}kept"
        return secret

    def shown_in(self, text: str) -> list[str]:
        """Half of a secret counts too, which a mask or a cut may leave."""
        return [where for where, secret in self.items() if secret[: len(secret) // 2 + 4] in text]


def loudly(file: str, *words: str) -> None:
    """Be ``wakeful WORDS`` that logs everything, and print to this file."""
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    masking.mask_streams()  # before the log's handler takes the stream
    logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s %(message)s")
    logging.getLogger("sqlalchemy").setLevel(logging.DEBUG)  # it does not follow the root's level
    command.be(*words)


@contextmanager
def printing(folder: Path, *words: str, **settings: str) -> Iterator[Path]:
    """The file that a running ``wakeful WORDS`` prints to."""
    environ = {"PATH": os.environ["PATH"], "WAKEFUL_INSTANCE": str(folder)}
    environ |= {"WAKEFUL_CANARIES": "", "WAKEFUL_BIND": "127.0.0.1:0"}
    environ |= {f"WAKEFUL_{name}": value for name, value in settings.items()}
    log_file = folder.with_name(f"{folder.name}-{'-'.join(words)}.log".replace("/", "_"))
    process = command.start(loudly, str(log_file), *words, environ=environ)
    try:
        yield log_file
    finally:
        process.terminate()
        process.join(60)
        process.kill()
        process.close()


def text_of(log_file: Path) -> str:
    return log_file.read_text(errors="replace") if log_file.exists() else ""


def await_text(log_file: Path, words: str) -> str:
    """The output, once these words are in it."""
    try:
        eventually(lambda: words in text_of(log_file), words)
    except AssertionError:
        raise AssertionError(text_of(log_file)) from None
    return text_of(log_file)


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_a_service_whose_alerts_and_checks_all_fail_prints_no_secret(tmp_path):
    planted = Canaries()
    sink = HttpSink()
    sink.replies.default_factory = lambda: [Reply(400, act="echo")]
    folder = tmp_path / "instance"
    signing = planted.new("webhooksecret")
    settings = {
        "SECRET_KEY": planted.new("secretkey"),
        "WEBHOOK_SECRET": f"whsec_{base64.b64encode(signing.encode()).decode()}",
        "METRICS_TOKEN": planted.new("metricstoken"),
        "TELEGRAM_TOKEN": planted.new("telegramtoken", "123456:"),
        "TELEGRAM_API": sink.url,
        "SMS_URL": f"twilio://AC0:{planted.new('smstoken')}@+15550001111?api={sink.url}",
        "ALLOW_NETWORKS": "loopback",
        "CONFIRM_SECONDS": "0",
    }
    planted["signing"] = settings["WEBHOOK_SECRET"].removeprefix("whsec_")
    with (
        closing(sink),
        closing(ClosedPort()) as nobody,
        mail_sink(auth_required=True, auth_require_tls=False) as mail,
    ):
        settings["SMTP_URL"] = (
            f"smtp://mailer:{planted.new('smtp')}@127.0.0.1:{mail.port}?from=a@example.org"
        )
        settings["HEARTBEAT_URL"] = f"http://127.0.0.1:{nobody.port}/{planted.new('heartbeat')}"
        key = command.wakeful(
            ["key", "create", "tests", "--scope", "write"],
            {"WAKEFUL_INSTANCE": str(folder), "WAKEFUL_SECRET_KEY": settings["SECRET_KEY"]},
        ).stdout.strip()
        planted["api key"] = key.split("_", 2)[2]
        with printing(folder, "serve", **settings) as log_file:
            base = await_text(log_file, "Wakeful runs at").split("Wakeful runs at ")[1].split()[0]
            headers = {"Authorization": f"Bearer {key}"}
            monitor = failing_monitor(planted, sink.url, nobody.port)

            def deliveries():
                answer = requests.get(
                    f"{base}/api/v1/deliveries?per_page=100", headers=headers, timeout=30
                )
                return answer.json()["data"]

            stored = requests.post(
                f"{base}/api/v1/monitors", json=monitor, headers=headers, timeout=30
            )
            assert stored.status_code == 201, stored.text
            bad = {"Authorization": f"Bearer wk_abcdefgh_{planted.new('badkey')}"}
            assert requests.get(f"{base}/api/v1/me", headers=bad, timeout=30).status_code == 401
            channels = len(monitor["alerts"])
            eventually(
                lambda: sum(bool(delivery["attempts"]) for delivery in deliveries()) == channels,
                "all fail",
            )
            sent = deliveries()
            requests.patch(
                f"{base}/api/v1/monitors/1",
                json={"url": f"http://127.0.0.1:{nobody.port}/else"},
                headers=headers,
                timeout=30,
            )
        printed = text_of(log_file)
    assert {delivery["event"] for delivery in sent} == {"incident.opened"}
    assert not any(delivery["status"] == "delivered" for delivery in sent)
    assert mail.logins[0] == ("mailer", planted["smtp"]), "the mail server refused the password"
    assert "DEBUG sqlalchemy.engine.Engine" in printed, "the level was set"
    assert planted.shown_in(printed) == []


def failing_monitor(planted: Canaries, sink: str, nobody: int) -> Mapping[str, object]:
    """A monitor with a secret in each place that takes one, whose checks and alerts all fail."""
    hooks = ("webhook", "slack", "teams", "discord", "flock")
    alerts = [{"key": hook, "value": f"{sink}/{planted.new(hook)}"} for hook in hooks]
    bot = planted.new("bot", "654321:")
    alerts += [
        {"key": "telegram", "value": f"{bot}/-100200"},
        {"key": "telegram", "value": "-100300"},
        {"key": "sms", "value": "+447700900123"},
        {"key": "email", "value": "ops@example.org"},
        {
            "key": "apprise",
            "value": f"json://u:{planted.new('apprise')}@{sink.removeprefix('http://')}/x",
        },
    ]
    return {
        "name": "Shop", "url": f"http://127.0.0.1:{nobody}/", "interval": 60,
        "alert_condition": "url_unavailable", "confirmations": 0, "request_method": "POST",
        "request_auth_username": "robot", "request_auth_password": planted.new("password"),
        "request_body": planted.new("body"),
        "request_headers": [{"key": "X-Key", "value": planted.new("header")}], "alerts": alerts,
    }  # fmt: skip


def postgres_that_says(words: str) -> Listener:
    """A database that refuses everybody, and says why in these words."""

    def refuse(connection: Connection) -> None:
        if connection.receive()[4:8] == bytes.fromhex("04d2162f"):  # asks for TLS
            connection.send(b"N")
            connection.receive()
        fields = b"SFATAL\0C28P01\0M" + words.encode() + b"\0\0"
        connection.send(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)

    return Listener(refuse)


def test_a_database_that_repeats_its_url_in_a_refusal_has_no_password_printed(tmp_path):
    planted = Canaries()
    password = planted.new("p@ss/word")
    planted["as in the URL"] = quote(password, safe="")
    url = f"wakeful:{planted['as in the URL']}@127.0.0.1"
    refusal = f'password "{password}" failed (postgresql://{url}/wakeful)'
    with closing(postgres_that_says(refusal)) as server:
        setting = f"postgresql://{url}:{server.port}/wakeful"
        with printing(tmp_path / "instance", "serve", DATABASE_URL=setting) as output:
            printed = await_text(output, "cannot be used")
    assert planted.shown_in(printed) == []


@pytest.mark.parametrize("words", [["prober"], ["checker", "--carrier", "queue"]])
def test_a_broker_that_repeats_its_url_in_a_refusal_has_no_password_printed(tmp_path, words):
    planted = Canaries()
    planted["batch key"] = base64.b64encode(os.urandom(32)).decode()
    password = planted.new("broker")

    def refuse(connection: Connection) -> None:
        while connection.receive():
            connection.send(f"-ERR no user for redis://:{password}@127.0.0.1\r\n".encode())

    folder = tmp_path / "instance"
    command.wakeful(["db", "upgrade"], {"WAKEFUL_INSTANCE": str(folder)})
    with closing(Listener(refuse)) as broker:
        settings = {"BATCH_KEY": planted["batch key"], "LOCATION": "eu"}
        settings["BROKER_URL"] = f"redis://:{password}@127.0.0.1:{broker.port}/0"
        with printing(folder, *words, **settings) as output:
            printed = await_text(output, "The broker cannot be used")
    assert planted.shown_in(printed) == []


def test_an_agent_whose_server_repeats_its_token_prints_no_secret(tmp_path):
    planted = Canaries()
    token = planted.new("agenttoken", "wka_")
    with closing(HttpSink()) as sink:
        sink.replies.default_factory = lambda: [Reply(401, act="echo")]
        with printing(tmp_path / "agent", "agent", SERVER=sink.url, AGENT_TOKEN=token) as output:
            printed = await_text(output, "not Wakeful's API (status 401)")
            assert any(token in request.headers["authorization"] for request in sink.requests)
    assert planted.shown_in(printed) == []
    assert (tmp_path / "agent" / "agent_key").read_text().strip() not in printed


@pytest.mark.parametrize(("password", "shown"), [("s3cret7", True), ("s3cret78", False)])
def test_a_password_is_masked_unless_it_is_so_short_that_ordinary_words_would_be(
    monkeypatch, password, shown
):
    out, err = streams(monkeypatch)
    url = f"postgresql://u:{password}@h/d"
    masking.mask_streams({"WAKEFUL_DATABASE_URL": url, "WAKEFUL_WEBHOOK_SECRET": "whsec_abcdefgh"})
    for stream in (sys.stdout, sys.stderr):
        print(url, file=stream)
        assert ("u:••••@h" not in stream.getvalue()) == (password in stream.getvalue()) == shown
    print("whsec_abcdefgh")
    print("whsec_abcdefgh", file=sys.stderr)
    assert "whsec_abcdefgh" in out.getvalue(), "wakeful webhook-secret is there to print it"
    assert "abcdefgh" not in err.getvalue()


def streams(monkeypatch):
    """The text on standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    return out, err


PASSWORD = 'it\'s + a/\\ "größe"\n%41'


@pytest.mark.parametrize(
    "printed",
    [
        PASSWORD,
        repr(PASSWORD),
        ascii(PASSWORD),
        json.dumps(PASSWORD),
        quote(PASSWORD, safe=""),
        quote(PASSWORD, safe="").lower(),
        quote(PASSWORD, safe=" +"),  # as SQLAlchemy writes a URL
        quote_plus(PASSWORD),
    ],
)
def test_a_password_is_masked_however_a_library_spells_it(monkeypatch, printed):
    out, _err = streams(monkeypatch)
    url = f"postgresql://u:{quote(PASSWORD, safe='')}@h/d"
    masking.mask_streams({"WAKEFUL_DATABASE_URL": url})
    print(f"cannot reach {printed}@h", end="")
    assert out.getvalue().replace('"', "").replace("'", "") == "cannot reach ••••@h"


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "all_proxy"])
def test_the_password_of_a_proxy_is_masked(monkeypatch, name):
    out, _err = streams(monkeypatch)
    masking.mask_streams({name: "http://agent:Vp9-unseen@proxy.test:3128"})
    print("407 from http://agent:Vp9-unseen@proxy.test:3128")
    assert out.getvalue() == "407 from http://agent:••••@proxy.test:3128\n"
