"""What tests share: settings that no environment reaches, and a fresh database for each test.

    database_url   a migrated, empty database: SQLite
    settings       Settings on it: checks may reach loopback, nothing waits for long
    core           what the engine runs in: the application without stores and pages
    app            the whole application; no context is pushed, so requests stay apart as in life
    client         app's test client

``@pytest.mark.both_databases`` runs a test again on PostgreSQL. It is for SQL, locks, types,
concurrency and migrations, where the databases differ; ``pytestmark`` marks a whole module.
``@pytest.mark.settings(rate_limit=5)`` replaces single settings.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import hypothesis
import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket
from sqlalchemy import Engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache
from werkzeug.routing import Map, Rule, RuleFactory

from app import create_app, create_core
from app.access import passwords, sent_forms
from app.config import PREFIX, Settings
from app.db import db, schema
from app.engine import now
from app.templating import Missing
from tests.support.once import once

if TYPE_CHECKING:
    # Imported here, pytest could no longer rewrite the plugin's assertions, and says so.
    from tests.support.postgres import Server

pytest_plugins = [
    "tests.support.agents",
    "tests.support.browser",
    "tests.support.postgres",
    "tests.support.redis",
]

SECRET_KEY = "a secret key for tests only"
HERE = Path(__file__).parent
COMPILE_SECONDS = 60  # how long workers wait for what the first one compiles


def pytest_configure(config: pytest.Config) -> None:
    # The same examples in every run, and no limit on the time that each takes on a busy machine.
    hypothesis.settings.load_profile("ci")
    Missing.strict = True  # a wrong name in a template fails
    # A developer's own settings must not decide whether a test passes, here or in a child process.
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    # Nor a proxy: the tests' own clients would ask it for servers on loopback.
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    # A run in the background inherits that Ctrl-C is ignored, and so would what is stopped by it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()  # nothing of what is collected becomes garbage
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0" and _nothing_is_compiled():
        _wait_for_the_first(getattr(session.config, "cache", None))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what has been imported and collected out of all later searches for garbage, which are
    a tenth of what tests cost otherwise, and search more rarely.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)  # with those of Python, a tenth of what tests cost
    gc.enable()
    cache = getattr(session.config, "cache", None)  # absent where somebody switches it off
    if cache and os.environ.get("PYTEST_XDIST_WORKER") == "gw0":
        cache.set(COLLECTED, os.environ["PYTEST_XDIST_TESTRUNUID"])


COLLECTED = "wakeful/collected"  # the last run whose first worker has collected


def _nothing_is_compiled() -> bool:
    """In a fresh clone: pytest has rewritten no assertions of the folder that comes last."""
    found = (HERE / "web" / "__pycache__").glob("test_*-pytest-*.pyc")
    return not sys.dont_write_bytecode and next(found, None) is None


def _wait_for_the_first(cache: pytest.Cache | None) -> None:
    """The first worker compiles the tests, and the others read what it wrote: compiling them takes
    as long as collecting them twice.
    """
    run, deadline = os.environ["PYTEST_XDIST_TESTRUNUID"], time.monotonic() + COMPILE_SECONDS
    while cache and cache.get(COLLECTED, None) != run and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three times as many as cores: more than half of a test's time is spent waiting, for a
    browser, a database, a service that starts or a moment that comes. With twice as many, a quarter
    of the processor's time was unused.
    """
    return 3 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = _slow_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _slow_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """What takes longest comes first: started last, it runs alone while all other workers are done.

    Each worker begins with a share of the same length. The slow tests wait more than they compute,
    so every other worker gets them: fewer would take longer than the rest with everything else,
    and all at once would leave the processor idle first and short later. Those that may take
    longest come before the other slow ones: a share of them takes half of the run.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    slow.sort(key=_time_limit, reverse=True)
    others = [item for item in items if not item.get_closest_marker("slow")]
    ordered, left = [], len(items)
    for worker in range(workers):
        share = left // (workers - worker)
        first = slow[worker // 2 :: (workers + 1) // 2] if worker % 2 == 0 else []
        ordered += first
        rest = max(0, share - len(first))
        ordered += others[:rest]
        others, left = others[rest:], left - len(first) - rest
    return ordered + others


def _time_limit(item: pytest.Item) -> float:
    """Seconds that its own mark allows; 0 where it has none."""
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark else 0.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = metafunc.definition.get_closest_marker("both_databases")
    if marked and "database_url" in metafunc.fixturenames:
        kinds = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
        metafunc.parametrize("database_url", kinds, indirect=True)


@pytest.fixture(scope="session", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    """Hashes of the same kind that take no time: the real ones are slow on purpose, and every
    test with a login makes several.
    """
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    nobody = cheap.hash("nobody has this password")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", cheap)
        patch.setattr(passwords, "_nobody", lambda: nobody)
        yield


@pytest.fixture(scope="session", autouse=True)
def _templates_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each application compiles its templates; with a cache, only the first one in the run does."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # which all workers share
    cache = folder / "templates"
    cache.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "jinja_options", {"bytecode_cache": _Compiled(cache)})
        yield


class _Compiled(FileSystemBytecodeCache):
    """Templates that a process has read once it does not read again."""

    def __init__(self, directory: Path) -> None:
        super().__init__(str(directory))
        self.read: dict[tuple[str, str], Any] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self.read.get((bucket.key, bucket.checksum))
        if bucket.code is None:
            super().load_bytecode(bucket)
            self.read[bucket.key, bucket.checksum] = bucket.code


@pytest.fixture(scope="session", autouse=True)
def _statements_compiled_once() -> Iterator[None]:
    """Each application's engine compiles its statements; here those of one kind of database share
    what they have compiled, which is a quarter of what most tests cost.
    """
    shared = LRUCache[Any, Any](5000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DefaultDialect, "__eq__", lambda one, other: type(one) is type(other))
        patch.setattr(DefaultDialect, "__hash__", lambda one: hash(type(one)))
        # An engine makes a cache of its own when it is made: that one is not taken.
        cache = property(lambda engine: shared, lambda engine, own: None)
        patch.setattr(Engine, "_compiled_cache", cache, raising=False)
        yield


class _SharedMap(Map):
    """The addresses of an application. Those of a later one with the same addresses, read in the
    same way, are the same objects: to compile and order them is most of what creating an
    application costs otherwise. No test may change one.
    """

    ready: ClassVar[dict[object, Map]] = {}
    one_thread: ClassVar[threading.Lock] = threading.Lock()
    _added: tuple[Rule, ...] = ()

    def add(self, rulefactory: RuleFactory) -> None:
        """Only ``update``, which comes before any use, does something with them."""
        self._added = (*self._added, *rulefactory.get_rules(self))
        self._remap = True

    def update(self) -> None:
        if not self._remap:
            return
        with self.one_thread:  # a browser's first requests come at once
            if self._remap:
                self._join()

    def _join(self) -> None:
        how = (self.strict_slashes, self.merge_slashes, self.host_matching, self.default_subdomain)
        key = (how, *self.converters.items(), *map(_identity, self._added))
        if key not in self.ready:
            for rule in self._added:
                super().add(rule)
            super().update()
            self.ready[key] = self
        first = self.ready[key]
        self._matcher, self._rules_by_endpoint = first._matcher, first._rules_by_endpoint
        self._remap = False


def _identity(rule: Rule) -> object:
    """What makes the addresses of two applications the same."""
    assert rule.map is None, "No address can be added after the first request."
    assert not any((rule.defaults, rule.host, rule.alias, rule.redirect_to))
    options = getattr(rule, "provide_automatic_options", False)
    kind = (rule.subdomain, rule.build_only, rule.websocket, options)
    slashes = (rule.strict_slashes, rule.merge_slashes)
    return (rule.rule, rule.endpoint, frozenset(rule.methods or ()), *kind, *slashes)


@pytest.fixture(scope="session", autouse=True)
def _addresses_compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "url_map_class", _SharedMap)
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


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if getattr(request, "param", "sqlite") == "postgresql":
        url: str = request.getfixturevalue("postgres_url")
        return url
    path = tmp_path / "wakeful.db"
    shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
    return f"sqlite:///{path}"


@pytest.fixture
def settings(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Settings:
    fields = {
        "instance": tmp_path,
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
def core(settings: Settings) -> Iterator[Flask]:
    yield from _open(create_core(settings))


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    app = create_app(settings)
    app.testing = True
    yield from _open(app)


def _open(app: Flask) -> Iterator[Flask]:
    yield app
    now.close(app)
    with app.app_context():
        db.engine.dispose()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture(autouse=True)
def each_form_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests load a page again within the second in which they sent its form. Both pages then have
    the same CSRF token, which a person's never have, so the second form would count as a repeat.
    """
    monkeypatch.setattr(sent_forms, "SAME_FOR", timedelta(0))
