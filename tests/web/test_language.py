"""A page is in the first language of the browser's that there is a translation into."""

import pytest

from app import create_app, web
from app.rules.text import REQUIRED
from tests.support.german import translations

GERMAN = {
    "Contacts": "Kontakte",
    "New contact": "Neuer Kontakt",
    "Channels": "Kanäle",
    "Channel": "Kanal",
    "%(list)s, row %(row)s: %(input)s": "%(list)s, Zeile %(row)s: %(input)s",
    "A team or a person, such as Shop team.": "Ein Team oder ein Mensch, etwa das Laden-Team.",
    "Everything": "Alles",
    "Please correct the following": "Bitte korrigieren Sie Folgendes",
    REQUIRED: "Dieses Feld ist nötig.",
}


@pytest.fixture
def translated(monkeypatch, tmp_path):
    """A translation into German, from before the application starts."""
    plural = {("%(num)s contact", "%(num)s contacts"): ("%(num)s Kontakt", "%(num)s Kontakte")}
    monkeypatch.setattr(web, "TRANSLATIONS", translations(tmp_path, GERMAN | plural))


@pytest.fixture
def app(translated, settings):
    return create_app(settings)


@pytest.fixture
def german(editor):
    editor.client.environ_base["HTTP_ACCEPT_LANGUAGE"] = "de-AT, de;q=0.9, en;q=0.5"
    return editor


def test_a_form_is_in_the_language_of_the_browser(german):
    text = german.open("/contacts/new").text
    assert '<html lang="de"' in german.page.text
    assert "Neuer Kontakt" in text
    assert "Kanäle" in text
    assert "Ein Team oder ein Mensch" in text
    assert 'aria-label="Kanäle, Zeile 1: Kanal"' in german.page.text
    assert ">Alles</option>" in german.page.text


def test_what_is_wrong_with_a_form_is_in_the_language_of_the_browser(german):
    text = german.open("/contacts/new").press("Save").text
    assert "Bitte korrigieren Sie Folgendes" in text
    assert text.count("Dieses Feld ist nötig.") == 2  # above the form and beside the field


def test_what_is_counted_has_the_plural_of_the_language(german):
    german.open("/contacts/new").press(
        "Save", **{"name": "A", "channels[0][key]": "email", "channels[0][value]": "a@example.com"}
    )
    assert "1–1 of 1 Kontakt" in german.open("/contacts").text


def test_the_next_visitor_of_the_same_thread_gets_their_own_language(german, viewer):
    german.open("/contacts")
    viewer.open("/contacts")
    assert '<html lang="en"' in viewer.page.text
    assert "Kontakte" not in viewer.text
