"""The manuals: links lead somewhere, and the commands, settings and files that they name exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click
import pytest

from app.commands.cli import cli, load
from app.config import PREFIX, SETTING_NAMES

ROOT = Path(__file__).parents[1]
MANUALS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/*/README.md")])
NAMES = [path.relative_to(ROOT).as_posix() for path in MANUALS]
DECISIONS = ROOT / "docs" / "decisions.md"
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)|\[[^\]]*\n[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`|^ {4,}(.+)$", re.MULTILINE)
# Names of no setting: the beginning of several, in a sentence about all.
BEGINNINGS = {""}


@cache
def anchors(path: Path) -> set[str]:
    """How GitHub names the headings of a manual."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def code_of(path: Path) -> list[str]:
    return [inline or block for inline, block in CODE.findall(path.read_text())]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_files_and_headings_that_exist(name: str):
    path = ROOT / name
    for first, second in LINK.findall(path.read_text()):
        target, _hash, anchor = (first or second).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), f"{name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{name}: {target}#{anchor}"


@pytest.mark.parametrize("name", NAMES)
def test_commands_and_their_options_exist(name: str):
    for code in code_of(ROOT / name):
        for words in re.findall(r"(?:^|[\s/(;&$])wakeful ([a-z][^|;&#()]*)", code):
            arguments = words.split()
            command = cli.commands.get(arguments[0])
            if command is None and _is_no_command(code):
                continue
            assert command is not None, f"{name}: {code}"
            command = load(command)
            if isinstance(command, click.Group) and len(arguments) > 1 and arguments[1].isalpha():
                assert arguments[1] in command.commands, f"{name}: {code}"
                command = command.commands[arguments[1]]
            options_of_command = {
                option for parameter in command.params for option in parameter.opts
            }
            options = [word.split("=")[0] for word in arguments if word.startswith("--")]
            assert set(options) <= options_of_command | {"--help"}, f"{name}: {code}"


def _is_no_command(code: str) -> bool:
    """Lines in which the word is a name: of a user, a container, a service of compose or a
    database.
    """
    return bool(re.search(r"(useradd|docker|chown|createdb|createuser|hostssl|server_name) ", code))


@pytest.mark.parametrize("name", NAMES)
def test_settings_exist(name: str):
    text = (ROOT / name).read_text()
    for setting in re.findall(rf"\b{PREFIX}([A-Z_]*)", text):
        assert setting in SETTING_NAMES | BEGINNINGS, f"{name}: {PREFIX}{setting}"


def test_the_manual_lists_each_setting_once():
    table = (ROOT / "docs" / "settings.md").read_text()
    cells = re.findall(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \|", table, re.MULTILINE)
    listed = [setting for cell in cells for setting in re.findall(r"[A-Z_]+", cell)]
    assert sorted(listed) == sorted(SETTING_NAMES)


def test_files_of_deploy_and_targets_of_make_exist():
    targets = re.findall(r"^([a-z][a-z0-9.-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for path in MANUALS:
        for code in code_of(path):
            for file in re.findall(r"(?<!tests/)\bdeploy/[\w./*-]+", code):
                if file != "deploy/.env":  # made by whoever follows the manual
                    assert list(ROOT.glob(file.rstrip("./"))), f"{path.name}: {file}"
            for target in re.findall(r"^make ([a-z][\w.-]*)", code):
                assert target in targets, f"{path.name}: {code}"


def test_each_file_of_deploy_is_in_the_manual():
    manual = (ROOT / "docs" / "operate.md").read_text()
    for path in (ROOT / "deploy").rglob("*"):
        if path.is_file() and path.name not in (".env", "wakeful"):
            named = path.name in manual or path.with_suffix("").name in manual
            assert named, path.relative_to(ROOT)


def test_every_decision_and_section_of_the_api_that_is_cited_exists():
    """As "decision 12", a section of docs/decisions.md, and "API 3.1", one of docs/api.md."""
    sections = {
        word: set(re.findall(r"^#+ ([\d.]+?)\.? ", path.read_text(), re.MULTILINE))
        for word, path in (("decision", DECISIONS), ("API", ROOT / "docs" / "api.md"))
    }
    for path in [*ROOT.glob("app/**/*.py"), *ROOT.glob("tests/**/*.py"), *MANUALS]:
        text = path.read_text()
        for word, first, others in re.findall(
            r"\b(decision|API)s?\s+(?:# )?(\d+(?:\.\d+)?)((?:,? (?:and )?\d+\b)*)", text
        ):
            for number in [first, *re.findall(r"\d+", others)]:
                assert number in sections[word], f"{path.relative_to(ROOT)}: {word} {number}"


def test_every_test_that_a_manual_names_exists():
    named = set()
    for path in MANUALS:
        for code in code_of(path):
            named |= set(re.findall(r"tests/[\w/]+\.py", code))
    assert len(named) > 30
    assert [test_path for test_path in sorted(named) if not (ROOT / test_path).exists()] == []
