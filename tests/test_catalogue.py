"""Every sentence that people read is marked for translation, and the catalogue has all of them."""

from __future__ import annotations

import re
import subprocess
import sys
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from app import i18n
from app.i18n import N_, _, _n
from app.paths import STATIC, TEMPLATES, TRANSLATIONS
from tests.support import sentences

ROOT = Path(__file__).parents[1]
CATALOGUE = TRANSLATIONS / "messages.pot"

# Modules with strings that look like sentences and are for nobody but those who read the code, a
# log or a database, with the reason. A folder ends with a slash.
NOT_FOR_PEOPLE = {
    "app/api/health.py": "help texts of metrics",
    "app/api/openapi.py": "the API's document, in English",
    "app/api/operations.py": "the API's document, in English",
    "app/api/reference.py": "the API's document, in English",
    "app/api/schemas.py": "the API's document, in English",
    "app/api/pings.py": "answers to programs, in the words of the services that they were made for",
    "app/commands/resting.py": "the log of the supervisor, which loads no translations",
    "app/commands/web/webworker.py": "gunicorn's log",
    "app/db/statements.py": "SQL",
    "app/db/migrations/": "SQL",
    "app/demo/": "made-up names and remarks: data, as people would type it",
    "app/engine/agent/buffer.py": "SQL",
    "app/engine/agent/faults.py": "an agent's log",
    "app/engine/carriers/queue/": "logs of probers and checkers",
    "app/records/resources.py": "the API's document, in English",
    "app/forms/queries.py": "parameters of lists, in the API's document",
}


def _rooms(folder: Path, pattern: str) -> dict[str, list[Path]]:
    rooms: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob(pattern)):
        inside = path.relative_to(folder)
        room = f"{folder.name}/{inside.parts[0]}" if len(inside.parts) > 1 else folder.name
        rooms.setdefault(room, []).append(path)
    return rooms


CODE, PAGES = _rooms(ROOT / "app", "*.py"), _rooms(TEMPLATES, "*.html")


def _exempt(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return any(
        name == part or (part[-1] == "/" and name.startswith(part)) for part in NOT_FOR_PEOPLE
    )


@pytest.mark.parametrize("room", CODE)
def test_sentences_in_code_are_marked(room):
    wrong = {}
    for path in CODE[room]:
        source = path.read_text()
        unmarked = [] if _exempt(path) else sentences.in_code(source)
        if faults := [*sentences.misused(source), *unmarked]:
            wrong[path.relative_to(ROOT).as_posix()] = faults
    assert wrong == {}


@pytest.mark.parametrize("room", PAGES)
def test_sentences_in_templates_are_marked(room):
    wrong = {
        path.relative_to(ROOT).as_posix(): faults
        for path in PAGES[room]
        if (faults := list(sentences.in_template(path.read_text())))
    }
    assert wrong == {}


def test_scripts_take_their_sentences_from_the_page():
    wrong = {
        path.name: texts
        for path in sorted((STATIC / "js").glob("*.js"))
        if (texts := list(sentences.in_script(path.read_text())))
    }
    # The owner of the site that it is put on can say it in the site's language, with data-title.
    assert wrong.pop("status-widget.js") == ["Service status"]
    assert wrong == {}


def test_a_module_that_is_left_out_has_sentences():
    for name in NOT_FOR_PEOPLE:
        paths = sorted((ROOT / name).rglob("*.py")) if name.endswith("/") else [ROOT / name]
        assert any(list(sentences.in_code(path.read_text())) for path in paths), name


def test_the_catalogue_has_all_marked_sentences(tmp_path):
    """``make messages`` writes it."""
    target = tmp_path / "messages.pot"
    subprocess.run(
        [ROOT / "scripts" / "messages", target],
        env={"PATH": Path(sys.executable).parent.as_posix() + ":/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )
    assert target.read_text() == CATALOGUE.read_text(), "run `make messages`"


def _compiled(catalogue: Catalog) -> GNUTranslations:
    file = BytesIO()
    write_mo(file, catalogue)
    file.seek(0)
    return GNUTranslations(file)


@pytest.fixture
def german():
    catalogue = Catalog(locale="de")
    catalogue.add("Saved.", "Gespeichert.")
    catalogue.add("At most %(most)s tags.", "Höchstens %(most)s Schlagwörter.")
    catalogue.add(("%(num)s monitor", "%(num)s monitors"), ("%(num)s Monitor", "%(num)s Monitore"))
    i18n.choose(_compiled(catalogue))
    yield
    i18n.choose(None)


def test_without_a_translation_sentences_are_english():
    assert _("Saved.") == "Saved."
    assert _("100 %") == "100 %"
    assert _("%(name)s is down.", name="50 % off") == "50 % off is down."
    assert _("") == ""
    assert [_n("%(num)s monitor", "%(num)s monitors", n) for n in (0, 1, 1.5, 2)] == [
        "0 monitors",
        "1 monitor",
        "1.5 monitors",
        "2 monitors",
    ]
    assert _n("%(num)s monitor", "%(num)s monitors", 10_000, num="10,000") == "10,000 monitors"


def test_a_chosen_translation_is_used(german):
    assert _("Saved.") == "Gespeichert."
    assert _("") == ""  # and not the header of the catalogue
    assert _("Not translated.") == "Not translated."
    assert _n("%(num)s monitor", "%(num)s monitors", 2) == "2 Monitore"


def test_a_marked_constant_is_english_until_it_is_translated(german):
    limit = N_("At most %(most)s tags.", most=20)
    assert limit == "At most 20 tags."
    assert _(limit) == "Höchstens 20 Schlagwörter."
    assert N_("Saved.") == "Saved."


def _plain(sentence: str) -> str:
    """Without what makes no other sentence: case, a full stop, names of values. Fragments of three
    words stay as they are: "for %(names)s" and "for %(span)s" may be translated differently.
    """
    text = re.sub(r"%\(\w+\)s", "%", sentence)
    if len(re.findall(r"\w+", text)) < 4:
        return sentence.strip()
    return text.strip(" .,:;!…()").casefold()


@pytest.mark.parametrize(
    ("sentence", "other"),
    [
        (
            "%(count)s of %(total)s checks failed at once",
            "%(num)s of %(all)s checks failed at once",
        ),
        ("This is not valid JSON.", "This is not valid JSON"),
        ("Show all the monitors", "show all the monitors…"),
    ],
)
def test_sentences_that_differ_in_nothing_that_is_read_are_alike(sentence, other):
    assert _plain(sentence) == _plain(other)


def test_the_catalogue_has_each_sentence_once():
    """Sentences that differ in case, a full stop or names of values alone count as the same."""
    with CATALOGUE.open("rb") as file:
        messages = [message.id for message in read_po(file) if message.id]
    assert len(messages) > 1000
    alike: dict[str, list[str]] = {}
    for message in messages:
        sentence = message if isinstance(message, str) else message[0]
        alike.setdefault(_plain(sentence), []).append(sentence)
    assert [sentences for sentences in alike.values() if len(sentences) > 1] == []


def test_no_help_text_is_clipped():
    """A help says "Leave empty for no limit.", not "Empty: no limit.", and "Example: 2.1"."""
    with CATALOGUE.open("rb") as file:
        messages = [message.id for message in read_po(file) if isinstance(message.id, str)]
    assert [text for text in messages if re.search(r"\bEmpty: |^Such as ", text)] == []
