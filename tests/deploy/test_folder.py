"""Wakeful in a folder of a site: the examples of deploy/, really started, and a proxy that removes
the folder from paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import pytest
import requests
from playwright.sync_api import expect

from tests.factories import PASSWORD, make_incident, make_key, make_person
from tests.pages.made import make_page, make_shown
from tests.support import nginx
from tests.support.browser import opened
from tests.support.proxies import DEPLOY, NGINX, Ports, caddy, certified, free_port, running
from tests.support.web_process import installation, web_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser


FOLDER = "/wakeful"
PAGE_PASSWORD = "let me in, please"
MAX_PAGES = 120
LINK = re.compile(r"""\s(href|src|action|data-[a-z-]+)=["']((?:/|\.|https?:)[^"']*)["']""")
SERVER = """
server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate     {folder}/fullchain.pem;
    ssl_certificate_key {folder}/privkey.pem;
    location / {{ return 418; }}
    {inside}
}}
"""
REMOVED = """
    location /wakeful/ {
        proxy_pass http://127.0.0.1:8000/;
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Host $host;
        proxy_set_header X-Forwarded-Prefix /wakeful;
    }
"""


def with_nginx(folder: Path, ports: Ports, inside: str | None = None) -> list[str]:
    text = inside or (DEPLOY / "nginx" / "folder.conf").read_text()
    # The port of this test is not one that browsers leave out.
    text = text.replace("$host", "$http_host").replace("127.0.0.1:8000", f"127.0.0.1:{ports.web}")
    server = SERVER.format(port=ports.https, folder=folder, inside=text)
    (folder / "wakeful.conf").write_text(server)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    return [nginx.program(), "-c", str(folder / "nginx.conf"), "-p", str(folder)]


def that_removes(folder: Path, ports: Ports) -> list[str]:
    return with_nginx(folder, ports, REMOVED)


def with_caddy(folder: Path, ports: Ports) -> list[str]:
    text = (DEPLOY / "caddy" / "folder.caddyfile").read_text()
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{ports.web}")
    site = f"https://localhost:{ports.https} {{\ntls {folder}/fullchain.pem {folder}/privkey.pem\n"
    return caddy(folder, f"{site}{text}\n}}\n")


@dataclass(frozen=True)
class Site:
    """``base``: what PUBLIC_URL says."""

    base: str
    port: int  # of Wakeful itself
    key: str
    monitor: int
    incident: int
    authority: Path

    def session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self.authority)
        session.headers["Referer"] = f"{self.base}/"  # as browsers send it, and CSRF checks ask
        return session


NGINX_ALONE = pytest.mark.parametrize(
    "site", [pytest.param(with_nginx, marks=pytest.mark.nginx, id="nginx")], indirect=True
)


@pytest.fixture(
    params=[
        pytest.param(with_nginx, marks=pytest.mark.nginx, id="nginx"),
        pytest.param(that_removes, marks=pytest.mark.nginx, id="nginx that removes the folder"),
        pytest.param(with_caddy, id="caddy"),
    ],
    scope="module",
)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("front")
    authority = certified(folder, "localhost")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    installed = installation(tmp_path_factory.mktemp("installed"), sqlite_template)
    with installed.app() as app:
        key = make_key(app)
        make_person(app)
        monitor = make_shown(app, verdict="down")
        incident = make_incident(app, monitor)
        make_page(app, [monitor])
        make_page(app, [monitor], slug="closed", name="Closed", password=PAGE_PASSWORD)
    base = f"https://localhost:{(https := free_port())}{FOLDER}"
    settings = {"TRUSTED_PROXIES": "127.0.0.1", "PUBLIC_URL": base}
    with web_process(installed, **settings) as web:
        ports = Ports(free_port(), https, web.port)
        with running(request.param(folder, ports), ports, folder):
            yield Site(base, web.port, key, monitor.id, incident.id, folder / "authority.pem")


def log_in(site: Site) -> requests.Session:
    session = site.session()
    page = session.get(f"{site.base}/login", timeout=60)
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page.text)
    assert token, page.text
    fields = {"email": "admin@wakeful.test", "password": PASSWORD, "csrf_token": token[1]}
    answer = session.post(f"{site.base}/login", fields, timeout=60, allow_redirects=False)
    assert answer.status_code == 302, answer.text
    assert urljoin(answer.url, answer.headers["Location"]) == f"{site.base}/"
    return session


@NGINX_ALONE
def test_every_link_of_every_page_leads_below_the_folder_and_works(site: Site):
    session = log_in(site)
    waiting, asked = [f"{site.base}/", f"{site.base}/status"], set()
    while waiting and len(asked) < MAX_PAGES:
        url = waiting.pop(0)
        if url in asked:
            continue
        asked.add(url)
        page = session.get(url, timeout=60)
        assert page.status_code == 200, (url, page.status_code)
        assert page.url.startswith(site.base), (url, page.url)
        if not page.headers["Content-Type"].startswith("text/html"):
            continue
        for name, written in LINK.findall(page.text):
            link = urljoin(page.url, unescape(written)).partition("#")[0]
            if urlsplit(link).netloc != urlsplit(site.base).netloc:
                continue
            assert f"{link}/".startswith(f"{site.base}/"), (url, written)
            closed = re.match(rf"{site.base}/status/closed[./]", link)
            if name in ("href", "src") and not closed and "?" not in link.partition("?v=")[0]:
                waiting.append(link)
    assert len(asked) > 60, "it went through the dashboard"


def test_cookies_belong_to_the_folder_and_to_https(site: Site):
    session = log_in(site)
    cookies = [cookie for cookie in session.cookies if cookie.name.startswith("__Secure-wakeful")]
    assert len(cookies) == 2, "of the session, and of the device"
    for cookie in session.cookies:
        assert (cookie.path, cookie.secure) == (FOLDER, True)
        assert not cookie.name.startswith("__Host-")


def test_the_api_gives_addresses_below_the_folder(site: Site):
    session, headers = site.session(), {"Authorization": f"Bearer {site.key}"}
    api = f"{site.base}/api/v1"
    listed = session.get(f"{api}/monitors", headers=headers, timeout=60).json()
    assert listed["links"]["first"].startswith(f"{api}/monitors?")
    assert listed["meta"]["path"] == f"{api}/monitors"
    fields = {"name": "New", "url": "http://new.example/", "interval": "60"}
    made = session.post(f"{api}/monitors", fields, headers=headers, timeout=60)
    assert made.headers["Location"].startswith(f"{api}/monitors/")
    assert session.get(made.headers["Location"], headers=headers, timeout=60).status_code == 200
    document = session.get(f"{api}/openapi.json", timeout=60).json()
    assert document["servers"] == [{"url": api}]
    pages = session.get(f"{api}/status-pages", headers=headers, timeout=60).json()["data"]
    assert {page["link"] for page in pages} == {
        f"{site.base}/status/example", f"{site.base}/status/closed",
    }  # fmt: skip
    missing = session.get(f"{api}/nothing", timeout=60)
    assert (missing.status_code, missing.json()["status"]) == (404, 404)


def test_a_page_with_a_password_keeps_its_cookie_below_its_own_path(site: Site):
    session = site.session()
    closed = f"{site.base}/status/closed"
    entered = session.post(closed, {"password": PAGE_PASSWORD}, timeout=60)
    assert (entered.status_code, entered.url) == (200, closed)
    assert "Shop" in entered.text
    assert {cookie.path for cookie in session.cookies} == {
        f"{FOLDER}/status/closed", f"{FOLDER}/status/closed.json",
    }  # fmt: skip
    missing = session.get(f"{site.base}/acknowledge/none", timeout=60)
    assert missing.status_code == 404
    assert f'href="{FOLDER}/' in missing.text
    feed = session.get(f"{site.base}/status/example/feed.atom", timeout=60).text
    assert f'href="{site.base}/status/example"' in feed


def test_the_machine_itself_is_asked_with_and_without_the_folder(site: Site):
    for path in ("/healthz", f"{FOLDER}/healthz"):
        asked = requests.get(f"http://127.0.0.1:{site.port}{path}", timeout=60)
        assert asked.json() == {"status": "ok"}


@NGINX_ALONE
@pytest.mark.browser
def test_a_person_works_in_the_folder_with_scripts(site: Site, chromium: Browser):
    with opened(chromium, ignore_https_errors=True) as page:
        page.goto(f"{site.base}/")
        page.get_by_label("Email").fill("admin@wakeful.test")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{site.base}/")
        page.goto(f"{site.base}/monitors")
        page.keyboard.press("Control+k")
        page.keyboard.type("shop")
        page.get_by_role("dialog").get_by_role("link", name="Shop").first.click()
        page.wait_for_url(f"{site.base}/monitors/{site.monitor}")
        page.goto(f"{site.base}/monitors/new")
        page.get_by_label("URL").fill("http://127.0.0.1:9/")
        page.get_by_role("button", name="Check now", exact=True).click()
        expect(page.locator("#outcome")).to_contain_text("refused")
        page.get_by_role("button", name="Save", exact=True).click()
        page.wait_for_url(re.compile(f"{re.escape(site.base)}/monitors/[0-9]+"))
        page.goto(f"{site.base}/wall")
        expect(page.get_by_text("Shop").first).to_be_visible()
        page.goto(f"{site.base}/status/example")
        expect(page.get_by_text("Shop").first).to_be_visible()
