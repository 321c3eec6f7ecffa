"""What a person enters as an Apprise URL reaches other services only: no file of this machine, and
no service on it. Each test talks to the process that sends through Apprise.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.alerts.sinks import HttpSink

Ask = Callable[[str], dict[str, str]]
TELEGRAM = "tgram://123456789:ABCdefGHIjklMNOpqrSTUvwxYZ012345678/1234"


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with subprocess.Popen(
        [sys.executable, "-m", "app.alerts.channels.apprise_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
    ) as child:

        def told(url: str) -> dict[str, str]:
            task = {"url": url, "title": "t", "body": "b", "kind": "info", "allow": ["loopback"]}
            child.stdin.write(json.dumps(task).encode() + b"\n")
            child.stdin.flush()
            return dict(json.loads(child.stdout.readline()))

        yield told
        child.kill()


@pytest.mark.parametrize(
    "url",
    [
        TELEGRAM + "?template={file}",
        TELEGRAM + "?template=file://{file}",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#ops?template={file}",
        "fcm://project/topic?keyfile={file}",
        "vapid://ann@example.org/ann@example.org?keyfile={file}",
        "mailto://ann:secret@127.0.0.1:9/?pgp=yes&pgpkey={file}",
    ],
)
def test_an_apprise_url_does_not_tell_whether_a_file_exists(
    ask: Ask, url: str, tmp_path: Path
) -> None:
    here = tmp_path / "here.json"
    here.write_text('{"text": "a secret"}')
    there = tmp_path / "gone.json"
    assert ask(url.format(file=here)) == ask(url.format(file=there))
    assert ask(url.format(file="/etc/passwd")) == ask(url.format(file="/etc/no-such-file"))


def test_a_template_on_this_machine_is_not_sent(ask: Ask, tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    card.write_text('{"text": "a secret"}')
    told = ask(f"{TELEGRAM}?template={card}")
    assert told["outcome"] == "permanent"
    assert "names a local file" in told["log"]


@pytest.mark.parametrize(
    "url", ["syslog://", "syslog://auth", "blink1://", "json://127.0.0.1:9/,syslog://auth"]
)
def test_a_service_on_this_machine_is_refused_also_behind_another_one(ask: Ask, url: str) -> None:
    told = ask(url)
    assert told["outcome"] == "permanent"
    assert "this machine only" in told["log"] or "does not know" in told["log"]


def test_nothing_is_sent_if_one_of_several_services_is_refused(ask: Ask, sink: HttpSink) -> None:
    assert ask(f"json://127.0.0.1:{sink.port}/,syslog://auth")["outcome"] == "permanent"
    assert sink.requests == []
    assert ask(f"json://127.0.0.1:{sink.port}/")["outcome"] == "delivered"
    assert len(sink.requests) == 1


def test_sms_manager_is_no_service_on_this_machine(ask: Ask) -> None:
    assert "this machine" not in ask("smsmanager://key@1234567890")["log"]
