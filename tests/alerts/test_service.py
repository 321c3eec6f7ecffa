"""The whole of it: ``wakeful serve``, a real outage and recovery, and nine channels that hear of
it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.alerts.sinks import HttpSink, MailSink
from tests.alerts.test_channels import TOKEN, TWILIO_OK, TWILIO_PATH
from tests.support.service import Service, eventually

PATHS = {
    "webhook": "/webhook",
    "slack": "/slack",
    "teams": "/teams",
    "discord": "/discord",
    "flock": "/flock",
    "telegram": f"/bot{TOKEN}/sendMessage",
    "sms": TWILIO_PATH,
    "apprise": "/apprise",
}


class Target:
    """A site that is up or down as it is told."""

    def __init__(self) -> None:
        self.status = 200
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(target.status)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.close()


@pytest.fixture
def service(tmp_path: Path, sink: HttpSink, mail: MailSink) -> Iterator[Service]:
    running = Service(
        tmp_path / "instance",
        CONFIRM_SECONDS="0.1",
        CANARIES=f"127.0.0.1:{sink.port}",
        SMTP_URL=f"smtp://127.0.0.1:{mail.port}?from=alerts@example.com",
        TELEGRAM_API=sink.url,
        SMS_URL=f"twilio://AC0account:token@+15550001111?api={sink.url}",
    )
    running.start()
    yield running
    running.stop()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_real_outage_and_its_recovery_reach_all_nine_channels_in_order_within_five_seconds(
    service: Service, target: Target, sink: HttpSink, mail: MailSink
) -> None:
    base = service.await_line(r"(http://127\.0\.0\.1:\d+)\S*")[1]
    key = service.command("key", "create", "ci", "--scope", "write")
    sink.replies[TWILIO_PATH] = [TWILIO_OK]

    def call(method: str, path: str, **form: Any) -> Any:
        answer = requests.request(
            method,
            f"{base}/api/v1/{path}",
            headers={"Authorization": f"Bearer {key}"},
            data=form or None,
            timeout=60,
        )
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["data"]

    values = {name: f"{sink.url}{path}" for name, path in PATHS.items()}
    values |= {
        "email": "ops@example.com",
        "telegram": f"{TOKEN}/-100",
        "sms": "+447700900123",
        "apprise": f"json://127.0.0.1:{sink.port}/apprise",
    }
    alerts = {}
    for place, (channel, value) in enumerate(values.items()):
        alerts |= {f"alerts[{place}][key]": channel, f"alerts[{place}][value]": value}
    fields = {"name": "Shop", "url": target.url, "interval": 60, "confirmations": 1}
    shop = call("POST", "monitors", **fields, **alerts)
    eventually(lambda: call("GET", f"monitors/{shop['id']}")["status"] == "up", "it is up", 30)

    def told() -> int:
        return len(mail.mails) + len({request.path for request in sink.requests})

    target.status = 503
    call("POST", f"monitors/{shop['id']}/check")
    opened = eventually(lambda: call("GET", f"incidents?monitor_id={shop['id']}"), "it opens", 60)
    began = time.monotonic()
    eventually(lambda: told() == 9, "nine channels are told", 20)
    assert time.monotonic() - began <= 5

    target.status = 200
    call("POST", f"monitors/{shop['id']}/check")
    eventually(lambda: len(mail.mails) + len(sink.requests) == 18, "all are told again", 60)

    for path in PATHS.values():
        first, second = (request.raw.decode() for request in sink.to(path))
        assert "Up" in second or "resolved" in second, path
        assert "Down" in first or "opened" in first, path
    log = eventually(
        lambda: (
            (rows := call("GET", f"deliveries?per_page=25&incident_id={opened[0]['id']}"))
            and all(row["status"] == "delivered" for row in rows)
            and rows
        ),
        "the log says delivered",
        20,
    )
    assert len(log) == 18
    assert all(row["attempts"][-1]["answer"] for row in log)
    assert TOKEN.partition(":")[2] not in str(log)
