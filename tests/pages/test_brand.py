"""A page with a logo, a favicon, a colour, a way home, a line of its own and a language."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import paths
from tests.pages.made import make_page, make_post, make_shown
from tests.support.german import translations
from tests.support.store import store_of

HOST = {"base_url": "https://status.example.com"}
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><circle r="4"/></svg>'
PNG = b"\x89PNG\r\n\x1a\n" + bytes(2_000)
BRAND = {
    "accent": "#ffcc00", "home_url": "https://shop.example/start", "language": "de",
    "footer": "Impressum: https://shop.example/impressum",
    "logo": b64encode(SVG).decode(), "favicon": b64encode(PNG).decode(),
}  # fmt: skip


def brand(app: Flask, id: int, **fields: Any) -> None:
    store_of(app).status_pages.update(id, BRAND | fields)


def test_a_page_has_its_brand_below_the_dashboard_and_on_its_own_host(
    app: Flask, client: FlaskClient
):
    brand(app, make_page(app, [make_shown(app)], domain="status.example.com"))
    for base, folder in (({}, "/status/example/"), (HOST, "/")):
        front = client.get(folder.rstrip("/") or "/", **base).text
        assert '<a href="https://shop.example/start"><img src="' in front
        assert "<span>shop.example</span></a>" in front
        assert 'href="https://shop.example/impressum"' in front
        assert '<html lang="de">' in front
        links = dict.fromkeys(re.findall(r'"([\w./]*(?:logo|favicon|colours\.css)\?v=\w+)"', front))
        assert len(links) == 3
        for name, data, kind in (
            ("logo", SVG, "image/svg+xml"), ("favicon", PNG, "image/png"),
            ("colours.css", b"#ffcc00", "text/css"),
        ):  # fmt: skip
            [link] = [link for link in links if name in link]
            answer = client.get(folder + link.rpartition("/")[2], **base)
            assert (answer.status_code, answer.mimetype) == (200, kind), link
            assert data in answer.data
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["ETag"]
            again = client.get(
                folder + name, headers={"If-None-Match": answer.headers["ETag"]}, **base
            )
            assert again.status_code == 304


def test_nothing_in_an_image_runs_or_loads_and_one_that_never_changes_is_kept_for_a_day(
    app: Flask, client: FlaskClient
):
    brand(app, make_page(app))
    link = store_of(app).status_pages.get(1).logo_link or ""
    named, bare = client.get(link), client.get("/status/example/logo")
    for answer in (named, bare):
        policy = answer.headers["Content-Security-Policy"]
        assert policy == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert named.headers["Cache-Control"] == "public, max-age=86400"
    assert bare.headers["Cache-Control"] == "public, max-age=4"


def test_a_new_image_has_a_new_address_and_a_removed_one_is_404(app: Flask, client: FlaskClient):
    brand(app, make_page(app))
    old = store_of(app).status_pages.get(1).logo_link or ""
    brand(app, 1, logo=BRAND["favicon"])
    assert old not in client.get("/status/example").text
    assert client.get("/status/example/logo").data == PNG
    brand(app, 1, logo=None, accent=None)
    for name in ("logo", "colours.css"):
        assert client.get(f"/status/example/{name}").status_code == 404
    assert "<img" not in client.get("/status/example").text


def test_the_brand_of_a_page_behind_a_password_is_behind_it_too(app: Flask, client: FlaskClient):
    brand(app, make_page(app, password="open sesame"))
    door = client.get("/status/example").text
    assert 'lang="de"' in door
    for name in ("logo", "favicon", "colours.css"):
        assert f"{name}?v=" not in door
        assert client.get(f"/status/example/{name}").status_code == 403
    client.post("/status/example", data={"password": "open sesame"})
    assert 'src="example/logo?v=' in client.get("/status/example").text
    answer = client.get("/status/example/logo")
    assert (answer.data, answer.headers["Cache-Control"]) == (SVG, "private, no-store")


def test_the_icon_that_browsers_ask_for_is_the_pages_own_for_its_readers_else_the_products(
    app: Flask, client: FlaskClient
):
    page = make_page(app, domain="status.example.com", password="open sesame")
    marks = [client.get("/favicon.ico", **HOST).location]
    brand(app, page)
    marks.append(client.get("/favicon.ico", **HOST).location)
    assert all(mark.startswith("static/img/mark.svg?v=") for mark in marks)
    assert client.get("/" + marks[0], **HOST).mimetype == "image/svg+xml"
    client.post("/", data={"password": "open sesame"}, **HOST)
    own = client.get("/favicon.ico", **HOST)
    assert (own.status_code, own.headers["Cache-Control"]) == (302, "private, no-store")
    assert client.get("/" + own.location, **HOST).data == PNG
    assert client.get("/status/example/favicon.ico").status_code == 404


def test_pages_of_visitors_have_the_brand_too(app: Flask, client: FlaskClient):
    brand(app, make_page(app))
    for name in ("subscribe", "history"):
        assert "favicon?v=" in client.get(f"/status/example/{name}").text
    assert "favicon?v=" not in client.get("/status").text


def test_texts_are_marked_with_their_language_where_the_sentences_have_another(
    app: Flask, client: FlaskClient
):
    page = make_page(app, [make_shown(app, "Laden")], description="Wie es uns geht")
    make_post(app, page, "Der Laden ist langsam")
    assert ' lang="de"' not in client.get("/status/example").text
    brand(app, page)
    front = client.get("/status/example").text
    assert '<body lang="en"' in front
    for text in ("Example status", "Laden", "Wie es uns geht", "Der Laden ist langsam"):
        assert re.search(rf'<\w+[^>]* lang="de">{text}', front), text


@pytest.fixture
def german(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = {
        "All systems operational": "Alles läuft", "Nov": "Nov.", "Subscribe": "Abonnieren",
        "There is no status page under this address.": "Hier ist keine Statusseite.",
        "%(percent)s up, no day with downtime.": "%(percent)s erreichbar, kein Tag mit Ausfall.",
    }  # fmt: skip
    monkeypatch.setattr(paths, "TRANSLATIONS", translations(tmp_path, texts))


def test_a_page_speaks_its_language_where_there_is_a_translation_and_no_other_page_does(
    german: None, app: Flask, client: FlaskClient, later: Callable[[float], None]
):
    shop = make_shown(app)
    brand(app, make_page(app, [shop]))
    make_page(app, [shop], slug="english")
    for path, ours, others in (
        ("/status/example", "Alles läuft", "All systems operational"),
        ("/status/example/widget", "Alles läuft", "All systems operational"),
        ("/status/example/subscribe", "Abonnieren", "Subscribe"),
        ("/status/example/nothing", "Hier ist keine", "There is no"),
    ):
        german_page, english = (
            client.get(path).text,
            client.get(path.replace("example", "english")).text,
        )
        assert ours in german_page
        assert '<html lang="de"' in german_page
        assert others in english
        assert '<html lang="en"' in english
        assert ours not in english
