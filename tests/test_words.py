"""One word has one meaning, in names, comments, sentences and manuals: the table of ``WORDS``.

``endpoint`` and ``ping`` cannot be looked for: Flask and Gatus have one, other tools and HTTP/2 the
other. Nor can words that are plain English in a sentence (known, place): those are names that say
nothing, and ruled out as names alone.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("app", "bench", "deploy", "docs", "scripts", "static", "templates", "tests")
TEXTS = {".css", ".html", ".js", ".md", ".py", ".service", ".toml", ".yml"}


@cache
def files() -> list[Path]:
    return sorted(
        {
            *ROOT.glob("*.md"),
            ROOT / "Makefile",
            *(path for part in PARTS for path in (ROOT / part).rglob("*") if path.suffix in TEXTS),
        }
        - {Path(__file__), ROOT / "CHANGELOG.md"}
    )


class Word(NamedTuple):
    """``name``: of a variable, function, parameter, attribute or class, in small letters and
    without underscores around it. ``prose``: in comments, docstrings, sentences and manuals.
    """

    say: str
    name: str | None = None
    prose: str | None = None


WORDS = (
    Word("failing or unconfirmed", r"(.*_)?(doubted|is_suspect)(_.*)?", r"\bdoubted\b"),
    Word(
        "late",
        r"(.*_)?(overtaken|backdated|caught_up)(_.*)?",
        r"\b(overtaken|backdated|caught up)\b",
    ),
    Word(
        "notified, of people",
        r"(.*_)?told(_.*)?",
        r"(?i)\b(nobody|people|they|it|who) (is|are|was|were|be) (also )?told\b(?! to stop| apart)",
    ),
    Word("deferred or on hold", r"(.*_)?asleep(_.*)?", r"\basleep\b"),
    Word("what it says: answer, sentence, note", r"said"),
    Word("what is stored or cached: rows, names, settings", r"known"),
    Word("what it holds: tokens, on_hold, buffered", r"held"),
    Word("what was read or matched: row, monitor, matches", r"found"),
    Word("what was observed: check, place, count", r"seen"),
    Word("the noun of what it is: monitor, row, delivery", r"one|this|these|that|those|it|them"),
    Word(
        "who or what: a sentence with a subject",
        prose=r"^((Of|Those|The same of|That of|Also (of|those)|None (where|if|while))\b|As ``)",
    ),
)
# Names that are ruled out, and stay where others chose them.
ALLOWED = {
    "held": "the word of the API for a delivery on hold",
    "found": "the word of the API for what an answer has where an assertion looks",
    "known": "the word of the API for a subscriber who subscribes again, and an input of a form",
}

FIELDS_OF_API = {("app/records/assertions.py", "found")}

# Words and parts of names in any file, not within another word (heartbeat). Limits are MAX_ and
# MIN_.
RULED_OUT = re.compile(
    r"(?<![A-Za-z])(?i:beats?|beating|flip(s|ped|ping)?)(?![A-Za-z])"
    r"|\b_?(MOST|LEAST)(_[A-Z]|\b)|\b_?(LONGEST|SHORTEST|LARGEST|FEWEST)_[A-Z]"
)


# The nodes that ``names`` and ``prose`` read: one walk, because a module has thousands.
READ = (
    ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.Name,
    ast.Attribute, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.Call,
)  # fmt: skip
Nodes = list[ast.AST]


def nodes_of(text: str) -> Nodes:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, READ)]


def names(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """The names that a module binds, with their lines."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str()):
                yield node.lineno, node.asname or ""
            case (
                ast.ExceptHandler(name=str()) | ast.MatchAs(name=str()) | ast.MatchStar(name=str())
            ):
                yield node.lineno, node.name or ""


COMMENT = re.compile(r"^\s*#:? (?P<whole>.*)|\s{2}# (?P<beside>.*)")


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Each comment, with the lines below that go on with it."""
    start, words = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        match = COMMENT.search(line) if "#" in line else None
        if match and match["whole"] and words:
            words += f" {match['whole']}"
            continue
        if words:
            yield start, words
        start, words = number, (match["whole"] or match["beside"] or "") if match else ""
    yield start, words


MESSAGES = {"_", "N_", "_n", "debug", "info", "warning", "error", "exception"}


def prose(text: str, nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Comments, docstrings, log lines and sentences for people."""
    yield from comments(text)
    for node in nodes:
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if words := ast.get_docstring(node):
                    yield node.body[0].lineno, " ".join(words.split())
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
                if called in MESSAGES:
                    for argument in node.args:
                        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                            yield argument.lineno, argument.value


def sources() -> Iterator[tuple[str, str]]:
    """The modules of app/ and tests/."""
    folders = {ROOT / "app", ROOT / "tests"}
    paths = [path for path in files() if path.suffix == ".py" and {*path.parents} & folders]
    for path in paths:
        yield path.relative_to(ROOT).as_posix(), path.read_text()


@cache
def plain(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).strip("_").lower()


def identifiers(table: symtable.SymbolTable) -> set[str]:
    return {*table.get_identifiers()}.union(*map(identifiers, table.get_children()))


FORBIDDEN = "|".join(word.name for word in WORDS if word.name)
ATTRIBUTES = re.compile(rf"(?i)\._*({FORBIDDEN})_*\b(?![(.])")
OPENINGS = [word.prose.lstrip("^") for word in WORDS if word.prose and word.prose[0] == "^"]
PROSE = [word.prose for word in WORDS if word.prose and word.prose[0] != "^"]


def is_worth_parsing(text: str) -> bool:
    """Whether a module may have a fault. Most have none, and the compiler lists the names of a
    module in a third of the time that it takes to make and walk its nodes.
    """
    bound = identifiers(symtable.symtable(text, "", "exec"))
    line = re.sub(r"[\s#\"']+", " ", text)
    return bool(
        any(word_for(plain(name)) for name in bound)
        or ATTRIBUTES.search(text)
        or any(re.search(rf"[\"'#:]\s*{opening}", text) for opening in OPENINGS)
        or any(re.search(pattern, line) for pattern in PROSE)
    )


def faults(name: str, text: str) -> Iterator[str]:
    if not is_worth_parsing(text):
        return
    nodes = nodes_of(text)
    for line, bound in names(nodes):
        word = word_for(plain(bound))
        of_api = bound.isupper() or (name, bound) in FIELDS_OF_API
        if word and not (of_api and plain(bound) in ALLOWED):
            yield f"{name}:{line}: {bound}: say {word.say}"
    for line, sentence in prose(text, nodes):
        for word in WORDS:
            if word.prose and (match := re.search(word.prose, sentence)):
                yield f"{name}:{line}: {match[0]!r} in {sentence[:60]!r}: say {word.say}"


@cache
def word_for(name: str) -> Word | None:
    fitting = (word for word in WORDS if word.name and re.fullmatch(word.name, name))
    return next(fitting, None)


def test_names_comments_and_sentences_have_the_words_of_the_table():
    assert len(files()) > 700
    wrong = [fault for source in sources() for fault in faults(*source)]
    assert wrong == []


# Names that templates and scripts bind.
BOUND = re.compile(
    r"\{%-? (?:set|for|macro) (?P<jinja>\w+)|\b(?:const|let|function) (?P<script>\w+)"
    r"|(?:\(|, |^|\s)(?P<parameter>\w+)\)? =>"
)


def test_templates_and_scripts_bind_no_name_that_says_nothing():
    folders = {"static", "templates"}
    paths = [path for path in files() if path.relative_to(ROOT).parts[0] in folders]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {bound}: say {word.say}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in BOUND.finditer(line)
        for bound in filter(None, match.groups())
        if (word := word_for(plain(bound)))
    ]
    assert wrong == []


def test_manuals_have_the_words_of_the_table():
    paths = [
        path for path in files() if path.suffix in {".md", ".html"} and "tests" not in path.parts
    ]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}: say {word.say}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for word in WORDS
        if word.prose and "^" not in word.prose
        for match in re.finditer(word.prose, line)
    ]
    assert wrong == []


def test_no_file_has_a_word_that_is_ruled_out():
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if RULED_OUT.search(line)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    ["def beat(self)", "last_beat = 1", "the state flips", "Beating", "MOST_ROWS", "_LONGEST_LINE"],
)
def test_words_that_are_ruled_out_are_seen_in_names(line: str):
    assert RULED_OUT.search(line)
    assert not RULED_OUT.search("heartbeat upbeat flipper HEARTBEAT_URL")


def test_a_class_name_stands_for_one_thing():
    """``Meta`` is WTForms' own: each form may have one."""
    classes = re.compile(r"^ *class (\w+)[(:]", re.MULTILINE)
    paths = (ROOT / "app").rglob("*.py")
    stands = Counter(name for path in paths for name in classes.findall(path.read_text()))
    assert stands["Monitor"] == 1
    assert [name for name, number in stands.items() if number > 1 and name != "Meta"] == []


SAMPLES = {
    "for one in rows: pass": "one",
    "self._seen = {}": "_seen",
    "lambda told: told": "told",
    "class Seen: pass": "Seen",
    "with lock as held: pass": "held",
    "# Those of several places overlap.": "Those",
    'def title(): "None where it is the server\'s own."': "None where",
    '_("Nobody is told of this.")': "told",
    'log.info("it was overtaken")': "overtaken",
}


@pytest.mark.parametrize("source", SAMPLES)
def test_words_are_found(source: str):
    assert SAMPLES[source].lower() in " ".join(faults("app/a.py", source)).lower()


def test_other_words_are_let_alone():
    source = (
        '"""The heartbeat of a place, known to be upbeat: flipper, told apart."""\n'
        "HELD = 'held'\nheartbeat = last_seen_at = found_late = placement = 1\n"
        "# As soon as one of those is known, None is returned.\n"
    )
    assert list(faults("app/a.py", source)) == []
