"""What a page does not show is in none of its public answers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.pages import routes
from tests.factories import make_incident, now
from tests.pages.made import make_page, make_post, make_shown, make_window

CANARIES = ("canary", "10.11.12.13", "koel", "secret")


@pytest.mark.sqlite
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

    paths = ["/status", "/status/example", "/status/example.json", "/status/example?x=canary"]
    for name in ("history", *(one.name for one in (*routes.SHOWN, *routes.ASKED))):
        for id in (shown.id, hidden.id):
            paths.append(f"/status/example/{name.replace('<id>', str(id))}")
    answers = [client.get(path) for path in dict.fromkeys(paths)]
    answers += [
        client.get(
            path.removeprefix("/status/example") or "/", base_url="http://status.example.com"
        )
        for path in paths[1:]
    ]

    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    for answer in answers:
        told = f"{answer.headers}{answer.text}".lower()
        found = [word for word in CANARIES if word in told]
        assert not found, (answer.request.path, found)


@pytest.mark.sqlite
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
