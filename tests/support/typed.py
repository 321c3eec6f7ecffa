"""``wakeful WORDS`` as typed, in the test's own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from app import create_core
from app.access import Access
from app.commands import cli as command
from app.config import read
from app.db import db


class Main:
    """``main``, in the shape that click's runner calls."""

    name = "wakeful"

    def main(self, args: object, prog_name: object, **_options: object) -> None:
        command.main()


def typing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Types a command; returns its exit code, standard output and standard error."""

    def run(*words: str, input: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["wakeful", *words])
        result = CliRunner().invoke(Main(), list(words), input=input)
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        return result.exit_code, result.stdout, result.stderr

    return run


def install_at(folder: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without anything: no folder, no database, no key."""
    monkeypatch.setenv("WAKEFUL_INSTANCE", str(folder))
    monkeypatch.setenv("WAKEFUL_ALLOW_NETWORKS", "loopback")


@contextmanager
def access() -> Iterator[Access]:
    """The people of the installation, in its context."""
    with create_core(read()).app_context():
        yield Access()
        db.session.remove()
        db.engine.dispose()
