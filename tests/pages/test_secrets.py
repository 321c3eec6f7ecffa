"""Values that a page does not show are in none of its public answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urljoin

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.pages import routes
from tests.factories import make_incident, now
from tests.pages.made import make_page, make_post, make_shown, make_window

CANARIES = ("canary", "10.11.12.13", "koel", "secret")


def test_addresses_hosts_and_internal_names_are_in_no_answer(app: Flask, client: FlaskClient):
    shown = make_shown(
        app,
        "canary-internal-name",
        "down",
        url="https://user-canary.host.example:8443/canary?koel=1",
        state={"cause": "10.11.12.13 refused", "cause_code": "connection_refused"},
        tags="\nsecret-tag\n",
    )
    hidden = make_shown(app, "canary-hidden", "down", url="tcp://10.11.12.13:22")
    make_incident(
        app,
        shown,
        cause="canary.host at 10.11.12.13 refused the connection",
        comment="a secret remark",
        started_at=now() - timedelta(hours=1),
    )
    make_incident(app, hidden, cause="canary-hidden is down")
    make_incident(
        app,
        shown,
        by_hand=True,
        cause="Koel saw the secret canary die",
        cause_code=None,
        started_at=now() - timedelta(days=2),
        ended_at=now() - timedelta(days=2) + timedelta(hours=1),
    )
    make_window(app, "canary works", now() + timedelta(1), now() + timedelta(2), [hidden])
    page = make_page(app, [shown], names={shown.id: "Website"}, domain="status.example.com")
    make_post(app, page, "Down", monitors=[shown])
    other = make_page(app, [hidden], name="canary page", slug="secret", visibility="unlisted")
    make_post(app, other, "secret post", monitors=[hidden])

    make_page(app, [hidden, shown], name="canary door", slug="door", password="the secret word")

    crawl = Crawl(client, [shown.id, hidden.id])
    crawl.every("/status/example", "http://localhost")
    crawl.every("", "http://status.example.com")
    crawl.every("/status/door", "http://localhost")
    crawl.ask("/status", "http://localhost")
    for link in ("/status/nobody", "/status/example/nothing", "/status/secret/x", "/status/%00"):
        crawl.ask(link, "http://localhost")
    assert {"200", "403", "404", "405", "422"} <= crawl.statuses
    assert len(crawl.answers) > 300

    crawl.answers.clear()
    client.post("/status/door", data={"password": "the secret word"})
    crawl.every("/status/door", "http://localhost", shown=("canary",))  # in names, which it shows
    assert any("canary-hidden" in answer.text for answer in crawl.answers)
    hosts = ("canary.host", "host.example", "/canary", "user-canary")
    assert not [entry for entry in crawl.answers if any(host in entry.text for host in hosts)]


class Crawl:
    """Asks for every public answer of a page, and what they link to; none may have a canary."""

    def __init__(self, client: FlaskClient, ids: list[int]) -> None:
        self.client, self.ids = client, ids
        self.answers: list[TestResponse] = []

    @property
    def statuses(self) -> set[str]:
        return {str(answer.status_code) for answer in self.answers}

    def every(self, front: str, base: str, shown: Sequence[str] = ()) -> None:
        """``shown``: canaries that this page shows."""
        names = [
            "history",
            "nothing",
            *(entry.name for entry in (*routes.CACHED_ROUTES, *routes.FORM_ROUTES)),
        ]
        paths = [front or "/", f"{front}.json" if front else "/summary.json"]
        for name in names:
            for id in (*self.ids, 999, 2**70):
                for token in ("1-1-1-1-1", "x"):
                    path = name.replace("<id>", str(id)).replace("<token>", token)
                    paths.append(f"{front}/{path}")
        for month in (f"{now():%Y-%m}", f"{now() - timedelta(days=40):%Y-%m}", "1990-01", "x"):
            paths.append(f"{front}/history?month={month}")
        asked: set[str] = set()
        while paths:
            path = paths.pop()
            if path in asked:
                continue
            asked.add(path)
            answer = self.ask(path, base, shown)
            if answer.mimetype == "text/html":
                links = re.findall(r'(?:href|src|action)="([^"#]+)', answer.text)
                there = [urljoin(path, link.replace("&amp;", "&")) for link in links]
                paths += [link for link in there if link.startswith(f"{front}/")]
        assert len(asked) > 25

    def ask(self, path: str, base: str, shown: Sequence[str] = ()) -> TestResponse:
        first = None
        for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS"):
            form = {"channel": "email", "target": "x"} if method == "POST" else None
            answer = self.client.open(path, base_url=base, method=method, data=form)
            text = f"{answer.headers}{answer.text}".lower()
            leaks = [word for word in CANARIES if word in text and word not in shown]
            assert not leaks, (method, base, path, leaks)
            self.answers.append(answer)
            first = first or answer
        assert first is not None
        return first


def test_nothing_comes_from_elsewhere_and_no_script_is_in_the_page(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app)])
    for path in ("/status", "/status/example", "/status/example/history", "/status/nobody"):
        answer = client.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "://" not in answer.text.replace("http://www.w3.org/", "")
        assert "<script>" not in answer.text
        assert "style=" not in answer.text
