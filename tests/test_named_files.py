"""The files that comments, docstrings and manuals name exist, and so do the settings, commands and
targets of make in comments and docstrings (``test_manuals.py`` has those of manuals). A reader who
follows a name to a file that was moved searches the whole tree for it.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from app.commands.cli import cli
from app.config import PREFIX, SETTING_NAMES

ROOT = Path(__file__).parents[1]
TREE = ("app", "bench", "deploy", "docs", "requirements", "scripts", "static", "templates", "tests")
ROOMS = frozenset(path.name for path in (ROOT / "app").iterdir() if path.is_dir())
SOURCES = [
    path for part in ("app", "bench", "tests") for path in sorted(ROOT.glob(f"{part}/**/*.py"))
]
MANUALS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/**/README.md")])
MANUALS = [path for path in MANUALS if path.relative_to(ROOT).parts[0] in (*TREE, path.name)]

SLASHED = re.compile(r"(?<![\w/.:~%-])(?:[\w.-]+/)+[\w.-]*\w(?![\w/{*])")
ALONE = re.compile(r"(?<![\w/.{*-])[\w-]+\.(?:py|css|js|html)\b")
SPAN = re.compile(r"`([^`\n]+)`|^ {4,}(.+)$", re.MULTILINE)
LONG_OR_COMMENT = re.compile(r'"""(.*?)"""|(?:^|\s)# ([^\n]+)', re.DOTALL)
COMMAND = re.compile(r"``wakeful ([a-z-]+)")
TARGET = re.compile(r"``make ([a-z0-9.-]+)")
SETTING = re.compile(rf"\b{PREFIX}([A-Z_]*[A-Z])\b")
EXAMPLE = re.compile(r"(?:^|/)[A-Z]{2,}(?:/|$)")  # static/css/pages/NAME
MADE = {"deploy/.env"}  # by whoever follows the manual


@cache
def text(path: Path) -> str:
    """The comments and long strings of a module, or what a manual writes as code."""
    source = path.read_text()
    matches = SPAN.findall(source) if path.suffix == ".md" else LONG_OR_COMMENT.findall(source)
    return "\n".join(first or second for first, second in matches)


@cache
def names() -> frozenset[str]:
    return frozenset(path.name for part in TREE for path in (ROOT / part).rglob("*"))


def missing(words: str) -> list[str]:
    """The files that ``words`` names and that are not there. A name with a slash is a file if it
    begins as one of ours does; one without may lie in any folder.
    """
    files = []
    for name in SLASHED.findall(words):
        first = name.partition("/")[0]
        if name in MADE or EXAMPLE.search(name):
            continue
        if first in TREE:
            there = [ROOT / name]
        elif first in ROOMS:
            there = [ROOT / "app" / name, ROOT / "tests" / name, ROOT / "app" / "web" / name]
        else:
            continue
        if not any(path.exists() or path.with_name(f"{path.name}.py").exists() for path in there):
            files.append(name)
    return files + [name for name in ALONE.findall(words) if name not in names()]


def here(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_a_file_that_was_moved_is_found_out():
    words = "See ``app/stats/rollup.py``, engine/nobody, ``nowhere.py`` and db/rollups, plan.py."
    assert missing(words) == ["app/stats/rollup.py", "engine/nobody", "nowhere.py"]
    assert missing("HTTP/1.1, text/html, a/b, https://a.example/app/x, static/css/pages/NAME") == []


def test_files_exist():
    assert len(SOURCES) > 500
    assert len(MANUALS) > 10
    wrong = {here(path): missing(text(path)) for path in [*SOURCES, *MANUALS]}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_the_modules_that_a_package_lists_exist():
    """A list is lines of a name, two spaces or more, and words."""
    listed = re.compile(r"^ *([a-z_]+)/? {2,}\S", re.MULTILINE)
    for path in (ROOT / "app").glob("**/__init__.py"):
        documentation = ast.get_docstring(ast.parse(path.read_text())) or ""
        modules = {file.stem for file in path.parent.iterdir()}
        assert set(listed.findall(documentation)) <= modules, here(path)


def test_settings_commands_and_targets_of_make_exist():
    targets = set(
        re.findall(r"^([a-z][a-z0-9.-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    )
    for path in SOURCES:
        named = text(path)
        assert set(COMMAND.findall(named)) <= set(cli.commands), here(path)
        assert set(TARGET.findall(named)) <= targets, here(path)
        assert set(SETTING.findall(named)) <= SETTING_NAMES, here(path)
