"""Subscribing to a page over HTTP: the form, and the links that messages bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from urllib.parse import urljoin

import pytest
import requests
from flask import Flask
from flask.testing import FlaskClient

from app.stores.local.public import SIGN_UP_TAKES
from app.stores.local.subscribers import SIGN_UPS
from tests.pages.made import change_page, make_page, make_shown
from tests.support.loopback import serving
from tests.support.pages import Pages

pytestmark = pytest.mark.settings(smtp_url="smtp://127.0.0.1:9")

T = datetime(2026, 11, 21, 8, tzinfo=UTC)
WHO = {"channel": "email", "target": "reader@example.com"}


def set_clock(app: Flask, moment: datetime) -> None:
    """The clock of whoever reads tokens: they expire."""
    public = app.extensions["wakeful.public"]
    public._clock = public._subscribing.clock = lambda: moment


@pytest.fixture
def site(app: Flask) -> Iterator[str]:
    make_page(app, [make_shown(app)], domain="status.example.com")
    set_clock(app, T)
    with serving(app) as url:
        yield f"{url}/status/example"


@pytest.fixture
def rows(app: Flask) -> Pages:
    return Pages(app)


def newest(rows: Pages, name: str) -> str:
    """A token of the newest message."""
    return str(rows.messages()[-1].facts[name])


def test_the_form_offers_what_the_page_can_send(site: str):
    answer = requests.get(f"{site}/subscribe")
    assert answer.status_code == 200
    assert 'value="email"' in answer.text
    assert 'value="webhook"' in answer.text
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert answer.headers["X-Robots-Tag"] == "noindex"
    assert not answer.cookies


@pytest.mark.settings(smtp_url=None)
def test_without_a_mail_server_only_webhooks_are_offered(site: str):
    answer = requests.get(f"{site}/subscribe")
    assert 'name="channel" value="webhook"' in answer.text
    assert 'value="email"' not in answer.text
    text = re.sub("<[^>]*>", "", answer.text)
    assert "Email is not available here. Subscribe by RSS or webhook." in text
    refused = requests.post(f"{site}/subscribe", WHO)
    assert refused.status_code == 422
    assert "This page sends no email." in refused.text


def test_an_error_stands_at_the_field_and_what_was_typed_stays(site: str, rows: Pages):
    for channel, target, fault in (
        ("email", "", "Enter an email address."),
        ("webhook", " ", "Enter a URL."),
        ("email", "nobody", "email address"),
        ("email", '<script>"@x', "email address"),
        ("webhook", "ftp://example.com/x", "http"),
        ("sms", "reader@example.com", "Choose email or webhook."),
    ):
        answer = requests.post(f"{site}/subscribe", {"channel": channel, "target": target})
        assert answer.status_code == 422, target
        alert = answer.text.partition('id="fault" role="alert">')[2].partition("</span>")[0]
        assert fault in alert, target
        assert 'aria-invalid="true" aria-describedby="fault"' in answer.text, target
        assert "<title>Error:" in answer.text, target
        assert "<script>" not in answer.text, target
        assert not target.isalpha() or f'value="{target}"' in answer.text
    assert not rows.subscribers()


def test_a_known_and_an_unknown_address_read_the_same(site: str, rows: Pages):
    unknown = requests.post(f"{site}/subscribe", WHO)
    asked_again = requests.post(f"{site}/subscribe", WHO)
    requests.post(f"{site}/confirm/{newest(rows, 'token')}")
    repeated = requests.post(f"{site}/subscribe", WHO)
    assert unknown.status_code == 200
    assert "Almost done" in unknown.text
    for answer in (asked_again, repeated):
        assert (answer.status_code, answer.content) == (200, unknown.content)
        same = [
            {name: value for name, value in row.headers.items() if name != "Date"}
            for row in (answer, unknown)
        ]
        assert same[0] == same[1]
    assert len(rows.subscribers()) == 1


def test_links_act_on_post_only(site: str, rows: Pages):
    requests.post(f"{site}/subscribe", WHO)
    confirm = f"{site}/confirm/{newest(rows, 'token')}"
    end = f"{site}/unsubscribe/{newest(rows, 'unsubscribe')}"

    for link in (confirm, end):  # programs that look at mail follow links
        for ask in (requests.get, requests.head, requests.options):
            ask(link)
        assert "<button" in requests.get(link).text
    [subscriber] = rows.subscribers()
    assert subscriber.confirmed_at is None

    assert "You are subscribed" in requests.post(confirm).text
    assert "You are subscribed" in requests.post(confirm).text, "a second press is no error"
    assert [row.confirmed_at is None for row in rows.subscribers()] == [False]
    assert "no longer subscribed" in requests.post(end).text
    assert "no longer subscribed" in requests.post(end).text
    assert not rows.subscribers()


def test_one_click_needs_no_cookie_also_on_pages_that_not_everybody_may_read(
    app: Flask, site: str, rows: Pages, later: Callable[[float], None]
):
    for number, visibility in enumerate(("password", "closed", "unlisted")):
        id = make_page(app, slug=f"other-{number}", password="let me in, please")
        requests.post(f"{site}/subscribe", WHO)
        rows.subscriber(id, "email", f"{number}@example.com", now=T, confirmed=True)
        [who] = [row for row in rows.subscribers() if row.status_page_id == id]
        change_page(app, id, visibility=visibility)
        later(10)
        link = f"{site.rpartition('/')[0]}/other-{number}/unsubscribe/{_end(app, id, who)}"
        answer = requests.post(link, {"List-Unsubscribe": "One-Click"})
        assert answer.status_code == 200, visibility
        assert not answer.cookies
        assert id not in {row.status_page_id for row in rows.subscribers()}


def _end(app: Flask, page: int, subscriber: object) -> str:
    from app.access.tokens import Purpose, subscription_token

    with app.app_context():
        return subscription_token(Purpose.UNSUBSCRIBE, page, subscriber.id, subscriber.digest, T)


def test_nobody_signs_up_to_a_page_that_they_may_not_read(
    app: Flask, site: str, rows: Pages, later: Callable[[float], None]
):
    id = make_page(app, slug="locked", password="let me in, please")
    link = f"{site.rpartition('/')[0]}/locked/subscribe"
    asked = requests.get(link)
    assert asked.status_code in (200, 403)
    assert "password" in asked.text
    assert "channel" not in asked.text
    requests.post(link, WHO)
    change_page(app, id, visibility="closed")
    later(10)
    assert requests.post(link, WHO).status_code == 404
    assert not rows.subscribers()


def test_a_link_that_was_never_given_out_does_nothing(site: str):
    for name in ("confirm", "unsubscribe"):
        for token in ("x", "1-1-1-1-1", "%C3%A9", "-", "a/b", "x" * 3000):
            answer = requests.post(f"{site}/{name}/{token}")
            assert answer.status_code == 404, (name, token)
            assert answer.headers["Cache-Control"] == "private, no-store", (name, token)


def test_a_confirmation_is_valid_for_48_hours(app: Flask, site: str, rows: Pages):
    requests.post(f"{site}/subscribe", WHO)
    confirm = f"{site}/confirm/{newest(rows, 'token')}"
    set_clock(app, T.replace(day=24))
    answer = requests.post(confirm)
    assert answer.status_code == 404
    assert "This link is not valid" in answer.text


def test_too_many_sign_ups_have_to_wait(site: str, rows: Pages):
    for number in range(SIGN_UPS):
        who = WHO | {"target": f"reader{number}@example.com"}
        assert requests.post(f"{site}/subscribe", who).status_code == 200
    refused = requests.post(f"{site}/subscribe", WHO | {"target": "one-more@example.com"})
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 3600
    assert "Too many sign-ups" in refused.text
    assert 'value="one-more@example.com"' in refused.text
    assert len(rows.subscribers()) == SIGN_UPS


def test_the_form_is_on_the_host_name_of_the_page_too(site: str, rows: Pages):
    root, own = site.removesuffix("/status/example"), {"Host": "status.example.com"}
    assert "Subscribe to" in requests.get(f"{root}/subscribe", headers=own).text
    assert requests.post(f"{root}/subscribe", WHO, headers=own).status_code == 200
    link = f"{root}/confirm/{newest(rows, 'token')}"
    assert "You are subscribed" in requests.post(link, headers=own).text
    assert [row.confirmed_at is None for row in rows.subscribers()] == [False]


def test_other_methods_and_long_forms_are_refused(site: str, rows: Pages):
    refused = requests.put(f"{site}/subscribe", WHO)
    assert refused.status_code == 405
    assert refused.headers["Allow"] == "GET, POST"
    long = requests.post(f"{site}/subscribe", WHO | {"more": "x" * 20_000})
    assert long.status_code == 413
    assert not rows.subscribers()


@pytest.mark.parametrize("name", ["confirm", "unsubscribe"])
def test_links_outlive_the_host_name_of_their_page(
    app: Flask, site: str, rows: Pages, later: Callable[[float], None], name: str
):
    places = [
        ("status.example.com", ""),  # the name that the page had
        ("other.example.com", ""),  # a name that another page has now
        ("other.example.com", "/status/example"),
        ("new.example.com", "/status/example"),  # the name of the dashboard became the page's
        ("new.example.com", ""),
        ("127.0.0.1", "/status/a-slug-of-before"),
    ]
    tokens = []
    for number in range(len(places)):
        requests.post(f"{site}/subscribe", WHO | {"target": f"reader{number}@example.com"})
        tokens.append(newest(rows, "token" if name == "confirm" else "unsubscribe"))
    change_page(app, 1, domain="new.example.com")
    make_page(app, slug="other", domain="other.example.com")
    later(10)
    for number, ((host, before), token) in enumerate(zip(places, tokens, strict=True), 1):
        link = f"{site.removesuffix('/status/example')}{before}/{name}/{token}"
        shown = requests.get(link, headers={"Host": host})
        done = requests.post(link, {"List-Unsubscribe": "One-Click"}, headers={"Host": host})
        assert (shown.status_code, done.status_code) == (200, 200), link
        assert "<button" in shown.text, link
        assert not done.cookies, link
        stored = rows.subscribers()
        if name == "confirm":
            confirmed = [subscriber for subscriber in stored if subscriber.confirmed_at]
            assert len(confirmed) == number, (host, before)
        else:
            assert len(stored) == len(places) - number, (host, before)


def test_a_link_on_the_host_name_of_another_page_leads_back_to_its_own(
    app: Flask, client: FlaskClient, rows: Pages
):
    page = make_page(app, domain="status.example.com")
    make_page(app, slug="other", domain="other.example.com")
    rows.subscriber(page, "email", "ada@example.com", now=T)
    [who] = rows.subscribers()
    path = f"/unsubscribe/{_end(app, page, who)}"

    def back(host: str) -> str:
        shown = client.get(path, base_url=f"https://{host}").text
        [link] = re.findall(r'<a href="([^"]*)">Back', shown)
        return urljoin(f"https://{host}{path}", link)

    assert back("status.example.com") == "https://status.example.com/"
    assert back("other.example.com").endswith("://status.example.com")
    assert back("gone.example.com") == "https://gone.example.com/status/example"


def test_on_an_unknown_host_name_only_links_of_ours_are_answered(client: FlaskClient):
    for path in ("/unsubscribe/1-1-1-0-1", "/confirm/x", "/unsubscribe", "/unsubscribe/"):
        answer = client.post(path, base_url="https://gone.example.com")
        assert answer.status_code != 200, path
        assert "subscrib" not in answer.text, path


def test_every_sign_up_takes_as_long_whether_the_address_is_known_or_not(
    app: Flask, rows: Pages, monkeypatch: pytest.MonkeyPatch
):
    page = make_page(app)
    rows.subscriber(page, "email", "known@example.com", now=datetime.now(UTC))
    public = app.extensions["wakeful.public"]
    passed: list[float] = []
    monkeypatch.setattr("app.stores.local.public.sleep", passed.append)
    monkeypatch.setattr("app.stores.local.public.monotonic", lambda: 7.0)
    with app.app_context():
        for target in ("known@example.com", "new@example.com", "known@example.com"):
            public.subscribe(page, "email", target, address="198.51.100.7")
    assert passed == [pytest.approx(SIGN_UP_TAKES)] * 3
