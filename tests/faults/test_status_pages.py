"""Faults that attacks on status pages have found: names that strangers could read, links that died,
readers who were locked out, and damage that spread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select, text

from app.access.tokens import Purpose, subscription_token
from app.commands.doctor import examine
from app.db import db, unreadable, writing
from app.db.tables import PostRow, PostTemplateRow, StatusPageRow, SubscriberRow
from app.engine.posts import write_due
from app.stores import current_store
from tests.api.conftest import Api
from tests.factories import make_incident, make_key, make_person, make_subscriber, now
from tests.pages.made import change_page, make_day, make_page, make_post, make_shown
from tests.web.visitor import Visitor

SECRET = "let me in, please"
OWN = {"base_url": "https://status.example.com"}

Later = Callable[[float], None]


@pytest.fixture
def later(app: Flask) -> Later:
    """Lets so many seconds pass for what status pages keep in memory."""
    pages, passed = app.extensions["wakeful.pages"], 0.0

    def later(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        pages.clock = lambda: time.monotonic() + passed

    return later


def link(app: Flask, page: int, purpose: Purpose) -> str:
    """The path under a page that the messages to a new subscriber name."""
    row = make_subscriber(app, page)
    with app.app_context():
        return f"{purpose}/{subscription_token(purpose, page, row.id, row.digest, now())}"


def subscribers(app: Flask) -> list[int]:
    with app.app_context():
        return list(db.session.scalars(select(SubscriberRow.id)))


# --- Links with a token ---------------------------------------------------------------------------


def test_a_wrong_token_tells_nothing_of_pages_that_strangers_cannot_read(
    app: Flask, client: FlaskClient
) -> None:
    make_page(app, slug="closed", name="Project Falcon", visibility="closed")
    make_page(app, slug="secret", name="Project Falcon", password=SECRET)
    make_page(app, slug="hidden", name="Falcon", visibility="closed", domain="status.example.com")

    for purpose in Purpose:
        for method in ("GET", "POST"):
            answers = [
                client.open(f"/status/{slug}/{purpose}/1-1-0-0-0", method=method)
                for slug in ("unknown", "closed", "secret")
            ]
            answers.append(client.open(f"/{purpose}/1-1-0-0-0", method=method, **OWN))
            assert {answer.status_code for answer in answers} == {404}, (purpose, method)
            assert len({answer.data for answer in answers}) == 1, (purpose, method)
            assert "Falcon" not in answers[0].text, (purpose, method)
    make_page(app)
    answer = client.get("/status/example/confirm/1-1-0-0-0")
    assert answer.status_code == 404
    assert "This link is not valid" in answer.text, "where everybody reads the page"


def test_nobody_joins_a_page_that_was_closed_since_and_all_can_leave_it(
    app: Flask, client: FlaskClient
) -> None:
    page = make_page(app, visibility="closed")

    assert client.get(f"/status/example/{link(app, page, Purpose.CONFIRM)}").status_code == 404
    end = link(app, page, Purpose.UNSUBSCRIBE)
    assert client.get(f"/status/example/{end}").status_code == 200
    before = len(subscribers(app))
    assert client.post(f"/status/example/{end}").status_code == 200
    assert len(subscribers(app)) == before - 1


def test_links_in_old_messages_outlive_a_new_slug(
    app: Flask, client: FlaskClient, later: Later
) -> None:
    page = make_page(app, slug="before")
    end = link(app, page, Purpose.UNSUBSCRIBE)
    assert client.get("/status/before").status_code == 200
    change_page(app, page, slug="after")
    later(10)

    assert client.get("/status/before").status_code == 404
    question = client.get(f"/status/before/{end}")
    assert question.status_code == 200
    assert 'href="../../../status/after"' in question.text
    assert client.post(f"/status/before/{end}").status_code == 200
    assert subscribers(app) == []


def test_a_link_shows_the_page_that_it_was_sent_for_and_no_other(
    app: Flask, client: FlaskClient
) -> None:
    mine = make_page(app, name="Shops", slug="shops")
    make_page(app, name="Falcon", slug="falcon", domain="status.example.com")
    end = link(app, mine, Purpose.UNSUBSCRIBE)

    # This holds on a host name that has become another page's too: it may have been in the message.
    for there in (client.get(f"/status/falcon/{end}"), client.get(f"/{end}", **OWN)):
        assert "Shops" in there.text
        assert "Falcon" not in there.text
    assert len(subscribers(app)) == 1


# --- Passwords ------------------------------------------------------------------------------------


def test_cookies_of_other_sites_lock_no_reader_out(app: Flask, client: FlaskClient) -> None:
    make_page(app, [make_shown(app, "Shop")], password=SECRET)
    answer = client.post("/status/example", data={"password": SECRET})
    own = answer.headers["Set-Cookie"].partition(";")[0]
    stranger = app.test_client(use_cookies=False)
    for other in ('seen={"a":1}', "list[0]=1", "words=two words", "=", "wakeful_page=x", "\xe9=1"):
        for sent in (f"{other}; {own}", f"{own}; {other}"):
            page = stranger.get("/status/example", headers={"Cookie": sent})
            assert "Shop" in page.text, sent


def test_whoever_opens_the_form_to_subscribe_is_asked_for_the_password(
    app: Flask, client: FlaskClient
) -> None:
    make_page(app, password=SECRET)

    assert "This page needs a password" in client.get("/status/example/subscribe").text
    sent = {"channel": "email", "target": "reader@example.com", "password": "a guess"}
    assert client.post("/status/example/subscribe", data=sent).status_code == 403


# --- What pages say -------------------------------------------------------------------------------


def test_a_day_before_the_first_check_does_not_claim_that_nothing_happened(
    app: Flask, client: FlaskClient
) -> None:
    shop = make_shown(app, "Shop", created_at=now() - timedelta(days=60))
    make_page(app, [shop])
    month = (now().replace(day=1) - timedelta(days=1)).replace(day=10)
    make_day(app, shop, month)

    text_ = client.get(f"/status/example/history?month={month:%Y-%m}").text
    assert text_.count("Nothing happened") == 1
    assert text_.count("Nothing was checked") >= 27


def test_localhost_is_no_host_name_of_a_page(app: Flask) -> None:
    api = Api(app.test_client(), make_key(app))

    refused = api("POST", "/status-pages", json={"name": "Example", "domain": "localhost"})
    assert refused.status_code == 422
    assert "domain" in refused.json["errors"]


# --- Damaged rows ---------------------------------------------------------------------------------

ANSWERS = ("", "/history", "/feed.rss", "/feed.atom", "/maintenance.ics", ".json", "/widget")
# Rows of different tables, which are damaged together.
DAMAGE = [
    [
        (PostTemplateRow, "state", "'zzz'"),
        (PostRow, "state", "'zzz'"),
        (StatusPageRow, "zone", "'Mars'"),
    ],
    [(StatusPageRow, "auto_post_after", "-32768"), (SubscriberRow, "channel", "'pigeon'")],
]


@pytest.mark.parametrize("damage", DAMAGE, ids=["words and a zone", "a number and a channel"])
def test_damaged_values_stop_no_status_page_and_doctor_names_them(
    app: Flask, client: FlaskClient, damage: list[tuple[type, str, str]]
) -> None:
    shop = make_shown(app, "Shop")
    pages = [
        make_page(app, [shop], slug=slug, auto_post_after=5, password_turn=0)
        for slug in ("hit", "other")
    ]
    for page in pages:
        make_post(app, page, monitors=[shop])
        make_subscriber(app, page)
    values = {"name": "Slow", "title": "Slow", "state": "identified", "body": "We look."}
    with app.app_context():
        current_store().post_templates.create(values)
    make_incident(app, shop, started_at=now() - timedelta(minutes=10))
    with app.app_context(), writing() as session:
        for table, field, value in damage:
            name = table.__tablename__
            session.execute(text(f"UPDATE {name} SET {field} = {value} WHERE id = 1"))

    with app.app_context():
        broken = list(unreadable.scan())
        assert {(value.table, value.id, value.field) for value in broken} == {
            (table.__tablename__, 1, field) for table, field, _value in damage
        }
        write_due(now())
    findings = list(examine(app, app.extensions["wakeful.settings"]))
    for value in map(str, broken):
        assert any(
            finding.is_problem and finding.sentence.startswith(value) for finding in findings
        ), value
    for slug in ("hit", "other"):
        for path in ANSWERS:
            assert client.get(f"/status/{slug}{path}").status_code == 200, path
    api = Api(app.test_client(), make_key(app))
    visitor = Visitor(app).let_in(make_person(app, "editor"))
    for page in pages:
        assert api.get(f"/status-pages/{page}/posts")["data"]
        assert api.data("PATCH", f"/status-pages/{page}", json={"name": "New"})["name"] == "New"
        for path in ("", "/edit", "/subscribers"):
            assert visitor.open(f"/status-pages/{page}{path}").status == 200, path
    for path in ("templates", "templates/1/edit", f"{pages[0]}/posts/new?template=Slow"):
        assert visitor.open(f"/status-pages/{path}").status == 200, path


def test_a_page_of_which_nobody_knows_who_may_read_it_is_closed(
    app: Flask, client: FlaskClient
) -> None:
    page = make_page(app)
    with app.app_context(), writing() as session:
        session.execute(text("UPDATE status_pages SET visibility = 'pubic'"))

    assert client.get("/status/example").status_code == 404
    api = Api(app.test_client(), make_key(app))
    assert api.get(f"/status-pages/{page}")["data"]["visibility"] == "closed"


def test_an_address_that_cannot_be_read_is_mended_by_subscribing_again(
    app: Flask, client: FlaskClient
) -> None:
    make_page(app)
    form = {"channel": "webhook", "target": "https://hooks.example.com/status"}
    assert client.post("/status/example/subscribe", data=form).status_code == 200
    with app.app_context(), writing() as session:
        session.execute(text("UPDATE subscribers SET value = 'damaged', channel = 'pigeon'"))

    assert client.post("/status/example/subscribe", data=form).status_code == 200
    with app.app_context():
        subscriber = db.session.scalars(select(SubscriberRow)).one()
        assert (subscriber.channel, subscriber.value) == ("webhook", form["target"])
