"""The manuals in the dashboard, and the page about the API with its form."""

from __future__ import annotations

import gzip
import logging
import re
from urllib.parse import urljoin

import pytest
from flask import Flask
from sqlalchemy import select

from app.db import db
from app.db.tables import AuditRow
from app.version import __version__
from app.web.shown import manuals
from tests.factories import make_key, make_monitor
from tests.web.visitor import Visitor, token

MAX_BYTES = 40_000  # of a page
LINK = re.compile(r'<a [^>]*href="([^"]+)"')
IMAGE = re.compile(r'<img [^>]*src="([^"]+)"')


def article(visitor: Visitor, path: str) -> str:
    [part] = re.findall(r"<article.*</article>", visitor.open(path).page.text, re.DOTALL)
    return part


def test_every_manual_is_a_small_page_whose_links_lead_somewhere(viewer: Visitor):
    paths = [
        f"/docs/{name}/{chapter}".rstrip("/")
        for name in manuals.names()
        if name != manuals.INDEX
        for chapter in manuals.chapters(name)
    ]
    pages = {}
    for path in ("/docs", *paths):
        pages[path] = article(viewer, path)
        assert len(viewer.page.data) < MAX_BYTES, path
    assert {"/docs/people", "/docs/api-manual", "/docs/changelog"} <= pages.keys()
    wrong = []
    for path, html in pages.items():
        assert "<script" not in html
        for source in IMAGE.findall(html):
            with viewer.client.get(urljoin(path, source)) as picture:
                assert picture.mimetype == "image/webp", f"{path}: {source}"
        for link in LINK.findall(html):
            there, _sign, anchor = urljoin(path, link).partition("#")
            if there.startswith("http"):
                continue
            if there not in pages and viewer.client.get(there).status_code != 200:
                wrong.append(f"{path}: {link}")
            if anchor and there in pages and f'id="{anchor}"' not in pages[there]:
                wrong.append(f"{path}: {link}")
    assert not wrong, "\n".join(wrong)


def test_a_manual_is_markdown_as_github_shows_it_and_its_html_is_text(viewer: Visitor):
    listed = article(viewer, "/docs")
    assert '<td data-label="manual"><a href="docs/people">People and email</a>' in listed
    heartbeats = article(viewer, "/docs/heartbeats")
    assert '<h2 id="add-one">Add one <a class="anchor" href="#add-one"' in heartbeats
    widget = article(viewer, "/docs/status-pages")
    assert "&lt;script src=&quot;https://status.example.com/widget.js&quot;" in widget
    for path in ("/docs/nothing", "/docs/people.md", "/docs/..%2fpyproject", "/docs/pictures/no"):
        assert viewer.client.get(path).status_code == 404, path
    kinds = article(viewer, "/docs/kinds")
    for theme in ("light", "dark"):
        assert f'<img class="on-{theme}" src="pictures/incident-{theme}.webp" alt="An inc' in kinds


def test_a_long_manual_has_a_page_for_each_chapter_and_old_links_find_them(viewer: Visitor):
    first = viewer.open("/docs/api-manual").page.text
    assert 'id="51-channels"><a href="/docs/api-manual/5-alerts#51-channels"' in first
    chapter = viewer.open("/docs/api-manual/5-alerts").page.text
    assert re.search(r"<h1>[^<]+</h1><h2 id=.5-alerts.>", chapter)
    assert '<h3 id="51-channels">' in chapter
    assert '<a href="/docs/api-manual/3-monitors">' in chapter
    assert '<a href="#5-alerts" aria-current="page">' in chapter
    for path in ("/docs/api-manual/nothing", "/docs/people/api-keys", "/docs/people/"):
        assert viewer.client.get(path).status_code == 404, path


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("add a heartbeat", "/docs/heartbeats#add-one"),
        ("How do I make an API key?", "/docs/people#api-keys"),
        ("create a heartbeat", "/docs/heartbeats#add-one"),
        ("heartbeats", "/docs/heartbeats#heartbeats-jobs-that-call-wakeful"),
        ("backups", "/docs/backup#back-up-and-restore"),
        ("acknowledge many incidents", "/docs/api/incidents_acknowledge"),
        ("NGINX proxy", "/docs/operate/put-a-proxy-in-front#put-a-proxy-in-front"),
        ("<b>", None),
        ("zebra", None),
        ("?", None),
        ("", None),
    ],
)
def test_the_search_finds_the_section(viewer: Visitor, question: str, first: str | None):
    page = viewer.client.get("/docs/search", query_string={"q": question}).text
    hits = re.findall(r'<li><a href="(/docs[^"]*)">', page)
    assert (hits or [None])[0] == first
    assert "<b>" not in page.partition("<main")[2].partition("</main>")[0]


def test_a_page_links_the_manual_of_its_topic(app: Flask, admin: Visitor):
    endpoints = {rule.endpoint for rule in app.url_map.iter_rules()}
    blueprints = {endpoint.partition(".")[0] for endpoint in endpoints}
    assert manuals.HELP.keys() <= endpoints | blueprints
    for target in manuals.HELP.values():
        page, _sign, anchor = target.partition("#")
        name, _slash, chapter = page.partition("/")
        assert chapter in manuals.chapters(name or manuals.INDEX), target
        anchors = [
            part.anchor for part in manuals.sections(name or manuals.INDEX) if part.page == page
        ]
        assert not anchor or anchor in anchors, target
    make_monitor(app)
    for path, target in {
        "/": "/docs", "/keys": "/docs/people#api-keys", "/monitors/1": "/docs/kinds",
        "/monitors/new": "/docs/kinds", "/settings/backup": "/docs/backup",
    }.items():  # fmt: skip
        assert f'<a class="help" href="{target}">' in admin.open(path).page.text, path


def test_the_menu_has_help_and_the_version_with_its_changes(viewer: Visitor):
    viewer.open("/").shows(__version__, "Help")
    viewer.open("/docs/changelog").shows("Changelog", __version__)


def test_strangers_read_nothing_of_it(stranger: Visitor):
    for path in ("/docs", "/docs/people", "/docs/search?q=x", "/docs/api", "/docs/api/me_show"):
        assert "/login" in stranger.client.get(path).location, path


def test_who_must_set_up_a_second_factor_can_read_how(app: Flask, viewer: Visitor, admin: Visitor):
    admin.open("/settings").press("Save roles", viewer=True)
    assert viewer.client.get("/docs/people").status_code == 200
    assert viewer.client.get("/docs/api").status_code == 302


def test_the_page_about_the_api_has_every_operation(app: Flask, viewer: Visitor):
    page = viewer.open("/docs/api").page.text
    paths = app.test_client().get("/api/v1/openapi.json").json["paths"]
    assert set(re.findall(r"<code>(/[^<]*)</code>", page)) == paths.keys()
    assert (
        page.index(">Monitors</h2>") < page.index(">Incidents</h2>") < page.index(">Contacts</h2>")
    )
    operations = set(re.findall(r'href="(/docs/api/\w+)"', page))
    assert len(operations) == sum(len(p.keys() - {"put"}) for p in paths.values())
    for path in operations:
        answer = viewer.client.get(path, headers={"Accept-Encoding": "gzip"})
        assert (answer.status_code, len(answer.data) < MAX_BYTES) == (200, True), path
        shown = gzip.decompress(answer.data).decode()
        for part in ("curl ", "import requests", "Try it", "Answers"):
            assert part in shown, path
        assert ("Writes:" in shown) == ("curl -X" in shown), path


def test_a_request_that_is_tried_has_the_rights_of_its_key_and_nothing_else(
    app: Flask, admin: Visitor, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    key, reader = make_key(app, "write", "CI"), make_key(app, "read", "reader")
    form = admin.open("/docs/api/monitors_store")
    sent = {"api_body": '{"name": "Tried", "url": "https://shop.example", "interval": 60}'}

    wrong = form.press("Send POST", **sent, api_secret="wk_nobody")
    wrong.shows("401 Unauthorized", "A valid API key is required", status=200)
    form.press("Send POST", **sent, api_secret=reader).shows("403 Forbidden", status=200)
    form.press("Send POST", api_body="{", api_secret=key).shows("422", "not valid JSON", status=200)
    made = form.press("Send POST", **sent, api_secret=key)
    made.shows("201 Created", '"name": "Tried"', "X-RateLimit-Remaining", status=200)
    form.press("Send POST", **sent).shows("This field is required")
    admin.open("/docs/api/me_show").press("Send GET", api_target="//other.example/", api_secret=key)
    admin.shows("404", status=200)
    admin.open("/docs/api/me_show").press("Send GET", api_target="https://x", api_secret=key)
    admin.shows("Begin with a slash")

    secret = key.split("_", 2)[2]  # which may have a "_" too
    assert secret not in made.page.text
    assert secret not in caplog.text
    with app.app_context():
        for table in db.metadata.tables.values():
            assert secret not in str(db.session.execute(table.select()).all()), table.name
        of_monitors = select(AuditRow.actor_kind).where(AuditRow.object_kind == "monitor")
        assert db.session.scalars(of_monitors).all() == ["key"]


def test_the_key_is_on_no_page_for_those_whose_session_has_ended(app: Flask, viewer: Visitor):
    form = token(viewer.open("/docs/api/me_show")) | {"api_target": "/me"}
    answer = app.test_client().post("/docs/api/me_show", data=form | {"api_secret": "wk_a_secret"})
    assert answer.status_code == 400
    assert "/me" in answer.text
    assert "wk_a_secret" not in answer.text


def test_over_another_server_there_is_nothing_to_try(remote: Visitor):
    page = remote.open("/docs/api/monitors_store").page.text
    assert "https://wakeful.example.com/api/v1/monitors" in page
    assert "Send requests to that server" in page
    assert 'name="api_secret"' not in page
