"""In another language, all that a page says is in that language: what is left over is data.

The language is made up: each sentence of the catalogue in brackets. So a text without brackets is
one that nobody marked, or a constant that nobody translates where it is shown.
"""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from gettext import GNUTranslations
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from flask import Flask

from app import i18n, paths, web
from app.db import db
from app.pages import front
from app.pages.bars import BarsCache
from app.records import PAGE_LANGUAGES, PageQuery, StartTls
from app.rules import recurrence, zones
from app.rules.channel_values import CHANNELS
from app.stores import current_store
from tests.factories import PASSWORD, make_monitor
from tests.support.sentences import READ_ATTRIBUTES
from tests.web import gallery, scene
from tests.web.visitor import Visitor

LANGUAGE = "eo"
MESSAGES = Path(LANGUAGE, "LC_MESSAGES", "messages.mo")
OPEN, CLOSE = "⟦", "⟧"
BRACKET = re.compile(f"([{OPEN}{CLOSE}])")
ASKING = {"Accept-Language": LANGUAGE}


@pytest.fixture(scope="session")
def catalogue() -> Catalog:
    """All marked sentences: tests/test_catalogue.py compares them with the code."""
    with (paths.TRANSLATIONS / "messages.pot").open("rb") as file:
        return read_po(file)


@pytest.fixture(scope="session")
def sentences(catalogue: Catalog) -> frozenset[str]:
    """Each sentence of the catalogue without values in it, as pages would show it in English."""
    ids = [id for message in catalogue if message.id for id in _all(message.id)]
    return frozenset(" ".join(id.split()) for id in ids if "%(" not in id)


def _all(id: str | tuple[str, ...]) -> tuple[str, ...]:
    return (id,) if isinstance(id, str) else tuple(id)


@pytest.fixture(scope="session")
def translations(catalogue: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the made-up language."""
    folder = tmp_path_factory.mktemp("translations")
    path = folder / MESSAGES
    path.parent.mkdir(parents=True)
    made = Catalog(locale=LANGUAGE)
    for message in catalogue:
        if message.id:
            made.add(message.id, _wrapped(message.id))
    with path.open("wb") as file:
        write_mo(file, made)
    return folder


def _wrapped(id: str | tuple[str, ...]) -> str | tuple[str, ...]:
    whole = tuple(f"{OPEN}{form}{CLOSE}" for form in _all(id))
    return whole[0] if isinstance(id, str) else whole


@pytest.fixture(scope="module")
def living(
    sqlite_template: Path, translations: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """An installation that has been running for months, what its paths need, and its data."""
    folder = tmp_path_factory.mktemp("translated")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web, "TRANSLATIONS", translations)
        patch.setattr(front, "BARS", BarsCache())
        app, names = gallery.open_living(folder, sqlite_template, tmp_path_factory)
        yield app, names, _data(folder / "wakeful.db")
        i18n.choose(None)
        with app.app_context():
            db.engine.dispose()


# --- Data -----------------------------------------------------------------------------------------

WORD = re.compile(r"[^\W\d_]{2,}")
# A word of the program, such as a state: where a page shows it, it must be translated.
CODE = re.compile(r"[a-z_.:-]*")
# Texts that are the same in every language, or will follow the language's own rules: times and
# units.
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
WEEKDAYS = "Mon Tue Wed Thu Fri Sat Sun"
UNITS = "ms min px"
NAMES = (
    "Wakeful UTC IPv TLS HTTP HTTPS DNS URL TCP JSON RSS Atom HTML Markdown CSV PDF API SMTP"
    " GET HEAD POST PUT PATCH DELETE OPTIONS Ctrl Slack Discord Telegram SMS Apprise Flock"
    " Gotify Pushover PagerDuty Opsgenie"
    " Microsoft Teams"
)
# A part of a value, or the name of a field.
SHORTENED = re.compile(r"\S*[•…_]\S*")
ADDRESS = re.compile(r"https?://[^\s\"<>]+|\S+@\S+|\w+(?:\.\w+)+")
SECRET = re.compile(r"[\w+/=.-]{24,}")
EVERYWHERE = frozenset(f"{MONTHS} {WEEKDAYS} {UNITS} {NAMES}".split())


@dataclass(frozen=True)
class Data:
    """The texts in the database that somebody wrote, or that a check saw, and their words."""

    texts: frozenset[str]
    words: frozenset[str]


def _data(path: Path, typed: object = None) -> Data:
    """``typed``: what was typed into the form that a page shows."""
    texts = {
        *_texts(typed),
        *_texts(scene.EVIDENCE),
        *(channel.placeholder for channel in CHANNELS.values()),
        *StartTls,
        *PAGE_LANGUAGES.values(),
    }
    texts.add("Bergen")  # a place in the evidence of an incident, which is compressed
    # The library that reads cron lines says them in English.
    texts.add(recurrence.explain("0 3 * * 1-5"))
    with closing(sqlite3.connect(path)) as connection:
        # Names of places look like codes.
        texts.update(name for (name,) in connection.execute("SELECT name FROM locations"))
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            rows = connection.execute(f'SELECT * FROM "{table}"')
            # Results repeat the same few texts.
            texts.update(
                _texts([*{value for row in rows for value in row if isinstance(value, str)}])
            )
    places = zones.offered()
    words = {word for text in [*texts, *places] for word in WORD.findall(text)}
    return Data(frozenset(texts), EVERYWHERE | words)


def _texts(value: object) -> Iterator[str]:
    """The texts of one value, also within JSON; no word of the program, and nothing sealed."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError):
            value = json.loads(value)
            value = list(value.values()) if isinstance(value, dict) else value
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str) and not (CODE.fullmatch(value) or SECRET.fullmatch(value)):
        yield " ".join(value.split())


# --- Pages ----------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """Collects what stands outside the brackets of a page: texts, and attributes that are read."""

    UNREAD = frozenset({"script", "style", "code", "pre", "kbd", "time", "textarea"})

    def __init__(self) -> None:
        super().__init__()
        self.left: list[str] = []
        self._depth = self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = dict(attrs)
        self._unread += tag in self.UNREAD
        for name, text in attrs:
            times = tag == "time" and name == "title"
            if name in READ_ATTRIBUTES and text and not (self._depth or times):
                self.left.append(_outside(text, 0)[0])
        if tag == "input" and at.get("type") == "submit":
            self.left.append(_outside(at.get("value") or "", 0)[0])

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in self.UNREAD

    def handle_data(self, data: str) -> None:
        outside, self._depth = _outside(data, self._depth)
        if not self._unread:
            self.left.append(outside)


def _outside(text: str, depth: int) -> tuple[str, int]:
    """``text`` without what is in brackets; a sentence with markup in it goes on in other texts."""
    outside = []
    for part in BRACKET.split(text):
        if part in (OPEN, CLOSE):
            depth += 1 if part == OPEN else -1
        elif not depth:
            outside.append(part)
    if not WORD.search(joined := "".join(outside)):
        return "", depth
    return " ".join(SHORTENED.sub("", ADDRESS.sub("", joined)).split()), depth


# Parts that say that they are in English: the manuals, and the reference of the API.
ENGLISH = re.compile(r'<(\w+)(?: [^>]*)? lang="en">.*?</\1>', re.DOTALL)


def _untranslated(page: str, sentences: frozenset[str], data: Data) -> list[str]:
    """The English of a page: a sentence of the catalogue, or words that are not data."""
    reader = _Page()
    reader.feed(ENGLISH.sub("", page))
    reader.close()
    texts = dict.fromkeys(filter(WORD.search, reader.left))
    return [
        text
        for text in texts
        if (text in sentences and text not in data.texts | EVERYWHERE)
        or any(word not in data.words for word in WORD.findall(text))
    ]


# The key of an authenticator app is in groups of letters, which look like words.
UNREAD = ("/broken", "/profile/two-factor/app")


def test_all_that_a_page_says_is_translated(living, sentences):
    app, names, data = living
    faults = []
    for path, who, status in {
        (sight.path, sight.who, sight.status) for sight in gallery.LIVING.values()
    }:
        if path in UNREAD:
            continue
        page = _visit(app, who, names["cookie"]).get(
            path.format_map(names), headers=ASKING, follow_redirects=True
        )
        assert (page.status_code, OPEN in page.text) == (status, True), path
        faults += [f"{path}: {left}" for left in _untranslated(page.text, sentences, data)]
    assert not faults, "\n".join(faults)


def test_new_recovery_codes_are_shown_in_the_language_of_the_page(living, sentences):
    app, names, data = living
    visit = _visit(app, gallery.SECURED, names["cookie"])
    path = "/profile/two-factor/codes"
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', visit.get(path).text)[1]
    with gallery.codes_in_vain():
        page = visit.post(
            path, data={"csrf_token": token, "current_password": PASSWORD}, headers=ASKING
        )
    assert page.status_code == 201
    assert all(code in page.text for code in gallery.CODES)
    left = _untranslated(page.text, sentences, data)
    assert not left, "\n".join(left)


def test_public_pages_are_in_the_language_that_somebody_chose_for_them(
    living, sentences, translations, monkeypatch
):
    """The list of all pages has none: it is kept in memory, the same for everybody."""
    app, _, data = living
    monkeypatch.setattr(paths, "TRANSLATIONS", translations)
    with app.app_context():
        store = current_store()
        page = next(page for page in store.status_pages.list(PageQuery()).items if page.footer)
        store.status_pages.update(page.id, {"language": LANGUAGE})
    with (translations / MESSAGES).open("rb") as file, i18n.speaking(GNUTranslations(file)):
        pages = [app.test_client().get(path) for path in PUBLIC]
    for page in pages:
        assert page.status_code == 200
        left = _untranslated(page.text, sentences, data)
        assert not left, "\n".join(left)


PUBLIC = ("/status", "/status/example-ltd", "/status/example-ltd/history")


def test_the_api_and_public_pages_stay_english_after_a_page_in_another_language(living):
    app, _, _ = living
    client = app.test_client()
    assert OPEN in client.get("/login", headers=ASKING).text
    assert OPEN not in client.get("/api/v1/monitors", headers=ASKING).text
    assert OPEN not in client.get("/status/example-ltd/subscribe", headers=ASKING).text
    assert OPEN not in client.get("/login").text


def test_a_page_that_has_tried_the_api_stays_in_its_language_and_the_api_in_english(admin):
    admin.open("/docs/api/monitors_list_")
    page = admin.press(f"{OPEN}Send GET{CLOSE}", api_secret="wk_nobody").page.text
    assert f"{OPEN}Try it{CLOSE}" in page
    assert "&#34;A valid API key is required" in page


# --- What forms answer ----------------------------------------------------------------------------


@pytest.fixture
def admin(
    sqlite_template: Path, translations: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Visitor]:
    """An admin with the made-up language, and two monitors."""
    shutil.copyfile(sqlite_template, tmp_path / "wakeful.db")
    monkeypatch.setattr(web, "TRANSLATIONS", translations)
    app = gallery.open_app(tmp_path)
    gallery.people(app)
    make_monitor(app, name="Kiosk")
    make_monitor(app, name="Depot")
    visitor = Visitor(app).log_in(gallery.ADMIN)
    visitor.client.environ_base["HTTP_ACCEPT_LANGUAGE"] = LANGUAGE
    yield visitor
    with app.app_context():
        db.engine.dispose()


def test_errors_of_forms_are_translated(admin, sentences, tmp_path):
    for path, button, typed in (
        ("/monitors/new", "Save", {"name": "x" * 300, "timeout": "99", "url": "ftp://x"}),
        ("/contacts/new", "Save", {"name": "4711"}),
        ("/maintenance/new", "Save", {"name": ""}),
        ("/incidents/new", "Report an incident", {"started_at": ""}),
        ("/status-pages/new", "Save", {"name": "", "slug": "Not good"}),
        ("/people/new", "Add person", {"email": "nobody", "password": "short"}),
        ("/settings/email", "Save", {"host": "a b", "sender": "nobody"}),
        ("/settings/wall-links", "Create link", {"name": ""}),
        ("/monitors/import", "Preview", {}),
        ("/keys", "Create key", {}),
    ):
        admin.open(path).press(f"{OPEN}{button}{CLOSE}", **typed)
        admin.shows(f"{OPEN}Please correct the following{CLOSE}", status=422)
        left = _untranslated(admin.page.text, sentences, _data(tmp_path / "wakeful.db", typed))
        assert not left, "\n".join(left)


def test_what_was_done_is_said_in_the_language(admin, sentences, tmp_path):
    for path, button, sentence in (
        ("/monitors/1", "Pause", "%(name)s paused. It is not checked until you resume it."),
        ("/profile", "Save", "Profile saved."),
        ("/settings", "Save", "Networks saved. They apply to the next checks and alerts."),
    ):
        admin.open(path).press(f"{OPEN}{button}{CLOSE}")
        assert f"{OPEN}{sentence % {'name': 'Kiosk'}}{CLOSE}" in admin.text
        left = _untranslated(admin.page.text, sentences, _data(tmp_path / "wakeful.db"))
        assert not left, "\n".join(left)
    for ids, sentence in (([1], "⟦1 monitor paused.⟧"), ([1, 2], "⟦2 monitors paused.⟧")):
        admin.open("/monitors").press("⟦Apply⟧", ids=ids, action="pause").shows(sentence)
    stranger = Visitor(admin.client.application)
    stranger.client.environ_base["HTTP_ACCEPT_LANGUAGE"] = LANGUAGE
    stranger.open("/login").press("⟦Log in⟧", email=gallery.ADMIN, password="not this one")
    assert "⟦The email address or the password is wrong.⟧" in stranger.text


_clients: dict[tuple[int, str], Any] = {}


def _visit(app: Flask, who: str, cookie: str = "") -> Any:
    if (id(app), who) not in _clients:
        visitor = Visitor(app)
        if who == gallery.SECURED:
            visitor.client.set_cookie("wakeful", cookie)
        elif who:
            visitor.log_in(who)
        _clients[id(app), who] = visitor.client
    return _clients[id(app), who]
