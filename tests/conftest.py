"""Fixtures of all tests: settings that no environment reaches, and a fresh database for each test.

    database_url   a migrated, empty database: SQLite
    settings       Settings on it: checks may reach loopback, nothing waits for long
    core           what the engine runs in: the application without stores and pages
    app            the whole application; no context is pushed, so requests stay apart as in life
    client         app's test client
    tokyo          the zone of the machine

``@pytest.mark.both_databases`` runs a test again on PostgreSQL. It is for SQL, locks, types,
concurrency and migrations, where the databases differ; ``pytestmark`` marks a whole module.
``@pytest.mark.settings(rate_limit=5)`` replaces single settings.

Tests with the same settings share an application, as the requests of a process do: its addresses,
templates and statements are compiled once. Before each test it forgets what it has cached
(``app.renew``), and its database is put in place anew.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient

from app import create_app, create_core
from app.access import passwords, sent_forms
from app.config import PREFIX, Settings
from app.db import db, schema
from app.templating import Missing
from tests.support.once import once

if TYPE_CHECKING:
    # Imported here, pytest could no longer rewrite the plugin's assertions, and says so.
    from tests.support.applications import Applications
    from tests.support.postgres import Server

pytest_plugins = [
    "tests.alerts.sinks",
    "tests.support.clock",
    "tests.support.checkers",
    "tests.support.agents",
    "tests.support.applications",
    "tests.support.browser",
    "tests.support.order",
    "tests.support.plans",
    "tests.support.postgres",
    "tests.support.redis",
    "tests.support.queue",
]

SECRET_KEY = "a secret key for tests only"


# The same examples in every run, and no limit on the time that each takes on a busy machine.
hypothesis.settings.register_profile(
    "thousands", hypothesis.settings.get_profile("ci"), max_examples=3_000
)


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile(config.getoption("--hypothesis-profile") or "ci")
    Missing.strict = True  # a wrong name in a template fails
    # A developer's own settings must not decide whether a test passes, here or in a child process.
    # Nor may a proxy: the tests' own clients would ask it for servers on loopback.
    for name in [*os.environ]:
        if name.startswith(PREFIX) or name.lower().endswith("_proxy"):
            del os.environ[name]
    # A run in the background inherits that Ctrl-C is ignored, and so would what is stopped by it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = metafunc.definition.get_closest_marker("both_databases")
    if marked and "database_url" in metafunc.fixturenames:
        kinds = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
        metafunc.parametrize("database_url", kinds, indirect=True)


@pytest.fixture(scope="session", autouse=True)
def _no_waits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Hashes are slow on purpose, and every test with a login makes several.
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        patch.setattr(passwords, "_hasher", cheap)
        cost = {"time_cost": 1, "memory_cost": 8, "parallelism": 1, "hash_len": 32}
        patch.setattr(passwords, "DIGEST_COST", cost)
        # Tests load a page again within the second in which they sent its form. Both pages have the
        # same CSRF token, which a person's never have, so the second form would count as a repeat.
        patch.setattr(sent_forms, "DOUBLE_CLICK_WINDOW", timedelta(0))
        yield


def _migrate(url: str, instance: Path) -> None:
    app = create_core(Settings(instance=instance, database_url=url, secret_key=SECRET_KEY))
    with app.app_context():
        schema.upgrade()
        db.engine.dispose()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Migrated once in a run, by the first worker that asks."""

    def make(folder: Path) -> None:
        _migrate(f"sqlite:///{folder / 'wakeful.db'}", folder)

    return once(tmp_path_factory, "migrated", make) / "wakeful.db"


@pytest.fixture(scope="session")
def postgres_template(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("template")
    return postgres_server.template("migrated", lambda url: _migrate(url, directory))


@pytest.fixture(scope="session")
def _instances() -> list[Path]:
    """The folder that the last test had as its instance."""
    return []


@pytest.fixture
def instance(tmp_path_factory: pytest.TempPathFactory, _instances: list[Path]) -> Path:
    """An empty folder, the same one for each test of a process."""
    if _instances and _is_in_use(_instances[-1]):
        _instances.clear()
    if not _instances:
        _instances.append(tmp_path_factory.mktemp("instance"))
    (folder,) = _instances
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


def _is_in_use(folder: Path) -> bool:
    """Whether something that the last test left behind still has the database open: closed later,
    it would remove the write-ahead log of the next one.
    """
    if any(folder.glob("*.db-wal")):
        gc.collect()  # of an application that the test made for itself
    return any(folder.glob("*.db-wal"))


@pytest.fixture
def database_url(request: pytest.FixtureRequest, instance: Path) -> str:
    if getattr(request, "param", "sqlite") == "postgresql":
        url: str = request.getfixturevalue("postgres_url")
        return url
    shutil.copyfile(request.getfixturevalue("sqlite_template"), instance / "wakeful.db")
    return f"sqlite:///{instance / 'wakeful.db'}"


@pytest.fixture
def settings(request: pytest.FixtureRequest, database_url: str, instance: Path) -> Settings:
    fields = {
        "instance": instance,
        "database_url": database_url,
        "secret_key": SECRET_KEY,
        "allow_networks": "loopback",
        "subscriber_networks": "loopback",
        "confirm_seconds": 0.05,
        "canaries": "",
        "public_url": "http://wakeful.test",
    }
    for marker in reversed(list(request.node.iter_markers("settings"))):  # the nearest wins
        fields |= marker.kwargs
    return Settings(**fields)


@pytest.fixture
def core(settings: Settings, applications: Applications) -> Iterator[Flask]:
    with applications.opened(create_core, settings) as core:
        yield core


@pytest.fixture
def app(settings: Settings, applications: Applications) -> Iterator[Flask]:
    with applications.opened(create_app, settings) as app:
        yield app


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine's own zone is not UTC, so a time that is read in it by mistake is another one."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()
