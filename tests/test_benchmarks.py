"""Measurements start as the manuals say, without a server that somebody prepared."""

from __future__ import annotations

import importlib
import re
import shlex
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import databases
from bench.relay import Relay

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path.stem for path in (ROOT / "bench").glob("*.py") if "\ndef main(" in path.read_text()
)
MANUALS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "bench" / "README.md"]
COMMAND = re.compile(r'make bench-(\w+)(?: ARGS="([^"]*)")?|python -m bench\.(\w+)([^`#\n]*)')


def help_of(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as end:
        importlib.import_module(f"bench.{name}").main()
    assert end.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", MODULES)
def test_no_measurement_needs_an_argument(name, capsys, monkeypatch):
    usage, _blank, _rest = help_of(name, capsys, monkeypatch).partition("\n\n")
    usage = (
        usage.removeprefix("usage: ").replace(f"python -m bench.{name}", "").replace(name, "", 1)
    )
    assert re.sub(r"\[[^\]]*\]", "", usage).strip() == ""


@pytest.mark.parametrize("name", MODULES)
def test_make_installs_the_servers_that_a_measurement_starts(name):
    source = (ROOT / "bench" / f"{name}.py").read_text()
    recipes = re.findall(
        rf"^bench-{name}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    servers = {"nginx": r"\btarget\(Path|_nginx\(", "postgresql": r"databases\.|own_server\(",
               "redis-server": r"\bRedis\("}  # fmt: skip
    for recipe in recipes:
        for server, pattern in servers.items():
            assert (server in recipe) == bool(re.search(pattern, source)), server


@pytest.mark.parametrize("path", MANUALS, ids=lambda path: str(path.relative_to(ROOT)))
def test_options_of_measurements_exist(path, capsys, monkeypatch):
    for target, arguments, module, rest in COMMAND.findall(path.read_text()):
        name = target or module
        help_text = help_of(name, capsys, monkeypatch)
        for word in shlex.split(arguments or rest):
            assert (
                not word.startswith("--") or f"{word} " in help_text or f"{word}]" in help_text
            ), word


@pytest.mark.more
def test_a_database_is_started_and_stopped(postgres_server, tmp_path):
    with databases.database(databases.POSTGRES, tmp_path) as url:
        assert url.startswith("postgresql+psycopg://")
        folder = Path(url.partition("host=")[2])
        assert (folder / "data" / "postmaster.pid").exists()
    assert not folder.exists()


def test_a_database_that_is_named_is_used(tmp_path):
    with databases.database("postgresql://there/empty", tmp_path) as url:
        assert url == "postgresql://there/empty"
    with databases.database(databases.SQLITE, tmp_path) as url:
        assert url == f"sqlite:///{tmp_path / 'wakeful.db'}"


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that answers once, in capitals, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def once() -> None:
            there, _address = server.accept()
            with there:
                there.sendall(there.recv(100).upper())

        thread = threading.Thread(target=once)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("round_trip", [0.0, 0.2])
def test_the_relay_counts_what_passes_and_takes_its_time(echo, round_trip):
    relay = Relay(echo, round_trip)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", relay.port)) as here:
        here.sendall(b"hello")
        assert here.recv(100) == b"HELLO"
        assert time.monotonic() - began >= 2 * round_trip, "to open, and to ask"
        assert here.recv(100) == b"", "that the server hung up is handed on too"
    relay.close()
    assert relay.bytes == 10
