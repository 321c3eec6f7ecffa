"""The main job, end to end: a real nginx stops, the incident opens, a person acknowledges it in a
browser, nginx starts again, the incident resolves. Only nginx is controlled by the test: the checks
that see the outage and the recovery are the scheduled ones.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.support.nginx import Nginx
from tests.support.service import Service, eventually

pytestmark = [pytest.mark.browser, pytest.mark.nginx, pytest.mark.slow, pytest.mark.timeout(420)]

EMAIL, PASSWORD = "ada@example.org", "a long enough passphrase"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Nginx]:
    """The site that will break."""
    server = Nginx(tmp_path / "shop", {"index.html": "<h1>Shop</h1>"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def others(tmp_path: Path) -> Iterator[Nginx]:
    """Two pages that stay up all the while."""
    server = Nginx(tmp_path / "others", {"docs.html": "Docs, all well", "blog.html": "Blog"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def service(tmp_path: Path, others: Nginx) -> Iterator[Service]:
    running = Service(
        tmp_path / "instance",
        CONFIRM_SECONDS="0.5",
        CANARIES=f"127.0.0.1:{others.port}",  # our own network: what stays up on this machine
    )
    running.start()
    yield running
    running.stop()


class Client:
    """The API as a stranger calls it, with the base API in hand."""

    def __init__(self, base: str, key: str) -> None:
        self.base = base
        self.headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}

    def get(self, path: str, **query: Any) -> Any:
        answer = requests.get(
            f"{self.base}/api/v1/{path}", headers=self.headers, params=query, timeout=60
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def post(self, path: str, **form: Any) -> Any:
        answer = requests.post(
            f"{self.base}/api/v1/{path}", headers=self.headers, data=form, timeout=60
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["data"]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_an_outage_of_a_real_nginx_is_detected_notified_acknowledged_and_closed(
    service: Service, shop: Nginx, others: Nginx, page: Page
) -> None:
    base = service.await_line(r"(http://127\.0\.0\.1:\d+)\S*")[1]
    link = service.await_line(r"http://\S+/setup/\S+")[0]

    # A newcomer makes the first account and the first monitor in the browser.
    page.goto(link)
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    page.goto(f"{base}/monitors/new")
    page.get_by_label("URL", exact=True).fill(shop.url())
    page.get_by_label("Name (optional)", exact=True).fill("Shop")
    page.get_by_label("Interval").select_option("10")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Shop")).to_be_visible()
    shop_id = int(re.search(r"/monitors/(\d+)", page.url)[1])

    # A stranger makes two more through the API.
    client = Client(base, service.command("key", "create", "ci", "--scope", "write"))
    docs = client.post(
        "monitors",
        name="Docs",
        url=others.url("docs.html"),
        interval=60,
        alert_condition="url_no_text",
        alert_text_lookup="all well",
    )
    blog = client.post("monitors", name="Blog", url=others.url("blog.html"), interval=60)

    def statuses() -> dict[str, str]:
        return {monitor["name"]: monitor["status"] for monitor in client.get("monitors")}

    eventually(
        lambda: statuses() == {"Shop": "up", "Docs": "up", "Blog": "up"}, "all monitors up", 30
    )

    # nginx goes away.
    stopped_at = datetime.now(UTC).replace(microsecond=0)
    shop.stop()
    [incident] = eventually(
        lambda: client.get("incidents", monitor_id=shop_id), "an incident opens", 60
    )
    assert incident["cause_code"] == "connection_refused"
    assert str(shop.port) in incident["cause"] or "refused" in incident["cause"]
    assert incident["status"] == "unresolved"
    failing = client.get(f"monitors/{shop_id}/results", verdict="down", per_page=100)
    first_failure = min(moment(result["checked_at"]) for result in failing)
    assert moment(incident["started_at"]) == first_failure >= stopped_at
    assert len(failing) >= 3, "the first failure and two confirming rechecks"

    # A person acknowledges it in the browser.
    page.goto(f"{base}/incidents/{incident['id']}")
    expect(page.get_by_text(incident["cause"]).first).to_be_visible()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text(EMAIL).first).to_be_visible()
    assert client.get(f"incidents/{incident['id']}")["status"] == "acknowledged"

    # nginx comes back.
    started_at = datetime.now(UTC).replace(microsecond=0)
    shop.start()
    resolved = eventually(
        lambda: (
            (resolved := client.get(f"incidents/{incident['id']}"))["status"] == "resolved"
            and resolved
        ),
        "the incident resolves",
        90,
    )
    assert moment(resolved["ended_at"]) >= started_at
    assert moment(resolved["acknowledged_at"]) <= moment(resolved["ended_at"])
    assert statuses() == {"Shop": "up", "Docs": "up", "Blog": "up"}

    # The two others were up all the while, and nobody was notified otherwise.
    for other in (docs, blog):
        assert client.get("incidents", monitor_id=other["id"]) == []
        assert not client.get(f"monitors/{other['id']}/results", verdict="down")
        assert client.get(f"monitors/{other['id']}/results", verdict="up")

    assert service.stop() in (0, -signal.SIGINT)
