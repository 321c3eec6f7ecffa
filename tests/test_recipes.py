"""The recipes of CONTRIBUTING.md name every file that the newest thing of their kind touches, and
no other: whoever follows one need not search for what it forgot.

A recipe is a list. The paths before an item's colon are its files: each exact path names the thing;
of a path with ``*``, one file at least does. Tests of other things may use it by the way: such a
path allows for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXTS = {".css", ".html", ".js", ".json", ".md", ".py", ".yaml", ".yml"}
LEFT_OUT = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/changelog.md",  # the same file
    "tests/test_recipes.py",
    # What the first version had is in no migration but the one to it.
    "app/db/migrations/versions/0055_first_version.py",
    "app/api/me.py",  # words from before the level of the API: they grow no more
}
FOLDERS = ("app", "templates", "static", "docs", "tests")
ITEM = re.compile(r"^- ((?:`[^`]+`(?:, |,\n  )?)+):", re.MULTILINE)


@dataclass(frozen=True)
class AuditedObject:
    """``word``: how files name it, and nothing else. ``recipes``: the headings of its steps."""

    word: str
    recipes: tuple[str, ...]


FIELD = "How to add a field to the monitor"
THINGS = {
    "field": AuditedObject(r"\bremind_after\b", (FIELD,)),
    "field of a check": AuditedObject(
        r"\bslow_after\b",
        (FIELD, "If a check needs the field", "If the form says what its value would have led to"),
    ),
    "kind": AuditedObject(
        r'\bping://|\bchecks[./]ping\b|    ping/  |At\("ping"|\bicmp\.|net[./]icmp',
        ("How to add a kind of check",),
    ),
    "source": AuditedObject(
        r"(?i)\bbetter ?stack\b(?!'s heartbeats)", ("How to add a source of imports",)
    ),
    "resource": AuditedObject(
        r"(?i)\bpost_?templates?(Row|Form|Editing|s)?\b", ("How to add a resource",)
    ),
    "channel": AuditedObject(r"(?i)\bopsgenie\b", ("How to add an alert channel",)),
    "page": AuditedObject(
        r"\baudit\.(index|export)\b|\"/?audit/|\"/audit\b|'audit\.", ("How to add a page",)
    ),
}


@cache
def files() -> tuple[tuple[str, str], ...]:
    return tuple(_files())


def _files() -> Iterator[tuple[str, str]]:
    paths = [ROOT / "README.md", *(path for name in FOLDERS for path in (ROOT / name).rglob("*"))]
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in TEXTS and name not in LEFT_OUT and "__pycache__" not in name:
            yield name, path.read_text()


def steps(heading: str) -> list[str]:
    """The paths of the recipe under ``heading``."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    [section] = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.S)
    return re.findall(r"`([^`]+)`", " ".join(ITEM.findall(section)))


@pytest.mark.parametrize("thing", THINGS.values(), ids=THINGS)
def test_a_recipe_names_the_files_of_the_newest_thing(thing: AuditedObject):
    paths = {path for heading in thing.recipes for path in steps(heading)}
    naming = {name for name, text in files() if re.search(thing.word, text)}
    missing = sorted(name for name in naming if not any(_fits(name, path) for path in paths))
    idle = sorted(path for path in paths if not any(_fits(name, path) for name in naming))
    assert (missing, idle) == ([], []), "files that no step names, steps that no file follows"


def _fits(name: str, path: str) -> bool:
    """``*`` stands for a part of one name, not for folders."""
    return re.fullmatch("[^/]*".join(map(re.escape, path.split("*"))), name) is not None
