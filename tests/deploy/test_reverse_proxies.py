"""The proxies of deploy/, really started in front of a real ``wakeful web``."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.factories import make_key
from tests.support import nginx
from tests.support.proxies import (
    DEPLOY,
    NGINX,
    Command,
    Ports,
    caddy,
    certified,
    free_port,
    running,
)
from tests.support.web_process import Web, installation, web_process

NAME = "wakeful.example.org"


def with_nginx(folder: Path, ports: Ports) -> Command:
    """The file that the manual says to copy, with other ports and certificates."""
    program = nginx.program()
    text = (DEPLOY / "nginx" / "wakeful.conf").read_text()
    text = re.sub(r"\n +listen \[::\].*", "", text)
    text = text.replace("listen 80;", f"listen 127.0.0.1:{ports.http};")
    text = text.replace("listen 443 ", f"listen 127.0.0.1:{ports.https} ")
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{ports.web}")
    text = text.replace("/etc/ssl/wakeful", str(folder))
    (folder / "wakeful.conf").write_text(text)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    command = [program, "-c", str(folder / "nginx.conf"), "-p", str(folder)]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr
    assert "emerg" not in tested.stderr
    return command


def with_caddy(folder: Path, ports: Ports) -> Command:
    """The same for Caddy, which asks nobody for a certificate here."""
    text = (DEPLOY / "caddy" / "Caddyfile").read_text()
    site = f"https://{NAME}:{ports.https} {{\n\ttls {folder}/fullchain.pem {folder}/privkey.pem\n"
    text, replaced = re.subn(rf"^{re.escape(NAME)} {{\n", site, text, flags=re.MULTILINE)
    assert replaced == 1
    assert f"http://{NAME} {{" in text
    text = text.replace(f"http://{NAME} {{", f"http://{NAME}:{ports.http} {{")
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{ports.web}")
    return caddy(folder, text)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class Front:
    """A proxy that runs; ``ask`` as a visitor does who looked its name up. ``key``: of the API."""

    key: str
    ports: Ports
    trust: ssl.SSLContext

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        source: str = "127.0.0.1",
        **headers: str,
    ) -> Answer:
        plain = socket.create_connection(("127.0.0.1", self.ports.https), 60, (source, 0))
        with closing(HTTPConnection(NAME)) as connection:
            connection.sock = self.trust.wrap_socket(plain, server_hostname=NAME)
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, sent)
            return read(connection)


def read(connection: HTTPConnection) -> Answer:
    with connection.getresponse() as answer:
        return Answer(answer.status, answer.headers, answer.read().decode())


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[tuple[str, Web]]:
    """Wakeful behind a proxy, configured as the manual says."""
    installed = installation(tmp_path_factory.mktemp("installed"), sqlite_template)
    with installed.app() as app:
        key = make_key(app)
    settings = {"TRUSTED_PROXIES": "127.0.0.1", "PUBLIC_URL": f"https://{NAME}"}
    with web_process(installed, **settings) as web:
        yield key, web


@pytest.fixture(
    params=[
        pytest.param(with_nginx, marks=pytest.mark.nginx, id="nginx"),
        pytest.param(with_caddy, id="caddy"),
    ],
    scope="module",
)
def front(
    request: pytest.FixtureRequest, web: tuple[str, Web], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    folder = tmp_path_factory.mktemp("front")
    authority = certified(folder, NAME)
    key, behind = web
    ports = Ports(free_port(), free_port(), behind.port)
    make: Callable[[Path, Ports], Command] = request.param
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with running(make(folder, ports), ports, folder):
        yield Front(key, ports, trust)


def test_visitors_get_the_dashboard_over_https_with_cookies_for_https_alone(front: Front):
    page = front.ask("/login")
    assert page.status == 200
    assert 'name="csrf_token"' in page.text
    assert "Secure" in page.headers["Set-Cookie"]


def test_links_have_the_name_that_visitors_know_whatever_they_claim(front: Front):
    forged = {"X_Forwarded_Host": "evil.example", "X_Forwarded_Proto": "http"}
    forged["X_Forwarded_For"] = "127.0.0.1"
    asked = front.ask("/api/v1/monitors", Authorization=f"Bearer {front.key}", **forged)
    assert asked.status == 200, asked.text
    assert f'"first":"https://{NAME}/api/v1/' in asked.text
    assert "evil.example" not in asked.text


def test_metrics_are_not_for_strangers(front: Front):
    assert front.ask("/metrics").status == 200
    assert front.ask("/metrics", source="127.0.0.2").status == 403
    forged = front.ask("/metrics", source="127.0.0.2", X_Forwarded_For="127.0.0.1")
    assert forged.status == 403


def test_a_body_that_is_too_large_is_refused_and_says_so(front: Front):
    refused = front.ask("/login", "POST", b"a" * (4 * 1024 * 1024 + 1))
    assert (refused.status, "too large" in refused.text.lower()) == (413, True), refused.text
    taken = front.ask("/login", "POST", b"a" * 100_000)
    assert taken.status in (400, 403), "Wakeful's own answer to a form without its token"


def job_of(front: Front) -> dict[str, str]:
    sent = {"Authorization": f"Bearer {front.key}", "Content_Type": "application/json"}
    body = json.dumps({"name": "Backup", "url": "heartbeat:"}).encode()
    return dict(json.loads(front.ask("/api/v1/monitors", "POST", body, **sent).text)["data"])


def test_a_ping_counts_however_much_its_job_writes(front: Front):
    job = job_of(front)
    command = [
        "curl",
        "-fsSk",
        "-m",
        "30",
        "--data-binary",
        "@-",
        "--connect-to",
        f"::127.0.0.1:{front.ports.https}",
    ]
    output = b"a" * 20 * 1024 * 1024
    called = subprocess.run(
        [*command, job["ping_url"]], input=output, capture_output=True, check=False
    )
    assert (called.returncode, called.stdout) == (0, b"OK"), called.stderr
    pings = f"/api/v1/monitors/{job['id']}/pings"
    bearer = {"Authorization": f"Bearer {front.key}"}
    [ping] = json.loads(front.ask(pings, **bearer).text)["data"]
    kept = json.loads(front.ask(f"{pings}/{ping['id']}", **bearer).text)["data"]
    assert kept["body"] == "a" * 10_000


def test_pings_of_one_address_in_the_same_second_are_all_taken(front: Front):
    """Cron at midnight, behind one router."""
    path = job_of(front)["ping_url"].partition(NAME)[2]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _number: front.ask(path).status, range(300)))
    assert set(answers) == {200}


def test_a_ping_over_plain_http_is_taken_and_not_redirected(front: Front):
    """curl takes a redirect for a success, does not follow it, and the ping is lost."""
    job = job_of(front)
    token = job["ping_url"].rpartition("/")[2]
    for path in (f"/ping/{token}", f"/api/push/{token}", f"/api/v1/heartbeat/{token}"):
        assert over_http(front, path).status == 200, path


def over_http(front: Front, path: str, **headers: str) -> Answer:
    with closing(HTTPConnection("127.0.0.1", front.ports.http, timeout=60)) as connection:
        connection.request("GET", path, headers={"Host": NAME, **headers})
        return read(connection)


@pytest.mark.parametrize("path", ["/status/shop?x=1", "/apis"])
def test_pages_over_plain_http_lead_to_https(front: Front, path: str):
    answer = over_http(front, path)
    assert (answer.status, answer.headers["Location"]) == (301, f"https://{NAME}{path}")


@pytest.mark.parametrize("path", ["/api/v1/monitors", "//api/v1/me", "/metrics"])
def test_a_program_that_sends_its_key_over_plain_http_is_refused_with_a_reason(
    front: Front, path: str
):
    """It would follow a redirect, and nobody would notice that its key can be read."""
    answer = over_http(front, path, Authorization=f"Bearer {front.key}")
    assert (answer.status, answer.headers["Content-Type"]) == (403, "application/json")
    message = json.loads(answer.text)
    assert message["status"] == 403
    assert message["message"].startswith(f"Use https://{NAME}. A key that was sent here")
    assert "Location" not in answer.headers
    assert front.key not in answer.text
