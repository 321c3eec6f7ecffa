"""Words that are ruled out stay out: one thing has one name, in code, pages and manuals.
Two more, ``endpoint`` and ``ping``, cannot be looked for: Flask and Gatus have one, other tools and
HTTP/2 the other.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = (
    "app",
    "bench",
    "deploy",
    "docs",
    "scripts",
    "static/css",
    "static/js",
    "templates",
    "tests",
)
TEXTS = {".css", ".html", ".js", ".md", ".py", ".service", ".toml", ".yml"}
FILES = [
    *ROOT.glob("*.md"),
    ROOT / "Makefile",
    *(one for part in PARTS for one in (ROOT / part).rglob("*") if one.suffix in TEXTS),
]
# As a word or as a part of a name, not within another word (heartbeat).
RULED_OUT = re.compile(
    r"(?<![A-Za-z])(beats?|beating|flip(s|ped|ping)?)(?![A-Za-z])", re.IGNORECASE
)


@pytest.mark.parametrize("line", ["def beat(self)", "last_beat = 1", "the state flips", "Beating"])
def test_words_are_found(line):
    assert RULED_OUT.search(line)


def test_other_words_are_let_alone():
    assert not RULED_OUT.search("heartbeat upbeat flipper HEARTBEAT_URL")


def test_no_file_has_a_word_that_is_ruled_out():
    assert len(FILES) > 700
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in set(FILES) - {Path(__file__)}
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if RULED_OUT.search(line)
    ]
    assert found == []
